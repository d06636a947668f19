"""Intervals: the bounds of CV+ and the normalizers by loops, their coverage, what they take and refuse."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tables import NEW, QUICK, Lost, SemiSupervisedSpy, Spy, labeled_rows, mixed_table, noted, table

from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.intervals import (
    ConformalRegressor,
    held_out_coverage,
    metric_distance,
    rank_of_bound,
)
from dmls2r_lite.rivals.coreg import COREGRegressor
from dmls2r_lite.rivals.twins import PairwiseDifferenceRegressor


def naive_bounds(estimates, errors, n, alpha):
    """Barber et al. (2021), section 3: of a new row, with `estimates[i]` by the model that has not seen i."""
    low = sorted(estimates[i] - errors[i] for i in range(n))
    high = sorted(estimates[i] + errors[i] for i in range(n))
    first = int(np.floor(round(alpha * (n + 1), 9)))
    last = int(np.ceil(round((1 - alpha) * (n + 1), 9)))
    return sorted([low[first - 1], high[last - 1]])


def assert_is_cv_plus(model, X, y, difficulty=None):
    """Errors over difficulty, and new rows' difficulty times them, each with its mean over X added."""
    known = labeled_rows(y)
    n = len(known)
    errors, scale = np.empty(n), np.ones(n)
    estimates, of_new = np.empty((len(NEW), n)), np.ones((len(NEW), n))
    for number, one in enumerate(model.fold_estimators_):
        in_fold = model.fold_ == number
        rows, others = known[in_fold], known[~in_fold]
        errors[in_fold] = np.abs(one.predict(X[rows]) - y[rows])
        estimates[:, in_fold] = one.predict(NEW)[:, None]
        if difficulty is not None:
            added = np.mean(difficulty(one, X, X[others]))
            assert added > 0
            scale[in_fold] = np.array(difficulty(one, X[rows], X[others])) + added
            of_new[:, in_fold] = (np.array(difficulty(one, NEW, X[others])) + added)[:, None]
    assert_allclose(np.abs(model.held_out_ - y[known]), errors, rtol=1e-10)
    assert_allclose(model.errors_, errors / scale, rtol=1e-10)
    for coverage in (0.05, 0.5, 2 / 3, 0.75, 0.8, 0.9, 0.95):
        if round((1 - coverage) * (n + 1), 9) >= 1:
            widths = errors / scale * of_new
            expected = [naive_bounds(*both, n, 1 - coverage) for both in zip(estimates, widths, strict=True)]
            assert_allclose(model.predict_interval(NEW, coverage), expected, rtol=1e-10)


class TestBounds:
    @pytest.mark.parametrize(("n", "cv"), [(4, 99), (9, 2), (14, 5), (30, 5)])
    def test_by_loops(self, n, cv):
        X, y = table(n, n)
        known = labeled_rows(y)
        model = ConformalRegressor(Ridge(0.5), cv, random_state=0).fit(X, y)
        assert len(set(model.fold_)) == min(cv, n)
        assert np.ptp(np.bincount(model.fold_)) <= 1
        for number, one in enumerate(model.fold_estimators_):
            others = known[model.fold_ != number]
            assert_allclose(one.predict(NEW), Ridge(0.5).fit(X[others], y[others]).predict(NEW), rtol=1e-10)
        assert_allclose(model.predict(NEW), Ridge(0.5).fit(X[known], y[known]).predict(NEW), rtol=1e-10)
        assert_is_cv_plus(model, X, y)

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

    def test_ranks_are_exact_where_products_round(self):
        for n in range(1, 300):
            for percent in range(1, 100):
                left_out = (100 - percent) * (n + 1) // 100  # in integers
                if left_out >= 1:
                    assert rank_of_bound(n, percent / 100) == left_out

    @pytest.mark.parametrize(("n", "coverage", "needed"), [(3, 0.8, 4), (8, 0.9, 9)])
    def test_too_few_labels(self, n, coverage, needed):
        model = ConformalRegressor(Ridge()).fit(*table(0, n))
        message = (
            f"coverage must not exceed N / (N + 1), {n / (n + 1):.3g} with {n} labels, got {coverage}: "
            f"that takes {needed} labels"
        )
        with pytest.raises(ParameterError, match="^" + re.escape(message) + "$"):
            model.predict_interval(NEW, coverage)
        assert rank_of_bound(needed, coverage) == 1

    @pytest.mark.parametrize("normalizer", [None, "spread", "metric"])
    def test_blocks_of_rows_make_no_difference(self, normalizer, monkeypatch):
        X, y = table(0)
        model = ConformalRegressor(networks(n_networks=2), 3, normalizer, random_state=0).fit(X, y)
        whole = model.predict_interval(NEW)
        for max_values in (14 * 7, 1):
            monkeypatch.setattr("dmls2r_lite.practice.intervals.MAX_VALUES", max_values)
            assert_allclose(model.predict_interval(NEW), whole, rtol=1e-12)


