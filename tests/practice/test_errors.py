"""Expected errors: against loops, the permutation test against all permutations."""

import itertools
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.pipeline import make_pipeline
from small_tables import Lost, SemiSupervisedSpy, Spy, labeled_rows, mixed_table, naive_kernel, noted, table

from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.choosing import choose_rows
from dmls2r_lite.practice.errors import cross_val_error, decisive_targets, nearest_shares
from dmls2r_lite.practice.intervals import ConformalRegressor


def naive_correction(errors, X_labeled, X_pool):
    """Each row of the pool errs as the label nearest to it; columns are scaled by the pool."""
    mean, sd = X_pool.mean(axis=0), X_pool.std(axis=0)
    places, pool = (((np.asarray(rows) - mean) / sd).clip(-5, 5) for rows in (X_labeled, X_pool))
    nearest = [min(range(len(errors)), key=lambda i: sum((places[i] - row) ** 2)) for row in pool]
    share = [nearest.count(i) / len(pool) for i in range(len(errors))]
    spread = np.std(errors, ddof=1) * np.sqrt(sum(part**2 for part in share))
    return sum(errors[i] for i in nearest) / len(pool), spread


class TestErrors:
    @pytest.mark.parametrize(("cv", "n_repeats", "n_groups"), [(3, 2, 0), (99, 1, 0), (4, 2, 6)])
    def test_equal_loops(self, cv, n_repeats, n_groups):
        X, y = table(cv)
        groups = np.random.default_rng(0).permutation(len(y)) % n_groups if n_groups else None
        found = cross_val_error(
            Ridge(0.3), X, y, cv, groups=groups, n_repeats=n_repeats, random_state=np.random.RandomState(3)
        )
        known = labeled_rows(y).tolist()
        of_row = {row: [] for row in known}
        for repeat in range(n_repeats):
            held_out = found.held_out[found.held_out["repeat"] == repeat].set_index("row").sort_index()
            assert list(held_out.index) == known
            assert held_out["fold"].nunique() == min(cv, len(known))
            if n_groups:
                assert all(len(set(held_out["fold"][groups[known] == g])) == 1 for g in set(groups[known]))
            for row in known:
                others = [other for other in known if held_out["fold"][other] != held_out["fold"][row]]
                predicted = Ridge(0.3).fit(X[others], y[others]).predict(X[[row]])[0]
                assert_allclose(held_out.loc[row, "prediction"], predicted, rtol=1e-10)
                assert held_out.loc[row, "target"] == y[row]
                assert_allclose(held_out.loc[row, "error"], abs(predicted - y[row]), atol=1e-10)
                of_row[row].append(abs(predicted - y[row]))
        assert len(found.held_out) == n_repeats * len(known)
        means = [sum(values) / n_repeats for values in of_row.values()]
        mean = sum(means) / len(means)
        variance = sum((value - mean) ** 2 for value in means) / (len(means) - 1)
        assert_allclose(found.mean, mean, rtol=1e-10)
        assert_allclose(found.spread, np.sqrt(variance / len(means)), rtol=1e-10)

    def test_median_by_hand(self):
        """Leave one out of 0, 1, 5, 9: the medians of the others are 5, 5, 1, 1."""
        found = cross_val_error(DummyRegressor(strategy="median"), np.zeros((4, 1)), [0, 1, 5, 9], cv=4)
        assert found.held_out.set_index("row")["error"].to_dict() == {0: 5, 1: 4, 2: 4, 3: 8}
        assert found.mean == 5.25
        assert_allclose(found.spread, np.sqrt((0.25**2 + 2 * 1.25**2 + 2.75**2) / 3 / 4))
        assert np.isnan(found.p_alike)
        assert found.notice == ""

    def test_who_sees_unlabeled_rows(self):
        X, y = table(0)
        assert noted(Spy, lambda: cross_val_error(Spy(), X, y)) == [(11, 0)] * 4 + [(12, 0)]
        given = noted(SemiSupervisedSpy, lambda: cross_val_error(SemiSupervisedSpy(), X, y))
        assert given == [(23, 11)] + [(23, 12)] * 4

    def test_seed_reaches_folds_and_model(self):
        X, y = table(0)
        one, again, other = (
            cross_val_error(ExtraTreesRegressor(3), X, y, chosen=True, random_state=seed)
            for seed in (0, 0, 1)
        )
        pd.testing.assert_frame_equal(one.held_out, again.held_out)
        assert (one.mean, one.p_alike) == (again.mean, again.p_alike)
        assert one.mean != other.mean
        fixed = cross_val_error(Ridge(), X, y, chosen=True, random_state=np.random.RandomState(0))
        assert fixed.mean == cross_val_error(Ridge(), X, y, chosen=True, random_state=0).mean

    def test_frames_with_gaps_and_categories(self):
        frame, y = mixed_table()
        model = make_pipeline(make_preprocessor(frame), Ridge())
        found = cross_val_error(model, frame, y, chosen=True, random_state=0)
        assert sorted(found.held_out["row"]) == list(range(20))  # positions, whatever the index
        assert 0 < found.mean < 3
        assert 0 < found.p_alike <= 1


