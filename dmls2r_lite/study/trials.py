"""Trials over many seeds."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from ..base import takes_unlabeled
from ..data.datasets import Dataset
from ..data.splits import split_dataset
from ..system import ending_with

MAX_VALUES = 2 * 10**7  # of the features of all folds that are fitted side by side: they are copied


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
) -> list[dict[str, Any]]:
    """Rows of `run_trials`, for the method of that name: one a seed, networks trained side by side.

    Parameters
    ----------
    dataset, name, method, n_labeled, n_unlabeled, seeds
        See `run_trials`.
    max_test_rows : int, optional
        Measure on the first so many rows of the test set, whose order is random: for slow methods.
    """
    splits = [split_dataset(dataset, n_labeled, n_unlabeled, seed) for seed in seeds]
    start = time.perf_counter()
    models = fit_with_seeds(method, [(split.X_train, split.y_train) for split in splits], seeds)
    fit_seconds = (time.perf_counter() - start) / len(seeds)
    rows = []
    for seed, split, model in zip(seeds, splits, models, strict=True):
        X_test, y_test = split.X_test[:max_test_rows], split.y_test[:max_test_rows]
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
            }
        )
    return rows


def fit_with_seed(method: RegressorMixin, X: pd.DataFrame, y: pd.Series, seed: int) -> RegressorMixin:
    """Fit a copy of an estimator: on all rows if it learns from unlabeled ones, else on the labeled.

    Parameters
    ----------
    method : estimator
    X : pandas.DataFrame of shape (n_samples, n_features)
    y : pandas.Series of shape (n_samples,)
        NaN for an unlabeled row.
    seed : int
        Becomes every `random_state` that the estimator has.
    """
    return fit_with_seeds(method, [(X, y)], [seed])[0]


def fit_with_seeds(
    method: RegressorMixin, training_sets: Sequence[tuple[pd.DataFrame, pd.Series]], seeds: Sequence[int]
) -> list[RegressorMixin]:
    """`fit_with_seed` for several seeds, each with a training set of its own; side by side if it can be.

    An estimator can if the class that its `fit`, or `_fit`, is from has ``fit_side_by_side(models,
    training_sets)``: a subclass's own way to fit comes first.
    """
    models = [clone(method) for _ in seeds]
    for model, seed in zip(models, seeds, strict=True):
        model.set_params(**{key: seed for key in model.get_params() if key.endswith("random_state")})
    fit_of = next((kind for kind in type(method).__mro__ if {"fit", "_fit"} & vars(kind).keys()), object)
    if len(models) > 1 and "fit_side_by_side" in vars(fit_of):
        return method.fit_side_by_side(models, training_sets)
    with warnings.catch_warnings():
        # A Gaussian process on ten samples says so for almost every split; its errors show it anyway.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for model, (X, y) in zip(models, training_sets, strict=True):
            rows = np.ones(len(y), dtype=bool) if takes_unlabeled(method) else y.notna().to_numpy()
            model.fit(X[rows], y[rows])
    return models


def fit_without(
    method: RegressorMixin,
    X: pd.DataFrame,
    y: pd.Series,
    folds: Sequence[np.ndarray],
    seeds: Sequence[int],
) -> list[RegressorMixin]:
    """Fit copies of an estimator, each with the targets of a fold hidden; folds of one size side by side.

    Parameters
    ----------
    method : estimator
        If it has a `fit_without` of its own, which may share work between folds, that is called.
    X : pandas.DataFrame of shape (n_samples, n_features)
    y : pandas.Series of shape (n_samples,)
        NaN for an unlabeled row.
    folds : sequence of numpy.ndarray of int
        Positions of the rows to hide, for each copy.
    seeds : sequence of int
        For each copy, see `fit_with_seeds`.
    """
    if hasattr(method, "fit_without"):
        return method.fit_without(X, y, folds, seeds)
    models: dict[int, RegressorMixin] = {}
    at_once = max(1, MAX_VALUES // X.size)
    for size in sorted({len(fold) for fold in folds}):  # networks side by side need as many labels
        alike = [place for place, fold in enumerate(folds) if len(fold) == size]
        for start in range(0, len(alike), at_once):
            places = alike[start : start + at_once]
            sets = []
            for place in places:
                hidden = y.copy()
                hidden.iloc[folds[place]] = np.nan
                sets.append((X, hidden))
            fitted = fit_with_seeds(method, sets, [seeds[place] for place in places])
            models |= dict(zip(places, fitted, strict=True))
    return [models[place] for place in range(len(folds))]


def predict_held_out(
    X: pd.DataFrame,
    y: pd.Series,
    methods: Mapping[str, RegressorMixin],
    n_repeats: int,
    seed: int = 0,
    n_folds: int = 5,
    n_jobs: int | None = None,
    groups: ArrayLike | None = None,
) -> pd.DataFrame:
    """Estimate errors where labels are few: leave some labels out, predict them, and repeat.

    In each repeat the labeled rows are dealt into folds at random. The rows of a fold lose their
    target, as if it were not known, all methods are fitted, and predict them. So each labeled row is
    predicted once in a repeat, by a model that has not seen its target.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        Numbers, scaled as the methods need it.
    y : pandas.Series of shape (n_samples,)
        NaN for an unlabeled row; 3 other values at least.
    methods : mapping of str to estimator
    n_repeats : int
    seed : int, default=0
        Of the first repeat, for folds and methods; it counts up from there.
    n_folds : int, default=5
        As many as there are labels, if these are fewer.
    n_jobs : int, optional
        Processes, as in joblib.
    groups : array-like of shape (n_samples,), optional
        See `LabeledKFold.split`.

    Returns
    -------
    pandas.DataFrame
        A row per method, repeat and labeled row: `method`, `repeat`, `fold`, `row` (of the index of X),
        `target`, `prediction`.

    Raises
    ------
    ValueError
        If there are fewer than 3 labels.
    """
    from ..interop import LabeledKFold  # here, because it needs torch

    n_labeled = int(y.notna().sum())
    if n_labeled < 3:
        raise ValueError(f"y must hold at least 3 targets that are not NaN, got {n_labeled}")
    folds = [
        (repeat, number, fold)
        for repeat in range(n_repeats)
        for number, (_, fold) in enumerate(
            LabeledKFold(min(n_folds, n_labeled), random_state=np.random.default_rng(seed + repeat)).split(
                X, y, groups
            )
        )
    ]
    parts = Parallel(n_jobs=n_jobs)(
        delayed(ending_with)(os.getpid(), _predict_folds, X, y, name, method, folds, seed)
        for name, method in methods.items()
    )
    return pd.concat(parts, ignore_index=True).sort_values("repeat", kind="stable", ignore_index=True)


@threadpool_limits.wrap(limits=1)
def _predict_folds(
    X: pd.DataFrame,
    y: pd.Series,
    name: str,
    method: RegressorMixin,
    folds: Sequence[tuple[int, int, np.ndarray]],
    seed: int,
) -> pd.DataFrame:
    seeds = [seed + repeat for repeat, _, _ in folds]
    models = fit_without(method, X, y, [fold for _, _, fold in folds], seeds)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "method": name,
                    "repeat": repeat,
                    "fold": number,
                    "row": X.index[fold],
                    "target": y.iloc[fold].to_numpy(),
                    "prediction": model.predict(X.iloc[fold]),
                }
            )
            for (repeat, number, fold), model in zip(folds, models, strict=True)
        ]
    )