MODELS = {"ridge": Ridge(), "2-NN": KNeighborsRegressor(2), "mean": DummyRegressor()}


def networks(**more):
    return DMLS2RRegressor(**QUICK, **more)


def naive_spread(model, rows, labeled=None):
    """The standard deviation of what the parts say, weighted where they have weights, row by row."""
    if isinstance(model, GaussianProcessRegressor):
        return model.predict(rows, return_std=True)[1]
    if hasattr(model, "predict_each"):
        each, weights = model.predict_each(rows), getattr(model, "weights_", None)
    else:
        each, weights = np.transpose([tree.predict(rows) for tree in model.estimators_]), None
    means = [np.average(row, weights=weights) for row in each]
    return [np.average((row - m) ** 2, weights=weights) ** 0.5 for row, m in zip(each, means, strict=True)]


def distance_in_metric_space(model, rows, labeled):
    codes, known = model.transform(rows), model.transform(labeled)
    return [np.mean(sorted(np.sqrt(((a - b) ** 2).sum()) for b in known)[:3]) for a in codes]


DIFFICULTIES = {
    "forest": (RandomForestRegressor(4), "spread", naive_spread),
    "process": (GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True), "spread", naive_spread),
    "pairs": (PairwiseDifferenceRegressor(KNeighborsRegressor(2)), "spread", naive_spread),
    "networks": (networks(n_networks=3), "spread", naive_spread),
    "average": (AveragedRegressor(MODELS, sharpness=0.05), "spread", naive_spread),
    "metric": (networks(n_networks=2), "metric", distance_in_metric_space),
}


class TestNormalizers:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("name", DIFFICULTIES)
    def test_by_loops(self, name):
        X, y = table(0)
        estimator, normalizer, naive = DIFFICULTIES[name]
        model = ConformalRegressor(estimator, 3, normalizer, random_state=0).fit(X, y)
        assert_is_cv_plus(model, X, y, naive)

    @pytest.mark.parametrize("name", ["forest", "average", "metric"])
    def test_in_pipelines_by_loops(self, name):
        """Rows go through the steps before, which were fitted on all of them, or on the labeled ones."""
        X, y = table(2)
        estimator, normalizer, naive = DIFFICULTIES[name]

        def difficulty(one, rows, labeled):
            return naive(one[-1][1], *(one[-1][0].transform(values) for values in (rows, labeled)))

        piped = make_pipeline("passthrough", make_pipeline(StandardScaler(), estimator))
        model = ConformalRegressor(piped, 3, normalizer, random_state=0).fit(X, y)
        assert_is_cv_plus(model, X, y, difficulty)
        assert model.estimator_[-1][0].n_samples_seen_ == (14 if name == "forest" else 23)

    def test_where_all_parts_agree(self):
        """Nothing is uncertain about a target that never changes."""
        X, y = table(0)
        y = np.where(np.isnan(y), np.nan, 7.0)
        model = ConformalRegressor(RandomForestRegressor(3), normalizer="spread", random_state=0).fit(X, y)
        assert model.errors_.tolist() == [0] * 14
        assert_array_equal(model.predict_interval(NEW), np.full((12, 2), 7.0))

    def test_few_labels_are_near(self):
        """With two labels, the mean is over two."""
        X, y = table(0, 3)
        one = networks(random_state=0).fit(X, y)
        known = labeled_rows(y)[:2]
        found = metric_distance(one, pd.DataFrame(NEW), pd.DataFrame(X[known]))
        assert_allclose(found, distance_in_metric_space(one, NEW, X[known]))


def share_held(estimator, draw, n, coverage=0.8, cv=5, n_tables=80):
    """The share of a hundred rows that intervals from n labels hold, over many tables."""
    rng, held = np.random.default_rng(0), []
    for _ in range(n_tables):
        X, y, groups = draw(rng, n + 100)
        model = ConformalRegressor(estimator, cv, random_state=0)
        model.fit(X[:n], y[:n], None if groups is None else groups[:n])
        low, high = model.predict_interval(X[n:], coverage).T
        held.append(((low <= y[n:]) & (y[n:] <= high)).mean())
    return np.mean(held)


