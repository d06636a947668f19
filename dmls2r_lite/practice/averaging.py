"""The lowest error to be had: several models, weighted by their errors on labels left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state

from ..estimators import DMLS2RRegressor
from ..foundation.checks import SemiSupervisedRegressor
from ..rivals.plain import plain_models
from ..rivals.twins import ExtraTrees, PairwiseDifferenceRegressor
from .folds import Folds, check_regressors, deal_folds, fit_without, predict_fold

MAX_LABELS_IN_PAIRS = 100
REACH = 5.0  # times the median distance of the models from their weighted median


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


@dataclass(eq=False, repr=False)
class AveragedRegressor(SemiSupervisedRegressor):
    """The mean of several models, weighted by how well each predicts labels left out.

    With few labels no model is the best on every table, and picking one by cross-validation picks its luck
    too. A model's weight is proportional to exp(-sharpness N (e / min e - 1)): e is its mean absolute error
    on held-out labels and N their number, so that more labels tell models apart more surely. An estimate
    more than five times as far from the weighted median of all as half of them are is moved to that limit,
    so that no model decides alone where it errs most.

    Parameters
    ----------
    models : mapping of str to regressor, optional
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

    _min_labels = 5

    models: Mapping[str, RegressorMixin] | None = None
    _: KW_ONLY
    sharpness: float = 0.2
    cv: int = 5
    random_state: int | np.random.RandomState | None = None

    def fit_without(
        self, X: pd.DataFrame, y: pd.Series, folds: Folds, seeds: Sequence[int]
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
        copies = [clone(self).set_params(random_state=seed) for seed in seeds]
        for seed in dict.fromkeys(seeds):
            places = [place for place, of_fold in enumerate(seeds) if of_fold == seed]
            sizes = sorted(len(folds[place]) for place in places if len(folds[place]))
            if len(sizes) < 3 or y.notna().sum() - sum(sizes[-2:]) < 3:
                for place in places:
                    copies[place].fit(X, y.mask(np.isin(np.arange(len(y)), folds[place])))
            else:
                for place in places:
                    rows, targets = copies[place]._validate_training_set(X, y)
                averages = {number: copies[place] for number, place in enumerate(places)}
                _fit_sharing(averages, rows, targets, [folds[place] for place in places], seed)
        return copies

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        folds = deal_folds(y, self.cv, seed)
        _fit_sharing({len(folds): self}, X, y, [*folds, np.zeros(0, dtype=int)], seed)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        each, weights = self._each(X), self.weights_.to_numpy()
        middle = np.quantile(each, 0.5, axis=1, weights=weights, method="inverted_cdf", keepdims=True)
        reach = REACH * np.median(np.abs(each - middle), axis=1, keepdims=True)
        return each.clip(middle - reach, middle + reach) @ weights

    def _each(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([model.predict(X) for model in self.models_.values()])

    def predict_each(self, X: ArrayLike) -> np.ndarray:
        """Estimates of each model, as it says them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_models)
            In the target's unit, models in the order of `weights_`.
        """
        return self._each(self._validate_rows(X))


def _fit_sharing(
    averages: Mapping[int, AveragedRegressor], X: np.ndarray, y: np.ndarray, folds: Folds, seed: int
) -> None:
    """Fit averages, each without the fold of its number, and weight their models by errors on the others."""
    given = next(iter(averages.values())).models
    members = default_models(int(np.isfinite(y).sum())) if given is None else given
    check_regressors("models", members)
    rows, targets = pd.DataFrame(X), pd.Series(y)
    with_labels = [number for number, fold in enumerate(folds) if len(fold)]
    # What to hide for each average (a, a), and for the errors that weight its models: one fold more.
    hidden = {(a, b): frozenset({a, b} & set(with_labels)) for a in averages for b in [a, *with_labels]}
    to_hide = sorted(set(hidden.values()), key=sorted)
    places = [np.array([row for b in sorted(one) for row in folds[b]], dtype=int) for one in to_hide]
    fitted = {}
    for name, member in members.items():
        copies = fit_without(member, rows, targets, places, [seed] * len(places))
        fitted[name] = dict(zip(to_hide, copies, strict=True))
    for a, average in averages.items():
        average._count_labels(targets.mask(rows.index.isin(folds[a])).to_numpy())
        others = [b for b in with_labels if b != a]
        known, errors = np.concatenate([y[folds[b]] for b in others]), {}
        for name, without in fitted.items():
            told = [predict_fold(f"models: {name}", without[hidden[a, b]], rows, folds[b]) for b in others]
            errors[name] = float(np.abs(np.concatenate(told) - known).mean())
        average.models_ = {name: without[hidden[a, a]] for name, without in fitted.items()}
        average.errors_ = pd.Series(errors)
        lowest = max(average.errors_.min(), np.finfo(float).tiny)  # where a model makes no error
        weights = np.exp(-len(known) * (average.errors_ / lowest - 1).clip(0, 1e6) * average.sharpness)
        average.weights_ = weights / weights.sum()
