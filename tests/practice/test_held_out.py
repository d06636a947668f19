"""Models fitted without the labels of a fold, and what they predict for it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import SemiSupervisedRegressor
from dmls2r_lite.practice import folds as folds_module
from dmls2r_lite.practice.folds import fit_with_seeds, fit_without, predict_held_out
from dmls2r_lite.rivals.plain import plain_models


class PlainSpy(RegressorMixin, BaseEstimator):
    """Predicts 0 and notes what it was given."""

    given: list[tuple] = []  # noqa: RUF012  of the class: clones are fitted

    def fit(self, X, y):
        self.given.append((X, y))
        return self

    def predict(self, X):
        return np.zeros(len(X))


class SemiSupervisedSpy(PlainSpy, SemiSupervisedRegressor):
    given: list[tuple] = []  # noqa: RUF012


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(40, 3)), columns=list("abc"), index=np.arange(40) * 10)
    y = 3 * X["a"] + X["b"] ** 2
    y.iloc[rng.permutation(40)[:22]] = np.nan
    return X, y


class TestHeldOut:
    def test_every_labeled_row_once_in_a_repeat_by_loops(self, table):
        X, y = table
        methods = {name: plain_models()[name] for name in ("median", "ridge")}
        held_out = predict_held_out(X, y, methods, n_repeats=2, seed=7)
        for _, part in held_out.groupby(["method", "repeat"]):
            assert sorted(part["row"]) == sorted(y.index[y.notna()])
        assert (held_out["target"] == y[held_out["row"]].to_numpy()).all()
        for repeat in range(2):
            known = [row for row in y.index if not np.isnan(y[row])]
            order = np.random.default_rng(7 + repeat).permutation(len(known))
            sizes = [4, 4, 4, 3, 3]
            for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
                fold = [known[i] for i in order[start : start + size]]
                others = [y[row] for row in known if row not in fold]
                of_fold = held_out.query("method == 'median' and repeat == @repeat and row in @fold")
                assert of_fold["prediction"].tolist() == [np.median(others)] * size

    def test_a_hidden_target_has_no_effect_nor_the_number_of_processes(self, table):
        X, y = table
        row = y.index[y.notna()][4]
        both = DMLS2RRegressor(n_epochs=2, target_scaling="none")
        methods = {"trees": plain_models()["extra trees"], "both": both}
        before = predict_held_out(X, y, methods, n_repeats=1)
        after = predict_held_out(X, y.where(y.index != row, 99.0), methods, n_repeats=1, n_jobs=2)
        same = before["row"] == row
        assert (before["prediction"][same] == after["prediction"][same]).all()
        assert (before["prediction"][~same] != after["prediction"][~same]).any()
        pd.testing.assert_frame_equal(predict_held_out(X, y, methods, n_repeats=1, n_jobs=2), before)

    def test_held_out_rows_stay_as_unlabeled_ones(self, table):
        X, y = table
        SemiSupervisedSpy.given = []
        predict_held_out(X, y, {"spy": SemiSupervisedSpy()}, n_repeats=1)
        given = sorted((len(rows), int(targets.isna().sum())) for rows, targets in SemiSupervisedSpy.given)
        assert given == [(40, 25)] * 2 + [(40, 26)] * 3

    def test_few_labels(self, table):
        X, y = table
        known = y.index[y.notna()]
        few = y.where(y.index.isin(known[:3]))
        held_out = predict_held_out(X, few, {"median": plain_models()["median"]}, n_repeats=1)
        assert sorted(held_out["row"]) == sorted(known[:3])
        with pytest.raises(ValueError, match="y must hold at least 3 targets that are not NaN, got 2"):
            predict_held_out(X, y.where(y.index.isin(known[:2])), {}, n_repeats=1)


class TestFitWithout:
    @pytest.fixture
    def folds(self, table):
        known = np.flatnonzero(table[1].notna())
        return [known[:4], known[4:5], known[5:9], np.zeros(0, dtype=int), known[2:7][::-1], known[9:10]]

    @pytest.mark.parametrize(
        "model",
        [KNeighborsRegressor(2), make_pipeline(StandardScaler(), Ridge()), RandomForestRegressor(2)],
        ids=repr,
    )
    def test_by_loops(self, table, folds, model):
        """In the order of the folds, whatever their sizes; seeds are those of the folds."""
        X, y = table
        before = y.copy()
        for seed, (fold, copy) in enumerate(
            zip(folds, fit_without(model, X, y, folds, range(6)), strict=True)
        ):
            rest = [row for row in range(40) if not np.isnan(y.iloc[row]) and row not in fold]
            alone = clone(model)
            alone.set_params(**{name: seed for name in alone.get_params() if name == "random_state"})
            expected = alone.fit(X.iloc[rest], y.iloc[rest]).predict(X)
            np.testing.assert_allclose(copy.predict(X), expected, rtol=1e-10)
        pd.testing.assert_series_equal(y, before)

    def test_who_sees_what(self, table, folds):
        X, y = table
        PlainSpy.given, SemiSupervisedSpy.given = [], []
        for spy in (PlainSpy(), SemiSupervisedSpy()):
            fit_without(spy, X, y, folds[:3], [0] * 3)
        assert [len(rows) for rows, _ in PlainSpy.given] == [17, 14, 14]  # folds of one size together
        for (rows, targets), place in zip(SemiSupervisedSpy.given, (1, 0, 2), strict=True):
            pd.testing.assert_frame_equal(rows, X)
            hidden = y.copy()
            hidden.iloc[folds[place]] = np.nan
            pd.testing.assert_series_equal(targets, hidden)

    @pytest.mark.parametrize(("max_values", "sizes"), [(1, []), (240, [2, 2]), (10**9, [2, 2])])
    def test_networks_of_folds_of_one_size_at_once(self, table, folds, max_values, sizes, monkeypatch):
        X, y = table
        monkeypatch.setattr(folds_module, "MAX_VALUES", max_values)
        seen, whole = [], DMLS2RRegressor.fit_side_by_side

        def spy(models, sets):
            seen.append(len(models))
            return whole(models, sets)

        monkeypatch.setattr(DMLS2RRegressor, "fit_side_by_side", staticmethod(spy))
        model = DMLS2RRegressor((4,), n_epochs=1, max_steps_per_epoch=2)
        copies = fit_without(model, X, y, folds, range(6))
        assert seen == sizes
        for fold, seed, copy in zip(folds, range(6), copies, strict=True):
            hidden = y.copy()
            hidden.iloc[fold] = np.nan
            (alone,) = fit_with_seeds(model, [(X, hidden)], [seed])
            np.testing.assert_allclose(copy.predict(X), alone.predict(X), rtol=1e-4)

    def test_a_method_of_its_own_comes_first(self, table, folds):
        class Own(PlainSpy):
            def fit_without(self, *arguments):
                return arguments

        given = fit_without(Own(), *table, folds, [0] * 6)
        assert (given[0] is table[0], given[1] is table[1], given[2:]) == (True, True, (folds, [0] * 6))
