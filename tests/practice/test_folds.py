"""Folds of labels, and scikit-learn's own tools on targets with NaN."""

import doctest
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dmls2r_lite.practice.folds
from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.folds import LabeledKFold, score_labeled

SMALL = {"hidden_sizes": (8,), "n_epochs": 2, "max_steps_per_epoch": 3, "random_state": 0}


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), 15, 40, seed=0)


class TestLabeledKFold:
    @pytest.mark.parametrize("n_splits", [2, 4, 15])
    def test_every_label_once_and_unlabeled_rows_always(self, split, n_splits):
        y = split.y_train.to_numpy()
        folds = list(LabeledKFold(n_splits, random_state=0).split(split.X_train, y))
        assert len(folds) == LabeledKFold(n_splits).get_n_splits() == n_splits
        tested = np.concatenate([test for _, test in folds])
        assert sorted(tested) == np.flatnonzero(np.isfinite(y)).tolist()
        for train, test in folds:
            assert sorted([*train, *test]) == list(range(len(y)))
            assert set(np.flatnonzero(np.isnan(y))) <= set(train)

    def test_seed(self, split):
        y = split.y_train
        first, again, other = (
            [test.tolist() for _, test in LabeledKFold(5, random_state=seed).split(y, y)]
            for seed in (0, 0, 1)
        )
        assert first == again != other

    def test_generator(self, split):
        y = split.y_train.to_numpy()
        labels = np.flatnonzero(np.isfinite(y))
        order = np.random.default_rng(3).permutation(len(labels))
        folds = LabeledKFold(5, random_state=np.random.default_rng(3)).split(y, y)
        for number, (_, test) in enumerate(folds):
            assert test.tolist() == sorted(labels[i] for i in order[3 * number : 3 * number + 3])

    def test_vector_targets(self):
        y = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]])
        assert [test.tolist() for _, test in LabeledKFold(2, random_state=0).split(y, y)] == [[2], [0]]

    def test_errors(self, split):
        with pytest.raises(ValueError, match="n_splits must be an integer of 2 or more, got 1"):
            LabeledKFold(1)
        with pytest.raises(ValueError, match="n_splits must not exceed the number of labels, 15, got 16"):
            next(LabeledKFold(16).split(split.X_train, split.y_train))

    def test_example(self):
        assert doctest.testmod(dmls2r_lite.practice.folds).failed == 0


class TestMaskedTargets:
    def test_are_unknown(self, split):
        y = split.y_train.to_numpy()
        masked = np.ma.array(np.nan_to_num(y), mask=np.isnan(y))
        expected = [test.tolist() for _, test in LabeledKFold(5, 0).split(y, y)]
        assert [test.tolist() for _, test in LabeledKFold(5, 0).split(y, masked)] == expected
        one, other = (DMLS2RRegressor(**SMALL).fit(split.X_train, targets) for targets in (y, masked))
        np.testing.assert_array_equal(other.predict(split.X_test), one.predict(split.X_test))
        assert score_labeled(one, split.X_train, masked) == score_labeled(one, split.X_train, y)

    def test_dates_are_no_targets(self, split):
        with pytest.raises(ParameterError, match=r"^y must hold numbers, got dates or times$"):
            DMLS2RRegressor(**SMALL).fit(split.X_test[:9], pd.Series(pd.date_range("2024-01-01", periods=9)))


