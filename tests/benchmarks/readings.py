"""Compare readings of the paper: `python tests/benchmarks/readings.py OUTPUT.csv [--n-labeled 20]`.

The paper leaves choices open (scaling of the target, the loss's margins, the optimizer's state, ...).
Each reading changes the default in one respect or a few. On the seeds for choosing, 0 to 19, every
reading is run with step 1 alone, with both steps, and with a placebo: step 2 with its loss times
zero, where nothing but the optimizer's momentum acts. `acts` says how far step 2 moves predictions
from the placebo's, as a fraction of the MAE of step 1 alone.

Superconductivity and Air Quality take part if the environment variable DMLS2R_DATA names a folder
with their files from UCI.
"""

import os
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

from dmls2r_lite.data import Dataset, load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.placebos import null_loss

RAW = {"target_scaling": "none", "embedding": "raw"}
READINGS: dict[str, dict] = {
    "default": {},
    "target not scaled": {"target_scaling": "none"},
    "target standardised": {"target_scaling": "standard"},
    "raw embedding": {"embedding": "raw"},
    "raw embedding, target not scaled": RAW,
    "raw embedding, alpha 40, m 35, tau -0.5": {**RAW, "boundary": 40.0, "margin": 35.0, "temperature": -0.5},
    "separate Adam": {"optimizer_state": "separate"},
    "signed mining": {"miner": "signed"},
    "literal weights": {"weighting": "literal"},
    "equal weights (tau 0)": {"temperature": 0.0},
    "gradient through weights": {"weight_gradient": True},
    "metric before the last ReLU": {"metric_space": "before_relu"},
    "ten anchors a batch": {"anchor_batch_size": 10},
    "step 1 last": {"schedule": "alternate_pairwise_last"},
    "15 epochs of each step": {"n_epochs": 15},
    "all pairs in one batch": {"pair_batch_size": None},
}


def load_tables() -> list[Dataset]:
    """The datasets that are here; Air Quality in both readings of its missing values."""
    tables = [load_dataset(name) for name in ("boston", "diabetes", "friedman")]
    if os.environ.get("DMLS2R_DATA"):
        published = load_dataset("air_quality", missing="as_published")
        tables += [
            load_dataset("superconductivity"),
            load_dataset("air_quality"),
            replace(published, name="air_quality as published"),
        ]
    return tables


def run(dataset: Dataset, n_labeled: int, seed: int, changes: dict) -> dict:
    """One trial of one reading: MAE of three arms on one split."""
    torch.set_num_threads(1)
    split = split_dataset(dataset, n_labeled, dataset.n_unlabeled, seed, scale_on="none")

    def predict(**more) -> np.ndarray:
        model = DMLS2RRegressor(**{**changes, **more}, random_state=seed)
        return model.fit(split.X_train, split.y_train).predict(split.X_test)

    step_1 = predict(schedule="pairwise_only")
    both = predict()
    placebo = predict(metric_loss=null_loss)
    mae = {
        name: np.abs(y - split.y_test).mean()
        for name, y in [("step_1", step_1), ("both", both), ("placebo", placebo)]
    }
    return {"dataset": dataset.name, "n_labeled": n_labeled, "seed": seed, **mae,
            "acts": np.abs(both - placebo).mean() / mae["step_1"]}  # fmt: skip


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per reading, dataset and N."""
    rows = []
    for keys, cell in trials.groupby(["reading", "dataset", "n_labeled"], sort=False):
        difference = cell["both"] - cell["step_1"]
        rows.append(
            dict(zip(("reading", "dataset", "n_labeled"), keys, strict=True))
            | {name: round(cell[name].mean(), 4) for name in ("step_1", "both", "placebo", "acts")}
            | {"difference": round(difference.mean(), 4), "standard_error": round(difference.sem(), 4),
               "p_value": round(wilcoxon(difference).pvalue if difference.any() else 1.0, 5)}
        )  # fmt: skip
    return pd.DataFrame(rows)


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--n-labeled", type=int, multiple=True, default=(20,), show_default=True)
@click.option("--reading", "chosen", multiple=True, help="Only this reading; may be repeated.")
@click.option("--dataset", "only", multiple=True, help="Only this dataset; may be repeated.")
@click.option("--n-seeds", default=20, show_default=True)
@click.option("--first-seed", default=0, show_default=True)
@click.option("--n-jobs", default=2, show_default=True)
def main(
    output: Path,
    n_labeled: tuple[int, ...],
    chosen: tuple[str, ...],
    only: tuple[str, ...],
    n_seeds: int,
    first_seed: int,
    n_jobs: int,
) -> None:
    """Write a row per reading, dataset and N to OUTPUT."""
    parts = []
    for reading in chosen or READINGS:
        cells = [
            delayed(run)(dataset, n, seed, READINGS[reading])
            for dataset in load_tables()
            if not only or dataset.name in only
            for n in n_labeled
            for seed in range(first_seed, first_seed + n_seeds)
        ]
        parts.append(pd.DataFrame(Parallel(n_jobs=n_jobs)(cells)).assign(reading=reading))
        summary = summarize(pd.concat(parts))
        summary.to_csv(output, index=False)
        print(summary[summary["reading"] == reading].to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
