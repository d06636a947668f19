"""Folds of labels, models fitted without the labels of a fold, and what they predict for it."""

import doctest
import importlib
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tables import QUICK, SemiSupervisedSpy, Spy, labeled_rows, noted, table

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.folds import LabeledKFold, fit_with_seeds, fit_without, predict_held_out
from dmls2r_lite.rivals.plain import plain_models

MODEL = DMLS2RRegressor(**QUICK, random_state=0)


@pytest.mark.parametrize("module", ["averaging", "choosing", "folds", "intervals"])
def test_examples(module):
    n_failed, n_tried = doctest.testmod(importlib.import_module(f"dmls2r_lite.practice.{module}"))
    assert n_failed == 0
    assert n_tried > 0


def dealt(folds, y, groups=None):
    return [test.tolist() for _, test in folds.split(y, y, groups)]


class TestLabeledKFold:
    @pytest.mark.parametrize("n_splits", [2, 4, 14])
    def test_every_label_once_and_unlabeled_rows_always(self, n_splits):
        X, y = table(0)
        folds = list(LabeledKFold(n_splits, random_state=0).split(X, y))
        assert len(folds) == LabeledKFold(n_splits).get_n_splits() == n_splits
        assert sorted(np.concatenate([test for _, test in folds])) == labeled_rows(y).tolist()
        for train, test in folds:
            assert sorted([*train, *test]) == list(range(len(y)))
            assert set(np.flatnonzero(np.isnan(y))) <= set(train)

    @pytest.mark.parametrize("groups", [None, np.arange(23) // 2])
    def test_seeds_and_generators(self, groups):
        y, generator = table(0)[1], np.random.default_rng
        seeds = (0, 0, 1, generator(3), generator(3))
        first, again, other, drawn, drawn_again = (dealt(LabeledKFold(5, one), y, groups) for one in seeds)
        assert first == again != other
        assert drawn == drawn_again

    def test_the_order_is_the_generators(self):
        y = table(0, 15)[1]
        labels, order = labeled_rows(y), np.random.default_rng(3).permutation(15)
        expected = [sorted(labels[order[start : start + 3]]) for start in range(0, 15, 3)]
        assert dealt(LabeledKFold(5, np.random.default_rng(3)), y) == expected

    def test_vectors_and_masked_targets(self):
        y = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0], [5.0, 6.0]])
        assert sorted(dealt(LabeledKFold(3, random_state=0), y)) == [[0], [2], [3]]
        assert dealt(LabeledKFold(2, 0), y, [7, 7, 8, 7]) == [[0, 3], [2]]
        y = table(0)[1]
        masked = np.ma.array(np.nan_to_num(y), mask=np.isnan(y))
        assert dealt(LabeledKFold(5, 0), masked) == dealt(LabeledKFold(5, 0), y)

    def test_errors(self):
        with pytest.raises(ParameterError, match="n_splits must be an integer of 2 or more, got 1"):
            LabeledKFold(1)
        with pytest.raises(ParameterError, match="n_splits must not exceed the number of labels, 14, got 15"):
            dealt(LabeledKFold(15), table(0)[1])