class TestGroups:
    @pytest.mark.parametrize("seed", range(8))
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
        assert sorted(np.concatenate([test for _, test in folds])) == np.flatnonzero(~np.isnan(y)).tolist()
        for train, test in folds:
            assert test.tolist() == sorted(test)
            assert sorted([*train, *test]) == list(range(80))
            labels_to_train_on = [row for row in train if not np.isnan(y[row])]
            assert not set(groups[test]) & set(groups[labels_to_train_on])
            assert set(np.flatnonzero(np.isnan(y))) <= set(train)

    def test_by_hand(self):
        y = np.array([1.0, 2.0, 3.0, np.nan, 4.0, 5.0, np.nan])
        groups = ["a", "b", "a", "b", "c", "a", "d"]
        for seed in range(5):
            folds = [test.tolist() for _, test in LabeledKFold(2, seed).split(y, y, groups)]
            assert folds == [[0, 2, 5], [1, 4]]  # three of a; then b and c
        folds = LabeledKFold(3, 0).split(y, y, groups)
        assert sorted(test.tolist() for _, test in folds) == [[0, 2, 5], [1], [4]]

    @pytest.mark.parametrize(
        "names", [[3, 1, 2], [0.5, -1.0, 7.0], [pd.Timestamp(f"2026-01-0{day}") for day in (3, 1, 2)]]
    )
    def test_names_of_any_kind_and_none_for_unlabeled_rows(self, names, split):
        y = split.y_train.to_numpy()
        numbers = np.random.default_rng(0).integers(3, size=len(y))
        groups = pd.Series([names[number] for number in numbers], dtype=object)
        expected = [test.tolist() for _, test in LabeledKFold(3, 1).split(y, y, list(numbers))]
        found = [test.tolist() for _, test in LabeledKFold(3, 1).split(y, y, groups)]
        assert found == expected
        gaps = groups.where(np.isfinite(y), None)
        assert [test.tolist() for _, test in LabeledKFold(3, 1).split(y, y, gaps)] == found

    def test_seed_decides_between_groups_of_one_size(self):
        y, groups = np.ones(24), np.arange(24) // 2
        first, again, other = (
            [test.tolist() for _, test in LabeledKFold(3, seed).split(y, y, groups)] for seed in (0, 0, 1)
        )
        assert first == again != other
        generator = LabeledKFold(3, np.random.default_rng(0)).split(y, y, groups)
        assert {len(test) for _, test in generator} == {8}

    def test_vector_targets(self):
        y = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0], [5.0, 6.0]])
        folds = LabeledKFold(2, 0).split(y, y, [7, 7, 8, 7])
        assert [test.tolist() for _, test in folds] == [[0, 3], [2]]

    def test_scikit_learn_hands_them_on(self, split):
        X, y = split.X_train, split.y_train
        groups = np.arange(len(y)) % 7
        folds = LabeledKFold(3, random_state=0)
        options = {"scoring": "neg_mean_absolute_error", "error_score": "raise"}
        scores = cross_val_score(DMLS2RRegressor(**SMALL), X, y, cv=folds, groups=groups, **options)
        for score, (train, test) in zip(scores, folds.split(X, y, groups), strict=True):
            fitted = DMLS2RRegressor(**SMALL).fit(X.iloc[train], y.iloc[train])
            assert score == -np.abs(fitted.predict(X.iloc[test]) - y.iloc[test]).mean()
        search = GridSearchCV(DMLS2RRegressor(**SMALL), {"k": [2, 5]}, cv=folds, **options)
        search.fit(X, y, groups=groups)
        assert_allclose(search.cv_results_["split0_test_score"][1], scores[0])

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ([1, 2], "groups must have a value for each of the 6 rows, got shape (2,)"),
            (np.ones((6, 2)), "groups must have a value for each of the 6 rows, got shape (6, 2)"),
            ([(1, 2)] * 6, "groups must have a value for each of the 6 rows, got shape (6, 2)"),
            ("abcdef", "groups must have a value for each of the 6 rows, got shape ()"),
            (
                ["a", "b", "c", None, "d", None],
                "groups must be known for every labeled row, got none for row 3",
            ),
            (
                [1, 2, np.nan, 4, 5, 6],
                "groups must be known for every labeled row, got none for row 2",
            ),
            (
                [1, 2, 1, 2, 9, 9],  # of rows 4 and 5 one has a label
                "groups must be at least as many among labeled rows as folds, 4, got 3",
            ),
        ],
    )
    def test_errors(self, groups, message):
        y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, np.nan])
        with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
            next(LabeledKFold(4).split(y, y, groups))


