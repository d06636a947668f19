"""Between which values a target lies, with a promise that does not depend on the model being right."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, RegressorMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..foundation.checks import SemiSupervisedRegressor, check_table, check_training_set, last_step
from ..foundation.parameters import check_rules, demand
from .folds import deal_folds, fit_without, predict_fold

MAX_VALUES = 2**22  # of rows times labels that are looked at together
MAX_ROWS = 2000  # by which a difficulty is scaled


@dataclass(eq=False, repr=False)
class ConformalRegressor(MetaEstimatorMixin, SemiSupervisedRegressor):
    """Intervals around the estimates of any regressor, from its errors on labels left out (CV+).

    Labels are dealt into folds, and a copy of the regressor is fitted without each fold. The interval of a
    new row x is made of what each label i says: the estimate for x of the copy that has not seen i, plus and
    minus the error of that copy at i. If labeled and new rows are exchangeable (drawn alike), the interval
    holds the target with a probability of at least 1 - 2 (1 - coverage) - a term that falls with N, and
    in practice of about `coverage`, whatever the model. Labels that were chosen, or come from one corner
    of the table, are not drawn alike.

    Parameters
    ----------
    estimator : regressor
        Is cloned, never fitted. If it takes no unlabeled rows it is given the labeled ones.
    cv : int, default=5
        Folds; as many as there are labels, if these are fewer (the jackknife+).
    normalizer : {None, "spread", "metric"}, default=None
        What makes intervals wider for some rows than for others: errors are divided by a row's
        `difficulty` and multiplied by the new row's. None: all errors count alike.
    random_state : int, RandomState or None, default=None
        Of the folds, and of every `random_state` that the regressor has.

    Attributes
    ----------
    estimator_ : regressor
        Fitted on all labels; `predict` is its.
    fold_estimators_ : list of regressor
        Each fitted without a fold.
    fold_ : numpy.ndarray of int, shape (n_labeled,)
        The fold of each label.
    held_out_ : numpy.ndarray of shape (n_labeled,)
        Estimate for each labeled row by the copy that has not seen its label.
    errors_ : numpy.ndarray of shape (n_labeled,)
        Absolute errors of these, in the target's unit; with a normalizer divided by difficulty.

    References
    ----------
    Barber, Candes, Ramdas, Tibshirani (2021): Predictive inference with the jackknife+. Ann. Statist. 49.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> model = ConformalRegressor(RidgeCV(), random_state=0).fit(split.X_train, split.y_train)
    >>> low, high = model.predict_interval(split.X_test, coverage=0.8).T
    >>> f"{((low <= split.y_test) & (split.y_test <= high)).mean():.0%} of 180 targets lie within"
    '86% of 180 targets lie within'
    """

    estimator: RegressorMixin
    cv: int = 5
    normalizer: Literal["spread", "metric"] | None = None
    _: KW_ONLY
    random_state: int | np.random.RandomState | None = None

    def fit(
        self, X: ArrayLike | pd.DataFrame, y: ArrayLike, groups: ArrayLike | None = None
    ) -> ConformalRegressor:
        """Fit the regressor on all labels, and a copy without each fold.

        Parameters
        ----------
        X : array-like or pandas.DataFrame of shape (n_samples, n_features)
            As the regressor takes it.
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row; 3 numbers at least.
        groups : array-like of shape (n_samples,), optional
            Rows of one group are left out together, so that the promise is about new groups.

        Returns
        -------
        ConformalRegressor
            Itself.

        Raises
        ------
        ParameterError
            If a parameter is out of range, there are too few labels or groups, or the regressor has nothing
            that the normalizer looks at.
        """
        check_rules(self.get_params(deep=False))
        rows, targets = check_training_set("estimator", self.estimator, X, y)
        _check_difficulty(self.normalizer, self.estimator)  # before anything is fitted
        labeled = np.flatnonzero(np.isfinite(targets))
        self._count_labels(targets)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = deal_folds(targets, self.cv, seed, groups)
        known, to_hide = pd.Series(targets, index=rows.index), [*folds, np.zeros(0, dtype=int)]
        models = fit_without(self.estimator, rows, known, to_hide, [seed] * len(to_hide))
        *self.fold_estimators_, self.estimator_ = models
        validate_data(self, rows, skip_check_array=True)
        in_order, fitted = np.argsort(np.concatenate(folds)), zip(self.fold_estimators_, folds, strict=True)
        told = [predict_fold("estimator", model, rows, fold) for model, fold in fitted]
        self.fold_ = np.repeat(np.arange(len(folds)), list(map(len, folds)))[in_order]
        self.held_out_ = np.concatenate(told)[in_order]
        self._labeled_rows, self._difficulty_added = rows.iloc[labeled], np.zeros(len(folds))
        some = rows.iloc[:: -(-len(rows) // MAX_ROWS)]
        self.errors_ = np.abs(self.held_out_ - targets[labeled])
        for number, fold in enumerate(folds):
            # Half as difficult as usual is the least: else where models agree by chance an error is huge.
            self._difficulty_added[number] = self._difficulty(number, some).mean() or 1.0
            self.errors_[self.fold_ == number] /= self._difficulty(number, rows.iloc[fold])
        return self

    def _predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(X)

    def predict_interval(self, X: ArrayLike | pd.DataFrame, coverage: float = 0.8) -> np.ndarray:
        """Between which values the targets lie.

        Parameters
        ----------
        X : array-like or pandas.DataFrame of shape (n_samples, n_features)
        coverage : float, default=0.8
            Share of rows whose target the interval is to hold.

        Returns
        -------
        numpy.ndarray of shape (n_samples, 2)
            Lower and upper bounds of each row, in the target's unit. One row of it is one row of X, so
            ``low, high = model.predict_interval(X).T`` is how to take it apart: without the ``.T`` two rows
            of X would be taken for the two bounds.

        Raises
        ------
        ParameterError
            If there are too few labels for that coverage: N must be 1 / (1 - coverage) - 1 or more.
        """
        rows, n = self._validate_rows(X), len(self.errors_)
        rank = rank_of_bound(n, coverage)
        bounds = np.empty((len(rows), 2))
        numbers, at_once = range(len(self.fold_estimators_)), max(1, MAX_VALUES // n)
        for part in (slice(start, start + at_once) for start in range(0, len(rows), at_once)):
            block = rows.iloc[part]
            estimates = np.column_stack([model.predict(block) for model in self.fold_estimators_])
            difficult = np.column_stack([self._difficulty(number, block) for number in numbers])
            centres, widths = estimates[:, self.fold_], difficult[:, self.fold_] * self.errors_
            bounds[part, 0] = np.partition(centres - widths, rank - 1, axis=1)[:, rank - 1]
            bounds[part, 1] = np.partition(centres + widths, n - rank, axis=1)[:, n - rank]
        return np.sort(bounds, axis=1)  # at small coverages they may cross

    def _validate_rows(self, X: ArrayLike | pd.DataFrame, name: str = "X", **_: Any) -> Any:
        """Rows as the regressors know them: an array's columns get the names that they had in `fit`."""
        check_is_fitted(self)
        rows = check_table(name, X, may_have_gaps=True)
        names = getattr(self, "feature_names_in_", rows.columns)
        is_bare = not isinstance(X, pd.DataFrame) and rows.shape[1] == len(names)
        return rows.set_axis(names, axis=1) if is_bare else rows

    def _difficulty(self, number: int, rows: pd.DataFrame) -> np.ndarray:
        model, values = self.fold_estimators_[number], np.zeros(len(rows))
        if self.normalizer == "spread":
            values = spread(model, rows)
        elif self.normalizer == "metric":
            values = metric_distance(model, rows, self._labeled_rows[self.fold_ != number])
        return values + self._difficulty_added[number]