class TestGroups:
    @pytest.mark.parametrize(("seed", "n_splits"), [(0, 2), (1, 3), (2, 5)])
    def test_whole_groups_by_loops(self, seed, n_splits):
        """The largest group first, each into the fold with the fewest labels so far."""
        rng = np.random.default_rng(seed)
        groups = rng.choice(list("abcdefghi"), 80, p=np.arange(1, 10) / 45)
        y = np.where(rng.random(80) < 0.6, 1.0, np.nan)
        folds = list(LabeledKFold(n_splits, random_state=seed).split(y, y, groups))
        sizes = sorted((int((groups[~np.isnan(y)] == g).sum()) for g in set(groups)), reverse=True)
        expected = [0] * n_splits
        for size in sizes:
            expected[expected.index(min(expected))] += size
        assert sorted(len(test) for _, test in folds) == sorted(expected)
        assert sorted(np.concatenate([test for _, test in folds])) == labeled_rows(y).tolist()
        for train, test in folds:
            assert test.tolist() == sorted(test)
            assert sorted([*train, *test]) == list(range(80))
            assert not set(groups[test]) & set(groups[train[~np.isnan(y[train])]])

    def test_by_hand(self):
        y = np.array([1.0, 2.0, 3.0, np.nan, 4.0, 5.0, np.nan])
        groups = ["a", "b", "a", "b", "c", "a", "d"]
        for seed in range(5):
            assert dealt(LabeledKFold(2, seed), y, groups) == [[0, 2, 5], [1, 4]]  # three of a; then b and c
        assert sorted(dealt(LabeledKFold(3, 0), y, groups)) == [[0, 2, 5], [1], [4]]

    @pytest.mark.parametrize("names", [[3, 1, 2], [0.5, -1.0, 7.0], pd.date_range("2026-01-01", periods=3)])
    def test_names_of_any_kind_and_none_for_unlabeled_rows(self, names):
        y = table(0)[1]
        numbers = np.random.default_rng(0).integers(3, size=len(y))
        groups = pd.Series([names[number] for number in numbers], dtype=object)
        expected = dealt(LabeledKFold(3, 1), y, list(numbers))
        assert dealt(LabeledKFold(3, 1), y, groups) == expected
        assert dealt(LabeledKFold(3, 1), y, groups.where(np.isfinite(y), None)) == expected

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ([1, 2], "groups must have a value for each of the 6 rows, got shape (2,)"),
            ([(1, 2)] * 6, "groups must have a value for each of the 6 rows, got shape (6, 2)"),
            ("abcdef", "groups must have a value for each of the 6 rows, got shape ()"),
            (
                ["a", "b", "c", None, "d", None],
                "groups must be known for every labeled row, got none for row 3",
            ),
            ([1, 2, np.nan, 4, 5, 6], "groups must be known for every labeled row, got none for row 2"),
            # of rows 4 and 5 one has a label
            ([1, 2, 1, 2, 9, 9], "groups must be at least as many among labeled rows as folds, 4, got 3"),
        ],
    )
    def test_errors(self, groups, message):
        y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
        with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
            dealt(LabeledKFold(4), y, groups)


class TestScikitLearnsTools:
    @pytest.mark.parametrize("groups", [None, np.arange(23) % 7])
    def test_cross_val_score_by_hand(self, groups):
        X, y = (pd.DataFrame(part).squeeze() for part in table(0))
        model, folds = make_pipeline(StandardScaler(), MODEL), LabeledKFold(3, random_state=1)
        scorer = make_scorer(mean_absolute_error)  # any will do
        scores = cross_val_score(model, X, y, cv=folds, groups=groups, scoring=scorer, error_score="raise")
        for score, (train, test) in zip(scores, folds.split(X, y, groups), strict=True):
            fitted = clone(model).fit(X.iloc[train], y.iloc[train])
            assert_allclose(score, np.abs(fitted.predict(X.iloc[test]) - y.iloc[test]).mean(), rtol=1e-12)

    def test_grid_search(self):
        X, y = table(0)
        search = GridSearchCV(MODEL, {"k": [2, 5]}, cv=LabeledKFold(3, 0), error_score="raise")
        search.fit(X, y, groups=np.arange(23) % 7)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.n_unlabeled_ == 9


# A frame with an index of its own: 18 labeled rows, 22 unlabeled.
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(40, 3)), columns=list("abc"), index=np.arange(40) * 10)
Y = (3 * X["a"] + X["b"] ** 2).mask(np.isin(np.arange(40), rng.permutation(40)[:22]))
KNOWN = np.flatnonzero(Y.notna())
FOLDS = [KNOWN[:4], KNOWN[4:5], KNOWN[5:9], np.zeros(0, dtype=int), KNOWN[2:7][::-1], KNOWN[9:10]]


