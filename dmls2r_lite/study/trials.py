"""Trials over many seeds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from ..data.datasets import Dataset
from ..data.splits import Split, split_dataset
from ..foundation.files import ending_with
from ..practice.folds import fit_with_seeds

Sets = tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]  # X and y to learn from, and to measure on


def as_split(split: Split, seed: int) -> Sets:
    """All samples, whatever the seed."""
    return split.X_train, split.y_train, split.X_test, split.y_test


def run_trials(
    dataset: Dataset,
    methods: Mapping[str, RegressorMixin],
    n_labeled: Sequence[int],
    n_unlabeled: int,
    seeds: Sequence[int],
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Fit every method on every split and measure it on the rest.

    For one seed all methods see the same split and, where they have a `random_state`, start from
    it. A `SemiSupervisedRegressor` is given labeled and unlabeled samples, any other the labeled.

    Parameters
    ----------
    dataset : Dataset
    methods : mapping of str to estimator
        Estimators are cloned, never fitted.
    n_labeled : sequence of int
        Values of N.
    n_unlabeled : int
        M.
    seeds : sequence of int
    n_jobs : int, optional
        Processes, as in joblib. A trial runs on one thread, so results are the same for any number.

    Returns
    -------
    pandas.DataFrame
        A row per trial: `dataset`, `method`, `n_labeled`, `seed`, `mae` and `rmse` on the test
        set in the target's unit, `fit_seconds`, `predict_seconds`, `n_unlabeled`, `n_test`.
    """
    parts = Parallel(n_jobs=n_jobs)(
        delayed(ending_with)(os.getpid(), run_seeds, dataset, name, method, n, n_unlabeled, list(seeds))
        for n in n_labeled
        for name, method in methods.items()
    )
    of_each_n = [parts[start : start + len(methods)] for start in range(0, len(parts), len(methods))]
    return pd.DataFrame([row for rows in of_each_n for of_seed in zip(*rows, strict=True) for row in of_seed])


def run_trial(
    dataset: Dataset,
    name: str,
    method: RegressorMixin,
    n_labeled: int,
    n_unlabeled: int,
    seed: int,
    max_test_rows: int | None = None,
) -> dict[str, Any]:
    """One row of `run_trials`, for the method of that name: `run_seeds` of one seed."""
    return run_seeds(dataset, name, method, n_labeled, n_unlabeled, [seed], max_test_rows)[0]


@threadpool_limits.wrap(limits=1)  # more threads round differently, and small fits gain nothing
def run_seeds(
    dataset: Dataset,
    name: str,
    method: RegressorMixin,
    n_labeled: int,
    n_unlabeled: int,
    seeds: Sequence[int],
    max_test_rows: int | None = None,
    prepare: Callable[[Split, int], Sets] = as_split,
    also: Callable[..., Mapping[str, float]] = lambda model, *sets: {},
) -> list[dict[str, Any]]:
    """Rows of `run_trials`, for the method of that name: one a seed, networks trained side by side.

    Parameters
    ----------
    dataset, name, method, n_labeled, n_unlabeled, seeds
        See `run_trials`.
    max_test_rows : int, optional
        Measure on the first so many rows of the test set, whose order is random: for slow methods.
    prepare : callable, optional
        Of a split and its seed: `Sets` other than `as_split`.
    also : callable, optional
        Of a fitted model and these four, what else to measure.
    """
    sets = [prepare(split_dataset(dataset, n_labeled, n_unlabeled, seed), seed) for seed in seeds]
    start = time.perf_counter()
    models = fit_with_seeds(method, [(X, y) for X, y, *_ in sets], seeds)
    fit_seconds = (time.perf_counter() - start) / len(seeds)
    rows = []
    for seed, (X, y, X_test, y_test), model in zip(seeds, sets, models, strict=True):
        X_test, y_test = X_test[:max_test_rows], y_test[:max_test_rows]
        start = time.perf_counter()
        predicted = model.predict(X_test)
        rows.append(
            {
                "dataset": dataset.name,
                "method": name,
                "n_labeled": n_labeled,
                "seed": seed,
                "mae": mean_absolute_error(y_test, predicted),
                "rmse": root_mean_squared_error(y_test, predicted),
                "fit_seconds": fit_seconds,
                "predict_seconds": time.perf_counter() - start,
                "n_unlabeled": n_unlabeled,
                "n_test": len(y_test),
                **also(model, X, y, X_test, y_test),
            }
        )
    return rows