def rank_of_bound(n: int, coverage: float, of_what: str = "labels") -> int:
    """Which of N sorted bounds is the limit, counted from outside; an error if there is none."""
    check_rules({"coverage": coverage})
    rank, needed = math.floor((1 - coverage) * (n + 1) + 1e-9), math.ceil(1 / (1 - coverage) - 1 - 1e-9)
    wanted = f"coverage must not exceed N / (N + 1), {n / (n + 1):.3g} with {n} {of_what}"
    demand(rank >= 1, f"{wanted}, got {coverage}: that takes {needed} {of_what}")
    return min(n, rank)


def held_out_coverage(errors: np.ndarray, fold: np.ndarray, coverage: float = 0.8) -> float:
    """How many labels lie within what the errors of other folds allow: a look at coverage without more rows.

    Parameters
    ----------
    errors : numpy.ndarray of shape (n_labeled,)
        Absolute errors of labels left out.
    fold : numpy.ndarray of int, shape (n_labeled,)
        Which of them were left out together.
    coverage : float, default=0.8

    Returns
    -------
    float
        A share of labels. With few of them it is coarse: one label of 20 is 5 %.

    Raises
    ------
    ParameterError
        If the other folds have too few labels for that coverage.
    """
    within = np.empty(len(errors), dtype=bool)
    for number in np.unique(fold):
        others = np.sort(errors[fold != number])
        limit = others[len(others) - rank_of_bound(len(others), coverage, "labels besides a fold")]
        within[fold == number] = errors[fold == number] <= limit
    return float(within.mean())


