"""What holds for every estimator: scikit-learn's conventions, no number of what is none, named mistakes."""

import datetime
import gc
import itertools
import re
import tracemalloc
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import RULES, ParameterError
from dmls2r_lite.miner import mine
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.choosing import choose_rows
from dmls2r_lite.practice.errors import cross_val_error
from dmls2r_lite.practice.folds import LabeledKFold
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.rivals.coreg import COREGRegressor
from dmls2r_lite.rivals.mssr import MSSRRegressor
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.rivals.twins import ExtraTrees, MLPRegressor, PairwiseDifferenceRegressor, RandomForest

N, N_LABELED = 20, 15
rng = np.random.default_rng(0)
X = rng.uniform(size=(N, 3))
TARGETS = 10 * X.sum(axis=1) + rng.normal(size=N)
QUICK = {"hidden_sizes": (6,), "n_epochs": 4, "max_steps_per_epoch": 3, "random_state": 0}
ESTIMATORS = {
    "DML-S2R": DMLS2RRegressor(**QUICK),
    "COREG": COREGRegressor(random_state=0),
    "MSSR": MSSRRegressor(**QUICK),
    "MLP": MLPRegressor(**QUICK),
    "pairs": PairwiseDifferenceRegressor(Ridge()),
    "trees on pairs": PairwiseDifferenceRegressor(ExtraTrees(10, random_state=0)),
    "average": AveragedRegressor({"line": LinearRegression(), "ridge": Ridge()}, random_state=0),
    "intervals": ConformalRegressor(Ridge(), random_state=0),
    "intervals of DML-S2R": ConformalRegressor(DMLS2RRegressor(**{**QUICK, "k": 2}), random_state=0),
}
TREES = ("trees on pairs",)
every = pytest.mark.parametrize("name", ESTIMATORS)


def make(name, **parameters):
    return clone(ESTIMATORS[name]).set_params(**parameters)


Y = np.where(np.arange(N) < N_LABELED, TARGETS, np.nan)
DATES = pd.Series(pd.date_range("2020-01-01", periods=N))
NO_NUMBERS = {
    "dates": DATES.to_numpy(),
    "Series with a zone": DATES.dt.tz_localize("UTC"),
    "periods": pd.Series(pd.period_range("2020", periods=N, freq="M")),
    "Python's times": [datetime.time(3)] * N,
    "times among objects": np.array([*[1.0] * (N - 1), np.timedelta64(3, "s")], dtype=object),
    "the unknown date": np.array([*[1.0] * (N - 1), pd.NaT], dtype=object),
    "complex": TARGETS + 1j,
}
REFUSED = r"must hold (real )?numbers"


@cache
def fitted(name):
    return make(name).fit(X, Y)


@every
class TestNoNumbers:
    @pytest.mark.parametrize("kind", NO_NUMBERS)
    def test_dates_times_and_complex_numbers(self, name, kind):
        column = NO_NUMBERS[kind]
        with pytest.raises(ParameterError, match=f"^y {REFUSED}"):
            make(name).fit(X, column)
        frame = pd.DataFrame({"a": X[:, 0], "b": column, "c": X[:, 2]})
        array = np.array([[a, b, c] for a, b, c in zip(X[:, 0], column, X[:, 2], strict=True)], dtype=object)
        for table in (array, frame)[: 1 if name == "intervals" else 2]:  # frames are its regressor's matter
            for call in (lambda table=table: make(name).fit(table, Y), partial(fitted(name).predict, table)):
                with pytest.raises((ValueError, TypeError), match=REFUSED if table is array else None):
                    call()

    def test_what_is_masked_is_unknown(self, name):
        hidden = np.arange(N) >= N_LABELED
        for masked in (np.ma.array(TARGETS, mask=hidden), np.ma.array(Y, mask=hidden, fill_value=7)):
            assert_array_equal(make(name).fit(X, masked).predict(X), fitted(name).predict(X))
        features = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
        assert_array_equal(make(name).fit(features, Y).predict(X), fitted(name).predict(X))
        features[3, 1] = np.ma.masked
        for call in (lambda: make(name).fit(features, Y), lambda: fitted(name).predict(features)):
            with pytest.raises(ValueError, match="X contains NaN"):
                call()

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinity(self, name, value):
        table, y = X.copy(), Y.copy()
        table[3, 1] = y[2] = value
        with pytest.raises(ValueError, match="y contains infinity"):
            make(name).fit(X, y)
        for call in (lambda: make(name).fit(table, Y), lambda: fitted(name).predict(table)):
            with pytest.raises(ValueError, match="X contains infinity"):
                call()

    def test_columns_of_one_name(self, name):
        twice = pd.DataFrame(X, columns=["a", "b", "a"])
        for call in (lambda: make(name).fit(twice, Y), lambda: fitted(name).predict(twice)):
            with pytest.raises(ParameterError, match=r"^X must have columns of different names, got 'a'"):
                call()


@pytest.mark.parametrize("name", ["DML-S2R", "MSSR", "MLP"])
def test_what_pytorch_was_told_before_does_not_matter(name):
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            estimates = make(name).fit(X, Y).predict(X)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert_array_equal(estimates, fitted(name).predict(X))


