"""Intervals: the bounds of CV+ and the normalizers by loops, their coverage, what they take and refuse."""

import doctest
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import SemiSupervisedRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice import intervals
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.folds import LabeledKFold
from dmls2r_lite.practice.intervals import (
    ConformalRegressor,
    held_out_coverage,
    metric_distance,
    rank_of_bound,
    spread,
)
from dmls2r_lite.rivals.twins import PairwiseDifferenceRegressor

NEW = np.random.default_rng(99).normal(size=(12, 3))
QUICK = {"hidden_sizes": (6,), "n_epochs": 1, "max_steps_per_epoch": 3}


def table(seed, n_labeled=14, n_unlabeled=9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_labeled + n_unlabeled, 3))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=len(X))
    y[rng.permutation(len(X))[:n_unlabeled]] = np.nan
    return X, y


def labeled_rows(y):
    return np.array([row for row in range(len(y)) if not np.isnan(y[row])])


def naive_bounds(estimates, errors, n, alpha):
    """Barber et al. (2021), section 3: of a new row, with `estimates[i]` by the model that has not seen i."""
    low = sorted(estimates[i] - errors[i] for i in range(n))
    high = sorted(estimates[i] + errors[i] for i in range(n))
    first = int(np.floor(round(alpha * (n + 1), 9)))
    last = int(np.ceil(round((1 - alpha) * (n + 1), 9)))
    return sorted([low[first - 1], high[last - 1]])


class TestBounds:
    @pytest.mark.parametrize("n", [4, 9, 14, 19, 30])
    @pytest.mark.parametrize("cv", [2, 5, 99])
    def test_by_loops(self, n, cv):
        X, y = table(n, n)
        known = labeled_rows(y)
        model = ConformalRegressor(Ridge(0.5), cv, random_state=0).fit(X, y)
        assert model.held_out_.shape == (n,)
        assert len(set(model.fold_)) == min(cv, n)
        assert np.ptp(np.bincount(model.fold_)) <= 1
        estimates, errors = np.empty((len(NEW), n)), np.empty(n)
        for i, row in enumerate(known):
            others = known[model.fold_ != model.fold_[i]]
            fitted = Ridge(0.5).fit(X[others], y[others])
            errors[i] = abs(fitted.predict(X[[row]])[0] - y[row])
            estimates[:, i] = fitted.predict(NEW)
        assert_allclose(model.errors_, errors, rtol=1e-10)
        assert_allclose(np.abs(model.held_out_ - y[known]), errors, rtol=1e-10)
        assert_allclose(model.predict(NEW), Ridge(0.5).fit(X[known], y[known]).predict(NEW), rtol=1e-10)
        for coverage in (0.05, 0.5, 2 / 3, 0.75, 0.8, 0.9, 0.95):
            if round((1 - coverage) * (n + 1), 9) < 1:
                continue
            expected = [naive_bounds(of_row, errors, n, 1 - coverage) for of_row in estimates]
            assert_allclose(model.predict_interval(NEW, coverage), expected, rtol=1e-10)

    def test_by_hand(self):
        """Leave one out of 0, 1, 5, 9: medians of the others 5, 5, 1, 1, and errors 5, 4, 4, 8."""
        model = ConformalRegressor(DummyRegressor(strategy="median"), cv=4)
        model.fit(np.zeros((4, 1)), [0.0, 1.0, 5.0, 9.0])
        assert model.errors_.tolist() == [5, 4, 4, 8]
        assert model.predict([[0.0]]).tolist() == [3]
        # lower: 0, 1, -3, -7; upper: 10, 9, 5, 9. One of five is left out on each side at 80 %, two at 60 %.
        assert model.predict_interval([[0.0]], 0.8).tolist() == [[-7, 10]]
        assert model.predict_interval([[0.0]], 0.6).tolist() == [[-3, 9]]
        assert model.predict_interval([[0.0]], 0.2).tolist() == [[1, 5]]
        assert model.predict_interval([[0.0], [1.0]], 1e-12).tolist() == [[1, 5]] * 2

    @pytest.mark.parametrize(
        ("coverage", "smallest"), [(0.5, 1), (0.75, 3), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.3, 1)]
    )
    def test_smallest_number_of_labels(self, coverage, smallest):
        assert rank_of_bound(smallest, coverage) >= 1
        assert rank_of_bound(smallest, coverage) == 1 or smallest == 1
        if smallest > 1:
            n = smallest - 1
            message = (
                f"coverage must not exceed N / (N + 1), {n / (n + 1):.3g} with {n} labels, got {coverage}: "
                f"that takes {smallest} labels"
            )
            with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
                rank_of_bound(n, coverage)
            if n > 2:
                X, y = table(0, n, 0)
                with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
                    ConformalRegressor(Ridge()).fit(X, y).predict_interval(NEW, coverage)

    def test_ranks_are_exact_where_products_round(self):
        for n in range(1, 300):
            for percent in range(1, 100):
                left_out = (100 - percent) * (n + 1) // 100  # in integers
                if left_out >= 1:
                    assert rank_of_bound(n, percent / 100) == left_out

    @pytest.mark.parametrize("normalizer", [None, "spread", "metric"])
    def test_blocks_of_rows_make_no_difference(self, normalizer, monkeypatch):
        X, y = table(0)
        estimator = DMLS2RRegressor(**QUICK, n_networks=2)
        model = ConformalRegressor(estimator, 3, normalizer, random_state=0).fit(X, y)
        rows = np.random.default_rng(0).normal(size=(31, 3))
        whole = model.predict_interval(rows)
        monkeypatch.setattr(intervals, "MAX_VALUES", 14 * 7)
        assert_allclose(model.predict_interval(rows), whole, rtol=1e-12)
        monkeypatch.setattr(intervals, "MAX_VALUES", 1)
        assert_allclose(model.predict_interval(rows), whole, rtol=1e-12)


