"""The average: weights by loops, copies that share their models, what it takes and refuses."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from small_tables import NEW, QUICK, Lost, SemiSupervisedSpy, Spy, labeled_rows, noted, table

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.folds import LabeledKFold, fit_with_seed, fit_without

# Without chance, so that loops can say what comes out.
MODELS = {"ridge": Ridge(0.5), "2-NN": KNeighborsRegressor(2, weights="distance"), "mean": DummyRegressor()}


def naive_average(X, y, folds, sharpness, hidden=()):
    """Errors, weights and estimates for `NEW`, of labels that are not hidden, with errors on given folds."""
    known = [row for row in labeled_rows(y) if row not in hidden]
    errors, estimates = {}, {}
    for name, model in MODELS.items():
        of_model = []
        for fold in folds:
            rest = [row for row in known if row not in fold]
            fitted = clone(model).fit(X[rest], y[rest])
            for row in fold:
                of_model.append(abs(fitted.predict(X[[row]])[0] - y[row]))
        errors[name] = sum(of_model) / len(of_model)
        estimates[name] = clone(model).fit(X[known], y[known]).predict(NEW)
    n, lowest = sum(map(len, folds)), min(errors.values())
    raw = {name: np.exp(-sharpness * n * (errors[name] / lowest - 1)) for name in MODELS}
    weights = {name: raw[name] / sum(raw.values()) for name in MODELS}
    moved = [naive_mean(each, weights.values()) for each in zip(*estimates.values(), strict=True)]
    return errors, weights, moved


def naive_mean(estimates, weights):
    """Of one row: none farther from the weighted median than five times the median distance from it."""
    pairs, half = sorted(zip(estimates, weights, strict=True)), sum(weights) / 2
    middle = min(e for e, _ in pairs if sum(weight for other, weight in pairs if other <= e) >= half)
    reach = 5 * np.median([abs(estimate - middle) for estimate in estimates])
    return sum(weight * min(max(estimate, middle - reach), middle + reach) for estimate, weight in pairs)


def assert_is(average, expected):
    errors, weights, estimates = expected
    assert average.errors_.index.tolist() == average.weights_.index.tolist() == list(MODELS)
    assert_allclose(average.errors_, list(errors.values()), rtol=1e-10)
    assert_allclose(average.weights_, list(weights.values()), atol=1e-10)
    assert_allclose(average.predict(NEW), estimates, atol=1e-10)


class TestWeights:
    @pytest.mark.parametrize(("cv", "sharpness"), [(2, 0.2), (3, 0.0), (5, 0.05), (5, 3.0), (99, 0.2)])
    def test_by_loops(self, cv, sharpness):
        X, y = table(cv)
        seed = np.random.RandomState(7).randint(2**31 - 1)
        dealt = LabeledKFold(min(cv, 14), np.random.default_rng(seed)).split(X, y)
        expected = naive_average(X, y, [list(fold) for _, fold in dealt], sharpness)
        for random_state in (7, np.random.RandomState(7)):
            average = AveragedRegressor(MODELS, cv=cv, sharpness=sharpness, random_state=random_state)
            assert_is(average.fit(X, y), expected)

    def test_by_hand(self):
        """Leave one out of 0, 0, 0, 0, 10. Means of the others: 2.5 four times and 0; medians: 0."""
        models = {"mean": DummyRegressor(), "median": DummyRegressor(strategy="median")}
        average = AveragedRegressor(models).fit(np.zeros((5, 1)), [0.0, 0, 0, 0, 10])
        assert average.errors_.to_dict() == {"mean": 4, "median": 2}
        w = np.exp(-0.2 * 5 * (4 / 2 - 1))
        assert_allclose(average.weights_, [w / (1 + w), 1 / (1 + w)], rtol=1e-12)
        assert_allclose(average.predict([[0.0]]), 2 * w / (1 + w) + 0, rtol=1e-12)
        assert_array_equal(average.predict_each([[0.0], [1.0]]), [[2, 0], [2, 0]])

    @pytest.mark.parametrize(
        ("estimates", "weights", "expected"),
        [
            ([1, 2, 3, 4, 1000], [0.1, 0.15, 0.15, 0.15, 0.45], 1.45 + 0.45 * 14),  # 4 + 5 * 2
            ([1, 2, 3, 4, 1000], [0.1, 0.1, 0.1, 0.1, 0.6], 601),  # it is the median, and all are far
            ([7, 7, 107], [0.05, 0.05, 0.9], 97),  # two that agree have no say alone
            ([0, 100], [0.5, 0.5], 50),
            ([5], [1], 5),
        ],
    )
    def test_far_estimates_by_hand(self, estimates, weights, expected):
        models = [DummyRegressor(strategy="constant", constant=float(estimate)) for estimate in estimates]
        average = AveragedRegressor(dict(enumerate(models))).fit(np.zeros((5, 1)), np.arange(5.0))
        average.weights_ = pd.Series(weights)
        assert_allclose(average.predict([[0.0]]), expected)
        assert_allclose(naive_mean(estimates, weights), expected)

    @pytest.mark.parametrize("sharpness", [0, 0.2, 1e30])
    def test_models_without_error(self, sharpness):
        """On equal targets two models are never wrong, and share the weight; one predicts 0."""
        X, y = table(0)
        y = np.where(np.isnan(y), np.nan, 3.0)
        models = {"mean": DummyRegressor(), "zero": Spy(), "median": DummyRegressor(strategy="median")}
        weights = AveragedRegressor(models, sharpness=sharpness).fit(X, y).weights_
        assert_allclose(weights, [1 / 3] * 3 if sharpness == 0 else [0.5, 0, 0.5])


def in_folds(y, sizes, seed=0):
    order = np.random.default_rng(seed).permutation(labeled_rows(y))
    return np.split(order, np.cumsum(sizes))[:-1]


class TestFitWithout:
    @pytest.mark.parametrize("sizes", [(3, 3, 3, 3, 2), (2, 6, 1), (1, 1, 1)], ids=lambda sizes: str(sizes))
    @pytest.mark.parametrize("with_empty", [False, True])
    def test_copies_by_nested_loops(self, sizes, with_empty):
        """Each is an average whose weights come from the other folds; that without an empty one, from all."""
        X, y = table(0, sum(sizes) + (5 if len(sizes) < 5 else 0))  # some labels may be in no fold
        folds = [*in_folds(y, sizes), *([np.zeros(0, dtype=int)] if with_empty else [])]
        average = AveragedRegressor(MODELS)
        copies = fit_without(average, pd.DataFrame(X), pd.Series(y), folds, [4] * len(folds))
        assert not hasattr(average, "models_")
        for fold, copy in zip(folds, copies, strict=True):
            others = [list(other) for other in folds if len(other) and set(other) != set(fold)]
            assert_is(copy, naive_average(X, y, others, 0.2, hidden=list(fold)))
            assert copy.n_labeled_ == len(labeled_rows(y)) - len(fold) == len(y) - copy.n_unlabeled_
        if with_empty:
            assert_is(copies[-1], naive_average(X, y, [list(fold) for fold in folds[:-1]], 0.2))

    def test_seeds_do_not_mix(self):
        X, y = table(0)
        first, second = in_folds(y, (5, 5, 4)), in_folds(y, (3, 4, 3, 4), seed=1)
        both = [first[0], second[0], second[1], first[1], second[2], first[2], second[3]]
        seeds = [1, 2, 2, 1, 2, 1, 2]
        copies = AveragedRegressor(MODELS).fit_without(pd.DataFrame(X), pd.Series(y), both, seeds)
        for place, (fold, seed, copy) in enumerate(zip(both, seeds, copies, strict=True)):
            others = [list(both[i]) for i in range(7) if seeds[i] == seed and i != place]
            assert_is(copy, naive_average(X, y, others, 0.2, hidden=list(fold)))

    @pytest.mark.parametrize(
        "sizes",
        [(7, 7), (7, 7, 0), (7,), (6, 6, 2)],
        ids=["two", "and an empty one", "one", "few labels left"],
    )
    def test_or_fits_of_their_own(self, sizes):
        X, y = table(1)
        folds = in_folds(y, sizes)
        models = {**MODELS, "trees": ExtraTreesRegressor(3)}
        average = AveragedRegressor(models, random_state=5)
        frame, targets = pd.DataFrame(X, columns=list("abc")), pd.Series(y)
        copies = average.fit_without(frame, targets, folds, [8] * len(folds))
        for fold, copy in zip(folds, copies, strict=True):
            hidden = targets.copy()
            hidden.iloc[fold] = np.nan
            alone = fit_with_seed(average, frame, hidden, 8)
            assert_array_equal(copy.predict(frame), alone.predict(frame))
            assert_array_equal(copy.weights_, alone.weights_)
            assert copy.random_state == 8

    def test_how_many_models_are_fitted(self):
        X, y = (pd.DataFrame(part).squeeze() for part in table(2))
        folds = in_folds(y, (3, 3, 3, 3, 2))
        assert (
            len(noted(Spy, lambda: AveragedRegressor({"spy": Spy()}).fit_without(X, y, folds, [0] * 5))) == 15
        )

    def test_seed_reaches_the_models(self):
        X, y = (pd.DataFrame(part).squeeze() for part in table(3))
        average = AveragedRegressor({"trees": ExtraTreesRegressor(3), "networks": DMLS2RRegressor(**QUICK)})
        folds = in_folds(y, (5, 5, 4))
        (one, *_), (again, *_), (other, *_) = (average.fit_without(X, y, folds, [s] * 3) for s in (1, 1, 2))
        assert_array_equal(one.predict(NEW), again.predict(NEW))
        assert (one.predict_each(NEW) != other.predict_each(NEW)).any(axis=0).all()
        assert [model.random_state for model in one.models_.values()] == [1, 1]


class TestModels:
    def test_unlabeled_rows_go_to_those_that_take_them(self):
        X, y = table(0)
        piped = make_pipeline(StandardScaler(), SemiSupervisedSpy())
        average = AveragedRegressor({"labeled": Spy(), "all": piped})
        assert noted(Spy, lambda: average.fit(X, y)) == [(11, 0)] * 4 + [(12, 0), (14, 0)]
        assert noted(SemiSupervisedSpy, lambda: average.fit(X, y)) == [(23, 9), (23, 11)] + [(23, 12)] * 4

    def test_same_seed_same_bits_and_clones(self):
        X, y = table(0)
        models = {"trees": ExtraTreesRegressor(3), "ridge": Ridge()}
        average = AveragedRegressor(models, random_state=1)
        first = average.fit(X, y).predict(NEW)
        copied = clone(average)
        assert not hasattr(copied, "models_")
        assert not hasattr(models["ridge"], "coef_")
        assert_array_equal(copied.fit(X, y).predict(NEW), first)
        assert_array_equal(average.fit(X, y).predict(NEW), first)
        assert (clone(average).set_params(random_state=2).fit(X, y).predict(NEW) != first).any()


class Column(LinearRegression):
    """Estimates as a column, as networks of other libraries give them."""

    def predict(self, X):
        return super().predict(X)[:, None]


def test_estimates_in_a_column():
    X, y = table(0, n_labeled=15)  # five folds of one size
    flat, column = (
        AveragedRegressor({"ridge": Ridge(), "line": one}, random_state=0).fit(X, y)
        for one in (LinearRegression(), Column())
    )
    assert column.errors_.equals(flat.errors_)
    assert_array_equal(column.predict(NEW), flat.predict(NEW))


X, Y = table(0)
REFUSED = [
    ({"sharpness": -0.1}, "sharpness must be a finite number of 0 or more, got -0.1"),
    ({"cv": 1}, "cv must be an integer of 2 or more, got 1"),
    *(
        ({"models": models}, f"models must be a mapping of names to regressors, got {models!r}")
        for models in ([Ridge()], {}, "sklearn.svm.SVR", Ridge())
    ),
    *(
        ({"models": {"a": one}}, f"each of models must be a regressor, such as RidgeCV(), got {one!r}")
        for one in (None, "sklearn.svm.SVR", Ridge, SVC(), StandardScaler())
    ),
    (
        {"models": {"lost": Lost()}},
        "models: lost must estimate finite numbers, got NaN or inf for a label left out",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(parameters, message):
    average = AveragedRegressor(**{"models": MODELS, **parameters})
    folds = in_folds(Y, (5, 5, 4))
    for fit in (average.fit, lambda X, y: average.fit_without(pd.DataFrame(X), pd.Series(y), folds, [0] * 3)):
        with pytest.raises(ParameterError, match="^" + re.escape(message)):
            fit(X, Y)


def test_few_labels():
    known = labeled_rows(Y)
    few, five = (np.where(np.isin(np.arange(len(Y)), known[:n]), Y, np.nan) for n in (4, 5))
    with pytest.raises(ParameterError, match=r"^y must hold at least 5 targets that are not NaN, got 4$"):
        AveragedRegressor(MODELS).fit(X, few)
    assert np.isfinite(AveragedRegressor(MODELS).fit(X, five).predict(NEW)).all()
