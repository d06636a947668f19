"""COREG: co-training of two nearest-neighbour regressors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils import check_random_state

from ..foundation.checks import SemiSupervisedRegressor
from ..foundation.parameters import check_not_above

TIE = 1e-10  # candidates with the same neighbours tie; rounding must not decide, the first one wins


@dataclass(eq=False, repr=False)
class COREGRegressor(SemiSupervisedRegressor):
    """Co-training of two k-nearest-neighbour regressors (COREG).

    Each regressor has a metric and a growing labeled set of its own. In each round it looks through
    a pool of unlabeled samples for the one that, labeled with its own estimate, would lower its
    squared error on that sample's labeled neighbours the most, and gives it with that estimate to
    the *other* regressor. The prediction is the mean of the two.

    Parameters
    ----------
    n_neighbors : int, default=3
        Of both regressors; there must be as many labels.
    p : sequence of 2 floats, default=(2, 5)
        Exponents of the regressors' Minkowski metrics.
    pool_size : int, default=100
        Unlabeled samples to choose from; refilled at random after each round.
    max_rounds : int, default=100
        It ends earlier if neither regressor finds a candidate that lowers its error.
    random_state : int, RandomState instance or None, default=None
        Of the pool.

    Attributes
    ----------
    regressors_ : list of 2 KNeighborsRegressor
    picks_ : pandas.DataFrame
        A row per pick: `round`, `chosen_by` (0 or 1; the other regressor got it), `row` of the
        training set, `target` (the estimate), `drop` in squared error.

    Notes
    -----
    Features are compared as they are: scale them first.

    References
    ----------
    Zhi-Hua Zhou and Ming Li (2005): Semi-supervised regression with co-training. IJCAI.

    Examples
    --------
    >>> from dmls2r_lite.rivals.coreg import COREGRegressor
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> model = COREGRegressor(random_state=0).fit(split.X_train, split.y_train)
    >>> model.predict(split.X_test).shape
    (180,)
    """

    n_neighbors: int = 3
    _: KW_ONLY
    p: Sequence[float] = (2, 5)
    pool_size: int = 100
    max_rounds: int = 100
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        unlabeled = np.flatnonzero(np.isnan(y))
        check_not_above("n_neighbors", self.n_neighbors, len(y) - len(unlabeled), "the number of labels")

        waiting = check_random_state(self.random_state).permutation(unlabeled)
        pool, waiting = waiting[: self.pool_size], waiting[self.pool_size :]
        learners = [_CoLearner(X, y, self.n_neighbors, p) for p in self.p]
        picks = []
        for round_ in range(self.max_rounds):
            chosen = []
            for number, learner in enumerate(learners):
                place, target, drop = learner.choose(pool)
                if drop > 0:
                    chosen.append((number, pool[place], target, drop))
                    pool = np.delete(pool, place)
            if not chosen:
                break
            for number, row, target, drop in chosen:
                learners[1 - number].add(row, target)
                picks.append((round_, number, row, target, drop))
            missing = self.pool_size - len(pool)
            pool, waiting = np.concatenate([pool, waiting[:missing]]), waiting[missing:]
        self.picks_ = pd.DataFrame(picks, columns=["round", "chosen_by", "row", "target", "drop"])
        self.regressors_ = [
            KNeighborsRegressor(self.n_neighbors, p=learner.p).fit(X[learner.rows], learner.y)
            for learner in learners
        ]

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return np.mean([regressor.predict(X) for regressor in self.regressors_], axis=0)


class _CoLearner:
    """One of the two regressors. It keeps distances, so that no candidate needs a new fit."""

    def __init__(self, X: np.ndarray, y: np.ndarray, k: int, p: float) -> None:
        self.X, self.k, self.p = X, k, p
        self.rows = np.flatnonzero(np.isfinite(y))  # that are labeled, also by the other one
        self.y = y[self.rows]
        self.distances = self._distances(self.rows)

    def _distances(self, rows: np.ndarray) -> np.ndarray:
        return cdist(self.X[rows], self.X, "minkowski", p=self.p)

    def choose(self, pool: np.ndarray) -> tuple[int, float, float]:
        """Place in the pool of the best candidate, its estimated target, and the drop in squared error."""
        if len(pool) == 0:
            return -1, np.nan, 0.0
        distances, between = self.distances[:, pool], self.distances[:, self.rows]
        # Of each labeled sample: its k nearest labeled ones (itself among them), nearest first.
        neighbors = between.argsort(axis=1, kind="stable")[:, : self.k]
        farthest = np.take_along_axis(between, neighbors[:, -1:], axis=1)[:, 0]
        near = distances.argsort(axis=0, kind="stable")[: self.k]  # (k, pool): each candidate's neighbours
        targets = self.y[near].mean(axis=0)
        before = self.y[neighbors].mean(axis=1)[near]
        # A candidate that is nearer than a neighbour's k-th neighbour takes its place.
        enters = np.take_along_axis(distances, near, axis=0) < farthest[near]
        after = before + enters * (targets - self.y[neighbors[near, -1]]) / self.k
        drops = ((self.y[near] - before) ** 2 - (self.y[near] - after) ** 2).sum(axis=0)
        best = int((drops >= drops.max() * (1 - TIE)).argmax())
        return best, float(targets[best]), float(drops[best])

    def add(self, row: int, target: float) -> None:
        """Add an unlabeled sample with a target to the labeled set."""
        self.rows, self.y = np.append(self.rows, row), np.append(self.y, target)
        self.distances = np.vstack([self.distances, self._distances(self.rows[-1:])])
