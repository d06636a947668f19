"""Datasets are what they claim to be; splits are disjoint, complete and scaled as told."""

import hashlib
import re
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dmls2r_lite.data import Dataset, load_dataset, split_dataset
from dmls2r_lite.data.catalog import DATASETS, FROM_UCI
from dmls2r_lite.foundation.checks import make_scaler

BUNDLED = [name for name in DATASETS if name not in FROM_UCI]
FILE = resources.files("dmls2r_lite.data").joinpath("files/boston.csv")
PARTS = ("labeled", "unlabeled", "test")


@pytest.fixture(scope="module")
def boston():
    return load_dataset("boston")


@pytest.fixture
def five_rows():
    features = pd.DataFrame({"a": [0.0, 5.0, 10.0, 20.0, 40.0], "constant": 3.0})
    return Dataset("five", features, pd.Series([1.0, 2.0, 3.0, 4.0, 5.0], name="t"), "cm", "here", "")


class TestDatasets:
    def test_boston(self, boston):
        content = FILE.read_bytes()
        expected = "79ac716620024011b03c0c44d2bf99069b8173649181926d9109c25475a3804c"
        assert hashlib.sha256(content).hexdigest() == expected
        y = boston.target
        assert (y.min(), y.median(), y.max()) == (5, 21.2, 50)
        assert (round(y.mean(), 4), round(y.std(), 4)) == (22.5328, 9.1971)
        assert (y == 50).sum() == 16

    def test_diabetes(self):
        diabetes = load_dataset("diabetes")
        assert diabetes.features["age"].between(19, 79).all()  # in years: not the standardised version
        assert (diabetes.target.min(), diabetes.target.max()) == (25, 346)

    def test_generated_ones_are_their_formula_plus_noise(self):
        friedman, toy = load_dataset("friedman"), load_dataset("toy")
        x = friedman.features
        formula = (
            10 * np.sin(np.pi * x["x1"] * x["x2"]) + 20 * (x["x3"] - 0.5) ** 2 + 10 * x["x4"] + 5 * x["x5"]
        )
        noise = friedman.target - formula
        assert noise.mean() == pytest.approx(0, abs=0.1)
        assert noise.std() == pytest.approx(1, rel=0.05)
        assert noise.abs().mean() == pytest.approx(0.80, rel=0.05)  # sqrt(2 / pi): what the note says
        assert abs(np.corrcoef(noise, formula)[0, 1]) < 0.1
        noise = toy.target - (3 * toy.features["x1"] ** 2 + 2 * toy.features["x2"])
        assert noise.mean() == pytest.approx(0, abs=0.02)
        assert noise.std() == pytest.approx(0.1, rel=0.1)

    @pytest.mark.parametrize("name", BUNDLED)
    def test_all_are_numbers_and_the_same_each_time(self, name):
        data, again = load_dataset(name), load_dataset(name)
        assert np.isfinite(data.features.to_numpy(dtype=float)).all()
        assert np.isfinite(data.target).all()
        assert data.features.index.equals(data.target.index)
        pd.testing.assert_frame_equal(data.features, again.features)
        pd.testing.assert_series_equal(data.target, again.target)

    @pytest.mark.parametrize("name", DATASETS)
    def test_what_is_known_unread_is_true(self, name, request):
        if name in FROM_UCI:
            request.getfixturevalue("uci_folder")
        data, known = load_dataset(name), DATASETS[name]
        assert data.features.shape == (known.n_rows, known.n_features)
        assert (data.name, data.target.name, data.unit) == (name, known.target, known.unit)
        assert data.target_label == f"{known.target} [{known.unit}]"
        assert (data.source, data.n_unlabeled) == (known.source, known.n_unlabeled)
        assert known.licence
        assert data.note.startswith(known.note)

    def test_columns_can_be_left_out_and_be_targets(self, boston):
        dropped = load_dataset("boston", drop_columns=["B", "CHAS"])
        assert list(dropped.features) == [name for name in boston.features if name not in ("B", "CHAS")]
        pd.testing.assert_series_equal(dropped.target, boston.target)
        assert list(load_dataset("boston", "C*, B").features.columns[:2]) == ["ZN", "INDUS"]
        data = load_dataset("boston", target="RM")
        assert data.target_label == "RM"
        assert "MEDV" in data.features

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("iris", {}, "must be one of boston, superconductivity, air_quality, diabetes, friedman, toy or"),
            ("iris", {}, "or the path of a file, got 'iris'"),
            ("toy", {"drop_columns": ["x9"]}, "drop_columns must name a column of toy (x1, x2), got 'x9'"),
            ("toy", {"drop_columns": [3]}, "drop_columns must name a column of toy (x1, x2), got 3"),
            ("toy", {"drop_columns": 3}, "drop_columns must be a string or a sequence of strings, got 3"),
            ("toy", {"target": {}}, "target must be a string, got {}"),
            (3, {}, "name must be a dataset's or the path of a file, got 3"),
            (FILE, {"column_types": 3}, "column_types must be a string, a mapping or None, got 3"),
            (FILE, {"missing_values": 3}, "missing_values must be a string, got 3"),
            ("toy", {"drop_columns": "x1, x2"}, "must leave at least one column, got all of them"),
            ("boston", {"drop_columns": ["MEDV"]}, "got 'MEDV'"),  # the target is not a feature
            ("toy", {"missing": "keep"}, "missing must be one of 'drop', 'as_published', got 'keep'"),
            ("toy", {"column_types": "x1=text"}, "missing_values are for files: leave them out for toy"),
        ],
    )
    def test_errors(self, name, options, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            load_dataset(name, **options)


class TestSplit:
    @pytest.mark.parametrize(("n_labeled", "n_unlabeled"), [(2, 0), (10, 200), (50, 455)])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_is_disjoint_and_complete(self, boston, n_labeled, n_unlabeled, seed):
        split = split_dataset(boston, n_labeled, n_unlabeled, seed, scale_on="none")
        parts = [getattr(split, f"X_{part}") for part in PARTS]
        assert [len(part) for part in parts] == [n_labeled, n_unlabeled, 506 - n_labeled - n_unlabeled]
        assert sorted(pd.concat(parts).index) == list(range(506))
        for part in PARTS:  # every row keeps its features and its target
            X, y = getattr(split, f"X_{part}"), getattr(split, f"y_{part}")
            pd.testing.assert_frame_equal(X, boston.features.loc[X.index])
            pd.testing.assert_series_equal(y, boston.target.loc[X.index])

    def test_seed(self, boston):
        first, again, other = (split_dataset(boston, 10, 200, seed) for seed in (0, 0, 1))
        assert_array_equal(first.X_train.index, again.X_train.index)
        assert set(first.X_labeled.index) != set(other.X_labeled.index)
        sets = [set(split_dataset(boston, n, 200, seed=3).X_labeled.index) for n in (10, 20, 50)]
        assert sets[0] < sets[1] < sets[2]

    def test_train_is_labeled_then_unlabeled_with_targets_hidden(self, boston):
        split = split_dataset(boston, 3, 4, seed=0)
        assert_array_equal(split.X_train.index, [*split.X_labeled.index, *split.X_unlabeled.index])
        assert_array_equal(split.y_train.index, split.X_train.index)
        assert_array_equal(split.y_train[:3], split.y_labeled)
        assert split.y_train[3:].isna().all()
        assert split.y_unlabeled.notna().all()

    def test_narrow_numpy_integers_do_not_overflow(self):
        split = split_dataset(load_dataset("toy"), np.uint8(200), np.uint8(100), np.uint8(0))
        assert [len(getattr(split, f"X_{part}")) for part in PARTS] == [200, 100, 100]

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"dataset": "toy"}, TypeError, "dataset must be a Dataset, got 'toy'"),
            ({"n_labeled": 1}, ValueError, "n_labeled must be an integer of 2 or more, got 1"),
            ({"n_labeled": 2.5}, TypeError, "n_labeled must be an integer of 2 or more, got 2.5"),
            ({"n_unlabeled": -1}, ValueError, "n_unlabeled must be an integer of 0 or more, got -1"),
            ({"seed": None}, TypeError, "seed must be an integer from 0 to 2147483648, got None"),
            ({"n_unlabeled": 3}, ValueError, "must be below 5, the number of rows of five .*; got 2 \\+ 3"),
            ({"scale_on": "test"}, ValueError, "scale_on must be one of 'train', 'all', 'none', got 'test'"),
        ],
    )
    def test_errors(self, five_rows, change, error, message):
        with pytest.raises(error, match=message):
            split_dataset(**{"dataset": five_rows, "n_labeled": 2, "n_unlabeled": 1, "seed": 0} | change)