class TestNoNumbersElsewhere:
    def test_validation_samples(self):
        masked = np.ma.array(TARGETS, mask=np.arange(N) == 3)
        with pytest.raises(ValueError, match=r"y_validation must hold at least 20 .* NaN, got 19"):
            make("DML-S2R").fit(X, Y, X, masked)
        with pytest.raises(ParameterError, match="y_validation must hold numbers, got dates or times"):
            make("DML-S2R").fit(X, Y, X, DATES)

    @pytest.mark.parametrize(
        "call", [lambda y: next(LabeledKFold(2).split(X, y)), lambda y: cross_val_error(Ridge(), X, y)]
    )
    def test_targets(self, call):
        with pytest.raises(ParameterError, match="y must hold numbers, got dates or times"):
            call(DATES.dt.tz_localize("UTC"))
        call(np.ma.array(TARGETS, mask=np.arange(N) > 8))

    @pytest.mark.parametrize("kind", [kind for kind in NO_NUMBERS if not kind.startswith("Series")])
    def test_rows_to_choose_from(self, kind):
        table = [[a, b] for a, b in zip(X[:, 0], NO_NUMBERS[kind], strict=True)]
        with pytest.raises(ParameterError, match="X must hold"):
            choose_rows(np.array(table, dtype=object), 2)


@every
class TestScales:
    @pytest.mark.parametrize("scale", [2.0**-40, 1e3, 1e-17])
    def test_of_the_target(self, name, scale):
        """Powers of two round nothing; a range of 1e-15 scikit-learn's scaler takes for none."""
        rounding = 0.05 if name in TREES else 1e-5  # decides which of two equal splits a tree takes
        there = make(name).fit(X, Y * scale).predict(X)
        is_power_of_two = np.log2(scale) % 1 == 0
        assert_allclose(there / scale, fitted(name).predict(X), rtol=1e-12 if is_power_of_two else rounding)

    @pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero):RuntimeWarning")
    @pytest.mark.parametrize("scale", [1e-39, 1e12, 1e39, 1e300, 1.7e308])
    def test_of_features(self, name, scale):
        """Estimates as large as targets, or an error: some features are too large to be taken as they are."""
        reasons = "training diverged|infs or NaNs|too large|X must hold values of the size of those in fit"
        for model in (make(name), fitted(name)):
            try:
                model = model if model is fitted(name) else model.fit(X * scale, Y)
                estimates = model.predict(X * scale)
                assert np.isfinite(estimates).all()
                assert np.abs(estimates).max() < 1e4 or model is fitted(name)
            except ValueError as error:
                assert scale > 1e12 or (name == "MLP" and scale == 1e12)
                assert re.search(reasons, str(error))  # noqa: PT017


@every
def test_rows_beside_a_row_do_not_matter(name):
    rows, predict = np.random.default_rng(1).uniform(size=(50, 3)), fitted(name).predict
    together = predict(rows)
    assert_allclose([predict(rows[[i]])[0] for i in range(len(rows))], together, rtol=1e-9)
    assert_allclose(predict(np.vstack([rows, rows * 1e6])[::-1])[::-1][:50], together, rtol=1e-9)


@pytest.mark.parametrize("name", plain_models())
def test_plain_models_do_not_depend_on_the_targets_unit(name):
    """Among them those that are averaged by default."""
    model, y = plain_models()[name], Y[:N_LABELED]
    trees = ExtraTrees(10, random_state=0)
    quick = {"n_epochs": 2, "estimator": trees, "n_estimators": 10, "random_state": 0}
    model.set_params(**{key: value for key, value in quick.items() if key in model.get_params()})
    here, there = (clone(model).fit(X[:N_LABELED], y * s).predict(X) / s for s in (1, 2.0**-40))
    assert_allclose(there, here, rtol=1e-4 if "Gaussian" in name else 1e-9)


@pytest.mark.parametrize("kind", [ExtraTrees, RandomForest])
def test_forests_are_scikit_learns(kind):
    ours, theirs = (one(10, random_state=0).fit(X[:15], Y[:15]) for one in (kind, kind.__mro__[2]))
    assert_array_equal(ours.predict(X), theirs.predict(X))


# Parameters

WRONG = [
    None, True, -1, 0, 2, 10**30, 10**400, 0.5, np.nan, np.inf, 1e300, -1e-300, 1 + 1j, Fraction(1, 3),
    np.float32(0.25), "nonsense", "", b"minmax", (), (0,), [4, 4], {3: 4}, object(), int, nn.Identity(),
    np.array([0.1, 0.2]), np.array(["alternate"]), DATES, lambda *_: None, lambda *_: np.arange(3), pd.NA,
    lambda *_: itertools.count(), Ridge, Ridge(),
]  # fmt: skip
PARAMETERS = [
    (name, parameter)
    for name in ("DML-S2R", "COREG", "MSSR", "MLP", "pairs", "average", "intervals")
    for parameter in ESTIMATORS[name].get_params(deep=False)
]


