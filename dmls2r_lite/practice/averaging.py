"""The lowest error to be had: several models, weighted by their errors on labels left out."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..estimators import DMLS2RRegressor
from ..foundation.checks import SemiSupervisedRegressor, check_estimates, check_regressor
from ..foundation.parameters import ParameterError, check_rules, shown
from ..rivals.plain import plain_models
from ..rivals.twins import ExtraTrees, PairwiseDifferenceRegressor
from .folds import LabeledKFold, fit_with_seed, fit_without

Models = Mapping[str, RegressorMixin] | Sequence[RegressorMixin]
MAX_LABELS_IN_PAIRS = 100


def default_models(n_labeled: int) -> dict[str, RegressorMixin]:
    """What `AveragedRegressor` averages: six models that err in different ways.

    Two networks of step 1 (at 50 labels a third of its gradient steps is a little better, and faster), extra
    trees, extra trees on pairs (30 trees do where a prediction is a mean over all anchors), a Gaussian
    process, ridge regression and three nearest neighbours, all with their own scaling of features. Above 100
    labels there are none on pairs, whose number grows with the square.
    """
    plain = plain_models()
    models = {
        "step 1": DMLS2RRegressor(schedule="pairwise_only", n_networks=2, max_steps_per_epoch=25),
        "extra trees": plain["extra trees"],
        "extra trees on pairs": PairwiseDifferenceRegressor(ExtraTrees(30)),
        "Gaussian process": plain["Gaussian process"],
        "ridge": plain["ridge"],
        "3-NN": plain["3-NN standardised"],
    }
    if n_labeled > MAX_LABELS_IN_PAIRS:
        del models["extra trees on pairs"]
    return models


class AveragedRegressor(SemiSupervisedRegressor):
    """The mean of several models, weighted by how well each predicts labels left out.

    With few labels no model is the best on every table, and picking one by cross-validation picks its luck
    too. A model's weight is proportional to exp(-sharpness N (e / min e - 1)): e is its mean absolute error
    on held-out labels and N their number, so that more labels tell models apart more surely.

    Parameters
    ----------
    models : mapping of str to regressor, or sequence of regressors, optional
        What to average; `default_models` if not given. Models that take unlabeled rows are given them, the
        others the labeled rows only.
    sharpness : float, default=0.2
        0 gives all models the same weight; the larger, the more the best one counts.
    cv : int, default=5
        Folds of the held-out errors; as many as there are labels, if these are fewer.
    random_state : int, RandomState or None, default=None
        Of the folds, and of every `random_state` that the models have.

    Attributes
    ----------
    models_ : dict of str to regressor
        Fitted on all labels.
    weights_ : pandas.Series
        Of each model; their sum is 1.
    errors_ : pandas.Series
        Mean absolute error of each model on held-out labels, in the target's unit.

    Examples
    --------
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> average = AveragedRegressor(random_state=0).fit(split.X_train, split.y_train)
    >>> average.weights_.index.tolist()
    ['step 1', 'extra trees', 'extra trees on pairs', 'Gaussian process', 'ridge', '3-NN']
    """

    def __init__(
        self,
        models: Models | None = None,
        *,
        sharpness: float = 0.2,
        cv: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.models = models
        self.sharpness = sharpness
        self.cv = cv
        self.random_state = random_state

    def fit_without(
        self, X: pd.DataFrame, y: pd.Series, folds: Sequence[np.ndarray], seeds: Sequence[int]
    ) -> list[AveragedRegressor]:
        """Fit copies, each with the targets of a fold hidden, and with weights from the other folds.

        Each needs its models' errors on labels that are hidden too. If three or more folds of one seed hold
        labels, and without any two of them three labels are left, the errors are those on the other folds,
        and all copies share the models fitted without two: n (n + 1) / 2 fits of a model for n folds, in
        place of n (cv + 1).

        Parameters
        ----------
        X, y, folds, seeds
            See `dmls2r_lite.practice.folds.fit_without`.
        """
        copies: dict[int, AveragedRegressor] = {}
        for seed in dict.fromkeys(seeds):
            places = [place for place, of_fold in enumerate(seeds) if of_fold == seed]
            of_seed = [folds[place] for place in places]
            sizes = sorted(len(fold) for fold in of_seed if len(fold))
            if len(sizes) < 3 or y.notna().sum() - sum(sizes[-2:]) < 3:
                hidden = [y.mask(np.isin(np.arange(len(y)), fold)) for fold in of_seed]
                fitted = [fit_with_seed(self, X, targets, seed) for targets in hidden]
            else:
                fitted = [clone(self).set_params(random_state=seed) for _ in places]
                check_rules(self.get_params(deep=False))
                for copy in fitted:
                    rows, targets = copy._validate_training_set(X, y)
                _fit_sharing(dict(enumerate(fitted)), pd.DataFrame(rows), pd.Series(targets), of_seed, seed)
            copies |= dict(zip(places, fitted, strict=True))
        return [copies[place] for place in range(len(folds))]

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        n_labeled = int(np.isfinite(y).sum())
        if n_labeled < 5:
            raise ParameterError(f"y must hold at least 5 targets that are not NaN, got {n_labeled}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        dealt = LabeledKFold(min(self.cv, n_labeled), np.random.default_rng(seed)).split(X, y)
        folds = [fold for _, fold in dealt]
        nothing = np.zeros(0, dtype=int)
        _fit_sharing({len(folds): self}, pd.DataFrame(X), pd.Series(y), [*folds, nothing], seed)

    def _combine(self, models: dict[str, RegressorMixin], errors: Mapping[str, np.ndarray]) -> None:
        """Keep fitted models, and weight them by their errors on held-out labels."""
        for name, of_model in errors.items():
            check_estimates(f"models: {name}", of_model)
        self.models_ = models
        self.errors_ = pd.Series({name: float(of_model.mean()) for name, of_model in errors.items()})
        n = len(next(iter(errors.values())))
        lowest = max(self.errors_.min(), np.finfo(float).tiny)  # where a model makes no error
        weights = np.exp(-n * (self.errors_ / lowest - 1).clip(0, 1e6) * self.sharpness)
        self.weights_ = weights / weights.sum()

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return self._each(X) @ self.weights_.to_numpy()

    def _each(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([model.predict(X) for model in self.models_.values()])

    def predict_each(self, X: ArrayLike) -> np.ndarray:
        """Estimates of each model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_models)
            In the target's unit, models in the order of `weights_`.
        """
        check_is_fitted(self)
        return self._each(self._validate_rows(X))

    def _members(self, n_labeled: int) -> dict[str, RegressorMixin]:
        """The models by name."""
        given = default_models(n_labeled) if self.models is None else self.models
        if isinstance(given, str) or not isinstance(given, Mapping | Sequence) or len(given) == 0:
            raise ParameterError(
                "models must be a mapping of names to regressors, a sequence of them, or None, "
                f"got {shown(given)}"
            )
        named = given.items() if isinstance(given, Mapping) else ((type(one).__name__, one) for one in given)
        members: dict[str, RegressorMixin] = {}
        for plain, model in named:
            check_regressor("each of models", model)
            names = (plain if number == 1 else f"{plain} {number}" for number in itertools.count(1))
            members[next(name for name in names if name not in members)] = model  # two of a class
        return members


def _fit_sharing(
    averages: Mapping[int, AveragedRegressor],
    X: pd.DataFrame,
    y: pd.Series,
    folds: Sequence[np.ndarray],
    seed: int,
) -> None:
    """Fit averages, each without the fold of its number, and weight their models by errors on the others."""
    members = next(iter(averages.values()))._members(int(y.notna().sum()))
    with_labels = [number for number, fold in enumerate(folds) if len(fold)]
    # What to hide for each average (a, a), and for the errors that weight its models: one fold more.
    hidden = {(a, b): frozenset({a, b} & set(with_labels)) for a in averages for b in [a, *with_labels]}
    to_hide = sorted(set(hidden.values()), key=sorted)
    nothing = np.zeros(0, dtype=int)
    rows = [np.concatenate([nothing, *(folds[number] for number in sorted(numbers))]) for numbers in to_hide]
    models: dict[int, dict[str, RegressorMixin]] = {a: {} for a in averages}
    errors: dict[int, dict[str, np.ndarray]] = {a: {} for a in averages}
    for name, member in members.items():
        fitted = dict(zip(to_hide, fit_without(member, X, y, rows, [seed] * len(rows)), strict=True))
        for a in averages:
            models[a][name] = fitted[hidden[a, a]]
            errors[a][name] = np.concatenate(
                [_errors(fitted[hidden[a, b]], X, y, folds[b]) for b in with_labels if b != a]
            )
    for a, average in averages.items():
        average._combine(models[a], errors[a])


def _errors(model: RegressorMixin, X: pd.DataFrame, y: pd.Series, fold: np.ndarray) -> np.ndarray:
    # Of a column, (n, 1), NumPy would make all differences between estimates and targets.
    return np.abs(column_or_1d(model.predict(X.iloc[fold])) - y.iloc[fold].to_numpy())
