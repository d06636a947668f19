"""Folds of labels, and what models fitted without them predict for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from ..foundation.checks import blocks_alike, check_regressor, check_targets, is_labeled, takes_unlabeled
from ..foundation.files import ending_with_us
from ..foundation.parameters import ParameterError, check_not_above, check_rules, demand, shown

Folds = Sequence[np.ndarray]  # positions of rows that are left out together


@dataclass(eq=False)
class LabeledKFold:
    """Folds for scikit-learn's `cross_val_score`, `GridSearchCV` and the like.

    Labeled rows are dealt into folds, with `groups` whole groups of them; rows whose target is NaN are in
    every training set and in no test set, so that any scorer will do.

    Parameters
    ----------
    n_splits : int, default=5
        2 or more; as many as there are labels is leave-one-out.
    random_state : int, RandomState or Generator instance or None, default=None
        Of the order in which labeled rows are dealt.

    Examples
    --------
    >>> import numpy as np
    >>> from dmls2r_lite import LabeledKFold
    >>> y = np.array([1.0, np.nan, 2.0, np.nan])
    >>> [(train.tolist(), test.tolist()) for train, test in LabeledKFold(2, random_state=0).split(y, y)]
    [([0, 1, 3], [2]), ([1, 2, 3], [0])]
    """

    n_splits: int = 5
    random_state: int | np.random.RandomState | np.random.Generator | None = None

    def __post_init__(self) -> None:
        is_generator = isinstance(self.random_state, np.random.Generator)
        check_rules({**vars(self), "random_state": None if is_generator else self.random_state})

    def split(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to train on and labeled rows to test on, for each fold.

        Parameters
        ----------
        X : array-like
            Not looked at.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            NaN for an unlabeled row.
        groups : array-like of shape (n_samples,), optional
            What rows belong together, such as a patient, batch or site. Labeled rows of one group come into
            one fold; unlabeled rows stay in every training set.

        Raises
        ------
        ParameterError
            If there are fewer labels, or groups of labels, than folds, or `groups` has another length.
        """
        labeled = is_labeled(check_targets(y, at_least=0, may_be_vectors=True))
        labels = np.flatnonzero(labeled)
        check_not_above("n_splits", self.n_splits, len(labels), "the number of labels")
        rng: Any = self.random_state
        rng = rng if isinstance(rng, np.random.Generator) else check_random_state(rng)
        if groups is None:
            folds = np.array_split(rng.permutation(labels), self.n_splits)
        else:
            folds = self._deal_groups(labels, groups, len(labeled), rng)
        for fold in folds:
            yield np.setdiff1d(np.arange(len(labeled)), fold), np.sort(fold)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _deal_groups(self, labels: np.ndarray, groups: ArrayLike, n_rows: int, rng: Any) -> list[np.ndarray]:
        """Deal whole groups: the largest first, each into the fold with the fewest labels so far."""
        values = np.asarray(groups, dtype=object)  # else an unknown one among texts is the text 'nan'
        got = f"got shape {values.shape}"
        demand(values.shape == (n_rows,), f"groups must have a value for each of the {n_rows} rows, {got}")
        numbers, names = pd.factorize(values, use_na_sentinel=True)
        of_label = numbers[labels]
        for row in labels[of_label < 0]:
            raise ParameterError(f"groups must be known for every labeled row, got none for row {row}")
        sizes = np.bincount(of_label, minlength=len(names))
        present = rng.permutation(np.flatnonzero(sizes))
        wanted = f"groups must be at least as many among labeled rows as folds, {self.n_splits}"
        demand(len(present) >= self.n_splits, f"{wanted}, got {len(present)}")
        folds: list[list[int]] = [[] for _ in range(self.n_splits)]
        for group in present[np.argsort(-sizes[present], kind="stable")]:
            min(folds, key=len).extend(labels[of_label == group])
        return [np.array(fold) for fold in folds]


