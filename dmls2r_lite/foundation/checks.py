"""What all estimators share: checks of their input, scaling, and which trainings go side by side."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, is_regressor
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .parameters import ParameterError, check_rules, demand, one_line, shown

Scaling = Literal["minmax", "standard", "none"]
MAX_VALUES = 2 * 10**7  # of copies of X at the same time
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64, pd.Period)


class RangeScaler(MinMaxScaler):
    """scikit-learn's scaler to [0, 1], which takes a range below 2e-15 for none: that of farads, for example.

    Here a column has none if its range is what rounding makes of its values.
    """

    def partial_fit(self, X: ArrayLike, y: None = None) -> Self:
        """As scikit-learn's; its `fit` calls this."""
        super().partial_fit(X, y)
        low, high, unit = self.data_min_, self.data_max_, self.data_range_
        eps, tiny = np.finfo(float).eps, np.finfo(float).tiny
        is_small = (unit < 10 * eps) & (unit > 10 * eps * np.maximum(np.abs(low), np.abs(high)) + tiny)
        self.scale_[is_small] = 1 / unit[is_small]
        self.min_[is_small] = -low[is_small] / unit[is_small]
        return self


def make_scaler(scaling: Scaling) -> TransformerMixin:
    """The scaler of that name: [0, 1] over what it is fitted on, mean 0 and variance 1, or none.

    Raises
    ------
    ValueError
        If `scaling` is unknown.
    """
    check_rules({"scaling": scaling})
    scalers = {"minmax": RangeScaler, "standard": StandardScaler, "none": FunctionTransformer}
    return scalers[scaling]().set_output(transform="default")