def networks(**more):
    return DMLS2RRegressor(**QUICK, **more)


def spread_of_forest(model, rows):
    return [np.std([tree.predict([row])[0] for tree in model.estimators_]) for row in rows]


def spread_of_process(model, rows):
    """A Gaussian process on scaled targets, by the inverse of its matrix."""
    kernel, known = model.kernel_, model.X_train_
    K = np.linalg.inv(kernel(known) + model.alpha * np.eye(len(known)))
    unit = model._y_train_std
    variances = [kernel.diag(row[None])[0] - kernel(row[None], known)[0] @ K @ kernel(known, row[None])[:, 0]
                 for row in rows]  # fmt: skip
    return np.sqrt(variances) * unit


def spread_of_pairs(model, rows):
    values = []
    for row in rows:
        each = []
        for x, y in zip(model._X, model._y, strict=True):
            forth, back = (model.estimator_.predict([[*a, *b, *(a - b)]])[0] for a, b in ((row, x), (x, row)))
            each.append((forth - back) / 2 + y)
        values.append(np.std(each))
    return values


def spread_of_networks(model, rows):
    each = []
    for network in model.networks_:
        one = clone(model).set_params(n_networks=1)
        one.__dict__ |= model.__dict__ | {"networks_": [network], "n_networks": 1}
        each.append(one.predict(rows))
    return np.std(each, axis=0)


def spread_of_average(model, rows):
    values = []
    for row in rows:
        each = [one.predict([row])[0] for one in model.models_.values()]
        mean = sum(w * value for w, value in zip(model.weights_, each, strict=True))
        values.append(
            np.sqrt(sum(w * (value - mean) ** 2 for w, value in zip(model.weights_, each, strict=True)))
        )
    return values


def distance_in_metric_space(model, rows, labeled):
    codes, known = model.transform(rows), model.transform(labeled)
    return [np.mean(sorted(np.sqrt(((a - b) ** 2).sum()) for b in known)[:3]) for a in codes]