class TestCoverage:
    def test_of_six_numbers_by_hand(self):
        """Each is the new one once. Bounds are the widest; what 0, 1, 3, 7, 15 allow ends at 15."""
        numbers, held = np.array([0.0, 1, 3, 7, 15, 31]), []
        for new in range(6):
            model = ConformalRegressor(DummyRegressor(strategy="median")).fit(
                np.zeros((5, 1)), np.delete(numbers, new)
            )
            low, high = model.predict_interval([[0.0]], 0.8)[0]
            held.append(low <= numbers[new] <= high)
        assert held == [True] * 5 + [False]
        assert high == 15

    @pytest.mark.exhaustive
    @pytest.mark.parametrize(
        ("coverage", "n", "cv"), [(0.8, 20, 5), (0.9, 20, 5), (0.8, 10, 99), (0.6, 40, 4)]
    )
    def test_of_tables_that_are_drawn_alike(self, coverage, n, cv):
        def linear(rng, n_rows):
            X = rng.normal(size=(n_rows, 3))
            return X, X @ [1.0, -2.0, 0.5] + rng.normal(size=n_rows), None

        held = share_held(LinearRegression(), linear, n, coverage, cv)
        # The standard error is about 0.011, so the band is 4 of them and more; the promise itself is wider.
        assert coverage - 0.04 < held < coverage + 0.09
        assert held > 1 - 2 * (1 - coverage)

    @pytest.mark.exhaustive
    def test_wrong_model(self):
        """The promise does not depend on the model: the mean of all labels covers as much."""

        def skewed(rng, n_rows):
            X = rng.normal(size=(n_rows, 2))
            return X, 10 * X[:, 0] + rng.exponential(size=n_rows) ** 2, None

        assert 0.76 < share_held(DummyRegressor(), skewed, 20) < 0.89

    @pytest.mark.parametrize("left_out", ["groups", "rows"])
    def test_of_new_groups(self, left_out):
        """Rows of a group share an offset: only with whole groups left out are new groups covered."""

        def grouped(rng, n_rows):
            group = np.arange(n_rows) // 4
            X = rng.normal(size=(n_rows, 2)) * 0.1 + rng.normal(size=(n_rows // 4, 2))[group]
            y = X[:, 0] + 3 * rng.normal(size=n_rows // 4)[group] + 0.1 * rng.normal(size=n_rows)
            return X, y, group if left_out == "groups" else None

        held = share_held(KNeighborsRegressor(1), grouped, 40, n_tables=20)
        assert held > 0.74 if left_out == "groups" else held < 0.5


class TestHeldOutCoverage:
    def test_by_hand(self):
        """Of the three errors of the other fold the limit is the largest at 75 %, the second at 50 %."""
        errors, fold = np.array([1.0, 2, 3, 2.5, 0.5, 4]), np.array([0, 0, 0, 1, 1, 1])
        assert held_out_coverage(errors, fold, 0.75) == 5 / 6  # all but the 4
        assert held_out_coverage(errors, fold, 0.5) == 3 / 6  # 1 and 2 of 2.5, 0.5 of 2


class TestFit:
    @pytest.mark.parametrize(
        ("spy", "given"),
        [
            (Spy, [(11, 0)] * 4 + [(12, 0), (14, 0)]),
            (SemiSupervisedSpy, [(23, 9), (23, 11)] + [(23, 12)] * 4),
        ],
    )
    def test_who_sees_unlabeled_rows(self, spy, given):
        X, y = table(0)
        model = ConformalRegressor(spy(), random_state=0)
        assert noted(spy, lambda: model.fit(X, y)) == given
        assert_array_equal(model.errors_, np.abs(y[labeled_rows(y)]))

    def test_same_seed_same_bits_and_clones(self):
        X, y = table(0)
        forest = ExtraTreesRegressor(3)
        one, again, by_generator, other = (
            ConformalRegressor(forest, 4, "spread", random_state=seed).fit(X, y)
            for seed in (0, 0, np.random.RandomState(0), 1)
        )
        expected = one.predict_interval(NEW)
        assert not hasattr(forest, "estimators_")
        assert not hasattr(clone(one), "errors_")
        for model in (again, by_generator, clone(one).fit(X, y), one.fit(X, y)):
            assert_array_equal(model.predict_interval(NEW), expected)
        assert (other.predict_interval(NEW) != expected).any()

    @pytest.mark.parametrize(
        ("normalizer", "last"),
        [("spread", ExtraTreesRegressor(3)), ("metric", networks()), ("spread", AveragedRegressor(MODELS))],
    )
    def test_frames_with_gaps_and_categories(self, normalizer, last):
        frame, y = mixed_table()
        estimator = make_pipeline(make_preprocessor(frame), last)
        model = ConformalRegressor(estimator, 3, normalizer, random_state=0).fit(frame, y)
        bounds = model.predict_interval(frame)
        assert np.isfinite(bounds).all()
        assert (bounds[:, 0] < bounds[:, 1]).all()
        assert_allclose(model.predict_interval(frame.iloc[[5, 50]]), bounds[[5, 50]], rtol=1e-10)

    def test_arrays_lists_and_frames_are_the_same(self):
        X, y = table(0)
        expected = ConformalRegressor(Ridge(), random_state=0).fit(X, y).predict_interval(NEW)
        frame, new = (pd.DataFrame(rows, columns=list("abc")) for rows in (X, NEW))
        for rows, later in ((X.tolist(), NEW.tolist()), (frame, new), (frame, NEW)):
            model = ConformalRegressor(Ridge(), random_state=0).fit(rows, list(y))
            assert_allclose(model.predict_interval(later), expected, rtol=1e-12)

    def test_copies_of_an_average_share_their_models(self):
        model = ConformalRegressor(AveragedRegressor({"spy": Spy()}), random_state=0)
        # all labels, 5 folds, 10 pairs of folds: in place of 6 times 6
        assert len(noted(Spy, lambda: model.fit(*table(0)))) == 16


NO_PARTS = "normalizer='spread' must have a model of several parts (a forest, pairs"
NO_SPACE = "normalizer='metric' must have a model with a metric space, such as DMLS2RRegressor, got Ridge"
REFUSED = [
    (Ridge(), {"cv": 1}, "cv must be an integer of 2 or more, got 1"),
    (Ridge(), {"normalizer": "width"}, "normalizer must be one of None, 'spread', 'metric', got 'width'"),
    (Lost(), {}, "estimator must estimate finite numbers, got NaN or inf for a label left out"),
    *(
        (one, {}, f"estimator must be a regressor, such as RidgeCV(), got {one!r}")
        for one in (Ridge, "ridge", StandardScaler())
    ),
    *(
        (one, {"normalizer": "spread"}, NO_PARTS)
        for one in (
            *(Ridge(), make_pipeline(StandardScaler(), Ridge()), networks()),
            *(GradientBoostingRegressor(n_estimators=3), RandomForestRegressor(1)),
        )
    ),
    (Ridge(), {"normalizer": "metric"}, NO_SPACE),
    (make_pipeline(StandardScaler(), Ridge()), {"normalizer": "metric"}, NO_SPACE),
]


@pytest.mark.parametrize(("estimator", "parameters", "message"), REFUSED)
def test_refused(estimator, parameters, message):
    with pytest.raises(ParameterError, match="^" + re.escape(message)):
        ConformalRegressor(estimator, **parameters).fit(*table(0))


@pytest.mark.parametrize(
    ("normalizer", "estimator"),
    [
        *(("spread", one) for one in (networks(), make_pipeline(StandardScaler(), networks()))),
        *(
            ("metric", one)
            for one in (AveragedRegressor(), make_pipeline(StandardScaler(), COREGRegressor()))
        ),
    ],
)
def test_refused_before_anything_is_fitted(normalizer, estimator, monkeypatch):
    monkeypatch.setattr("dmls2r_lite.practice.intervals.fit_without", None)
    with pytest.raises(ParameterError, match=f"normalizer='{normalizer}' must have a model"):
        ConformalRegressor(estimator, normalizer=normalizer).fit(*table(0))


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 80, "0.8", None, np.nan])
def test_refused_coverage(coverage):
    model = ConformalRegressor(Ridge()).fit(*table(0))
    message = f"^coverage must be a number above 0 and below 1, got {coverage!r}"
    with pytest.raises(ParameterError, match=message):
        model.predict_interval(NEW, coverage)
    with pytest.raises(ParameterError, match=message):
        held_out_coverage(model.errors_, model.fold_, coverage)
