"""Rows to label: the rule by hand and by explicit inverses, what it is robust against, what it refuses."""

import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from small_tables import naive_kernel

from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.choosing import (
    NOISE,
    choose_rows,
    posterior_covariance,
    variance_reduction,
)


def naive_covariance(K, labeled):
    k = K[:, labeled]
    return K - k @ np.linalg.inv(K[np.ix_(labeled, labeled)] + NOISE * np.eye(len(labeled))) @ k.T


def naive_scores(K, labeled, counted, candidates):
    """The sum of variances before a label, less the sum after it."""
    before = naive_covariance(K, labeled).diagonal()[counted].sum()
    return [before - naive_covariance(K, [*labeled, c]).diagonal()[counted].sum() for c in candidates]


def naive_choice(K, n, labeled, counted, n_rows):
    chosen = []
    for _ in range(n):
        free = [row for row in range(n_rows) if row not in {*labeled, *chosen}]
        scores = naive_scores(K, [*labeled, *chosen], counted, free)
        chosen.append(free[int(np.argmax(scores))])
    return chosen


def test_two_rows_by_hand():
    """Standardised -1 and 1, squared distance 4, which is its own median: K = exp(-1/2) off the diagonal."""
    a = np.exp(-0.5)
    K = naive_kernel(np.array([[3.0], [7.0]]))
    assert_allclose(K, [[1, a], [a, 1]])
    assert_allclose(variance_reduction(K), (1 + a**2) / 1.1)
    C = posterior_covariance(K, [0])
    assert_allclose(C, [[1 - 1 / 1.1, a - a / 1.1], [a - a / 1.1, 1 - a**2 / 1.1]])
    assert_allclose(
        variance_reduction(C, [1]), [C[0, 1] ** 2 / (C[0, 0] + 0.1), C[1, 1] ** 2 / (C[1, 1] + 0.1)]
    )


def test_three_rows_by_hand():
    """Equally spaced: squared distances 1, 1, 4 times their median, so K = exp(-1/2) and exp(-2)."""
    a, b = np.exp(-0.5), np.exp(-2)
    K = naive_kernel(np.array([[0.0], [1.0], [2.0]]))
    assert_allclose(K, [[1, a, b], [a, 1, a], [b, a, 1]])
    assert_allclose(variance_reduction(K), np.array([1 + a**2 + b**2, 1 + 2 * a**2, 1 + a**2 + b**2]) / 1.1)
    assert choose_rows([[0], [1], [2]], 1).tolist() == [1]
    assert choose_rows([[0], [1], [2]], 1, labeled=[0]).tolist() == [2]
    assert choose_rows([[0], [1], [2]], 1, targets=[[2]]).tolist() == [2]
    assert choose_rows([[0], [1], [2]], 2, targets=[[-9]]).tolist()[0] == 0


@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(2, 14),
    n_columns=st.integers(1, 4),
    n_labeled=st.integers(0, 4),
    n_targets=st.integers(0, 4),
)
def test_explicit_inverses_choose_the_same(seed, n_rows, n_columns, n_labeled, n_targets):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-6, 6, n_columns) + rng.normal()
    labeled = rng.permutation(n_rows)[: min(n_labeled, n_rows - 1)]
    targets = X[rng.integers(0, n_rows, n_targets)] + 0.1 * rng.normal(size=(n_targets, n_columns))
    K = naive_kernel(np.vstack([X, targets]), X)
    counted = np.arange(n_rows, len(K)) if n_targets else np.arange(n_rows)
    C = posterior_covariance(K, labeled)
    assert_allclose(C, naive_covariance(K, labeled), atol=1e-10)
    scores = naive_scores(K, list(labeled), counted, range(len(K)))
    assert_allclose(variance_reduction(C, counted), scores, atol=1e-10)
    n = n_rows - len(labeled)
    chosen = choose_rows(X, n, labeled, targets if n_targets else None)
    expected = naive_choice(K, n, list(labeled), counted, n_rows)
    taken = list(labeled)
    for ours, theirs in zip(chosen, expected, strict=True):
        if ours != theirs:  # two rows may be worth the same, and rounding decides
            assert_allclose(*naive_scores(K, taken, counted, [ours, theirs]), rtol=0, atol=1e-10)
            break
        taken.append(ours)


