"""Small tables with few labels, and regressors that note what they are given."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor

from dmls2r_lite.foundation.checks import SemiSupervisedRegressor

NEW = np.random.default_rng(99).normal(size=(12, 3))  # rows to estimate
QUICK = {"hidden_sizes": (6,), "n_epochs": 2, "max_steps_per_epoch": 3}


def table(seed, n_labeled=14, n_unlabeled=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_labeled + n_unlabeled, 3))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=len(X))
    y[rng.permutation(len(X))[:n_unlabeled]] = np.nan
    return X, y


def mixed_table():
    """Numbers with gaps, and categories, under an index that has every number twice; 20 of 60 are labeled."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"], index=rng.permutation(60) // 2)
    frame["kind"] = rng.choice(["x", "y"], 60)
    frame.iloc[::9, 0] = np.nan
    y = np.where(np.arange(60) < 20, frame["b"] + (frame["kind"] == "x"), np.nan)
    return frame, pd.Series(y, frame.index)


def labeled_rows(y):
    return np.flatnonzero(~np.isnan(y))


def naive_kernel(rows, scaled_by=None):
    """Covariances of rows as `choose_rows` has them, entry by entry, standardised by some or all."""
    by = rows if scaled_by is None else scaled_by
    scale = np.where(np.ptp(by, axis=0) == 0, 1, by.std(axis=0))
    Z, W = (np.clip((part - by.mean(axis=0)) / scale, -5, 5) for part in (rows, by))
    within = [((a - b) ** 2).sum() for a in W for b in W]
    width = np.median([d for d in within if d > 0])
    return np.array([[np.exp(-((a - b) ** 2).sum() / (2 * width)) for b in Z] for a in Z])


class Spy(RegressorMixin, BaseEstimator):
    """Predicts 0 and notes how many rows it was given, and how many of them without a label."""

    given: list[tuple] = []  # noqa: RUF012  of the class: clones are fitted

    def fit(self, X, y):
        self.given.append((len(X), int(np.isnan(y).sum())))
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(len(X))


class SemiSupervisedSpy(Spy, SemiSupervisedRegressor):
    given: list[tuple] = []  # noqa: RUF012


def noted(spy, run):
    """What copies of a spy are given, sorted."""
    spy.given.clear()
    run()
    return sorted(spy.given)


class Lost(DummyRegressor):
    """Knows no answer."""

    def predict(self, X):
        return np.full(len(X), np.nan)
