"""Compare readings of the paper: `python studies/readings.py OUTPUT.csv [--n-labeled 20]`.

The paper leaves choices open (scaling of the target, the loss's margins, the optimizer's state, ...).
Each reading changes the default in one respect or a few. On the seeds for choosing, 0 to 19, every
reading is run with step 1 alone, also with half the epochs, with both steps, and with a placebo: step 2
with its loss times zero, where nothing but the optimizer's momentum acts. `acts` says how far step 2 moves
predictions from the placebo's, as a fraction of the MAE of step 1 alone.

Superconductivity and Air Quality come from UCI, or from the folder that the environment variable
DMLS2R_DATA names.
"""

import itertools
from pathlib import Path

import click
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from dmls2r_lite.data import Dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.placebos import null_loss
from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.trials import load_benchmark_dataset, run_seeds

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
    "weights as printed": {"weighting": "literal"},
    "equal weights (tau 0)": {"temperature": 0.0},
    "gradient through weights": {"weight_gradient": True},
    "metric before the last ReLU": {"metric_space": "before_relu"},
    "ten anchors a batch": {"anchor_batch_size": 10},
    "step 1 last": {"n_epochs": 31},
    "30 epochs of each step": {"n_epochs": 60},
    "all pairs in one batch": {"pair_batch_size": None},
    "literal": {"target_scaling": "none", "pair_batch_size": 8},
}
ARMS: dict[str, dict] = {
    "step_1": {"schedule": "pairwise_only"},
    "half": {"schedule": "pairwise_only"},
    "both": {},
    "placebo": {"metric_loss": null_loss},
}


def predictions(model: DMLS2RRegressor, X_test: object, y_test: object) -> dict:
    return {"predicted": model.predict(X_test)}


def run(dataset: Dataset, n_labeled: int, seeds: list[int], changes: dict) -> list[dict]:
    """The trials of one reading on some splits: all arms, with how far step 2 moves predictions."""
    trials = {}
    for name, arm in ARMS.items():
        model = DMLS2RRegressor(**{**changes, **arm})
        model.n_epochs //= 2 if name == "half" else 1
        trials[name] = run_seeds(
            dataset, name, model, n_labeled, dataset.n_unlabeled, seeds, also=predictions
        )
    rows = []
    for of_seed in zip(*trials.values(), strict=True):
        arms = dict(zip(trials, of_seed, strict=True))
        predicted = {name: row.pop("predicted") for name, row in arms.items()}
        acts = np.abs(predicted["both"] - predicted["placebo"]).mean() / arms["step_1"]["mae"]
        rows += [{**row, "acts": acts} for row in of_seed]
    return rows


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per reading, dataset and N."""
    rows = []
    for (reading, dataset, n), cell in trials.groupby(["reading", "dataset", "n_labeled"], sort=False):
        compared = give_verdict(cell, "both", "step_1").loc[dataset, n]
        mae = cell.pivot(index="seed", columns="method", values="mae")
        rows.append(
            {
                **{"reading": reading, "dataset": dataset, "n_labeled": n},
                **mae[list(ARMS)].mean().round(4),
                "acts": round(cell["acts"].mean(), 4),
                "difference": round(compared["mean_difference"], 4),
                "standard_error": round((mae["both"] - mae["step_1"]).sem(), 4),
                "p_value": round(compared["p_value"], 5),
            }
        )
    return pd.DataFrame(rows)


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--n-labeled", type=int, multiple=True, default=(20,), show_default=True)
@click.option("--dataset", "datasets", multiple=True, default=("boston", "diabetes", "friedman"))
@click.option("--n-seeds", default=20, show_default=True)
@click.option("--first-seed", default=0, show_default=True)
def main(output: Path, n_labeled: list[int], datasets: list[str], n_seeds: int, first_seed: int) -> None:
    """Write a row per reading, dataset and N to OUTPUT."""
    parts, seeds = [], list(range(first_seed, first_seed + n_seeds))
    for reading, changes in READINGS.items():
        cells = [
            delayed(run)(dataset, n, seeds, changes)
            for dataset in map(load_benchmark_dataset, datasets)
            for n in n_labeled
        ]
        trials = itertools.chain(*Parallel(n_jobs=2)(cells))
        parts.append(pd.DataFrame(trials).assign(reading=reading))
        summary = summarize(pd.concat(parts))
        summary.to_csv(output, index=False)
        print(summary[summary["reading"] == reading].to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