class TestScaling:
    @pytest.mark.parametrize(
        ("scale_on", "expected"), [("all", [0, 0.125, 0.25, 0.5, 1]), ("none", [0, 5, 10, 20, 40])]
    )
    def test_by_hand(self, five_rows, scale_on, expected):
        split = split_dataset(five_rows, 2, 1, seed=0, scale_on=scale_on)
        scaled = pd.concat([split.X_train, split.X_test]).sort_index()
        assert scaled["a"].tolist() == expected
        assert scaled["constant"].tolist() == [0 if scale_on == "all" else 3] * 5
        targets = pd.concat([split.y_labeled, split.y_unlabeled, split.y_test])
        assert sorted(targets) == [1, 2, 3, 4, 5]  # in their unit

    @pytest.mark.parametrize("seed", range(6))
    def test_on_train_knows_nothing_of_the_test_set(self, five_rows, seed):
        split = split_dataset(five_rows, 2, 1, seed=seed)
        a = five_rows.features["a"]
        low, high = a[split.X_train.index].min(), a[split.X_train.index].max()
        for X in (split.X_labeled, split.X_unlabeled, split.X_test):
            assert X["a"].tolist() == pytest.approx([(a[row] - low) / (high - low) for row in X.index])
        assert (split.X_train["a"].min(), split.X_train["a"].max()) == (0, 1)

    @pytest.mark.parametrize(
        ("scaling", "expected"),
        [
            ("minmax", [0, 0.2, 1]),
            # mean 20, variance (100 + 25 + 225) / 3
            ("standard", np.array([-10, -5, 15]) / np.sqrt(350 / 3)),
            ("none", [10, 15, 35]),
        ],
    )
    def test_scalers_by_hand(self, scaling, expected):
        values = np.array([[10.0], [15.0], [35.0]])
        scaler = make_scaler(scaling).fit(values)
        assert_allclose(scaler.transform(values).squeeze(), expected)
        assert_allclose(scaler.inverse_transform(scaler.transform(values)), values)

    def test_unknown_scaler(self):
        with pytest.raises(ValueError, match="must be one of 'minmax', 'standard', 'none', got 'max'"):
            make_scaler("max")

    def test_gaps_are_filled_from_training_rows_only(self):
        features = pd.DataFrame({"a": [1.0, 2.0, np.nan, 50.0, 90.0, np.nan], "c": list("xyxyxy")})
        data = Dataset("gaps", features, pd.Series(range(6), name="t", dtype=float), "cm", "here", "")
        for seed in range(8):
            split = split_dataset(data, 2, 2, seed, scale_on="none")
            median = features.loc[split.X_train.index, "a"].median()
            for X in (split.X_train, split.X_test):
                expected = features.loc[X.index, "a"].fillna(0 if np.isnan(median) else median)
                assert X["a"].tolist() == expected.tolist()
            everywhere = split_dataset(data, 2, 2, seed, scale_on="all")
            assert everywhere.X_train["a"].max() <= 1


