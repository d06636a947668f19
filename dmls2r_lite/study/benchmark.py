"""The paper's experiments over many seeds, with the controls that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.base import RegressorMixin

from ..data.datasets import Dataset
from .driver import AS_PUBLISHED, N_LABELED, Cells, Study
from .trials import run_seeds

if TYPE_CHECKING:
    from ..estimators import DMLS2RRegressor

BENCHMARK_DATASETS = ("boston", "superconductivity", AS_PUBLISHED, "air_quality")
TABLE_1 = ("superconductivity", 100)  # the paper's ablation has one N more
TABLE_1_METHODS = ("DML-S2R", "step 1", "placebo null", "placebo random", "placebo swapped")
MAX_TEST_ROWS = {"extra trees on pairs": 2000}  # every test row makes 2 N pairs


def paper_methods() -> dict[str, RegressorMixin]:
    """What the paper's tables compare: DML-S2R, its first step alone, COREG and MSSR."""
    from ..estimators import DMLS2RRegressor
    from ..rivals.coreg import COREGRegressor
    from ..rivals.mssr import MSSRRegressor

    return {
        "DML-S2R": DMLS2RRegressor(),
        "step 1": DMLS2RRegressor(schedule="pairwise_only"),
        "COREG": COREGRegressor(),
        "MSSR": MSSRRegressor(),
    }


def control_arms() -> dict[str, DMLS2RRegressor]:
    """DML-S2R with one thing changed, by which to find out why step 2 does what it does.

    First the placebos (see `dmls2r_lite.rivals.placebos`) and the other ways to combine the steps; then both
    steps, step 1 and placebos where each step has an Adam of its own, where step 1 is
    under-trained (all pairs in one batch: a gradient step an epoch), and where the target is not
    scaled. With an Adam of its own the null placebo is step 1 alone, to the bit.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals.placebos import mine_random, mine_swapped, null_loss

    arms: dict[str, dict[str, Any]] = {
        "placebo null": {"metric_loss": null_loss},
        "placebo random": {"miner": mine_random},
        "placebo swapped": {"miner": mine_swapped},
        "joint": {"schedule": "joint"},
        "sequential": {"schedule": "sequential"},
        "sequential (step 2 first)": {"schedule": "sequential_metric_first"},
        "DML-S2R (own Adam)": {"optimizer_state": "separate"},
        "placebo random (own Adam)": {"optimizer_state": "separate", "miner": mine_random},
    }
    settings: dict[str, dict[str, Any]] = {
        "one batch": {"pair_batch_size": None},
        "raw target": {"target_scaling": "none"},
    }
    for name, changed in settings.items():
        arms |= {
            f"step 1 ({name})": {**changed, "schedule": "pairwise_only"},
            f"DML-S2R ({name})": changed,
            f"placebo null ({name})": {**changed, "metric_loss": null_loss},
            f"placebo random ({name})": {**changed, "miner": mine_random},
        }
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


def all_methods() -> dict[str, RegressorMixin]:
    """Every method of the benchmark, by name."""
    from ..rivals.plain import plain_models

    return {**paper_methods(), **control_arms(), **plain_models()}


def _sizes(dataset: str, method: str) -> Sequence[int]:
    return (*N_LABELED, TABLE_1[1]) if dataset == TABLE_1[0] and method in TABLE_1_METHODS else N_LABELED


def _cells(dataset: Dataset, name: str, method: RegressorMixin, n_labeled: int) -> Cells:
    n_unlabeled, max_rows = dataset.n_unlabeled, MAX_TEST_ROWS.get(name)
    return {(): partial(run_seeds, dataset, name, method, n_labeled, n_unlabeled, max_test_rows=max_rows)}


TRIALS = Study(
    name="trials",
    key=("dataset", "method", "n_labeled", "seed"),
    measured=("mae", "rmse", "fit_seconds", "predict_seconds", "n_unlabeled", "n_test"),
    datasets=BENCHMARK_DATASETS,
    methods=all_methods,
    cells=_cells,
    sizes=_sizes,
)
run_benchmark = TRIALS.run


def read_trials(folder: Path) -> pd.DataFrame:
    """The trials of a benchmark's folder: whole rows only, each trial once.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    pandas.DataFrame
        `dataset`, `method`, `n_labeled`, `seed`, `mae`, `rmse`, `fit_seconds`, `predict_seconds`,
        `n_unlabeled`, `n_test`, `versions` and `finished` (UTC).

    Raises
    ------
    ValueError
        If the folder has no trials or the table is not one of trials.
    """
    return TRIALS.read(folder)


def shipped_trials() -> pd.DataFrame:
    """The trials that come with the package: the full benchmark on the report seeds.

    Returns
    -------
    pandas.DataFrame
        As from `read_trials`. Its `attrs` say with which `command` and `versions` it was made, on which
        `date` and `machine`, and how many `minutes` it took.
    """
    return TRIALS.shipped()
