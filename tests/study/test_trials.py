"""Trials and plain models; the paper's tables."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.reproduction import paper_tables
from dmls2r_lite.study.trials import run_seeds, run_trials

SECONDS = ["fit_seconds", "predict_seconds"]


@pytest.fixture(scope="module")
def toy():
    return load_dataset("toy")


class TestRunTrials:
    def test_rows_do_not_depend_on_the_number_of_processes(self, toy):
        methods = {
            "DML-S2R": DMLS2RRegressor(hidden_sizes=(8,), n_epochs=4, max_steps_per_epoch=3),
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
        """Plain models see labeled rows only; a seed reaches every random_state; methods stay unfitted."""
        forest = RandomForestRegressor(n_estimators=3)
        methods = {"pipeline": make_pipeline(StandardScaler(), forest), "both": DMLS2RRegressor(n_epochs=2)}
        trials = run_trials(toy, methods, np.array([10]), 20, np.array([7])).set_index("method")
        split = split_dataset(toy, 10, 20, 7)
        pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(n_estimators=3, random_state=7))
        both = DMLS2RRegressor(n_epochs=2, random_state=7).fit(split.X_train, split.y_train)
        fitted = {"pipeline": pipeline.fit(split.X_labeled, split.y_labeled), "both": both}
        for name, model in fitted.items():
            errors = model.predict(split.X_test) - split.y_test.to_numpy()
            assert trials.loc[name, "mae"] == pytest.approx(sum(abs(errors)) / len(errors))
            assert trials.loc[name, "rmse"] == pytest.approx((sum(errors**2) / len(errors)) ** 0.5)
        assert (trials[SECONDS] > 0).all(axis=None)
        assert forest.random_state is None
        assert not hasattr(forest, "estimators_")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seeds": []}, "seeds must hold integers, got []"),
            ({"seeds": (seed for seed in (0, 1))}, "seeds must hold integers, got <generator"),
            ({"seeds": [3, -1]}, "seed must be an integer from 0 to 2147483648, got -1"),
            ({"n_labeled": 10}, "n_labeled must hold integers, got 10"),
            ({"n_labeled": [5, 390]}, "n_labeled + n_unlabeled must be below 400, the number of rows of toy"),
            ({"methods": {}}, "methods must be a mapping of names to regressors, got {}"),
            (
                {"methods": {"a": DMLS2RRegressor(), "b": RandomForestRegressor}},
                "each of methods must be a regr",
            ),
            ({"dataset": "toy"}, "dataset must be a Dataset, got 'toy'"),
            *(
                ({"unlabeled": change}, "unlabeled must return a frame like that given, (20, 2), got ")
                for change in (
                    lambda X, seed: X[:10],
                    lambda X, seed: X.to_numpy(),
                    lambda X, seed: None,
                    lambda X, seed: X.assign(z=1.0),
                )
            ),
        ],
    )
    def test_refused_before_anything_runs(self, toy, change, message, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.study.trials.run_seeds", None)
        good = {"dataset": toy, "methods": {"a": plain_models()["ridge"]}, "n_labeled": [5], "seeds": [0]}
        with pytest.raises(ParameterError, match="^" + re.escape(message)):
            run_trials(**{**good, "n_unlabeled": 20, **change})

    def test_other_sets_and_measures(self, toy):
        def prepare(split, seed):
            return split.X_labeled + seed, split.y_labeled, split.X_test[3:], split.y_test[3:]

        def also(model, X_test, y_test):
            return {"sizes": (len(X_test), len(y_test)), "fitted": model.predict(X_test).mean()}

        (row,) = run_seeds(toy, "x", plain_models()["ridge"], 5, 20, [7], 50, prepare, also)
        split = split_dataset(toy, 5, 20, 7)
        model = plain_models()["ridge"].fit(split.X_labeled + 7, split.y_labeled)
        errors = model.predict(split.X_test[3:53]) - split.y_test[3:53]
        assert (row["n_test"], row["mae"]) == (50, pytest.approx(errors.abs().mean()))
        assert row["sizes"] == (50, 50)
        assert row["fitted"] == pytest.approx(model.predict(split.X_test[3:53]).mean())


class TestPlainModels:
    def test_are_fresh_each_time_and_beat_the_median(self, toy):
        models = plain_models()
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
    "1 superconductivity step 1": [23.5, 22.8, 18.2, 17.2],
    "1 superconductivity DML-S2R": [22.3, 18.2, 16.2, 15.8],
    "2 superconductivity COREG": [23.1, 20.5, 17.2],
    "2 superconductivity MSSR": [22.4, 21.2, 18.1],
    "2 superconductivity DML-S2R": [22.3, 18.2, 16.2],
    "3 boston COREG": [8.2, 7.9, 5.1],
    "3 boston MSSR": [6.5, 5.6, 4.9],
    "3 boston DML-S2R": [6.1, 5.4, 4.5],
    "4 air_quality COREG": [12.4, 11.9, 9.5],
    "4 air_quality MSSR": [17.9, 17.3, 12.7],
    "4 air_quality DML-S2R": [10.9, 6.0, 3.3],
}


def test_paper_tables():
    printed = paper_tables()
    assert list(printed) == ["table", "dataset", "method", "n_labeled", "mae"]
    rows = printed["table"].astype(str) + " " + printed["dataset"] + " " + printed["method"]
    found = {row: part.set_index("n_labeled")["mae"].to_dict() for row, part in printed.groupby(rows)}
    assert found == {row: dict(zip([10, 20, 50, 100], maes, strict=False)) for row, maes in PAPER.items()}
