"""Unlabeled rows held by an adapter: shared by copies, beside labeled ones in every fold, none split."""

import doctest
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import SemiSupervisedRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice import adapting
from dmls2r_lite.practice.adapting import WithUnlabeled

FOLDS = KFold(3, shuffle=True, random_state=0)


def table(n_labeled=15, n_unlabeled=15, n_columns=3):
    rng = np.random.default_rng(n_labeled)
    X = rng.normal(size=(n_labeled + n_unlabeled, n_columns))
    y = X[:n_labeled, 0] + X[:n_labeled, 1] ** 2
    return X[:n_labeled], y, X[n_labeled:]


def small(**more):
    return DMLS2RRegressor((4,), n_epochs=1, max_steps_per_epoch=3, random_state=0, **more)


class Spy(SemiSupervisedRegressor):
    """Predicts the mean of known targets, plus that of the first column of unlabeled rows."""

    given: list[tuple] = []  # noqa: RUF012  of the class: clones are fitted

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.given.append((np.array(X), np.array(y)))
        hidden = np.isnan(y)
        self.mean_ = y[~hidden].mean() + self.factor * np.asarray(X)[hidden, 0].mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.fixture(autouse=True)
def forget():
    Spy.given.clear()


class TestFit:
    def test_labeled_rows_first_then_the_others(self):
        X, y, U = table(7, 4)
        model = WithUnlabeled(Spy(), U).fit(X, y)
        ((rows, targets),) = Spy.given
        assert_array_equal(rows, np.vstack([X, U]))
        assert_array_equal(targets, [*y, *[np.nan] * 4])
        assert_allclose(model.predict(X), np.full(7, sum(y) / 7 + sum(U[:, 0]) / 4), rtol=1e-12)
        assert not hasattr(model.estimator, "mean_")  # a copy is fitted

    def test_is_the_estimator_on_both(self):
        X, y, U = table(12, 20)
        alone = small().fit(np.vstack([X, U]), [*y, *[np.nan] * 20])
        assert_array_equal(WithUnlabeled(small(), U).fit(X, y).predict(U), alone.predict(U))
        as_lists = WithUnlabeled(small(), U.tolist()).fit(X.tolist(), y.tolist())
        assert_array_equal(as_lists.predict(U), alone.predict(U))

    def test_frames_and_pipelines(self):
        X, y, U = (pd.DataFrame(rows, columns=list("abc")) if rows.ndim == 2 else rows for rows in table())
        X.index = X.index[::-1] + 5
        model = WithUnlabeled(make_pipeline(StandardScaler(), small()), U).fit(X, pd.Series(y, X.index))
        scaler = model.estimator_[0]
        assert scaler.feature_names_in_.tolist() == ["a", "b", "c"]
        assert_allclose(scaler.mean_, np.vstack([X, U]).mean(axis=0))  # of all rows
        assert model.estimator_[-1].n_labeled_ == model.estimator_[-1].n_unlabeled_ == 15
        assert model.predict(X).shape == (15,)

    def test_vector_targets(self):
        X, y, U = table()
        model = WithUnlabeled(small(), U).fit(X, np.column_stack([y, -y]))
        assert model.predict(U).shape == (15, 2)
        assert model.estimator_.n_unlabeled_ == 15