class TestScikitLearnTools:
    def test_cross_val_score_by_hand(self, split):
        X, y = split.X_train, split.y_train
        folds = LabeledKFold(3, random_state=1)
        model = make_pipeline(StandardScaler(), DMLS2RRegressor(**SMALL))
        scores = cross_val_score(
            model, X, y, cv=folds, scoring="neg_mean_absolute_error", error_score="raise"
        )
        for score, (train, test) in zip(scores, folds.split(X, y), strict=True):
            fitted = clone(model).fit(X.iloc[train], y.iloc[train])
            assert score == -np.abs(fitted.predict(X.iloc[test]) - y.iloc[test]).mean()

    def test_scorer_ignores_unlabeled_rows(self, split):
        X, y = split.X_train, split.y_train
        folds = KFold(3, shuffle=True, random_state=0)  # knows nothing of labels
        scores = cross_val_score(DMLS2RRegressor(**SMALL), X, y, cv=folds, scoring=score_labeled)
        for score, (train, test) in zip(scores, folds.split(X, y), strict=True):
            fitted = DMLS2RRegressor(**SMALL).fit(X.iloc[train], y.iloc[train])
            known = [row for row in test if np.isfinite(y.iloc[row])]
            assert score == pytest.approx(-np.abs(fitted.predict(X.iloc[known]) - y.iloc[known]).mean())
        array_scores = cross_val_score(
            DMLS2RRegressor(**SMALL), X.to_numpy(), y.to_numpy(), cv=folds, scoring=score_labeled
        )
        assert_allclose(array_scores, scores)

    def test_scorer_without_labels(self, split):
        model = DMLS2RRegressor(**SMALL).fit(split.X_train, split.y_train)
        with pytest.raises(ValueError, match="y must hold at least one target that is not NaN"):
            score_labeled(model, split.X_unlabeled, np.full(40, np.nan))

    def test_grid_search(self, split):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), DMLS2RRegressor(**SMALL)),
            {"dmls2rregressor__k": [2, 5], "dmls2rregressor__learning_rate": [1e-3, 1e-2]},
            cv=LabeledKFold(3, random_state=0),
            scoring="neg_mean_absolute_error",
        ).fit(split.X_train, split.y_train)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.predict(split.X_test).shape == split.y_test.shape
        assert search.best_estimator_[-1].n_unlabeled_ == 40

    def test_pandas_output_and_names(self, split):
        model = DMLS2RRegressor(**SMALL).set_output(transform="pandas").fit(split.X_train, split.y_train)
        codes = model.transform(split.X_test)
        assert isinstance(codes, pd.DataFrame)
        assert codes.index.equals(split.X_test.index)
        assert codes.columns.tolist() == [f"dmls2rregressor{i}" for i in range(8)]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(split.X_test.rename(columns={"x1": "other"}))

    def test_sample_weight_is_refused(self, split):
        with pytest.raises(TypeError, match="sample_weight"):
            DMLS2RRegressor(**SMALL).fit(split.X_train, split.y_train, sample_weight=np.ones(55))

    def test_any_scorer_of_scikit_learn(self, split):
        score = cross_val_score(
            DMLS2RRegressor(**SMALL), split.X_train, split.y_train, cv=LabeledKFold(3, random_state=0),
            scoring=make_scorer(mean_absolute_error),
        )  # fmt: skip
        assert (score > 0).all()


def test_nearest_neighbours_in_the_metric_space(split):
    """transform puts the metric space into a pipeline."""
    pipeline = make_pipeline(DMLS2RRegressor(**SMALL), KNeighborsRegressor(1))
    labeled = split.y_train.notna()
    pipeline.fit(split.X_train[labeled], split.y_train[labeled])
    assert_allclose(pipeline.predict(split.X_labeled), split.y_labeled)
