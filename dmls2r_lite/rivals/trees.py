"""scikit-learn's forests, for targets of any size."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from ..foundation.checks import power_of_two


class _OfAnySize:
    """scikit-learn's trees take a variance below 2e-16, of farads for example, for none, and do not split.

    So they are given targets divided by a power of two, which rounds nothing, and their leaves are multiplied
    by it.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """As scikit-learn's."""
        parent: Any = super()
        y = np.asarray(y)
        unit = power_of_two(np.ptp(y)) if y.size and y.dtype.kind in "iuf" and np.isfinite(y).all() else 1.0
        parent.fit(X, y if unit == 1 else y / unit, sample_weight)
        for tree in self.estimators_:  # type: ignore[attr-defined]
            tree.tree_.value[:] *= unit
        return self


class ExtraTrees(_OfAnySize, ExtraTreesRegressor):
    """scikit-learn's `ExtraTreesRegressor`, for targets of any size."""


class RandomForest(_OfAnySize, RandomForestRegressor):
    """scikit-learn's `RandomForestRegressor`, for targets of any size."""