SPREADS = {
    "forest": (RandomForestRegressor(4), spread_of_forest),
    "extra trees": (ExtraTreesRegressor(5), spread_of_forest),
    "process": (GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True), spread_of_process),
    "pairs": (PairwiseDifferenceRegressor(KNeighborsRegressor(2)), spread_of_pairs),
    "networks": (networks(n_networks=3), spread_of_networks),
    "average": (
        AveragedRegressor([Ridge(), KNeighborsRegressor(2), DummyRegressor()], sharpness=0.05),
        spread_of_average,
    ),
}


class TestNormalizers:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("name", SPREADS)
    def test_spread_by_loops(self, name):
        X, y = table(0)
        estimator, naive = SPREADS[name]
        model = ConformalRegressor(estimator, 3, "spread", random_state=0).fit(X, y)
        self.check(model, X, y, lambda one, rows, labeled: naive(one, rows))
        assert_allclose(spread(model.estimator_, NEW), naive(model.estimator_, NEW), rtol=1e-10)

    @pytest.mark.parametrize("n_networks", [1, 2])
    def test_distance_in_the_metric_space_by_loops(self, n_networks):
        X, y = table(1)
        model = ConformalRegressor(networks(n_networks=n_networks), 3, "metric", random_state=0).fit(X, y)
        self.check(model, X, y, distance_in_metric_space)

    def check(self, model, X, y, difficulty):
        """Errors over difficulty, and new rows' difficulty times them; each with its mean over X added."""
        known = labeled_rows(y)
        n = len(known)
        errors, estimates = np.empty(n), np.empty((len(NEW), n))
        scale, of_new = np.empty(n), np.empty((len(NEW), n))
        for number, one in enumerate(model.fold_estimators_):
            in_fold = model.fold_ == number
            rows, others = known[in_fold], known[~in_fold]
            added = np.mean(difficulty(one, X, X[others]))
            assert added > 0
            errors[in_fold] = np.abs(one.predict(X[rows]) - y[rows])
            scale[in_fold] = np.array(difficulty(one, X[rows], X[others])) + added
            estimates[:, in_fold] = one.predict(NEW)[:, None]
            of_new[:, in_fold] = (np.array(difficulty(one, NEW, X[others])) + added)[:, None]
        assert_allclose(model.errors_, errors / scale, rtol=1e-10)
        for coverage in (0.5, 0.8, 0.9):
            expected = [
                naive_bounds(estimates[j], errors / scale * of_new[j], n, 1 - coverage)
                for j in range(len(NEW))
            ]
            assert_allclose(model.predict_interval(NEW, coverage), expected, rtol=1e-10)

    @pytest.mark.parametrize("name", ["extra trees", "average", "metric"])
    def test_in_pipelines_by_loops(self, name):
        """Rows go through the steps before, which were fitted on all of them, or on the labeled ones."""
        X, y = table(2)
        estimator, naive = SPREADS[name] if name != "metric" else (networks(), distance_in_metric_space)

        def difficulty(one, rows, labeled):
            scaled = [one[-1][0].transform(values) for values in (rows, labeled)]
            return naive(one[-1][1], *scaled) if name == "metric" else naive(one[-1][1], scaled[0])

        piped = make_pipeline("passthrough", make_pipeline(StandardScaler(), estimator))
        normalizer = "metric" if name == "metric" else "spread"
        model = ConformalRegressor(piped, 3, normalizer, random_state=0).fit(X, y)
        self.check(model, X, y, difficulty)
        seen = model.estimator_[-1][0].n_samples_seen_
        assert seen == (14 if name == "extra trees" else 23)

    def test_where_all_parts_agree(self):
        """Nothing is uncertain about a target that never changes."""
        X, y = table(0)
        y = np.where(np.isnan(y), np.nan, 7.0)
        model = ConformalRegressor(RandomForestRegressor(3), normalizer="spread", random_state=0).fit(X, y)
        assert model.errors_.tolist() == [0] * 14
        assert_array_equal(model.predict_interval(NEW), np.full((12, 2), 7.0))

    def test_of_a_large_table_some_rows_scale(self, monkeypatch):
        monkeypatch.setattr(intervals, "MAX_ROWS", 10)
        X, y = table(0)
        model = ConformalRegressor(networks(), 3, "metric", random_state=0).fit(X, y)
        for number, one in enumerate(model.fold_estimators_):
            others = X[labeled_rows(y)[model.fold_ != number]]
            some = distance_in_metric_space(one, X[::3], others)  # 8 of 23 rows
            assert_allclose(model._difficulty_added[number], np.mean(some), rtol=1e-10)

    @pytest.mark.parametrize(
        "estimator",
        [Ridge(), GradientBoostingRegressor(n_estimators=3), RandomForestRegressor(1)],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_no_parts(self, estimator):
        message = (
            "normalizer='spread' must have a model of several parts (a forest, pairs, networks or an "
            f"average), got {type(estimator).__name__}"
        )
        for model in (estimator, make_pipeline(StandardScaler(), estimator)):
            with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
                ConformalRegressor(model, normalizer="spread").fit(*table(0))

    def test_one_part(self):
        message = r"^normalizer='spread' must have several networks or labels, got one$"
        with pytest.raises(ParameterError, match=message):
            ConformalRegressor(networks(), normalizer="spread").fit(*table(0))

    def test_no_metric_space(self):
        message = (
            "normalizer='metric' must have a model with a metric space, such as DMLS2RRegressor, got Ridge"
        )
        for model in (Ridge(), make_pipeline(StandardScaler(), Ridge())):
            with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
                ConformalRegressor(model, normalizer="metric").fit(*table(0))

    def test_few_labels_are_near(self):
        """With two labels beside a fold, the mean is over two."""
        X, y = table(0, 3)
        one = networks(random_state=0).fit(X, y)
        known = labeled_rows(y)[:2]
        found = metric_distance(one, pd.DataFrame(NEW), pd.DataFrame(X[known]))
        codes, near = one.transform(NEW), one.transform(X[known])
        assert_allclose(found, [np.mean(np.linalg.norm(near - code, axis=1)) for code in codes])


class TestCoverage:
    @pytest.mark.parametrize(
        ("coverage", "n", "cv"), [(0.8, 20, 5), (0.9, 20, 5), (0.8, 10, 99), (0.6, 40, 4)]
    )
    def test_of_tables_that_are_drawn_alike(self, coverage, n, cv):
        """Linear with noise, ridge regression; a hundred rows to estimate in each of 80 tables."""
        rng = np.random.default_rng(0)
        held = []
        for _ in range(80):
            X = rng.normal(size=(n + 100, 3))
            y = X @ [1.0, -2.0, 0.5] + rng.normal(size=n + 100)
            low, high = (
                ConformalRegressor(PlainRidge(), cv, random_state=0)
                .fit(X[:n], y[:n])
                .predict_interval(X[n:], coverage)
                .T
            )
            held.append(((low <= y[n:]) & (y[n:] <= high)).mean())
        # The standard error is about 0.011, so the band is 4 of them and more; the promise itself is wider.
        assert coverage - 0.04 < np.mean(held) < coverage + 0.09
        assert np.mean(held) > 1 - 2 * (1 - coverage)

    def test_wrong_model(self):
        """The promise does not depend on the model: the mean of all labels covers as much."""
        rng = np.random.default_rng(1)
        held = []
        for _ in range(80):
            X = rng.normal(size=(120, 2))
            y = 10 * X[:, 0] + rng.exponential(size=120) ** 2
            model = ConformalRegressor(DummyRegressor(), random_state=0).fit(X[:20], y[:20])
            low, high = model.predict_interval(X[20:], 0.8).T
            held.append(((low <= y[20:]) & (y[20:] <= high)).mean())
        assert 0.76 < np.mean(held) < 0.89

    def test_of_new_groups(self):
        """Rows of a group share an offset: only with whole groups left out are new groups covered."""
        rng = np.random.default_rng(2)
        held = {"groups": [], "rows": []}
        for _ in range(20):
            group = np.repeat(np.arange(30), 4)
            X = rng.normal(size=(120, 2)) * 0.1 + rng.normal(size=(30, 2))[group]
            y = X[:, 0] + 3 * rng.normal(size=30)[group] + 0.1 * rng.normal(size=120)
            for name, groups in (("groups", group[:40]), ("rows", None)):
                model = ConformalRegressor(KNeighborsRegressor(1), random_state=0)
                model.fit(X[:40], y[:40], groups=groups)
                low, high = model.predict_interval(X[40:], 0.8).T
                held[name].append(((low <= y[40:]) & (y[40:] <= high)).mean())
        assert np.mean(held["groups"]) > 0.74
        assert np.mean(held["rows"]) < 0.5


class TestHeldOutCoverage:
    def test_by_hand(self):
        """Of the three errors of the other fold the limit is the largest at 75 %, the second at 50 %."""
        errors, fold = np.array([1.0, 2, 3, 2.5, 0.5, 4]), np.array([0, 0, 0, 1, 1, 1])
        assert held_out_coverage(errors, fold, 0.75) == 5 / 6  # all but the 4
        assert held_out_coverage(errors, fold, 0.5) == 3 / 6  # 1 and 2 of 2.5, 0.5 of 2

    @pytest.mark.parametrize("seed", range(6))
    def test_by_loops(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(12, 40))
        errors, fold = rng.exponential(size=n), rng.permutation(np.arange(n) % rng.integers(2, 6))
        for coverage in (0.3, 0.5, 0.8):
            within = 0
            for i in range(n):
                others = sorted(errors[j] for j in range(n) if fold[j] != fold[i])
                last = int(np.ceil(round(coverage * (len(others) + 1), 9)))
                within += errors[i] <= others[last - 1]
            assert held_out_coverage(errors, fold, coverage) == within / n

    def test_is_about_the_nominal_value(self):
        rng = np.random.default_rng(0)
        found = [held_out_coverage(rng.exponential(size=20), np.arange(20) % 5) for _ in range(200)]
        assert 0.78 < np.mean(found) < 0.87

    def test_few_labels(self):
        message = (
            r"^coverage must not exceed N / \(N \+ 1\), 0.667 with 2 labels, got 0.8: that takes 4 labels$"
        )
        with pytest.raises(ParameterError, match=message):
            held_out_coverage(np.ones(4), np.array([0, 0, 1, 1]))


class PlainRidge(RegressorMixin, BaseEstimator):
    """Ridge regression without an intercept, and without checks: for many small tables."""

    def fit(self, X, y):
        X = np.asarray(X)
        self.coef_ = np.linalg.solve(X.T @ X + 0.1 * np.eye(X.shape[1]), X.T @ np.asarray(y))
        return self

    def predict(self, X):
        return np.asarray(X) @ self.coef_


class PlainSpy(RegressorMixin, BaseEstimator):
    """Predicts 0 and notes what it was given."""

    given: list[tuple] = []  # noqa: RUF012  of the class: clones are fitted

    def fit(self, X, y):
        self.given.append((len(X), int(np.isnan(y).sum())))
        return self

    def predict(self, X):
        return np.zeros(len(X))


class SemiSupervisedSpy(PlainSpy, SemiSupervisedRegressor):
    given: list[tuple] = []  # noqa: RUF012


class TestFit:
    def test_who_sees_unlabeled_rows(self):
        X, y = table(0)
        PlainSpy.given.clear()
        SemiSupervisedSpy.given.clear()
        for spy in (PlainSpy(), SemiSupervisedSpy()):
            model = ConformalRegressor(spy, random_state=0).fit(X, y)
            assert_array_equal(model.errors_, np.abs(y[labeled_rows(y)]))
        assert sorted(PlainSpy.given) == [(11, 0)] * 4 + [(12, 0), (14, 0)]
        assert sorted(SemiSupervisedSpy.given) == [(23, 9), (23, 11)] + [(23, 12)] * 4

    def test_groups_are_left_out_together(self):
        X, y = table(0)
        groups = np.array(list("abcdefg"))[np.random.default_rng(0).integers(7, size=len(y))]
        model = ConformalRegressor(Ridge(), 4, random_state=0).fit(X, y, groups)
        of_label = groups[labeled_rows(y)]
        for group in set(of_label):
            assert len(set(model.fold_[of_label == group])) == 1
        assert len(set(model.fold_)) == 4
        with pytest.raises(ParameterError, match=r"^groups must be at least as many among labeled rows as f"):
            ConformalRegressor(Ridge(), 99).fit(X, y, groups)

    def test_same_seed_same_bits(self):
        X, y = table(0)
        forest = ExtraTreesRegressor(3)
        one, again, other = (
            ConformalRegressor(forest, random_state=seed).fit(X, y).predict_interval(NEW)
            for seed in (0, 0, 1)
        )
        assert_array_equal(one, again)
        assert (one != other).any()
        assert not hasattr(forest, "estimators_")
        by_generator = ConformalRegressor(forest, random_state=np.random.RandomState(0)).fit(X, y)
        assert_array_equal(by_generator.predict_interval(NEW), one)

    def test_clone(self):
        X, y = table(0)
        model = ConformalRegressor(ExtraTreesRegressor(3), 4, "spread", random_state=0).fit(X, y)
        copied = clone(model)
        assert not hasattr(copied, "errors_")
        assert copied.get_params()["estimator__n_estimators"] == 3
        assert_array_equal(copied.fit(X, y).predict_interval(NEW), model.predict_interval(NEW))
        before = model.predict_interval(NEW)
        assert_array_equal(model.fit(X, y).predict_interval(NEW), before)  # afresh

    def test_frames_with_gaps_and_categories(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"], index=rng.permutation(60) // 2)
        frame["kind"] = rng.choice(["x", "y"], 60)
        frame.iloc[::9, 0] = np.nan
        y = pd.Series(np.where(np.arange(60) < 20, frame["b"] + (frame["kind"] == "x"), np.nan), frame.index)
        for normalizer, last in (
            (None, Ridge()),
            ("spread", ExtraTreesRegressor(5)),
            ("metric", networks()),
            ("spread", AveragedRegressor([Ridge(), DummyRegressor()])),
        ):
            estimator = make_pipeline(make_preprocessor(frame), last)
            model = ConformalRegressor(estimator, 3, normalizer, random_state=0).fit(frame, y)
            low, high = model.predict_interval(frame).T
            assert np.isfinite(low + high).all()
            assert (low < high).all()
            some = model.predict_interval(frame.iloc[[5, 50]])
            assert_allclose(some, np.column_stack([low, high])[[5, 50]], rtol=1e-10)

    def test_arrays_lists_and_frames_are_the_same(self):
        X, y = table(0)
        expected = ConformalRegressor(Ridge(), random_state=0).fit(X, y).predict_interval(NEW)
        frame, new = (pd.DataFrame(rows, columns=list("abc")) for rows in (X, NEW))
        for rows, later in ((X.tolist(), NEW.tolist()), (frame, new), (frame, NEW)):
            model = ConformalRegressor(Ridge(), random_state=0).fit(rows, list(y))
            assert_allclose(model.predict_interval(later), expected, rtol=1e-12)

    def test_within_a_search(self):
        X, y = table(0)
        search = GridSearchCV(
            ConformalRegressor(Ridge(), 3, random_state=0), {"estimator__alpha": [0.1, 1e3]},
            cv=LabeledKFold(3, 0), scoring="neg_mean_absolute_error", error_score="raise",
        ).fit(X, y)  # fmt: skip
        assert search.best_params_ == {"estimator__alpha": 0.1}
        assert search.best_estimator_.predict_interval(NEW).shape == (12, 2)

    def test_copies_of_an_average_share_their_models(self):
        """Its intervals are those of averages whose weights come from the other folds."""
        X, y = table(0)
        average = AveragedRegressor([Ridge(), KNeighborsRegressor(2)])
        model = ConformalRegressor(average, random_state=0).fit(X, y)
        known = labeled_rows(y)
        for number, one in enumerate(model.fold_estimators_):
            rest = known[model.fold_ != number]
            errors = []
            for member in average.models:
                of_member = []
                for other in set(range(5)) - {number}:
                    kept, fold = known[~np.isin(model.fold_, [number, other])], known[model.fold_ == other]
                    fitted = clone(member).fit(X[kept], y[kept])
                    of_member += list(np.abs(fitted.predict(X[fold]) - y[fold]))
                errors.append(np.mean(of_member))
            assert_allclose(one.errors_, errors, rtol=1e-10)
            expected = np.column_stack([clone(m).fit(X[rest], y[rest]).predict(NEW) for m in average.models])
            assert_allclose(one.predict_each(NEW), expected, rtol=1e-10)

    def test_example(self):
        assert doctest.testmod(intervals) == (0, 5)  # failures, lines tried


class Lost(DummyRegressor):
    """Knows no answer."""

    def predict(self, X):
        return np.full(len(X), np.nan)


X, Y = table(0)
REFUSED = {
    "one fold": ({"cv": 1}, {}, "cv must be an integer of 2 or more, got 1"),
    "a word": (
        {"normalizer": "width"}, {}, "normalizer must be one of None, 'spread', 'metric', got 'width'",
    ),
    "a class": ({"estimator": Ridge}, {}, "estimator must be a regressor, such as RidgeCV(), got <class"),
    "a name": ({"estimator": "ridge"}, {}, "estimator must be a regressor, such as RidgeCV(), got 'ridge'"),
    "a scaler": (
        {"estimator": StandardScaler()}, {}, "estimator must be a regressor, such as RidgeCV(), got Stand",
    ),
    "two labels": (
        {}, {"y": np.where(np.arange(23) < 2, 1.0, np.nan)},
        "y must hold at least 3 targets that are not NaN, got 2",
    ),
    "infinity": (
        {}, {"y": np.full(23, -np.inf)}, "y must hold finite numbers, NaN for an unlabeled row, got inf"
    ),
    "texts": (
        {}, {"y": ["a"] * 23}, "y must hold a number for each row, NaN if it is unlabeled: could not convert"
    ),
    "names that stand twice": (
        {}, {"X": pd.DataFrame(X, columns=["a", "b", "a"])},
        "X must have columns of different names, got 'a' twice",
    ),
    "a regressor without estimates": (
        {"estimator": Lost()}, {},
        "estimator must estimate finite numbers, got NaN or inf for a label left out",
    ),
    "short": ({}, {"y": Y[:9]}, "X and y must be as long, got 23 and 9"),
    "short groups": (
        {}, {"groups": np.zeros((23, 2))},
        "groups must have a value for each of the 23 rows, got shape (23, 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    parameters, arguments, message = REFUSED[case]
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        ConformalRegressor(**{"estimator": Ridge(), **parameters}).fit(**{"X": X, "y": Y, **arguments})


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 80, "0.8", None, np.nan])
def test_refused_coverage(coverage):
    model = ConformalRegressor(Ridge()).fit(X, Y)
    message = f"coverage must be a number above 0 and below 1, got {coverage!r}"
    with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
        model.predict_interval(NEW, coverage)
    with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
        held_out_coverage(model.errors_, model.fold_, coverage)


@parametrize_with_checks(
    [
        ConformalRegressor(LinearRegression()),
        ConformalRegressor(ExtraTreesRegressor(2), normalizer="spread", random_state=0),
    ],
    expected_failed_checks=lambda model: (
        {"check_estimators_nan_inf": "trees take gaps, and so does a regressor around them"}
        if isinstance(model.estimator, ExtraTreesRegressor)
        else {}
    ),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