class TestTools:
    def test_copies_share_the_array(self):
        X, y, U = table()
        frame = pd.DataFrame(U)
        for rows in (U, frame):
            model = WithUnlabeled(small(), rows)
            copied = clone(clone(model))
            assert copied.X_unlabeled is rows
            assert np.shares_memory(np.asarray(copied.X_unlabeled), np.asarray(rows))
            assert copied.estimator is not model.estimator
            assert not hasattr(copied, "estimator_")
        search = GridSearchCV(
            WithUnlabeled(small(), U), {"estimator__k": [2, 5]}, cv=FOLDS, error_score="raise"
        ).fit(X, y)
        assert np.shares_memory(search.best_estimator_.X_unlabeled, U)
        assert search.best_estimator_.estimator_.k == search.best_params_["estimator__k"]

    @pytest.mark.parametrize("n_unlabeled", [15, 4, 40])
    def test_cross_validation_by_hand(self, n_unlabeled):
        """Also where there are as many unlabeled rows as labeled ones."""
        X, y, U = table(15, n_unlabeled)
        for estimator in (Spy(), small(k=2)):
            scores = cross_val_score(
                WithUnlabeled(estimator, U), X, y, cv=FOLDS, scoring="neg_mean_absolute_error",
                error_score="raise",
            )  # fmt: skip
            for score, (train, test) in zip(scores, FOLDS.split(X), strict=True):
                rows, targets = np.vstack([X[train], U]), [*y[train], *[np.nan] * n_unlabeled]
                fitted = clone(estimator).fit(rows, np.array(targets))
                errors = [abs(fitted.predict(X[[row]])[0] - y[row]) for row in test]
                assert_allclose(score, -sum(errors) / len(errors), rtol=1e-10)
        assert {len(rows) for rows, _ in Spy.given} == {10 + n_unlabeled}
        for rows, targets in Spy.given:
            assert_array_equal(rows[np.isnan(targets)], U)  # all of them, in every fold

    def test_metadata_routing_would_split_them(self):
        """Why there is an adapter: where there are as many, scikit-learn deals them into folds too."""
        import sklearn

        X, y, U = table()
        seen = []

        class Routed(RegressorMixin, BaseEstimator):
            def fit(self, X, y, X_unlabeled=None):
                seen.append(len(X_unlabeled))
                self.is_fitted_ = True
                return self

            def predict(self, X):
                return np.zeros(len(X))

        with sklearn.config_context(enable_metadata_routing=True):
            routed = Routed().set_fit_request(X_unlabeled=True)
            cross_val_score(routed, X, y, cv=FOLDS, params={"X_unlabeled": U})
            assert seen == [10] * 3  # of 15
            cross_val_score(WithUnlabeled(Spy(), U), X, y, cv=FOLDS)
        assert [int(np.isnan(targets).sum()) for _, targets in Spy.given] == [15] * 3

    def test_search_by_hand(self):
        X, y, U = table()
        search = GridSearchCV(
            WithUnlabeled(Spy(), U), {"estimator__factor": [0.0, 1.0, 50.0]}, cv=FOLDS,
            scoring="neg_mean_absolute_error", error_score="raise",
        ).fit(X, y)  # fmt: skip
        for score, factor in zip(search.cv_results_["mean_test_score"], (0, 1, 50), strict=True):
            errors = []
            for train, test in FOLDS.split(X):
                estimate = sum(y[train]) / len(train) + factor * sum(U[:, 0]) / len(U)
                errors.append(sum(abs(y[row] - estimate) for row in test) / len(test))
            assert_allclose(score, -sum(errors) / 3, rtol=1e-10)
        assert search.predict(U).shape == (15,)

    def test_stacking_by_hand(self):
        """The last model learns from what each one says of labels left out."""
        X, y, U = table()
        parts = [("spy", WithUnlabeled(small(), U)), ("near", KNeighborsRegressor(2))]
        stacked = StackingRegressor(parts, Ridge(), cv=FOLDS).fit(X, y)
        held_out = np.empty((15, 2))
        for train, test in FOLDS.split(X):
            targets = np.array([*y[train], *[np.nan] * 15])
            held_out[test, 0] = small().fit(np.vstack([X[train], U]), targets).predict(X[test])
            held_out[test, 1] = KNeighborsRegressor(2).fit(X[train], y[train]).predict(X[test])
        last = Ridge().fit(held_out, y)
        whole = small().fit(np.vstack([X, U]), [*y, *[np.nan] * 15]).predict(U)
        near = KNeighborsRegressor(2).fit(X, y).predict(U)
        assert_allclose(stacked.predict(U), last.predict(np.column_stack([whole, near])), rtol=1e-8)

    def test_estimates_of_labels_left_out(self):
        X, y, U = table()
        estimates = cross_val_predict(WithUnlabeled(Spy(), U), X, y, cv=15)  # each label alone
        expected = [np.delete(y, row).mean() + U[:, 0].mean() for row in range(15)]
        assert_allclose(estimates, expected, rtol=1e-10)

    def test_example(self):
        assert doctest.testmod(adapting) == (0, 6)  # failures, lines tried


X, Y, U = table()
FRAME = pd.DataFrame(X, columns=list("abc"))
ESTIMATOR = "estimator must take rows with y = NaN, as DMLS2RRegressor does, got "
REFUSED = {
    "a plain one": ({"estimator": LinearRegression()}, X, ESTIMATOR + "LinearRegression()"),
    "a plain pipeline": (
        {"estimator": make_pipeline(StandardScaler(), Ridge())}, X, ESTIMATOR + "Pipeline(steps=[",
    ),
    "a class": ({"estimator": DMLS2RRegressor}, X, ESTIMATOR + "<class"),
    "a name": ({"estimator": "DML-S2R"}, X, ESTIMATOR + "'DML-S2R'"),
    "fewer columns": (
        {"X_unlabeled": U[:, :2]}, X, "X_unlabeled must have the shape of X, (3,) a row, got (2,)",
    ),
    "a list of numbers": (
        {"X_unlabeled": [1.0, 2.0]}, X, "X_unlabeled must have the shape of X, (3,) a row, got ()",
    ),
    "none": ({"X_unlabeled": None}, X, "X_unlabeled must have the shape of X, (3,) a row, got ()"),
    "other names": (
        {"X_unlabeled": FRAME.rename(columns={"b": "d"})}, FRAME,
        "X_unlabeled must have the columns of X, a, b, c, got a, d, c",
    ),
    "another order": (
        {"X_unlabeled": FRAME[["b", "a", "c"]]}, FRAME,
        "X_unlabeled must have the columns of X, a, b, c, got b, a, c",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    parameters, rows, message = REFUSED[case]
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        WithUnlabeled(**{"estimator": Spy(), "X_unlabeled": U, **parameters}).fit(rows, Y)
    assert Spy.given == []


def test_targets_that_are_masked_or_dates():
    masked = np.ma.array(Y, mask=np.arange(len(Y)) < 3)
    WithUnlabeled(Spy(), U).fit(X, masked)
    assert_array_equal(Spy.given[0][1], [*[np.nan] * 3, *Y[3:], *[np.nan] * len(U)])
    with pytest.raises(ParameterError, match=r"^y must hold numbers, got dates or times$"):
        WithUnlabeled(Spy(), U).fit(X, pd.date_range("2024-01-01", periods=len(Y)))


def test_not_fitted():
    with pytest.raises(ValueError, match="This WithUnlabeled instance is not fitted yet"):
        WithUnlabeled(Spy(), U).predict(X)