class TestHeldOut:
    def test_every_labeled_row_once_in_a_repeat_by_loops(self):
        methods = {name: plain_models()[name] for name in ("median", "ridge")}
        held_out = predict_held_out(X, Y, methods, n_repeats=2, seed=7)
        for _, part in held_out.groupby(["method", "repeat"]):
            assert sorted(part["row"]) == X.index[KNOWN].tolist()
        assert (held_out["target"] == Y[held_out["row"]].to_numpy()).all()
        for repeat in range(2):
            for fold in np.array_split(np.random.default_rng(7 + repeat).permutation(KNOWN), 5):
                rows, median = X.index[fold], np.nanmedian(np.delete(Y.to_numpy(), fold))  # noqa: F841  in query
                of_fold = held_out.query("method == 'median' and repeat == @repeat and row in @rows")
                assert of_fold["prediction"].tolist() == [median] * len(fold)

    def test_a_hidden_target_has_no_effect_nor_the_number_of_processes(self):
        row = X.index[KNOWN[4]]
        methods = {"trees": RandomForestRegressor(5), "both": clone(MODEL).set_params(target_scaling="none")}
        before = predict_held_out(X, Y, methods, n_repeats=1)
        after = predict_held_out(X, Y.where(Y.index != row, 99.0), methods, n_repeats=1, n_jobs=2)
        same = before["row"] == row
        assert (before["prediction"][same] == after["prediction"][same]).all()
        assert (before["prediction"][~same] != after["prediction"][~same]).any()

    def test_held_out_rows_stay_as_unlabeled_ones(self):
        given = noted(SemiSupervisedSpy, lambda: predict_held_out(X, Y, {"spy": SemiSupervisedSpy()}, 1))
        assert given == [(40, 25)] * 2 + [(40, 26)] * 3

    def test_few_labels(self):
        three, two = (Y.where(np.isin(np.arange(40), KNOWN[:n])) for n in (3, 2))
        held_out = predict_held_out(X, three, {"median": plain_models()["median"]}, n_repeats=1)
        assert sorted(held_out["row"]) == X.index[KNOWN[:3]].tolist()
        with pytest.raises(ValueError, match="y must hold at least 3 targets that are not NaN, got 2"):
            predict_held_out(X, two, {}, n_repeats=1)


class TestFitWithout:
    @pytest.mark.parametrize(
        "model",
        [KNeighborsRegressor(2), make_pipeline(StandardScaler(), Ridge()), RandomForestRegressor(2)],
        ids=repr,
    )
    def test_by_loops(self, model):
        """In the order of the folds, whatever their sizes; seeds are those of the folds."""
        before = Y.copy()
        copies = fit_without(model, X, Y, FOLDS, range(6))
        for seed, (fold, copy) in enumerate(zip(FOLDS, copies, strict=True)):
            rest = [row for row in KNOWN if row not in fold]
            alone = clone(model)
            alone.set_params(**{name: seed for name in alone.get_params() if name == "random_state"})
            expected = alone.fit(X.iloc[rest], Y.iloc[rest]).predict(X)
            assert_allclose(copy.predict(X), expected, rtol=1e-10)
        assert_series_equal(Y, before)

    def test_who_sees_what(self):
        assert noted(Spy, lambda: fit_without(Spy(), X, Y, FOLDS[:3], [0] * 3)) == [(14, 0), (14, 0), (17, 0)]
        given = noted(SemiSupervisedSpy, lambda: fit_without(SemiSupervisedSpy(), X, Y, FOLDS[:3], [0] * 3))
        assert given == [(40, 23), (40, 26), (40, 26)]

    @pytest.mark.parametrize(("max_values", "sizes"), [(1, []), (240, [2, 2]), (10**9, [2, 2])])
    def test_networks_of_folds_of_one_size_at_once(self, max_values, sizes, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.foundation.checks.MAX_VALUES", max_values)
        seen, whole = [], DMLS2RRegressor.fit_side_by_side

        def spy(models, sets):
            seen.append(len(models))
            return whole(models, sets)

        monkeypatch.setattr(DMLS2RRegressor, "fit_side_by_side", staticmethod(spy))
        copies = fit_without(MODEL, X, Y, FOLDS, range(6))
        assert seen == sizes
        for seed, (fold, copy) in enumerate(zip(FOLDS, copies, strict=True)):
            hidden = Y.mask(np.isin(np.arange(40), fold))
            (alone,) = fit_with_seeds(MODEL, [(X, hidden)], [seed])
            assert_allclose(copy.predict(X), alone.predict(X), rtol=1e-4)

    def test_a_method_of_its_own_comes_first(self):
        class Own(Spy):
            def fit_without(self, *arguments):
                return arguments

        given = fit_without(Own(), X, Y, FOLDS, [0] * 6)
        assert_frame_equal(given[0], X)
        assert given[2:] == (FOLDS, [0] * 6)
