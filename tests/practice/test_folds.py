"""Folds of labels: each label once, unlabeled rows always, whole groups; with scikit-learn's tools."""

import doctest
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tables import QUICK, labeled_rows, table

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice import folds as folds_module
from dmls2r_lite.practice.folds import LabeledKFold

MODEL = DMLS2RRegressor(**QUICK, random_state=0)


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
        y = table(0)[1]
        first, again, other = (dealt(LabeledKFold(5, seed), y, groups) for seed in (0, 0, 1))
        assert first == again != other
        assert dealt(LabeledKFold(5, np.random.default_rng(3)), y, groups) == dealt(
            LabeledKFold(5, np.random.default_rng(3)), y, groups
        )

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

    def test_example(self):
        assert doctest.testmod(folds_module) == (0, 4)  # failures, lines tried


class TestGroups:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("n_splits", [2, 3, 5])
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

    @pytest.mark.parametrize(
        "names", [[3, 1, 2], [0.5, -1.0, 7.0], [pd.Timestamp(f"2026-01-0{day}") for day in (3, 1, 2)]]
    )
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
        search = GridSearchCV(
            MODEL,
            {"k": [2, 5]},
            cv=LabeledKFold(3, 0),
            scoring="neg_mean_absolute_error",
            error_score="raise",
        ).fit(X, y, groups=np.arange(23) % 7)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_estimator_.n_unlabeled_ == 9