class SemiSupervisedRegressor(RegressorMixin, BaseEstimator):
    """Base of regressors whose `fit` takes unlabeled samples too: rows with y = NaN.

    A subclass has ``_predict(X)``, and ``_fit(X, y)`` or a `fit` of its own; both are given what was checked.
    After `fit` all have `n_labeled_` and `n_unlabeled_`, of rows.
    """

    _any_shape: ClassVar[bool] = False  # whether a sample may be an image, and a target a vector
    _at_least: ClassVar[dict[str, int]] = {}  # see `check_rules`
    _min_labels: ClassVar[int] = 2

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        TypeError, ValueError
            If an argument or parameter is of the wrong type or out of range.
        """
        self._fit(*self._validate_training_set(X, y))
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets. The estimate of a row does not depend on the rows beside it, beyond rounding.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of those in `fit`.

        Returns
        -------
        numpy.ndarray of shape (n_samples,), or (n_samples, n_targets) where targets are vectors
            In the target's unit.

        Raises
        ------
        ValueError
            If rows do not fit, or hold values so large that an estimate is not finite.
        """
        estimates = self._predict(self._validate_rows(X))
        is_finite = np.isfinite(estimates).reshape(len(estimates), -1).all(axis=1)
        for row in np.flatnonzero(~is_finite):
            wanted = "X must hold values of the size of those in fit"
            raise ValueError(f"{wanted}, but in row {row} they give {estimates[row]}")
        return estimates

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """Train on what was checked."""

    def _predict(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _validate_training_set(self, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Check X, y and parameters; unlike scikit-learn's own check, y may hold NaN (but some numbers)."""
        check_rules(self.get_params(deep=False), at_least=self._at_least)
        goes_on = getattr(self, "warm_start", False) and hasattr(self, "networks_")
        rows = self._validate_rows(X, reset=not goes_on, at_least=2)
        is_given = rows.ndim == 2 or getattr(self, "encoder", None) is not None
        demand(is_given, f"encoder must be given for samples of shape {rows.shape[1:]}, got None")
        y = check_targets(y, len(rows), at_least=self._min_labels, may_be_vectors=self._any_shape)
        self._count_labels(y)
        return rows, y

    def _count_labels(self, y: np.ndarray) -> None:
        self.n_labeled_ = int(is_labeled(y).sum())
        self.n_unlabeled_ = len(y) - self.n_labeled_

    def _validate_rows(
        self, X: ArrayLike, name: str = "X", *, reset: bool = False, at_least: int = 1
    ) -> np.ndarray:
        """Check rows to predict against those of `fit`, which has to be before; or with `reset` its own."""
        if not reset:
            check_is_fitted(self)
        # Large arrays may be mapped from a file: where float32 may stay, no copy fills the memory.
        dtypes = [np.float64, np.float32] if self._any_shape else [np.float64]
        options = {"dtype": dtypes, "ensure_min_samples": at_least, "allow_nd": self._any_shape}
        check = partial(validate_data, self, reset=reset)
        wanted = f"{name} must be rows of numbers"
        return np.asarray(_checked(wanted, check, check_numbers(name, X), **options))


def last_step(estimator: Any) -> Any:
    """What estimates in a pipeline; without one the estimator itself."""
    return last_step(estimator.steps[-1][1]) if hasattr(estimator, "steps") else estimator


def takes_unlabeled(estimator: BaseEstimator) -> bool:
    """Whether `fit` takes rows with y = NaN; of a pipeline, whether that of its last step does."""
    return isinstance(last_step(estimator), SemiSupervisedRegressor)


def check_regressor(name: str, value: object) -> None:
    """Raise ParameterError unless a value is a regressor that can be cloned: no class, no name of one."""
    is_one = not isinstance(value, type) and hasattr(value, "get_params") and is_regressor(value)
    demand(is_one, f"{name} must be a regressor, such as RidgeCV(), got {shown(value)}")


def check_numbers(name: str, values: Any) -> Any:
    """The values, with NaN where an array is masked; ParameterError for dates, times and complex numbers.

    NumPy makes numbers of these without a word, of an unknown date and of what is masked too. Nor may columns
    of a frame have one name.
    """
    _check_names(name, values)
    for part in (values[column] for column in values) if isinstance(values, pd.DataFrame) else (values,):
        array = part if isinstance(part, pd.Series) else np.asarray(part)
        kind = getattr(array.dtype, "kind", "O")
        objects = np.asarray(array).ravel() if kind == "O" else ()
        has_times = kind in "mM" or any(isinstance(one, TIMES) for one in objects)
        demand(not has_times, f"{name} must hold numbers, got dates or times")
        is_complex = kind == "c" or any(isinstance(one, complex) for one in objects)
        demand(not is_complex, f"{name} must hold real numbers: Complex data not supported")
    return np.ma.filled(values.astype(float), np.nan) if isinstance(values, np.ma.MaskedArray) else values


def check_table(name: str, table: Any, *, may_have_gaps: bool = False, at_least: int = 1) -> pd.DataFrame:
    """Rows and columns as a frame: one stays as it is, for whoever takes it to look at.

    Raises
    ------
    ParameterError
        If columns have one name or hold infinity, or an array does not hold at least so many rows of finite
        numbers; where an array may have gaps, its texts and infinity are left to others too.
    """
    if not isinstance(table, pd.DataFrame):
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": False} if may_have_gaps else {}
        options |= {"ensure_min_samples": at_least, "input_name": name}
        wanted = f"{name} must be a frame or rows of numbers"
        return pd.DataFrame(_checked(wanted, check_array, check_numbers(name, table), **options))
    demand(0 not in table.shape, f"{name} must have rows and columns, got shape {table.shape}")
    _check_names(name, table)
    for column in table.select_dtypes("number", exclude=["timedelta", "complex"]):
        is_infinite = np.isinf(table[column].to_numpy(dtype=float, na_value=np.nan)).any()
        demand(not is_infinite, f"{name} must hold finite numbers or gaps, got infinity in column {column}")
    return table


def _check_names(name: str, table: Any) -> None:
    names = table.columns.map(str) if isinstance(table, pd.DataFrame) else pd.Index([])
    for twice in names[names.duplicated()]:
        raise ParameterError(f"{name} must have columns of different names, got {twice!r} twice")


def _checked(wanted: str, check: Callable[..., np.ndarray], values: Any, **options: Any) -> np.ndarray:
    """What a check of scikit-learn's gives, and on one line with what is wanted what it complains of."""
    try:
        return check(values, **options)
    except (TypeError, ValueError, OverflowError) as error:
        if "feature names" in str(error):
            raise  # scikit-learn says which
        raise ParameterError(f"{wanted}: {one_line(error)}") from error


def check_targets(
    y: Any, n_rows: int | None = None, name: str = "y", *, at_least: int = 2, may_be_vectors: bool = False
) -> np.ndarray:
    """Targets as numbers, shape (n,), or where they may be vectors (n, t); NaN where one is not known.

    Raises
    ------
    ParameterError
        If one is no number, or they are not as many as rows, or fewer than `at_least` are known.
    """
    demand(y is not None, "fit requires y to be passed, but the target y is None")  # scikit-learn's words
    wanted = f"{name} must hold a number for each row, NaN if it is unlabeled"
    options = {"ensure_2d": False, "dtype": np.float64, "ensure_all_finite": "allow-nan", "input_name": name}
    targets = _checked(wanted, check_array, check_numbers(name, y), **options)
    if not (may_be_vectors and targets.ndim == 2 and targets.shape[1] > 1):
        targets = _checked(wanted, column_or_1d, targets, warn=True)
    sizes = f"{n_rows} and {len(targets)}"
    is_as_long = n_rows is None or len(targets) == n_rows
    demand(is_as_long, f"X and {name} must be as long, got inconsistent numbers of samples, {sizes}")
    labeled = is_labeled(targets)
    is_part = np.isfinite(targets).reshape(len(targets), -1).any(axis=1) & ~labeled
    for row in np.flatnonzero(is_part):
        wanted = "a target vector must be known or NaN as a whole"
        raise ParameterError(f"{wanted}, got {targets[row]} in row {row}")
    n_known, wanted = labeled.sum(), f"{name} must hold at least {at_least} targets that are not NaN"
    demand(n_known >= at_least, f"{wanted}, got {n_known}")
    return targets


def check_training_set(name: str, model: Any, X: Any, y: ArrayLike) -> tuple[pd.DataFrame, np.ndarray]:
    """What any regressor is to be fitted on: rows as a frame, and targets as numbers, three known or more."""
    check_regressor(name, model)
    rows = check_table("X", X, may_have_gaps=True, at_least=2)
    return rows, check_targets(y, len(rows), at_least=3)


def is_labeled(y: np.ndarray) -> np.ndarray:
    """Which targets, numbers (n,) or vectors (n, t), are known."""
    return np.isfinite(y).reshape(len(y), -1).all(axis=1)


def blocks_alike(folds: Sequence[Sized], n_values: int) -> Iterator[list[int]]:
    """Places of folds of one size, in blocks: trainings without them go side by side, each with a copy of X.

    Parameters
    ----------
    folds : sequence of sized
    n_values : int
        Of X: a block has at most `MAX_VALUES` in all.
    """
    at_once = max(1, MAX_VALUES // n_values)
    for size in sorted(set(map(len, folds))):
        alike = [place for place, fold in enumerate(folds) if len(fold) == size]
        yield from (alike[start : start + at_once] for start in range(0, len(alike), at_once))
