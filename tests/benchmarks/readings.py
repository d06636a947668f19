"""Compare readings of the paper: `python tests/benchmarks/readings.py OUTPUT.csv [--n-labeled 20]`.

The paper leaves choices open (scaling of the target, the loss's margins, the optimizer's state, ...).
Each reading changes the default in one respect or a few. On the seeds for choosing, 0 to 19, every
reading is run with step 1 alone, with both steps, and with a placebo: step 2 with its loss times
zero, where nothing but the optimizer's momentum acts. `acts` says how far step 2 moves predictions
from the placebo's, as a fraction of the MAE of step 1 alone.

Superconductivity and Air Quality take part if the environment variable DMLS2R_DATA names a folder
with their zip files from UCI.
"""

import io
import os
import zipfile
from pathlib import Path
from unittest import mock

import click
import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed
from scipy.stats import wilcoxon

from dmls2r_lite import training
from dmls2r_lite.data import Dataset, load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor

RAW = {"target_scaling": "none", "embedding": "raw"}
READINGS: dict[str, dict] = {
    "default": {},
    "target not scaled": {"target_scaling": "none"},
    "target standardised": {"target_scaling": "standard"},
    "raw embedding": {"embedding": "raw"},
    "raw embedding, target not scaled": RAW,
    "raw embedding, alpha 40, m 35, tau -0.5": {**RAW, "boundary": 40.0, "margin": 35.0, "temperature": -0.5},
    "separate Adam": {"optimizer_state": "separate"},
    "signed mining": {"mining_mode": "signed"},
    "literal weights": {"weighting": "literal"},
    "equal weights (tau 0)": {"temperature": 0.0},
    "gradient through weights": {"weight_gradient": True},
    "metric before the last ReLU": {"metric_space": "before_relu"},
    "ten anchors a batch": {"anchor_batch_size": 10},
    "step 1 last": {"schedule": "alternate_pairwise_last"},
    "15 epochs of each step": {"n_epochs": 15},
    "all pairs in one batch": {"pair_batch_size": None},
}
ZIPS = {"superconductivity": "superconductivty+data.zip", "air_quality": "air+quality.zip"}


def load_tables() -> list[tuple[Dataset, int]]:
    """Datasets with the paper's number of unlabeled samples."""
    tables = [(load_dataset(name), 200) for name in ("boston", "diabetes", "friedman")]
    folder = os.environ.get("DMLS2R_DATA")
    if folder:
        tables += [(_superconductivity(Path(folder)), 1000), (_air_quality(Path(folder)), 1000)]
    return tables


def _inner_file(path: Path, name: str) -> io.BytesIO:
    with zipfile.ZipFile(path) as archive:
        return io.BytesIO(archive.read(name))


def _superconductivity(folder: Path) -> Dataset:
    table = pd.read_csv(_inner_file(folder / ZIPS["superconductivity"], "train.csv")).astype(float)
    target = table.pop("critical_temp")
    return Dataset("superconductivity", table, target, "K", "UCI", "")


def _air_quality(folder: Path) -> Dataset:
    """Rows without a target dropped, -200 read as missing and imputed by the median."""
    raw = pd.read_csv(
        _inner_file(folder / ZIPS["air_quality"], "AirQualityUCI.csv"), sep=";", decimal=",", na_values=[-200]
    )
    table = raw.dropna(how="all").dropna(axis=1, how="all").dropna(subset="C6H6(GT)").reset_index(drop=True)
    time = pd.to_datetime(table.pop("Date") + " " + table.pop("Time"), format="%d/%m/%Y %H.%M.%S")
    table["date"], table["hour"] = time.dt.normalize().astype("int64") / 8.64e13, time.dt.hour
    target = table.pop("C6H6(GT)")
    return Dataset("air_quality", table.fillna(table.median()).astype(float), target, "ug/m3", "UCI", "")


def run(dataset: Dataset, n_unlabeled: int, n_labeled: int, seed: int, changes: dict) -> dict:
    """One trial of one reading: MAE of three arms on one split."""
    torch.set_num_threads(1)
    split = split_dataset(dataset, n_labeled, n_unlabeled, seed, scale_on="none")

    def predict(**more) -> np.ndarray:
        model = DMLS2RRegressor(**{**changes, **more}, random_state=seed)
        return model.fit(split.X_train, split.y_train).predict(split.X_test)

    step_1 = predict(schedule="pairwise_only")
    both = predict()
    true_loss = training.ranked_list_loss
    with mock.patch.object(training, "ranked_list_loss", lambda *args: 0 * true_loss(*args)):
        placebo = predict()
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
@click.option("--n-seeds", default=20, show_default=True)
@click.option("--first-seed", default=0, show_default=True)
@click.option("--n-jobs", default=2, show_default=True)
def main(
    output: Path,
    n_labeled: tuple[int, ...],
    chosen: tuple[str, ...],
    n_seeds: int,
    first_seed: int,
    n_jobs: int,
) -> None:
    """Write a row per reading, dataset and N to OUTPUT."""
    parts = []
    for reading in chosen or READINGS:
        cells = [
            delayed(run)(dataset, n_unlabeled, n, seed, READINGS[reading])
            for dataset, n_unlabeled in load_tables()
            for n in n_labeled
            for seed in range(first_seed, first_seed + n_seeds)
        ]
        parts.append(pd.DataFrame(Parallel(n_jobs=n_jobs)(cells)).assign(reading=reading))
        summary = summarize(pd.concat(parts))
        summary.to_csv(output, index=False)
        print(summary[summary["reading"] == reading].to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