def test_order_continues_and_nothing_is_drawn():
    X = np.random.default_rng(0).normal(size=(300, 3))
    state = np.random.RandomState(0)
    first = choose_rows(X, 20, random_state=state)
    assert state.randint(10**9) == np.random.RandomState(0).randint(10**9)
    assert_array_equal(choose_rows(X, 8), first[:8])
    assert_array_equal(choose_rows(X, 12, labeled=first[:8]), first[8:])
    mask = np.isin(np.arange(300), first[:8])
    for labeled in (mask, list(mask), pd.Series(mask), first[:8].astype(np.uint16), pd.Index(first[:8])):
        assert_array_equal(choose_rows(X, 12, labeled), first[8:])
    assert_array_equal(choose_rows(X.astype(np.float32).tolist(), 12, labeled=mask), first[8:])
    assert_array_equal(choose_rows(1e3 * X - 5, 20), first)
    assert first.dtype.kind == "i"
    assert sorted([*choose_rows(X, 297, labeled=[5, 6, 7]), 5, 6, 7]) == list(range(300))  # every row once


def test_it_covers_what_counts():
    """Three clouds of points: one row of each; of the two without labels; of that with targets."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0], [10, 0], [0, 10]], 30, axis=0) + rng.normal(size=(90, 2))
    assert sorted(choose_rows(X, 3) // 30) == [0, 1, 2]
    assert sorted(choose_rows(X, 2, labeled=np.arange(30)) // 30) == [1, 2]
    assert set(choose_rows(X, 3, targets=X[60:] + 0.1) // 30) == {2}


def test_rows_that_stand_twice_and_columns_of_all_kinds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    chosen = choose_rows(np.vstack([X, X, X]), 20)
    assert len(set(chosen)) == 20
    assert len(set(chosen % 50)) > 15  # a second label of the same row is worth less than of another
    expected = choose_rows(X, 20)
    wide = np.column_stack([X, np.full(50, 0.1), np.zeros(50)])
    assert_array_equal(choose_rows(wide, 20), expected)
    for factor in (1e300, 1e-300, -1e306):
        assert_array_equal(choose_rows(X * [factor, 1, 1], 20), expected)
    X[3, 0] = 1e308
    assert len(set(choose_rows(X, 50))) == 50
    assert len(set(choose_rows(X[:, 1:] > 0, 50))) == 50  # of 0 and 1: many rows alike
    far = choose_rows(X[:, 1:] * 1e-308, 5, targets=[[1e308, -1e308]])
    assert len(set(far)) == 5


def test_frames_with_gaps_and_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"], index=rng.permutation(80) + 1000)
    plain = choose_rows(frame.to_numpy(), 10)
    assert_array_equal(choose_rows(frame, 10), plain)
    assert_array_equal(choose_rows(frame.set_axis([0, "b"], axis=1).assign(c=True), 10), plain)
    frame["kind"] = rng.choice(["x", "y", "z"], 80)
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, 80), unit="D")
    frame.iloc[::7, 0] = np.nan
    frame.iloc[::9, 2] = None
    numbers = make_preprocessor(frame).fit(frame).transform(frame)
    assert_array_equal(choose_rows(frame, 10), choose_rows(numbers.to_numpy(), 10))
    targets = frame.iloc[:20]
    assert_array_equal(
        choose_rows(frame, 10, [1], targets[["when", "kind", "b", "a"]].assign(more=1)),
        choose_rows(numbers.to_numpy(), 10, [1], numbers.iloc[:20].to_numpy()),
    )


def test_rows_without_any_value_are_never_chosen():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 2)), columns=["a", "b"])
    frame.loc[[1, 5, 9]] = np.nan
    assert sorted(choose_rows(frame, 7, [0, 2])) == [3, 4, 6, 7, 8, 10, 11]
    with pytest.raises(ValueError, match="of rows without a label but with a value, 7, got 8"):
        choose_rows(frame, 8, [0, 2])
    assert not {1, 5, 9} & set(choose_rows(frame, 4, max_pool=5, random_state=0))


def test_frames_of_every_type():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)).round(2), columns=["a", "b"])
    with_gaps, hours = frame.mask(frame > 1.5), rng.integers(0, 9, 60)
    days = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(hours, unit="D")
    for one, alike in (
        (frame, frame.convert_dtypes()),
        (frame, frame.astype(object)),
        (with_gaps, with_gaps.convert_dtypes()),
        (frame.assign(c=hours), frame.assign(c=pd.to_timedelta(hours, unit="h"))),
        (frame.assign(c=hours), frame.assign(c=days)),
    ):
        assert_array_equal(choose_rows(one, 5), choose_rows(alike, 5))
    assert len(set(choose_rows(frame, 5, targets=with_gaps[:20]))) == 5  # gaps in targets only


def test_a_large_pool_is_drawn():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    labeled = np.arange(100)
    chosen = choose_rows(X, 30, labeled, max_pool=200, random_state=3)
    assert_array_equal(chosen, choose_rows(X, 30, labeled, max_pool=200, random_state=3))
    assert not set(chosen) & set(labeled)
    assert len(set(chosen)) == 30
    assert set(chosen) != set(choose_rows(X, 30, labeled, max_pool=200, random_state=4))
    assert set(choose_rows(X, 30, max_pool=30, random_state=0)) <= set(range(1500))
    # labeled rows outside of the draw count too: their surroundings are known
    cloud = np.vstack([X[:1000], X[:1000] + 50])
    assert (choose_rows(cloud, 1, np.arange(1000, 1500), max_pool=50, random_state=0) < 1000).all()


def test_memory_does_not_grow_with_the_square_of_the_rows():
    X = np.random.default_rng(0).normal(size=(10**5, 5))
    tracemalloc.start()
    chosen = choose_rows(X, 5, labeled=np.arange(10), max_pool=200, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(set(chosen)) == 5
    assert peak < 5 * X.nbytes


TABLE = np.arange(20.0).reshape(10, 2)
FRAME = pd.DataFrame(TABLE, columns=["a", "b"])
TWICE = pd.concat([FRAME, FRAME], axis=1)
REFUSED = [
    ({"n": 0}, "n must be an integer of 1 or more, got 0"),
    ({"n": 11}, "n must not exceed the number of rows without a label, 10, got 11"),
    ({"n": 8, "labeled": [0, 1, 2]}, "n must not exceed the number of rows without a label, 7"),
    ({"labeled": range(10)}, "n must not exceed the number of rows without a label, 0,"),
    ({"max_pool": 0}, "max_pool must be an integer of 1 or more, got 0"),
    ({"n": 3, "max_pool": 2}, "n must not exceed max_pool, 2, got 3"),
    *(
        ({"labeled": one}, f"labeled must hold positions from 0 to 9 or 10 booleans, got {wrong}")
        for one, wrong in (([3, -1], [-1]), ([3, 10, 4], [10]), ([True] * 4, [True] * 4), ("ab", "'ab'"))
    ),
    ({"X": np.empty((0, 2))}, "X must be a frame or rows of numbers: Found array with 0 sample(s)"),
    ({"X": FRAME.iloc[:0]}, "X must have rows and columns, got shape (0, 2)"),
    ({"X": np.arange(5)}, "X must be a frame or rows of numbers: Expected 2D array, got 1D array"),
    ({"X": [["a", "b"]]}, "X must be a frame or rows of numbers: "),
    ({"X": np.ma.array(TABLE, mask=TABLE == 5)}, "X must be a frame or rows of numbers: Input X cont"),
    ({"X": FRAME.replace(5.0, -np.inf)}, "X must hold finite numbers or gaps, got infinity in column b"),
    ({"X": TWICE}, "X must have columns of different names, got 'a' twice"),
    ({"X": np.ones((5, 2))}, "X must have a column that can be used, got none but empty or equal ones"),
    ({"X": pd.DataFrame({"a": ["x"] * 5})}, "X must have a column that can be used, got none but empt"),
    ({"targets": [[1.0]]}, "targets must have the columns of X, 0, 1, got 0"),
    ({"targets": [[1.0] * 3]}, "targets must have the columns of X, 0, 1, got 0, 1, 2"),
    ({"targets": np.empty((0, 2))}, "targets must be a frame or rows of numbers: Found array with 0"),
    ({"targets": [[1, np.inf]]}, "targets must be a frame or rows of numbers: Input targets contai"),
    ({"X": FRAME, "targets": FRAME.set_axis(["c", "b"], axis=1)}, "targets must have the columns of X, a, b"),
    ({"X": FRAME, "targets": TABLE}, "targets must have the columns of X, a, b, got 0, 1"),
    ({"X": FRAME, "targets": FRAME.assign(b="x")}, "targets must hold a number in column b, as X does"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(arguments, message):
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        choose_rows(**{"X": TABLE, "n": 1, **arguments})