def check_regressors(name: str, values: Any) -> None:
    """Raise ParameterError unless values are one regressor or more, by name."""
    is_mapping = isinstance(values, Mapping) and len(values) > 0
    demand(is_mapping, f"{name} must be a mapping of names to regressors, got {shown(values)}")
    for value in values.values():
        check_regressor(f"each of {name}", value)


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
    # A Gaussian process on ten samples says so for almost every split; its errors show it anyway.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        for model, (X, y) in zip(models, training_sets, strict=True):
            rows = np.ones(len(y), dtype=bool) if takes_unlabeled(method) else y.notna().to_numpy()
            model.fit(X[rows], y[rows])
    return models


def fit_without(
    method: RegressorMixin, X: pd.DataFrame, y: pd.Series, folds: Folds, seeds: Sequence[int]
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
    for places in blocks_alike(folds, X.size):  # networks side by side need as many labels
        sets = [(X, y.mask(np.isin(np.arange(len(y)), folds[place]))) for place in places]
        fitted = fit_with_seeds(method, sets, [seeds[place] for place in places])
        models |= dict(zip(places, fitted, strict=True))
    return [models[place] for place in range(len(folds))]


def deal_folds(
    y: np.ndarray | pd.Series, n_folds: int, seed: int, groups: ArrayLike | None = None
) -> list[np.ndarray]:
    """Positions of the labels in each fold of `LabeledKFold`; as many folds as labels, if these are fewer."""
    folds = LabeledKFold(min(n_folds, int(np.isfinite(y).sum())), np.random.default_rng(seed))
    return [fold for _, fold in folds.split(y, y, groups)]


def hide_targets(y: pd.Series, n_labeled: int, seed: int) -> pd.Series:
    """A copy of targets with only so many of them, drawn at random; NaN in the place of the others."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(y.notna()))
    return y.mask(np.isin(np.arange(len(y)), order[n_labeled:]))


def predict_fold(name: str, model: RegressorMixin, X: pd.DataFrame, fold: np.ndarray) -> np.ndarray:
    """What a model that has not seen the labels of a fold estimates there; an error unless it is finite."""
    # Of a column, (n, 1), NumPy would make all differences between estimates and targets.
    estimates = column_or_1d(model.predict(X.iloc[fold]))
    wanted = f"{name} must estimate finite numbers"
    demand(np.isfinite(estimates).all(), f"{wanted}, got NaN or inf for a label left out")
    return estimates


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
    ParameterError
        If there is no method, or one is no regressor, if there are fewer than 3 labels, or a method estimates
        what is no finite number.
    """
    check_targets(y, len(X), at_least=3)
    check_regressors("methods", methods)
    parts, folds, seeds = [], [], []
    for repeat in range(n_repeats):
        for number, fold in enumerate(deal_folds(y, n_folds, seed + repeat, groups)):
            place = {"method": "", "repeat": repeat, "fold": number, "row": X.index[fold]}
            parts.append(pd.DataFrame({**place, "target": y.iloc[fold].to_numpy()}))
            folds.append(fold)
            seeds.append(seed + repeat)
    predicted = Parallel(n_jobs=n_jobs, **ending_with_us())(
        delayed(_predict_folds)(X, y, name, method, folds, seeds) for name, method in methods.items()
    )
    known = pd.concat(parts)
    of_methods = dict(zip(methods, predicted, strict=True)).items()
    held_out = [known.assign(method=name, prediction=estimates) for name, estimates in of_methods]
    return pd.concat(held_out).sort_values("repeat", kind="stable", ignore_index=True)


@threadpool_limits.wrap(limits=1)
def _predict_folds(
    X: pd.DataFrame, y: pd.Series, name: str, method: RegressorMixin, folds: Folds, seeds: Sequence[int]
) -> np.ndarray:
    fitted = zip(fit_without(method, X, y, folds, seeds), folds, strict=True)
    return np.concatenate([predict_fold(name, model, X, fold) for model, fold in fitted])