class TestFiles:
    @pytest.fixture
    def path(self, tmp_path):
        """40 rows, 16 of them without a target; one column of each kind."""
        rng = np.random.default_rng(0)
        n = 40
        table = pd.DataFrame({"id": np.arange(n) + 100, "size": rng.uniform(20, 90, n).round(1)})
        table["district"], table["country"] = rng.choice(["North", "South"], n), "AT"
        table["sold"] = pd.date_range("2020-01-31", periods=n, freq="W")
        table["price"] = rng.uniform(100, 300, n).round(2)
        table.loc[::5, "size"] = None
        table.loc[rng.choice(n, 16, replace=False), "price"] = None
        table.to_csv(tmp_path / "flats.v2.csv", index=False, sep=";", decimal=",")
        return tmp_path / "flats.v2.csv"

    def test_is_loaded_and_says_what_was_done(self, path):
        with pytest.warns(UserWarning, match=r"flats.v2.csv: id: whole.*; size: kept, missing: the me"):
            data = load_dataset(path, target="price")
        assert data.name == "flats.v2"
        assert list(data.features) == ["id", "size", "district", "sold"]  # not the constant
        assert (data.target.isna().sum(), data.n_unlabeled) == (16, 16)
        assert (data.target_label, data.unit) == ("price", "units of price")
        assert "40 rows, 16 of them without a target" in data.note
        assert "country: left out: the same in every row" in data.note
        with pytest.warns(UserWarning, match="flats"):
            features = load_dataset(str(path), ["id"], target="price").features
        assert list(features) == ["size", "district", "sold"]

    @pytest.mark.filterwarnings("ignore:flats")
    def test_unlabeled_rows_are_those_without_target(self, path):
        data = load_dataset(path, target="price")
        split = split_dataset(data, 10, 12, seed=0)
        assert [len(getattr(split, f"X_{part}")) for part in PARTS] == [10, 12, 14]
        assert split.y_labeled.notna().all()
        assert split.y_unlabeled.isna().all()
        assert split.y_test.notna().all()
        assert len({row for part in PARTS for row in getattr(split, f"X_{part}").index}) == 36
        assert list(split.X_test) == ["id", "size", "sold", "district=North", "district=South"]
        for X in (split.X_train, split.X_test):
            assert np.isfinite(X).all(axis=None)
        smaller = split_dataset(data, 5, 12, seed=0)
        assert set(smaller.X_labeled.index) < set(split.X_labeled.index)
        assert_array_equal(smaller.X_unlabeled.index, split.X_unlabeled.index)
        rows = "the number of rows of flats.v2"
        with pytest.raises(ValueError, match=f"n_labeled must be below 24, {rows} with a target"):
            split_dataset(data, 24, 5, seed=0)
        with pytest.raises(ValueError, match=f"must not exceed {rows} without a target, 16, got 17"):
            split_dataset(data, 10, 17, seed=0)
        known = data.with_known_targets()
        assert len(known.target) == len(known.features) == 24
        assert known.target.notna().all()
        assert known.n_unlabeled == 9  # two fifths
        assert known.with_known_targets() is known

    @pytest.mark.parametrize(
        ("rows", "options", "message"),
        [
            ("1,2 3,4 5,6", {}, "must name a column of t.csv (a, b), got nothing"),
            ("1,2 3,4 5,6", {"target": "B"}, "must name a column of t.csv (a, b), got 'B'; did you mean b"),
            ("1,x 3,y 5,z", {"target": "b"}, "must name a column of numbers, but b of t.csv holds x"),
            ("1, 3,4 5,", {"target": "b"}, "different values, in 5 rows or more, but b has 1, in 1; dmls2r"),
            ("1, 3, 5,", {"target": "b"}, "different values, in 5 rows or more, but b has 0, in 0; dmls2r"),
            ("1,4 3,4 5,", {"target": "b"}, "different values, in 5 rows or more, but b has 1, in 2; dmls2r"),
            ("1,1 1,4 1,6", {"target": "b"}, "must have a column that can be used besides the target"),
            ("1,2 3,4 5,6", {"target": "b", "drop_columns": ["a"]}, "must have a column that can be used"),
            ("1,2 3,4 5,6", {"target": "b", "drop_columns": ["b"]}, "must not name the target, got b"),
        ],
    )
    def test_errors(self, write, rows, options, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            load_dataset(write("\n".join(["a,b", *rows.split(" ")])), **options)

    @pytest.mark.parametrize("target", ["price in USD of 2020", "price_$"])
    def test_units_of_long_and_strange_names(self, write, target):
        data = load_dataset(write(f"a,{target}\n1,2\n3,4\n5,6\n"), target=target)
        assert (data.target_label, data.unit) == (target, "units of the target")