class TestCorrectionForChoice:
    def test_by_hand(self):
        """Two of three rows are nearer to the label at -1; numbers are names, and a column is left out."""
        rows = ([-1.0, 3.0, 90.0], [0.0, 0.0, 2.0])
        labeled, pool = (pd.DataFrame({0: values, 1: 7.0}) for values in rows)
        assert_allclose(nearest_shares(labeled, pool), [2 / 3, 1 / 3, 0], rtol=1e-12)
        assert nearest_shares(labeled, pool[2:]).tolist() == [0, 1, 0]  # one row cannot scale columns

    def test_of_a_large_pool_evenly_spaced_rows_count(self, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.practice.errors.MAX_POOL", 3)
        labeled, pool = (pd.DataFrame({"x": values}) for values in ([0.0, 7.0], np.arange(8.0)))
        assert_allclose(nearest_shares(labeled, pool), [2 / 3, 1 / 3])  # rows 0, 3 and 6

    def test_noise_is_no_gain(self):
        """Of a target that no column tells anything of: right in the mean, and no less than the median's."""
        found = []
        for seed in range(10):
            random = np.random.default_rng(seed)
            X = pd.DataFrame(random.normal(size=(250, 6)), columns=list("abcdef"))
            X["site"] = "s" + pd.Series(random.integers(0, 12, 250)).astype(str)
            y = pd.Series(random.normal(size=250))
            is_labeled = np.isin(np.arange(250), choose_rows(X, 30))
            X = make_preprocessor(X).fit(X).transform(X)
            for model in (RidgeCV(np.logspace(-2, 4, 20)), DummyRegressor(strategy="median")):
                told = cross_val_error(model, X, y.where(is_labeled), chosen=True, random_state=0)
                predicted = model.fit(X[is_labeled], y[is_labeled]).predict(X)
                found.append([told.mean, (predicted - y)[~is_labeled].abs().mean()])
        of_ridge, of_median = np.reshape(found, (10, 2, 2)).mean(axis=0)
        assert 0.9 < of_ridge[0] / of_ridge[1] < 1.15
        assert of_ridge[0] > 0.95 * of_median[0]

    def test_of_cross_validated_errors(self):
        X, y = table(1)
        found, plain = (
            cross_val_error(Ridge(), X, y, chosen=chosen, n_repeats=3, random_state=0)
            for chosen in (True, False)
        )
        known = labeled_rows(y)
        of_row = found.held_out.groupby("row")["error"].mean()
        expected = naive_correction(of_row[known].to_numpy(), X[known], X[np.isnan(y)])
        assert_allclose((found.mean, found.spread), expected, rtol=1e-10)
        assert plain.held_out.equals(found.held_out)
        assert plain.mean != found.mean

    def test_masked_targets_and_numbers_among_objects(self):
        X, y = table(0)
        masked = np.ma.array(np.nan_to_num(y), mask=np.isnan(y))  # NumPy would make labels of what is masked
        expected, found = (
            cross_val_error(Ridge(), *both, chosen=True, random_state=0)
            for both in ((X, y), (pd.DataFrame(X, dtype=object), masked))
        )
        assert_allclose((found.mean, found.p_alike), (expected.mean, expected.p_alike), rtol=1e-10)


class TestPermutations:
    def test_against_all_of_them(self):
        """Nine rows, four of them labeled: 126 ways to label four, each discrepancy by loops."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(9, 2))
            X[:4] += seed / 3
            K = naive_kernel(X)

            def discrepancy(first, K=K):
                rest = [row for row in range(9) if row not in first]
                mean = {
                    key: np.mean([K[i, j] for i in a for j in b])
                    for key, a, b in (("in", first, first), ("across", first, rest), ("out", rest, rest))
                }
                return mean["in"] - 2 * mean["across"] + mean["out"]

            all_of_them = [discrepancy(first) for first in itertools.combinations(range(9), 4)]
            exact = np.mean(np.array(all_of_them) >= discrepancy((0, 1, 2, 3)) - 1e-12)
            y = np.where(np.arange(9) < 4, 1.0, np.nan)
            p = cross_val_error(DummyRegressor(), X, y, random_state=seed).p_alike
            assert abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / 999) + 1e-3

    @pytest.mark.exhaustive
    def test_uniform_where_labels_are_drawn_from_the_table(self):
        p = []
        for seed in range(60):
            X, y = table(seed, 12, 60)
            p.append(cross_val_error(DummyRegressor(), X, y, cv=3, random_state=seed).p_alike)
        p = np.array(p)
        assert (p < 0.05).sum() <= 8  # more with probability 0.004
        assert (p > 0.95).sum() <= 8
        assert abs(p.mean() - 0.5) < 0.12  # three standard errors
        assert p.min() >= 1 / 1000

    def test_small_where_they_are_from_one_corner(self):
        for seed in range(2):
            X = np.random.default_rng(seed).normal(size=(90, 3))
            order = X[:, 0].argsort()
            y = np.full(90, np.nan)
            y[order[-30::2]] = 1.0  # every second of the upper third
            found = cross_val_error(DummyRegressor(), X, y, random_state=seed)
            assert found.p_alike <= 0.01
            assert found.notice == (
                "The labeled rows look unlike the others (permutation test, p = "
                f"{found.p_alike:.2g}): the error on rows unlike them can be far larger than this."
            )
            chosen = cross_val_error(DummyRegressor(), X, y, cv=2, chosen=True, random_state=seed)
            assert chosen.notice == ""  # of rows that were chosen it is known
            assert chosen.p_alike == found.p_alike
            corner = order[-30:]  # where every second row has a label
            alike = cross_val_error(DummyRegressor(), X[corner], y[corner], random_state=seed)
            assert alike.p_alike > 0.05
            assert alike.notice == ""

    def test_of_a_large_pool_a_draw_counts(self, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.practice.errors.MAX_POOL", 30)
        X, y = table(0, 12, 300)
        state = np.random.get_state()[1].copy()  # noqa: NPY002
        one, again = (cross_val_error(Ridge(), X, y, chosen=True, random_state=3) for _ in "ab")
        assert (one.p_alike, one.mean) == (again.p_alike, again.mean)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
        monkeypatch.setattr("dmls2r_lite.practice.errors.MAX_POOL", 300)
        whole = cross_val_error(Ridge(), X, y, chosen=True, random_state=3)
        assert whole.held_out.equals(one.held_out)
        assert whole.mean != one.mean
        assert_allclose(whole.mean, one.mean, rtol=0.3)


X, Y = table(0)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
TWICE = pd.concat([FRAME, FRAME], axis=1)
REFUSED = [
    ({"cv": 2.5}, "cv must be an integer of 2 or more, got 2.5"),
    ({"n_repeats": 0}, "n_repeats must be an integer of 1 or more, got 0"),
    ({"chosen": "yes"}, "chosen must be one of False, True, got 'yes'"),
    ({"model": Ridge}, "model must be a regressor, such as RidgeCV(), got <class"),
    ({"model": "ridge"}, "model must be a regressor, such as RidgeCV(), got 'ridge'"),
    ({"model": Lost()}, "model must estimate finite numbers, got NaN or inf for a label left out"),
    (
        {"X": X[:5], "y": np.ones(5), "chosen": True},
        "with chosen=True there must be unlabeled rows in X, got none",
    ),
    ({"groups": np.where(np.isnan(Y), "b", None)}, "groups must be known for every labeled row, got"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(arguments, message):
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        cross_val_error(**{"model": Ridge(), "X": X, "y": Y, **arguments})


NO_NUMBER = "y must hold a number for each row, NaN if it is unlabeled: "
REFUSED_SETS = [
    (X, np.where(np.arange(23) < 2, 1.0, np.nan), "y must hold at least 3 targets that are not NaN, got 2"),
    (X, ["a"] * 23, NO_NUMBER + "could not convert"),
    (X, np.ones((23, 2)), NO_NUMBER + "y should be a 1d"),
    (X, Y[:9], "X and y must be as long, got inconsistent numbers of samples, 23 and 9"),
    (TWICE, Y, "X must have columns of different names, got 'a' twice"),
    (FRAME.replace(X[3, 0], np.inf), Y, "X must hold finite numbers or gaps, got infinity in column a"),
    (X[0], Y, "X must be a frame or rows of numbers: Expected 2D array, got 1D array instead"),
]


@pytest.mark.parametrize(("X", "y", "message"), REFUSED_SETS)
def test_refused_training_sets(X, y, message):
    """Also for intervals, which check them in the same place."""
    for call in (partial(cross_val_error, Ridge()), ConformalRegressor(Ridge()).fit):
        with pytest.raises(ParameterError, match="^" + re.escape(message)):
            call(X, y)


class TestDecisiveTargets:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([20, 22, 24, 26, 28, 30, 1000], [1000]),
            ([20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 5000, -3000], [5000, -3000]),
            ([1, 2, 3, 4, 900], [900]),
            ([20, 22, 24, 26, 28, 30, 50], []),  # not five times as far as 20 from the median
            ([0, 0, 0, 0, 0, 0, 0, 0, 1, 4], []),  # of a target that is mostly 0
            ([1, 2, 3, 700, 800, 900], []),  # half of them are no exception
            ([1.0] * 6, []),
        ],
    )
    def test_by_hand(self, values, expected):
        assert decisive_targets(pd.Series(values)).tolist() == expected

    def test_a_small_share_of_the_error_decides_nothing(self):
        others = np.tile([-1.0, 1.0], 100)
        assert decisive_targets(pd.Series([*others, 20.0])).empty
        assert decisive_targets(pd.Series([*others, 200.0])).tolist() == [200.0]

    def test_normal_targets_have_none(self):
        rng = np.random.default_rng(0)
        assert sum(len(decisive_targets(pd.Series(rng.normal(size=20)))) for _ in range(200)) <= 2