def spread(model: RegressorMixin, X: pd.DataFrame) -> np.ndarray:
    """How far the parts of a model disagree: the standard deviation of their estimates, for each row.

    Parts are the trees of a forest, the anchors of `PairwiseDifferenceRegressor`, the networks of
    `DMLS2RRegressor`, the models of `AveragedRegressor`; a Gaussian process has a standard deviation of its
    own.

    Parameters
    ----------
    model : regressor
        Fitted; a pipeline may end in it.
    X : pandas.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    numpy.ndarray of shape (n_samples,)
        In the target's unit.

    Raises
    ------
    ParameterError
        If the model has no parts.
    """
    while hasattr(model, "steps"):  # what estimates in a pipeline, and the rows as the steps before give them
        X = model[:-1].transform(X) if len(model) > 1 else X
        model = model[-1]
    if hasattr(model, "kernel_"):
        return model.predict(X, return_std=True)[1]
    each, parts = np.empty((len(X), 0)), getattr(model, "estimators_", None)
    if hasattr(model, "predict_each"):
        each = model.predict_each(X)
    elif isinstance(parts, list):  # an array holds the steps of boosting
        values = np.asarray(X, dtype=float)  # of which trees know no names
        each = np.column_stack([part.predict(values) for part in parts])
    _check_difficulty("spread", model, each.shape[1])
    weights = getattr(model, "weights_", None)
    mean = np.average(each, axis=1, weights=weights)
    return np.sqrt(np.average((each - mean[:, None]) ** 2, axis=1, weights=weights))


def metric_distance(model: RegressorMixin, X: pd.DataFrame, X_labeled: pd.DataFrame) -> np.ndarray:
    """How far rows are from labeled ones in the metric space: mean distance to the three nearest.

    Parameters
    ----------
    model : DMLS2RRegressor or another with `transform`
        Fitted; a pipeline may end in it.
    X : pandas.DataFrame of shape (n_samples, n_features)
    X_labeled : pandas.DataFrame of shape (n_labeled, n_features)

    Returns
    -------
    numpy.ndarray of shape (n_samples,)

    Raises
    ------
    ParameterError
        If the model has no metric space.
    """
    _check_difficulty("metric", model)
    labeled = model.transform(X_labeled)
    nearest = NearestNeighbors(n_neighbors=min(3, len(labeled))).fit(labeled)
    return nearest.kneighbors(model.transform(X))[0].mean(axis=1)


def _check_difficulty(normalizer: str | None, model: Any, n_parts: int | None = None) -> None:
    """Raise ParameterError if a model, fitted or not yet, has nothing that a normalizer could look at."""
    last, some = last_step(model), "a forest, pairs, several networks or an average"
    n_parts, name = getattr(last, "n_networks", n_parts), type(last).__name__
    wanted = f"normalizer='spread' must have a model of several parts ({some})"
    demand(normalizer != "spread" or n_parts not in (0, 1), f"{wanted}, got {name}")
    wanted = "normalizer='metric' must have a model with a metric space, such as DMLS2RRegressor"
    demand(normalizer != "metric" or hasattr(model, "transform"), f"{wanted}, got {name}")
