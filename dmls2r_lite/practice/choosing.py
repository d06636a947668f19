"""Which rows to label next: those that lower the uncertainty about all others the most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from ..data.preparing import describe_columns, make_preprocessor
from ..foundation.checks import check_table
from ..foundation.parameters import ParameterError, check_not_above, check_rules, demand, shown

NOISE = 0.1  # variance of what a label adds to the Gaussian process, whose own variance is 1
CLIP = 5.0  # standard deviations: what lies farther out counts as being there


def posterior_covariance(K: np.ndarray, labeled: ArrayLike) -> np.ndarray:
    """What a Gaussian process still does not know about some rows when others are labeled.

    Parameters
    ----------
    K : numpy.ndarray of shape (n, n)
        Covariance of the rows before any label.
    labeled : array-like of int
        Positions of labeled rows. Their labels do not matter.

    Returns
    -------
    numpy.ndarray of shape (n, n)
        ``K - K[:, L] (K[L, L] + NOISE I)^-1 K[L, :]``, a new array.
    """
    rows = _check_positions("labeled", labeled, len(K))
    factor = cho_factor(K[np.ix_(rows, rows)] + NOISE * np.eye(len(rows)))
    return K - K[:, rows] @ cho_solve(factor, K[rows])


def variance_reduction(C: np.ndarray, at: ArrayLike | None = None) -> np.ndarray:
    """By how much the variances of a Gaussian process fall in all if a row is labeled, for each row.

    Parameters
    ----------
    C : numpy.ndarray of shape (n, n)
        Covariance of the rows given the labels so far, see `posterior_covariance`.
    at : array-like of int, optional
        Positions of the rows whose variances count. Default: all.

    Returns
    -------
    numpy.ndarray of shape (n,)
        ``sum over j of C[j, c]^2 / (C[c, c] + NOISE)`` for each row c.
    """
    counted = C if at is None else C[_check_positions("at", at, len(C))]
    return np.einsum("jc,jc->c", counted, counted) / (C.diagonal() + NOISE)


def choose_rows(
    X: ArrayLike | pd.DataFrame,
    n: int,
    labeled: ArrayLike = (),
    targets: ArrayLike | pd.DataFrame | None = None,
    max_pool: int = 2000,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Choose rows to label, before any label is known or beside those that are.

    Greedy integrated variance reduction: one after the other, the row is chosen whose label would lower
    the posterior variance of a Gaussian process the most, summed over all rows (`variance_reduction`). Of
    the labels it needs none. Columns are standardised by the rows of X and clipped to five standard
    deviations; the covariance of two rows is exp(-d / 2m), d the squared distance, m its median.

    Parameters
    ----------
    X : array-like or pandas.DataFrame of shape (n_rows, n_columns)
        All rows that could be labeled, and those that are. An array holds finite numbers; a frame may
        have gaps, categories and dates, see `make_preprocessor`. A row without any value is never chosen.
    n : int
        How many rows to choose.
    labeled : array-like, default=()
        Rows that have a label already: positions in X, or a boolean for each row.
    targets : array-like or pandas.DataFrame of shape (n_targets, n_columns), optional
        Rows to estimate, if they are known: their variances count in place of those of X.
    max_pool : int, default=2000
        Above so many rows without a label a random draw of so many is chosen from, with the variances
        of drawn rows only. Of `targets`, too, at most so many count.
    random_state : int, RandomState or None, default=None
        Of the draws. Where none is needed, the choice is always the same.

    Returns
    -------
    numpy.ndarray of shape (n,)
        Positions in X, in the order of choice: the first of them are the choice for a smaller n.

    Raises
    ------
    ParameterError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Time and memory grow with the square of `max_pool` and of the number of labeled rows, not with the
    number of rows.

    References
    ----------
    Cohn, Ghahramani, Jordan (1996): Active learning with statistical models. J. Artif. Intell. Res. 4.

    Examples
    --------
    >>> choose_rows([[0.0], [1.0], [2.0], [3.0], [5.0]], n=3)
    array([2, 4, 0])
    """
    check_rules({"n": n, "max_pool": max_pool, "random_state": random_state})
    table = check_table("X", X)
    is_labeled = np.isin(np.arange(len(table)), _check_positions("labeled", labeled, len(table)))
    is_empty = table.isna().all(axis=1).to_numpy()
    can_be_chosen = ~is_labeled & ~is_empty
    with_values = " but with a value" if is_empty.any() else ""
    check_not_above("n", n, int(can_be_chosen.sum()), f"the number of rows without a label{with_values}")
    check_not_above("n", n, max_pool, "max_pool")
    random = check_random_state(random_state)
    pool = _draw(can_be_chosen, max_pool, random)
    space = Space(table, pool)
    rows = np.concatenate([pool, np.setdiff1d(np.flatnonzero(is_labeled), pool)])
    Z, counted = space.place(table.iloc[rows]), np.arange(len(pool))
    if targets is not None:
        others = rows_like("targets", targets, table)
        others = others.iloc[_draw(np.ones(len(others), dtype=bool), max_pool, random)]
        counted = len(rows) + np.arange(len(others))
        Z = np.vstack([Z, space.place(others)])
    C = space.covariance(Z, Z)
    C = posterior_covariance(C, np.flatnonzero(is_labeled[rows]))
    is_free = np.append(can_be_chosen[rows], np.zeros(len(C) - len(rows), dtype=bool))
    chosen = []
    for _ in range(n):
        scores = np.where(is_free, variance_reduction(C, counted), -np.inf)
        best = int(scores.argmax())
        chosen.append(rows[best])
        is_free[best] = False
        C -= np.outer(C[:, best], C[best] / (C[best, best] + NOISE))
    return np.array(chosen)


