"""What choosing rows, averaging and intervals are worth: trials over many seeds, with placebos.

``read_shipped("few_labels")`` gives those that come with the package, on the report seeds: a row per
`dataset`, `method` (a learner), `choice` (see `CHOICES`), `n_labeled` and `seed`. `mae` is the error on
`n_test` rows. For some learners also what held-out labels made one expect (`expected`), and the share of test
rows that intervals of CV+ hold and their mean width (`coverage_80`, `width_80`, and so on), beside intervals
of a constant width around the estimates. `make.py` makes them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from dmls2r_lite.data.datasets import Dataset, Split, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.choosing import choose_rows
from dmls2r_lite.practice.folds import fit_with_seed
from dmls2r_lite.practice.intervals import ConformalRegressor, rank_of_bound
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.trials import AS_PUBLISHED, Rows, Sets, Study, load_benchmark_dataset, run_seeds

MAX_TEST_ROWS = 1000

# How labels are chosen. The first two are what a user decides between. The next one is the strong simple
# rival. Three more continue from N/2 random labels by the same rule in three spaces: of the input, and, to
# find out whether a metric learned from labels helps, of a network trained on these, and of one untrained.
RANDOM, CHOSEN = "random", "chosen"
SPACES = ("input space", "metric space", "untrained space")
CHOICES = (RANDOM, CHOSEN, "k-means", *SPACES)


def few_label_methods() -> dict[str, RegressorMixin]:
    """The learners: DML-S2R, the average, and the plain models, of which some also stand for their kind."""
    return {"DML-S2R": DMLS2RRegressor(), "average": AveragedRegressor(), **plain_models()}


N_CHOICES = {  # with how many of the choices a learner is tried: all that its time allows; others with one
    **dict.fromkeys(["extra trees", "DML-S2R", "Gaussian process", "ridge", "3-NN standardised"], 6),
    **dict.fromkeys(["average", "extra trees on pairs"], 2),
}


def choices_of(dataset: str, method: str) -> list[tuple[str]]:
    """The choices that a learner is tried with on a dataset."""
    if dataset == AS_PUBLISHED:  # only for the paper's cells
        return [(RANDOM,)] if method == "average" else []
    return [(choice,) for choice in CHOICES[: N_CHOICES.get(method, 1)]]


def has_intervals(dataset: str, method: str, choice: str, n_labeled: int) -> bool:
    """Whether intervals are measured too, which takes several times as long."""
    if method not in ("DML-S2R", "extra trees", "average") or dataset == AS_PUBLISHED:
        return False
    return choice == RANDOM or (choice == CHOSEN and (method != "average" or n_labeled <= 20))


@lru_cache(maxsize=1024)
def _choose(dataset: str, choice: str, n: int, seed: int) -> np.ndarray:
    """Which rows of the pool (a split's labeled and unlabeled ones) get a label."""
    data = load_benchmark_dataset(dataset)
    split = split_dataset(data, n, data.n_unlabeled, seed)
    pool, half = split.X_train, np.arange(n // 2)
    if choice == RANDOM:
        return np.arange(n)
    if choice == CHOSEN:
        return choose_rows(pool, n)
    if choice == "k-means":
        return _nearest_to_centres(pool, n, seed)

    y = split.y_train.mask(np.arange(len(pool)) >= len(half))
    space = pool.to_numpy()
    if choice != "input space":
        rate = 1e-3 if choice == "metric space" else 1e-30  # as good as untrained
        space = fit_with_seed(DMLS2RRegressor(learning_rate=rate), pool, y, seed).transform(pool)
    return np.concatenate([half, choose_rows(space, n - len(half), labeled=half)])


def _nearest_to_centres(pool: pd.DataFrame, n: int, seed: int) -> np.ndarray:
    """For each centre of k-means the nearest row that is not taken."""
    Z = StandardScaler().fit_transform(pool).clip(-5, 5)
    rows: list[int] = []
    for centre in KMeans(n, n_init=10, random_state=seed).fit(Z).cluster_centers_:
        order = np.linalg.norm(Z - centre, axis=1).argsort(kind="stable")
        rows.append(next(int(row) for row in order if row not in rows))
    return np.array(rows)


def _measure_intervals(
    model: ConformalRegressor, X_test: pd.DataFrame, y_test: pd.Series
) -> dict[str, float]:
    errors, estimates = model.errors_, model.predict(X_test)
    measured = {"expected": errors.mean()}
    for name, coverage in (("80", 0.8), ("90", 0.9)):
        low, high = model.predict_interval(X_test, coverage).T
        measured[f"coverage_{name}"] = ((low <= y_test) & (y_test <= high)).mean()
        measured[f"width_{name}"] = (high - low).mean()
        # Around the model of all labels, as wide as the held-out errors say.
        half = np.sort(errors)[len(errors) - rank_of_bound(len(errors), coverage)]
        measured[f"constant_coverage_{name}"] = (np.abs(y_test - estimates) <= half).mean()
        measured[f"constant_width_{name}"] = 2 * half
    return measured


def _measure(
    dataset: Dataset, name: str, method: RegressorMixin, choice: str, n: int, seeds: Sequence[int]
) -> Rows:
    def prepare(split: Split, seed: int) -> Sets:
        known = pd.concat([split.y_labeled, split.y_unlabeled])
        y = known.where(np.isin(np.arange(len(known)), _choose(dataset.name, choice, n, seed)))
        return split.X_train, y, split.X_test, split.y_test

    more: dict[str, Any] = {}
    if has_intervals(dataset.name, name, choice, n):
        method, more["also"] = ConformalRegressor(method), _measure_intervals
    return run_seeds(dataset, name, method, n, dataset.n_unlabeled, seeds, MAX_TEST_ROWS, prepare, **more)


FEW_LABELS = Study(
    name="few_labels",
    key=("dataset", "method", "choice", "n_labeled", "seed"),
    measured=(
        *("mae", "expected"),
        *("coverage_80", "width_80", "coverage_90", "width_90"),
        *("constant_coverage_80", "constant_width_80", "constant_coverage_90", "constant_width_90"),
        "n_test",
    ),
    datasets=("boston", "superconductivity", AS_PUBLISHED, "air_quality", "diabetes", "friedman"),
    methods=few_label_methods,
    measure=_measure,
    kinds=choices_of,
    min_labeled=9,  # an interval of 90 % takes as many
)
