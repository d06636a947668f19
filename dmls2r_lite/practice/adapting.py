"""Unlabeled rows for tools that know labeled ones only."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..foundation.checks import check_numbers, takes_unlabeled
from ..foundation.parameters import ParameterError, shown


class WithUnlabeled(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """A semi-supervised regressor that is fitted on labeled rows only, and holds the unlabeled ones itself.

    So any tool that deals labels into folds, or refuses NaN as a target, works with it: scikit-learn's
    `cross_val_score`, `GridSearchCV` and `StackingRegressor`, MAPIE. (Passing the unlabeled rows to `fit`
    by scikit-learn's metadata routing is no way: where there are as many of them as labeled rows they are
    split like these, without a word.)

    Parameters
    ----------
    estimator : regressor
        Takes rows with y = NaN, such as `DMLS2RRegressor` or a pipeline that ends in it. It is cloned.
    X_unlabeled : array-like or pandas.DataFrame of shape (n_unlabeled, n_features)
        Copies of this estimator share it.

    Attributes
    ----------
    estimator_ : regressor
        Fitted on the labeled rows and `X_unlabeled`.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> from dmls2r_lite.estimators import DMLS2RRegressor
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> model = WithUnlabeled(DMLS2RRegressor(n_epochs=2, random_state=0), split.X_unlabeled)
    >>> len(cross_val_score(model, split.X_labeled, split.y_labeled, cv=5))
    5
    """

    def __init__(self, estimator: RegressorMixin, X_unlabeled: ArrayLike | pd.DataFrame) -> None:
        self.estimator = estimator
        self.X_unlabeled = X_unlabeled

    def __sklearn_clone__(self) -> WithUnlabeled:
        return type(self)(clone(self.estimator), self.X_unlabeled)

    def fit(self, X: ArrayLike | pd.DataFrame, y: ArrayLike) -> WithUnlabeled:
        """Fit on labeled rows, and on the unlabeled ones that are held.

        Parameters
        ----------
        X : array-like or pandas.DataFrame of shape (n_labeled, n_features)
        y : array-like of shape (n_labeled,) or (n_labeled, n_targets)
            Known targets.

        Returns
        -------
        WithUnlabeled
            Itself.

        Raises
        ------
        ParameterError
            If the estimator takes no unlabeled rows, or columns differ.
        """
        if not takes_unlabeled(self.estimator):
            raise ParameterError(
                f"estimator must take rows with y = NaN, as DMLS2RRegressor does, got {shown(self.estimator)}"
            )
        rows, targets = _stacked(X, self.X_unlabeled), np.asarray(check_numbers("y", y), dtype=float)
        hidden = np.full((np.shape(self.X_unlabeled)[0], *targets.shape[1:]), np.nan)
        self.estimator_ = clone(self.estimator).fit(rows, np.concatenate([targets, hidden]))
        return self

    def predict(self, X: ArrayLike | pd.DataFrame) -> np.ndarray:
        """Estimates of the fitted regressor.

        Parameters
        ----------
        X : array-like or pandas.DataFrame of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the target's unit.
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)


def _stacked(X: ArrayLike | pd.DataFrame, others: ArrayLike | pd.DataFrame) -> np.ndarray | pd.DataFrame:
    """Labeled rows, then unlabeled ones, whose columns must be the same."""
    if isinstance(X, pd.DataFrame) and isinstance(others, pd.DataFrame):
        if list(X.columns) != list(others.columns):
            raise ParameterError(
                f"X_unlabeled must have the columns of X, {', '.join(map(str, X.columns))}, got "
                f"{', '.join(map(str, others.columns))}"
            )
        return pd.concat([X, others], ignore_index=True)
    rows, more = np.asarray(check_numbers("X", X)), np.asarray(check_numbers("X_unlabeled", others))
    if rows.shape[1:] != more.shape[1:]:
        raise ParameterError(
            f"X_unlabeled must have the shape of X, {rows.shape[1:]} a row, got {more.shape[1:]}"
        )
    return np.concatenate([rows, more])