class Space:
    """Where rows lie, after `check_table`: as numbers, standardised and clipped by those of a pool."""

    def __init__(self, table: pd.DataFrame, pool: np.ndarray) -> None:
        rows = table.iloc[pool]
        named = rows.rename(columns=str)  # scikit-learn stumbles over numbers where a column is left out
        self.preprocessor = make_preprocessor(named).fit(named)
        values = self._numbers(rows)
        wanted = "X must have a column that can be used"
        demand(values.shape[1], f"{wanted}, got none but empty or equal ones")
        self.largest = np.abs(values).max(axis=0)  # else the squares of huge values overflow
        self.largest[self.largest == 0] = 1
        values = values / self.largest
        self.mean, self.scale = values.mean(axis=0), values.std(axis=0)
        self.scale[values.max(axis=0) == values.min(axis=0)] = 1
        Z = self.place(rows)
        squared = cdist(Z, Z, "sqeuclidean")
        self.width = float(np.median(squared[squared > 0])) if squared.any() else 1.0

    def place(self, rows: pd.DataFrame) -> np.ndarray:
        with np.errstate(over="ignore"):  # of rows that are far outside of the pool
            Z = (self._numbers(rows) / self.largest - self.mean) / self.scale
        return Z.clip(-CLIP, CLIP)

    def covariance(self, Z: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.exp(cdist(Z, other, "sqeuclidean") / (-2 * self.width))

    def _numbers(self, rows: pd.DataFrame) -> np.ndarray:
        values = self.preprocessor.transform(rows.rename(columns=str))
        return np.asarray(values, dtype=float, order="C")  # sums round by the order in memory


def _draw(is_free: np.ndarray, max_pool: int, random: np.random.RandomState) -> np.ndarray:
    """Positions of all rows, or of a random draw of them that holds `max_pool` that are free."""
    if is_free.sum() <= max_pool:
        return np.arange(len(is_free))
    order = random.permutation(len(is_free))
    end = np.searchsorted(is_free[order].cumsum(), max_pool) + 1
    return np.sort(order[:end])


def rows_like(name: str, rows: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Rows with the columns of X, in their order, that hold what these do; else a ParameterError."""
    found = check_table(name, rows)
    is_wider = found.shape[1] > table.shape[1] and not isinstance(rows, pd.DataFrame)
    wanted, got = (", ".join(map(str, part)) for part in (table, found))
    has_all = set(table).issubset(found) and not is_wider
    demand(has_all, f"{name} must have the columns of X, {wanted}, got {got}")
    found = found[table.columns]
    of_x, of_rows = (describe_columns(part)["kind"] for part in (table, found))
    for column in table.columns[table.notna().any() & found.notna().any() & (of_x != of_rows)]:
        wanted = f"{name} must hold a {of_x[column]} in column {column}, as X does"
        raise ParameterError(f"{wanted}, got a {of_rows[column]}")
    return found


def _check_positions(name: str, positions: Any, n_rows: int) -> np.ndarray:
    """Positions of rows, which may be given as a boolean for each row."""
    given = np.asarray(positions)
    if given.dtype == bool and given.shape == (n_rows,):
        return np.flatnonzero(given)
    is_list = given.ndim == 1 and (given.dtype.kind in "iu" or given.size == 0)
    wrong = given[(given < 0) | (given >= n_rows)].tolist() if is_list else positions
    wanted = f"{name} must hold positions from 0 to {n_rows - 1} or {n_rows} booleans"
    demand(is_list and not wrong, f"{wanted}, got {shown(wrong)}")
    return given.astype(int)
