"""Models that learn from labeled samples only."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from .twins import ExtraTrees, MLPRegressor, PairwiseDifferenceRegressor, RandomForest


def plain_models() -> dict[str, RegressorMixin]:
    """Models that learn from labeled samples only, to hold a method against.

    Nothing is tuned on test samples. The median ignores the features; the others are 3 nearest
    neighbours weighted by distance, ridge regression with built-in cross-validation, support vector
    regression and a Gaussian process (RBF and white noise) on a target scaled to variance 1, a random
    forest, extra trees, and two relatives of step 1: `MLPRegressor` and extra trees on pairs
    (`PairwiseDifferenceRegressor`).
    Where the scaling of features matters there are two: on features as they are given (a split is
    min-max scaled), and standardised. Ridge, support vector regression and the Gaussian process
    are standardised unless their name says "min-max".
    """

    def standardised(model: RegressorMixin) -> RegressorMixin:
        return make_pipeline(StandardScaler(), clone(model))

    nearest = KNeighborsRegressor(n_neighbors=3, weights="distance")
    ridge = RidgeCV(np.logspace(-3, 3, 13))
    support_vectors = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    gaussian_process = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True)
    return {
        "median": DummyRegressor(strategy="median"),
        "3-NN": nearest,
        "3-NN standardised": standardised(nearest),
        "ridge": standardised(ridge),
        "ridge min-max": ridge,
        "SVR": standardised(support_vectors),
        "SVR min-max": support_vectors,
        "Gaussian process": standardised(gaussian_process),
        "Gaussian process min-max": gaussian_process,
        "random forest": RandomForest(),
        "extra trees": ExtraTrees(),
        "MLP": MLPRegressor(),
        "extra trees on pairs": PairwiseDifferenceRegressor(),
    }