FUNCTIONS = ("callback", "metric_loss", "miner", "schedule")  # whose own errors reach the user


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_a_wrong_parameter_is_named(name, parameter):
    """Whatever it is: a fit that gives finite numbers, or one error on one line that names it."""
    n_refused = 0
    for value in WRONG:
        if parameter == "models" and value is None:
            continue  # the default, which takes seconds
        if parameter in FUNCTIONS and isinstance(value, type | nn.Module):
            continue
        model = make(name).set_params(**{parameter: value})
        try:
            estimates = model.fit(X, Y).predict(X)
        except ValueError as error:
            n_refused += 1
            assert parameter in str(error), value  # noqa: PT017
            assert "\n" not in str(error), value  # noqa: PT017
        else:
            assert np.isfinite(estimates).all(), value
            if parameter in RULES and (parameter, value) != ("margin", 0):  # with a boundary it may be
                assert RULES[parameter].fits(value), value
    assert n_refused >= 6


ROWS = torch.zeros(N_LABELED, 5).long()  # of unlabeled samples, for each anchor


class TestFunctionsOfOnesOwn:
    @pytest.mark.parametrize(
        "returned",
        [None, "rows", (None, None), ROWS, (ROWS.double(),) * 2, (ROWS.bool(),) * 2, (ROWS,) * 3,
         (ROWS[:, 1:],) * 2, (ROWS.mT,) * 2, (ROWS, ROWS + N - N_LABELED), (ROWS, ROWS - 1)],
        ids=lambda value: "",
    )  # fmt: skip
    @pytest.mark.parametrize("n_networks", [1, 2])
    def test_a_miner_that_returns_no_rows(self, returned, n_networks):
        wanted = r"^miner must return two tensors of integers of shape \(15, 5\), rows from 0 to 4"
        with pytest.raises(ValueError, match=wanted):
            make("DML-S2R", miner=lambda *_: returned, n_networks=n_networks).fit(X, Y)

    @pytest.mark.parametrize("kind", [np.asarray, lambda rows: rows.int()])
    def test_a_miner_may_return_other_integers(self, kind):
        def miner(*arguments):
            return tuple(map(kind, mine(*arguments)))

        found, expected = (make("DML-S2R", miner=one).fit(X, Y).predict(X) for one in (miner, mine))
        assert_array_equal(found, expected)

    @pytest.mark.parametrize("name", ["MLP", "MSSR"])
    def test_weights_after_the_last_step_are_finite(self, name):
        once = {"n_epochs": 1, "max_steps_per_epoch": 1, "learning_rate": 1e30}
        with pytest.raises(ValueError, match=r"training diverged.*try a learning_rate below 1e"):
            make(name, **once).fit(X * 1e12, Y)


class TestWarmStart:
    """A fit that fails leaves the model as it was with a warm start, and without one no model."""

    @staticmethod
    def fail(network, row):
        raise RuntimeError("from the callback")

    @pytest.mark.parametrize(
        "change",
        [{"k": 1000}, {"callback": fail}, {"learning_rate": 1e30}, {"n_epochs": 0}, {}],
        ids=", ".join,
    )
    @pytest.mark.parametrize("warm_start", [False, True])
    def test_after_a_failure(self, change, warm_start):
        model = make("DML-S2R", warm_start=warm_start).fit(X, Y)
        before, attributes = model.predict(X), set(vars(model))
        # y is looked at after the columns have been counted
        rows, y = (X, Y) if change else (X[:, :2], np.append(np.inf, Y[1:]))
        with pytest.raises((ValueError, RuntimeError)):
            model.set_params(**change).fit(rows, y)
        if warm_start:
            assert set(vars(model)) == attributes
            assert_array_equal(model.predict(X), before)
        else:
            with pytest.raises(NotFittedError):
                model.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DML-S2R", "MSSR"])
def test_memory_is_flat_over_fits(name):
    model = make(name)
    for _ in range(3):
        model.fit(X, Y).predict(X)
    gc.collect()
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(3):
            for _ in range(12):
                model.fit(X, Y).predict(X)
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[2] - sizes[1] < 12 * 1000  # bytes


# Fifty larger steps are enough for the check that training helps.
TRAINED = {"n_epochs": 5, "max_steps_per_epoch": 10, "learning_rate": 0.01}


@parametrize_with_checks(
    [
        DMLS2RRegressor(**TRAINED),
        COREGRegressor(),
        MSSRRegressor(**TRAINED),
        MLPRegressor(**TRAINED),
        PairwiseDifferenceRegressor(LinearRegression()),
        AveragedRegressor({"line": LinearRegression(), "ridge": Ridge()}),
        ConformalRegressor(LinearRegression()),
        ConformalRegressor(ExtraTreesRegressor(2), normalizer="spread", random_state=0),
    ],
    expected_failed_checks=lambda model: (
        {"check_estimators_nan_inf": "trees take gaps, and so does a regressor around them"}
        if isinstance(getattr(model, "estimator", None), ExtraTreesRegressor)
        else {}
    ),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
