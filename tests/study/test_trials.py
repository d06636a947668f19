"""Trials and plain models; the paper's tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import SemiSupervisedRegressor
from dmls2r_lite.practice import folds as folds_module
from dmls2r_lite.practice.folds import fit_with_seed, fit_without, predict_held_out
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.reproduction import paper_tables
from dmls2r_lite.study.trials import run_trials

SECONDS = ["fit_seconds", "predict_seconds"]


@pytest.fixture(scope="module")
def toy():
    return load_dataset("toy")


class PlainSpy(RegressorMixin, BaseEstimator):
    """Predicts 0 and notes what it was given."""

    given: list[tuple] = []  # noqa: RUF012  of the class: run_trials fits clones

    def fit(self, X, y):
        self.given.append((X, y))
        return self

    def predict(self, X):
        return np.zeros(len(X))


class SemiSupervisedSpy(PlainSpy, SemiSupervisedRegressor):
    given: list[tuple] = []  # noqa: RUF012


class TestRunTrials:
    def test_rows_do_not_depend_on_the_number_of_processes(self, toy):
        methods = {
            "DML-S2R": DMLS2RRegressor(hidden_sizes=(8,), n_epochs=2, max_steps_per_epoch=3),
            "forest": RandomForestRegressor(n_estimators=5),
        }
        one, two = (
            run_trials(toy, methods, [5, 10], 20, range(2), n_jobs=n).drop(columns=SECONDS) for n in (1, 2)
        )
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        cells = [(n, seed, name) for n in (5, 10) for seed in (0, 1) for name in methods]
        assert list(one[["n_labeled", "seed", "method"]].itertuples(index=False, name=None)) == cells
        assert set(one["dataset"]) == {"toy"}
        assert one["mae"].nunique() == 8

    def test_errors_by_hand(self, toy):
        trial = run_trials(toy, {"zero": PlainSpy()}, [5], 20, [3]).iloc[0]
        y = split_dataset(toy, 5, 20, 3).y_test.to_numpy()
        assert trial["mae"] == pytest.approx(sum(abs(y)) / len(y))
        assert trial["rmse"] == pytest.approx((sum(y**2) / len(y)) ** 0.5)
        assert trial["fit_seconds"] >= 0
        assert trial["predict_seconds"] >= 0

    def test_plain_models_see_labeled_rows_only(self, toy):
        PlainSpy.given, SemiSupervisedSpy.given = [], []
        run_trials(toy, {"plain": PlainSpy(), "semi": SemiSupervisedSpy()}, [5], 20, [3])
        split = split_dataset(toy, 5, 20, 3)
        ((X, y),) = PlainSpy.given
        pd.testing.assert_frame_equal(X, split.X_labeled)
        pd.testing.assert_series_equal(y, split.y_labeled)
        ((X, y),) = SemiSupervisedSpy.given
        pd.testing.assert_frame_equal(X, split.X_train)
        pd.testing.assert_series_equal(y, split.y_train)
        assert y.isna().sum() == 20

    def test_seed_reaches_every_random_state_and_methods_stay_unfitted(self, toy):
        forest = RandomForestRegressor(n_estimators=3)
        methods = {"pipeline": make_pipeline(StandardScaler(), forest)}
        trials = run_trials(toy, methods, [10], 20, [7])
        split = split_dataset(toy, 10, 20, 7)
        expected = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=3, random_state=7))
        predicted = expected.fit(split.X_labeled, split.y_labeled).predict(split.X_test)
        assert trials["mae"].item() == (split.y_test - predicted).abs().mean()
        assert forest.random_state is None
        assert not hasattr(forest, "estimators_")

    def test_integers_of_numpy(self, toy):
        trials = run_trials(toy, {"median": DummyRegressor()}, np.array([5, 10]), 20, np.arange(2))
        assert len(trials) == 4

    def test_too_many_rows_is_an_error(self, toy):
        with pytest.raises(ValueError, match="must be below 400"):
            run_trials(toy, {"median": DummyRegressor()}, [380], 20, [0])


class TestPlainModels:
    def test_are_fresh_each_time_and_beat_the_median(self, toy):
        models = plain_models()
        assert list(models) == [
            "median", "3-NN", "3-NN standardised", "ridge", "ridge min-max", "SVR", "SVR min-max",
            "Gaussian process", "Gaussian process min-max", "random forest", "extra trees", "MLP",
            "extra trees on pairs",
        ]  # fmt: skip
        assert all(models[name] is not plain_models()[name] for name in models)
        mae = run_trials(toy, models, [50], 20, [0]).set_index("method")["mae"]
        assert (mae.drop("median") < mae["median"]).all()

    def test_three_neighbours_by_hand(self):
        # at 0.5 the neighbours 0, 1 and 2 are 0.5, 0.5 and 1.5 away: weights 2, 2 and 2/3
        model = plain_models()["3-NN"].fit([[0.0], [1.0], [2.0], [9.0]], [1.0, 3.0, 7.0, 100.0])
        assert isinstance(model, KNeighborsRegressor)
        assert model.predict([[0.5]])[0] == pytest.approx((2 * 1 + 2 * 3 + 2 / 3 * 7) / (2 + 2 + 2 / 3))


# Typed a second time from the paper's tables: rows of MAE for 10, 20, 50 (and 100) labels.
PAPER = {
    (1, "superconductivity"): {"step 1": [23.5, 22.8, 18.2, 17.2], "DML-S2R": [22.3, 18.2, 16.2, 15.8]},
    (2, "superconductivity"): {
        "COREG": [23.1, 20.5, 17.2], "MSSR": [22.4, 21.2, 18.1], "DML-S2R": [22.3, 18.2, 16.2]
    },
    (3, "boston"): {"COREG": [8.2, 7.9, 5.1], "MSSR": [6.5, 5.6, 4.9], "DML-S2R": [6.1, 5.4, 4.5]},
    (4, "air_quality"): {
        "COREG": [12.4, 11.9, 9.5], "MSSR": [17.9, 17.3, 12.7], "DML-S2R": [10.9, 6.0, 3.3]
    },
}  # fmt: skip


def test_paper_tables():
    expected = [
        (table, dataset, method, n, mae)
        for (table, dataset), methods in PAPER.items()
        for method, values in methods.items()
        for n, mae in zip([10, 20, 50, 100], values, strict=False)
    ]
    printed = paper_tables()
    assert list(printed) == ["table", "dataset", "method", "n_labeled", "mae"]
    assert sorted(printed.itertuples(index=False, name=None)) == sorted(expected)


class TestHeldOut:
    @pytest.fixture
    def table(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.uniform(size=(40, 3)), columns=list("abc"), index=np.arange(40) * 10)
        y = 3 * X["a"] + X["b"] ** 2
        y.iloc[rng.permutation(40)[:22]] = np.nan
        return X, y

    def test_every_labeled_row_once_in_a_repeat(self, table):
        X, y = table
        methods = {name: plain_models()[name] for name in ("median", "ridge")}
        held_out = predict_held_out(X, y, methods, n_repeats=3, seed=1)
        for _, part in held_out.groupby(["method", "repeat"]):
            assert sorted(part["row"]) == sorted(y.index[y.notna()])
        assert (held_out["target"] == y[held_out["row"]].to_numpy()).all()

    def test_median_by_loops(self, table):
        X, y = table
        held_out = predict_held_out(X, y, {"median": plain_models()["median"]}, n_repeats=2, seed=7)
        for repeat in range(2):
            known = [row for row in y.index if not np.isnan(y[row])]
            order = np.random.default_rng(7 + repeat).permutation(len(known))
            sizes = [4, 4, 4, 3, 3]
            for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
                fold = [known[i] for i in order[start : start + size]]
                others = [y[row] for row in known if row not in fold]
                predicted = held_out.query("repeat == @repeat and row in @fold")["prediction"]
                assert (predicted == np.median(others)).all()
                assert len(predicted) == size

    def test_a_hidden_target_has_no_effect(self, table):
        X, y = table
        row = y.index[y.notna()][4]
        methods = {
            "trees": plain_models()["extra trees"],
            "both": DMLS2RRegressor(n_epochs=2, target_scaling="none"),
        }
        before = predict_held_out(X, y, methods, n_repeats=1)
        after = predict_held_out(X, y.where(y.index != row, 99.0), methods, n_repeats=1)
        same = before["row"] == row
        assert (before["prediction"][same] == after["prediction"][same]).all()
        assert (before["prediction"][~same] != after["prediction"][~same]).any()

    def test_held_out_rows_stay_as_unlabeled_ones(self, table):
        X, y = table
        seen = []

        class Spy(DMLS2RRegressor):
            def fit(self, X, y):
                seen.append((len(X), int(np.isnan(y).sum())))
                return super().fit(X, y)

        predict_held_out(X, y, {"spy": Spy(n_epochs=1)}, n_repeats=1)
        assert sorted(seen) == [(40, 25)] * 2 + [(40, 26)] * 3

    def test_networks_of_folds_of_one_size_are_trained_side_by_side(self, table, monkeypatch):
        X, y = table
        sizes, whole = [], DMLS2RRegressor.fit_side_by_side

        def spy(models, sets):
            sizes.append(len(models))
            return whole(models, sets)

        monkeypatch.setattr(DMLS2RRegressor, "fit_side_by_side", staticmethod(spy))
        methods = {"DML-S2R": DMLS2RRegressor(n_epochs=2), "ridge": plain_models()["ridge"]}
        together = predict_held_out(X, y, methods, n_repeats=2)
        assert sizes == [4, 6]  # of five folds two and three are of one size, in each repeat
        monkeypatch.setattr(folds_module, "MAX_VALUES", 1)
        alone = predict_held_out(X, y, methods, n_repeats=2)
        assert len(sizes) == 2
        key = ["method", "repeat", "row"]
        by_key = [part.sort_values(key, ignore_index=True) for part in (together, alone)]
        pd.testing.assert_frame_equal(*by_key, rtol=1e-3)

    def test_jobs_do_not_matter(self, table):
        X, y = table
        methods = {"DML-S2R": DMLS2RRegressor(n_epochs=2), "trees": plain_models()["extra trees"]}
        one, two = (predict_held_out(X, y, methods, n_repeats=1, n_jobs=n_jobs) for n_jobs in (1, 2))
        pd.testing.assert_frame_equal(one, two)

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
    def table(self):
        rng = np.random.default_rng(0)
        X = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"), index=rng.permutation(30) // 2)
        y = X["a"] - X["b"] ** 2
        y.iloc[rng.permutation(30)[:12]] = np.nan
        known = np.flatnonzero(y.notna())
        folds = [known[:4], known[4:5], known[5:9], np.zeros(0, dtype=int), known[2:7][::-1], known[9:10]]
        return X, y, folds

    @pytest.mark.parametrize(
        "model", [Ridge(0.3), KNeighborsRegressor(2), make_pipeline(StandardScaler(), Ridge())], ids=repr
    )
    def test_by_loops(self, table, model):
        """In the order of the folds, whatever their sizes."""
        X, y, folds = table
        before = y.copy()
        copies = fit_without(model, X, y, folds, [0] * len(folds))
        for fold, copy in zip(folds, copies, strict=True):
            rest = [row for row in range(30) if not np.isnan(y.iloc[row]) and row not in fold]
            expected = clone(model).fit(X.iloc[rest], y.iloc[rest]).predict(X)
            np.testing.assert_allclose(copy.predict(X), expected, rtol=1e-10)
        pd.testing.assert_series_equal(y, before)

    def test_who_sees_what(self, table):
        X, y, folds = table
        PlainSpy.given, SemiSupervisedSpy.given = [], []
        for spy in (PlainSpy(), SemiSupervisedSpy()):
            fit_without(spy, X, y, folds[:3], [0] * 3)
        assert [len(rows) for rows, _ in PlainSpy.given] == [17, 14, 14]  # folds of one size together
        for (rows, targets), place in zip(SemiSupervisedSpy.given, (1, 0, 2), strict=True):
            pd.testing.assert_frame_equal(rows, X)
            hidden = y.copy()
            hidden.iloc[folds[place]] = np.nan
            pd.testing.assert_series_equal(targets, hidden)

    def test_seeds_are_those_of_the_folds(self, table):
        X, y, folds = table
        forest = RandomForestRegressor(2)
        copies = fit_without(forest, X, y, folds, range(6))
        assert [copy.random_state for copy in copies] == list(range(6))
        assert forest.random_state is None

    @pytest.mark.parametrize("max_values", [1, 180, 10**9])
    def test_networks_of_folds_of_one_size_at_once(self, table, max_values, monkeypatch):
        X, y, folds = table
        monkeypatch.setattr(folds_module, "MAX_VALUES", max_values)
        sizes, whole = [], DMLS2RRegressor.fit_side_by_side

        def spy(models, sets):
            sizes.append(len(models))
            return whole(models, sets)

        monkeypatch.setattr(DMLS2RRegressor, "fit_side_by_side", staticmethod(spy))
        model = DMLS2RRegressor((4,), n_epochs=1, max_steps_per_epoch=2)
        copies = fit_without(model, X, y, folds, range(6))
        assert sizes == {1: [], 180: [2, 2], 10**9: [2, 2]}[max_values]
        for fold, seed, copy in zip(folds, range(6), copies, strict=True):
            hidden = y.copy()
            hidden.iloc[fold] = np.nan
            alone = fit_with_seed(model, X, hidden, seed)
            np.testing.assert_allclose(copy.predict(X), alone.predict(X), rtol=1e-4)

    def test_a_method_of_its_own_comes_first(self, table):
        X, y, folds = table

        class Own(PlainSpy):
            def fit_without(self, *arguments):
                return arguments

        given = fit_without(Own(), X, y, folds, [0] * 6)
        assert given[0] is X
        assert given[1] is y
        assert given[2:] == (folds, [0] * 6)
