"""Compare readings of the paper: `python tests/benchmarks/readings.py OUTPUT.csv [--n-labeled 20]`.

The paper leaves choices open (scaling of the target, the loss's margins, the optimizer's state, ...).
Each reading changes the default in one respect or a few. On the seeds for choosing, 0 to 19, every
reading is run with step 1 alone, with both steps, and with a placebo: step 2 with its loss times
zero, where nothing but the optimizer's momentum acts. `acts` says how far step 2 moves predictions
from the placebo's, as a fraction of the MAE of step 1 alone.

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
from dmls2r_lite.study.comparing import compare
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
    "literal weights": {"weighting": "literal"},
    "equal weights (tau 0)": {"temperature": 0.0},
    "gradient through weights": {"weight_gradient": True},
    "metric before the last ReLU": {"metric_space": "before_relu"},
    "ten anchors a batch": {"anchor_batch_size": 10},
    "step 1 last": {"schedule": "alternate_pairwise_last"},
    "15 epochs of each step": {"n_epochs": 15},
    "all pairs in one batch": {"pair_batch_size": None},
}


def predictions(model: DMLS2RRegressor, X: object, y: object, X_test: object, y_test: object) -> dict:
    return {"predicted": model.predict(X_test)}


def run(dataset: Dataset, n_labeled: int, seed: int, changes: dict) -> list[dict]:
    """The trials of one reading on one split: three arms, with how far step 2 moves predictions."""
    arms = {"step_1": {"schedule": "pairwise_only"}, "both": {}, "placebo": {"metric_loss": null_loss}}
    trials, m = {}, dataset.n_unlabeled
    for name, arm in arms.items():
        model = DMLS2RRegressor(**{**changes, **arm})
        (trials[name],) = run_seeds(dataset, name, model, n_labeled, m, [seed], also=predictions)
    predicted = {name: trial.pop("predicted") for name, trial in trials.items()}
    acts = np.abs(predicted["both"] - predicted["placebo"]).mean() / trials["step_1"]["mae"]
    return [{**trial, "acts": acts} for trial in trials.values()]


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """A row per reading, dataset and N."""
    rows = []
    for (reading, dataset, n), cell in trials.groupby(["reading", "dataset", "n_labeled"], sort=False):
        compared = compare(cell, "both", "step_1").loc[n]
        mae = cell.pivot(index="seed", columns="method", values="mae")
        rows.append(
            {
                **{"reading": reading, "dataset": dataset, "n_labeled": n},
                **mae[["step_1", "both", "placebo"]].mean().round(4),
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
    parts = []
    for reading, changes in READINGS.items():
        cells = [
            delayed(run)(dataset, n, seed, changes)
            for dataset in map(load_benchmark_dataset, datasets)
            for n in n_labeled
            for seed in range(first_seed, first_seed + n_seeds)
        ]
        trials = itertools.chain(*Parallel(n_jobs=2)(cells))
        parts.append(pd.DataFrame(trials).assign(reading=reading))
        summary = summarize(pd.concat(parts))
        summary.to_csv(output, index=False)
        print(summary[summary["reading"] == reading].to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
