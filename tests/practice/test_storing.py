"""A model in a file: all of it comes back, and nothing else ever comes out of a file."""

import doctest
import json
import os
import subprocess
import sys
import zipfile
from functools import partial
from importlib import metadata

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor as AnotherMLP
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVR

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import takes_unlabeled
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice import packing, storing
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.practice.storing import Card, load_model, save_model
from dmls2r_lite.rivals.coreg import COREGRegressor
from dmls2r_lite.rivals.mssr import MSSRRegressor
from dmls2r_lite.rivals.placebos import mine_random, null_loss
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.rivals.twins import MLPRegressor, PairwiseDifferenceRegressor
from dmls2r_lite.training import alternate

CARD = Card(
    "toy", "y", 15, 40, unit="m", expected_error=0.51234, error_margin=0.1, coverage=0.8, verdict="Fine."
)
SMALL = {"hidden_sizes": (8, 6), "n_epochs": 2, "max_steps_per_epoch": 3, "random_state": 0}
SHORT = {"n_epochs": 1, "max_steps_per_epoch": 2}

MODELS = {
    **plain_models(),
    "MLP": MLPRegressor(**SHORT),
    "COREG": COREGRegressor(),
    "MSSR": MSSRRegressor(**SHORT),
    "ridge on pairs": PairwiseDifferenceRegressor(Ridge()),
    "step 1": DMLS2RRegressor(schedule="pairwise_only", **SMALL),
    "DML-S2R": DMLS2RRegressor(n_networks=3, **SMALL),
    "with much set": DMLS2RRegressor(
        **SMALL | {"random_state": np.random.RandomState(0), "hidden_sizes": [np.int64(5)]},
        metric_space="before_relu",
        feature_scaling="standard",
        target_scaling="none",
        early_stopping="held_out",
        schedule=alternate,
        miner=mine_random,
        metric_loss=null_loss,
    ),
    "an encoder of known layers": DMLS2RRegressor(
        encoder=torch.nn.Sequential(torch.nn.Linear(2, 5, bias=False), torch.nn.ReLU()), **SMALL
    ),
    "in a pipeline": make_pipeline(MinMaxScaler(), DMLS2RRegressor(**SMALL)),
}


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), 15, 40, seed=0)


def fitted(model, split):
    if takes_unlabeled(model) and not isinstance(model, MLPRegressor):
        return model.fit(split.X_train, split.y_train)
    return model.fit(split.X_labeled, split.y_labeled)


@pytest.fixture(scope="module")
def saved(split, tmp_path_factory):
    """All models, fitted, and their files."""
    folder = tmp_path_factory.mktemp("models")
    models = {name: fitted(model, split) for name, model in MODELS.items()}
    for number, model in enumerate(models.values()):
        save_model(model, folder / f"{number}.dmls2r", CARD)
    return models, folder


LOAD_ALL = """
import sys
from pathlib import Path
import numpy as np, pandas as pd
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.practice.storing import load_model
X = pd.read_pickle("X.pickle")
for path in Path(sys.argv[1]).glob("*.dmls2r"):
    np.save(path.stem, load_model(path).predict(X))
"""


def test_the_same_bits_in_another_process_and_folder(saved, split, tmp_path):
    models, folder = saved
    split.X_test.to_pickle(tmp_path / "X.pickle")
    subprocess.run([sys.executable, "-c", LOAD_ALL, folder], cwd=tmp_path, check=True)
    for number, (name, model) in enumerate(models.items()):
        assert_array_equal(np.load(tmp_path / f"{number}.npy"), model.predict(split.X_test), name)
    assert sorted(os.listdir(folder)) == sorted(f"{number}.dmls2r" for number in range(len(models)))


def test_all_that_was_learned_comes_back(saved, split):
    models, folder = saved
    for name in ("DML-S2R", "with much set"):
        model, loaded = models[name], load_model(folder / f"{list(models).index(name)}.dmls2r").model
        pd.testing.assert_frame_equal(loaded.history_, model.history_, check_dtype=False)
        assert_array_equal(loaded.transduction_, model.transduction_)
        assert_array_equal(loaded.transform(split.X_test), model.transform(split.X_test))
        X = split.X_test[:5]
        assert_array_equal(loaded.pairwise_difference(X, X), model.pairwise_difference(X, X))
        parameters = model.get_params()
        assert loaded.get_params() == parameters | {
            "random_state": None if name == "with much set" else parameters["random_state"]
        }
        loaded.fit(split.X_train, split.y_train)
    assert_array_equal(loaded.feature_names_in_, ["x1", "x2"])


def test_card_and_versions(saved):
    _, folder = saved
    stored = load_model(folder / "0.dmls2r")
    assert stored.card == CARD
    assert str(stored.card) == (
        "Estimates y [m], learned from toy: 15 labeled rows and 40 without a label.\n"
        "Expected mean absolute error on new rows: 0.512 ± 0.1 [m].\n"
        "Its intervals are made to hold 80% of the targets.\nFine."
    )
    assert str(Card("a", "b", 2, 0)) == "Estimates b, learned from a: 2 labeled rows and 0 without a label."
    assert stored.versions["torch"] == metadata.version("torch")
    assert stored.columns == {"x1": "number", "x2": "number"}
    assert stored.predict_interval(pd.DataFrame({"x1": [0.0], "x2": [0.0]})) is None


def test_targets_that_are_vectors_and_features_without_names(split, tmp_path):
    X, y = split.X_train.to_numpy(), np.column_stack([split.y_train, -split.y_train])
    model = DMLS2RRegressor(n_networks=2, **SMALL).fit(X, y)
    save_model(model, tmp_path / "m", CARD)
    stored = load_model(tmp_path / "m")
    assert stored.columns == {}
    assert_array_equal(stored.predict(X), model.predict(X))


def test_example_in_docstring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attempted = doctest.testmod(storing)
    assert attempted.attempted > 5
    assert attempted.failed == 0


# With a table's columns


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame(
        {
            "size": rng.uniform(size=n).round(2),
            "day": pd.Timestamp(2024, 1, 1) + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "colour": rng.choice(["red", "green", "blue"], n),
            "hour": pd.to_timedelta(rng.integers(0, 24, n), "h"),
            "nothing": np.nan,
            "is_new": rng.choice([True, False], n),
        }
    )
    table.loc[[3, 7], ["size", "colour"]] = np.nan
    return table


@pytest.fixture
def of_table(table, tmp_path):
    """A stored model on a table of all kinds of columns, and what it should predict."""
    preprocessor = make_pipeline(make_preprocessor(table), MinMaxScaler()).fit(table)
    X = preprocessor.transform(table)
    model = KNeighborsRegressor().fit(X[:20], np.arange(20.0))
    save_model(model, tmp_path / "m", CARD, preprocessor=preprocessor)
    return load_model(tmp_path / "m"), model.predict(X)


def test_columns_by_name_and_kind(of_table, table):
    stored, expected = of_table
    assert stored.columns == {
        "size": "number",
        "day": "date",
        "colour": "category",
        "hour": "time",
        "is_new": "category",
    }
    assert_array_equal(stored.predict(table), expected)
    others = table.drop(columns="nothing").iloc[::-1, ::-1].assign(more="x")
    assert_array_equal(stored.predict(others), expected[::-1])
    assert np.isfinite(stored.predict(table.assign(colour="pink", size=np.nan))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns=["hour", "size"]),
            "must have all columns of the training; missing: size, hour",
        ),
        (lambda t: t.assign(size="large"), "column 'size' must hold numbers, as in training"),
        (lambda t: t.assign(day=1.5), "column 'day' must hold dates, as in training"),
        (lambda t: t.to_numpy(), "features must be a frame with the columns size"),
        (
            lambda t: pd.concat([t, t[["size"]]], axis=1),
            "features must have each column once; twice: size",
        ),
    ],
)
def test_other_columns_are_named(of_table, table, change, message):
    with pytest.raises(ValueError, match=message):
        of_table[0].predict(change(table))


def test_without_a_preprocessor_columns_are_checked_too(saved, split):
    stored = load_model(saved[1] / "1.dmls2r")
    with pytest.raises(ValueError, match="column 'x2' must hold numbers"):
        stored.predict(split.X_test.assign(x2="a"))
    with pytest.raises(ValueError, match=r"features must have no gaps, as nothing fills them here; .* x1"):
        stored.predict(split.X_test.assign(x1=np.nan))


# Models of models


def test_averages_with_intervals(table, tmp_path):
    preprocessor = make_preprocessor(table).fit(table)
    X, y = preprocessor.transform(table), pd.Series(np.sqrt(np.arange(60.0)))
    y[30:] = np.nan
    models = {
        "ridge": Ridge(),
        "trees": ExtraTreesRegressor(3),
        "ours": DMLS2RRegressor(n_networks=2, **SMALL),
    }
    for normalizer, estimator in [("spread", AveragedRegressor(models, cv=3)), ("metric", models["ours"])]:
        model = ConformalRegressor(estimator, cv=3, normalizer=normalizer, random_state=0).fit(X, y)
        path = tmp_path / f"{normalizer}.dmls2r"
        save_model(model, path, CARD, preprocessor=preprocessor)
        stored = load_model(path)
        assert_array_equal(stored.predict(table), model.predict(X))
        assert_array_equal(stored.predict_interval(table), model.predict_interval(X, CARD.coverage))
        assert_array_equal(stored.predict_interval(table, 0.5), model.predict_interval(X, 0.5))
    with pytest.raises(ParameterError, match=r"coverage must be a number above 0 and below 1, got 0"):
        stored.predict_interval(table, 0)
    too_much = Card("toy", "y", 30, 30, coverage=0.99)
    with pytest.raises(ParameterError, match=r"model cannot be stored: .*coverage"):
        save_model(model, tmp_path / "m", too_much, preprocessor=preprocessor)


class Averaging(RegressorMixin, BaseEstimator):
    """Holds what `AveragedRegressor` does."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        models = {"ridge": Ridge(), "trees": ExtraTreesRegressor(5), "ours": DMLS2RRegressor(**SMALL)}
        self.models_ = {name: model.fit(X, y) for name, model in models.items()}
        self.weights_ = pd.Series([0.5, 0.2, 0.3], index=list(models), name="weight")
        return self

    def predict(self, X):
        return sum(self.weights_[name] * model.predict(X) for name, model in self.models_.items())


class Conformal(RegressorMixin, BaseEstimator):
    """Holds what `ConformalRegressor` does."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.folds_ = np.arange(len(y)) % 2
        self.estimator_ = Averaging().fit(X, y)
        self.fold_estimators_ = [Averaging().fit(X[self.folds_ == f], y[self.folds_ == f]) for f in (0, 1)]
        self.residuals_ = np.abs(y - self.estimator_.predict(X))
        return self

    def predict(self, X):
        return self.estimator_.predict(X)

    def predict_interval(self, X, coverage=0.8):
        width = np.quantile(self.residuals_, coverage, method="higher")
        others = np.mean([model.predict(X) for model in self.fold_estimators_], axis=0)
        return np.column_stack([others - width, others + width])


def test_models_of_models(split, tmp_path, monkeypatch):
    X, y = split.X_labeled.to_numpy(), split.y_labeled.to_numpy()
    model = Conformal(Averaging()).fit(X, y)
    with pytest.raises(
        ParameterError, match=r"model cannot be stored: it is an object of test_storing\.Conf"
    ):
        save_model(model, tmp_path / "m", CARD)
    monkeypatch.setattr(
        packing, "CLASSES", packing.CLASSES | dict.fromkeys(["Averaging", "Conformal"], __name__)
    )
    save_model(model, tmp_path / "m", CARD)
    stored = load_model(tmp_path / "m")
    X_new = split.X_test.to_numpy()
    assert_array_equal(stored.predict(X_new), model.predict(X_new))
    assert_array_equal(stored.predict_interval(X_new), model.predict_interval(X_new, 0.8))
    assert_array_equal(stored.predict_interval(X_new, 0.5), model.predict_interval(X_new, 0.5))
    pd.testing.assert_series_equal(stored.model.estimator_.weights_, model.estimator_.weights_)
    model.residuals_[:] = np.inf  # of a coverage that so few residuals cannot promise
    save_model(model, tmp_path / "m", CARD, overwrite=True)
    assert_array_equal(load_model(tmp_path / "m").predict_interval(X_new), model.predict_interval(X_new))
    model.residuals_[:] = np.nan
    with pytest.raises(ParameterError, match="its intervals are not numbers"):
        save_model(model, tmp_path / "m", CARD, overwrite=True)


# What is not stored


class OwnEncoder(torch.nn.Linear):
    pass


def hooked():
    layer = torch.nn.Linear(2, 3)
    layer.register_forward_hook(lambda *args: None)
    return layer


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            DMLS2RRegressor(encoder=OwnEncoder(2, 3), **SMALL),
            r"model.encoder .* test_storing.OwnEncoder, and among",
        ),
        (DMLS2RRegressor(encoder=hooked(), **SMALL), "model.encoder .* a hook is registered on it"),
        (
            DMLS2RRegressor(miner=lambda *args: mine_random(*args), **SMALL),
            r"model.miner .* test_storing.<lambda>, .*set_params",
        ),
        (
            DMLS2RRegressor(metric_loss=partial(null_loss), **SMALL),
            "model.metric_loss .* object of functools.partial",
        ),
        (DMLS2RRegressor(callback=print, **SMALL), "model.callback .* builtins.print"),
        (DMLS2RRegressor(schedule=lambda n: ["pairwise"], **SMALL), r"model.schedule .*\.<lambda>"),
        (
            make_pipeline(StandardScaler(), AnotherMLP(hidden_layer_sizes=(3,), max_iter=1)),
            r"steps\[1\]\[1\] .* sklearn.neural_net",
        ),
        (KNeighborsRegressor(weights=np.reciprocal), "model.weights cannot be stored"),
        (SVR(kernel=lambda a, b: a @ b.T), r"model.kernel .*\.<lambda>"),
        (make_pipeline(StandardScaler(), Ridge(), memory="cache"), "has a folder as its memory"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_refused_to_store(model, message, split, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=message):
        save_model(fitted(model, split), tmp_path / "m", CARD)
    assert not {"m", ".unfinished"} & set(os.listdir(tmp_path))


def test_what_predictions_do_without_can_be_removed(split, tmp_path):
    model = DMLS2RRegressor(callback=lambda *args: None, **SMALL).fit(split.X_train, split.y_train)
    save_model(model.set_params(callback=None), tmp_path / "m", CARD)
    assert_array_equal(load_model(tmp_path / "m").predict(split.X_test), model.predict(split.X_test))


def test_arguments_are_checked(split, tmp_path):
    ridge = Ridge().fit(split.X_labeled, split.y_labeled)
    for wrong, message in [
        ({"model": Ridge()}, "not fitted"),
        ({"model": KMeans(2).fit(split.X_labeled)}, "model must be a regressor, got KMeans"),
        ({"card": "Fine."}, "card must be a Card, got str"),
        ({"preprocessor": MinMaxScaler()}, "preprocessor must be a ColumnTransformer or .* got MinMaxScaler"),
        ({"preprocessor": make_preprocessor(split.X_labeled)}, "not fitted"),
        (
            {
                "model": make_pipeline(make_preprocessor(split.X_labeled), Ridge()).fit(
                    split.X_labeled, split.y_labeled
                )
            },
            "model must be fitted on the numbers that its ColumnTransformer gives, and not hold it",
        ),
        ({"path": tmp_path}, "path must name a new file"),
        ({"path": tmp_path / "no" / "m"}, "No such file or directory"),
    ]:
        arguments = {"model": ridge, "path": tmp_path / "m", "card": CARD, **wrong}
        with pytest.raises((ValueError, OSError), match=message):
            save_model(**arguments)
    ridge.coef_ = ridge.coef_ * np.nan
    with pytest.raises(ParameterError, match="its predictions are not finite"):
        save_model(ridge, tmp_path / "m", CARD)
    assert os.listdir(tmp_path) == []


def test_a_card_may_hold_numbers_of_numpy(split, tmp_path):
    ridge = Ridge().fit(split.X_labeled, split.y_labeled)
    card = Card("toy", "y", np.int64(15), np.int64(40), expected_error=np.float32(0.5))
    save_model(ridge, tmp_path / "m", card)
    assert load_model(tmp_path / "m").card == Card("toy", "y", 15, 40, expected_error=0.5)


def test_a_file_is_not_lost_unasked(split, tmp_path):
    path = tmp_path / "m"
    first, second = (Ridge(alpha).fit(split.X_labeled, split.y_labeled) for alpha in (1, 2))
    save_model(first, path, CARD)
    with pytest.raises(
        ParameterError, match=r"path must name a new file, unless overwrite=True, but .* exists"
    ):
        save_model(second, path, CARD)
    with pytest.raises(ParameterError, match="cannot be stored"):  # not by a failure either
        save_model(fitted(SVR(kernel=lambda a, b: a @ b.T), split), path, CARD, overwrite=True)
    assert load_model(path).model.alpha == 1
    save_model(second, path, CARD, overwrite=True)
    assert load_model(path).model.alpha == 2
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": 3},
        {"target": "a\x1b[31m"},
        {"verdict": "x" * 2001},
        {"n_labeled": 0},
        {"n_unlabeled": 1.5},
        {"expected_error": -1},
        {"error_margin": float("nan")},
        {"coverage": 2},
    ],
)
def test_card_is_checked(wrong):
    [name] = wrong
    with pytest.raises(ParameterError, match=f"{name} of a card must be"):
        Card(**{"data": "a", "target": "b", "n_labeled": 2, "n_unlabeled": 0} | wrong)


# Files that are not what they seem


def parts(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("model.json")), bytearray(archive.read("numbers.bin"))


def write(path, text, numbers):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", text if isinstance(text, str) else json.dumps(text))
        archive.writestr("numbers.bin", bytes(numbers))


@pytest.fixture
def ridge_file(split, tmp_path):
    save_model(LinearRegression().fit(split.X_labeled, split.y_labeled), tmp_path / "m", CARD)
    return tmp_path / "m"


def refused(path):
    with pytest.raises((ValueError, OSError)) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_no_file_and_other_files(tmp_path, ridge_file):
    assert "there is no file" in refused(tmp_path / "none")
    assert "is a folder" in refused(tmp_path)
    content = ridge_file.read_bytes()
    path = tmp_path / "other"
    for wrong in (b"", b"model", b"\x80\x04K\x01."):
        path.write_bytes(wrong)
        assert "is no model that `save_model` wrote" in refused(path)
    for n in (30, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:n])
        assert "is damaged or cut off" in refused(path)
    for names in (
        ["a.txt"],
        ["model.json"],
        ["model.json", "../numbers.bin"],
        ["model.json", "numbers.bin", "x"],
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "{}")
        assert "it is a zip of something else" in refused(path)


def test_nothing_large_is_unpacked(tmp_path):
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", "{}")
        archive.writestr("numbers.bin", bytes(2**27))
    assert path.stat().st_size < 2**18
    assert "unpacked it would be 134217730 bytes large" in refused(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", " " * (storing.MAX_JSON + 1))
        archive.writestr("numbers.bin", b"")
    assert "unpacked it would be" in refused(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("model.json", "{}")
        archive.writestr("numbers.bin", b"")
    assert "unpacked it would be" in refused(path)


CHANGES = {  # of the JSON of a file, and what is said about them
    "another format": (lambda text: text.update(format="x"), "is no model: its format is"),
    "a newer format": (
        lambda text: text.update(version=2),
        "is of version 2 of the format; .* knows 1: update",
    ),
    "no version": (lambda text: text.pop("version"), "is damaged, or no model"),
    "no card": (lambda text: text.pop("card"), "cannot be made a model again"),
    "a card with more": (lambda text: text["card"].update(a=1), "unexpected keyword argument 'a'"),
    "a card of another type": (
        lambda text: text["card"].update(n_labeled="9"),
        "n_labeled of a card must be",
    ),
    "no model": (lambda text: text.update(model={"dict": []}), "a dict is no model"),
    "an unknown class": (
        lambda text: text.update(model={"object": ["Popen", {}]}),
        "'Popen' is not on the list",
    ),
    "a class by its path": (
        lambda text: text.update(model={"object": ["os.system", {}]}),
        "'os.system' is not on the list",
    ),
    "an unknown function": (
        lambda text: text.update(model={"function": "system"}),
        "'system' is not on the list",
    ),
    "an unknown type": (lambda text: text.update(model={"type": "type"}), "'type'"),
    "an unknown module": (
        lambda text: text.update(model={"module": ["Lambda", False, [], [], []]}),
        "'Lambda'",
    ),
    "an unknown kind": (lambda text: text.update(model={"pickle": "gASVBAAAAAAAAABLAS4="}), "'pickle'"),
    "a method of its own": (
        lambda text: text["model"]["object"][1].update(predict={"function": "alternate"}),
        "brings predict of its own",
    ),
    "an array of Python objects": (
        lambda text: text["model"]["object"][1]["coef_"]["array"].__setitem__(0, "|V8"),
        r"there are no arrays of '\|V8'",
    ),
    "an enormous array": (
        lambda text: text["model"]["object"][1]["coef_"]["array"].__setitem__(1, [2**60]),
        "it ends before its numbers do",
    ),
    "an array of another shape": (
        lambda text: text["model"]["object"][1]["coef_"]["array"].__setitem__(1, [1]),
        "cannot be made a model again",
    ),
    "a negative shape": (
        lambda text: text["model"]["object"][1]["coef_"]["array"].__setitem__(1, [-2, -1]),
        "an array has the shape",
    ),
    "numbers to spare": (
        lambda text: text["model"]["object"][1].update(coef_=text["model"]["object"][1]["intercept_"]),
        "cannot be made a model again",
    ),
    "a number that is none": (
        lambda text: text["model"]["object"][1].update(intercept_={"float": "nan"}),
        "its predictions are not finite",
    ),
    "another number": (
        lambda text: text["model"]["object"][1].update(intercept_=17.0),
        "it predicts what it did not before",
    ),
    "other rows to try": (lambda text: text.update(probe=[1.0]), "its probe is none"),
    "another scikit-learn": (
        lambda text: (
            text["versions"].update({"scikit-learn": "0.1"}),
            text["model"]["object"][1].pop("coef_"),
        ),
        "coef_.*; it was made with scikit-learn 0.1, which may be why",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_were_tampered_with(change, ridge_file):
    text, numbers = parts(ridge_file)
    do, message = CHANGES[change]
    do(text)
    write(ridge_file, text, numbers)
    with pytest.raises(ValueError, match=message):
        load_model(ridge_file)
    refused(ridge_file)


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "[]", "\xff", '{"format": ' + "9" * 5000 + "}", "null"])
def test_json_that_is_none(text, ridge_file):
    write(ridge_file, text, b"")
    assert "is damaged, or no model" in refused(ridge_file)


def test_deep_values(ridge_file):
    text, numbers = parts(ridge_file)
    deep = json.dumps(text).replace('"preprocessor": null', '"preprocessor": ' + "[" * 5000 + "]" * 5000)
    write(ridge_file, deep, numbers)
    refused(ridge_file)


@pytest.mark.parametrize(
    ("field", "value"),
    [("left_child", 10**6), ("left_child", 0), ("right_child", -5), ("feature", 2), ("feature", -2)],
)
def test_trees_that_lead_out_of_themselves(field, value, split, tmp_path):
    model = ExtraTreesRegressor(2).fit(split.X_labeled, split.y_labeled)
    tree = model.estimators_[1].tree_
    state = tree.__getstate__()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    packer = packing.Packer()
    packed = packer.pack(model)
    with pytest.raises(ValueError, match="a tree leads out of itself"):
        packing.Unpacker(packer.bytes).unpack(packed)


def test_trees_of_other_features(split):
    model = ExtraTreesRegressor(2).fit(split.X_labeled, split.y_labeled)
    model.n_features_in_ = 1
    for forest in (model, model.estimators_[0].__class__()):
        forest.n_features_in_ = 1
        if forest is not model:
            forest.tree_ = model.estimators_[0].tree_
        packer = packing.Packer()
        packed = packer.pack(forest)
        with pytest.raises(ValueError, match=r"asks? for other features"):
            packing.Unpacker(packer.bytes).unpack(packed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("support_vectors_", np.zeros((3, 1))),
        ("_dual_coef_", np.zeros((1, 2))),
        ("_intercept_", np.zeros(0)),
        ("_n_support", np.zeros(50, dtype=np.int32)),
        ("_probA", np.zeros(1)),
        ("kernel", "precomputed"),
        ("_sparse", True),
    ],
)
def test_support_vectors_that_do_not_belong_together(name, value, split):
    model = SVR().fit(split.X_labeled, split.y_labeled)
    setattr(model, name, value)
    packer = packing.Packer()
    packed = packer.pack(model)
    with pytest.raises(ValueError, match="an SVR's arrays do not belong together"):
        packing.Unpacker(packer.bytes).unpack(packed)


FUZZ = """
import sys, warnings
from pathlib import Path
import numpy as np
import pandas as pd
from dmls2r_lite.practice.averaging import AveragedRegressor
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.practice.storing import load_model

path, changed, seed = Path(sys.argv[1]), Path("changed"), int(sys.argv[2])
X = pd.DataFrame(np.random.default_rng(1).uniform(size=(20, 2)), columns=["x1", "x2"])
content = path.read_bytes()
model = load_model(path)
expected = model.predict(X)
seen = set()
risky = "pickle.find_class marshal.loads exec compile os.system subprocess.Popen socket.connect".split()
sys.addaudithook(lambda event, args: seen.add(event) if event in risky else None)
rng = np.random.default_rng(seed)
n_loaded = 0
for number in range(200):
    broken = bytearray(content)
    if number % 4 == 0:
        del broken[rng.integers(len(broken)):]
    elif number % 4 == 1:
        broken[rng.integers(len(broken))] ^= 1 << rng.integers(8)
    elif number % 4 == 2:  # among the names and sizes at the end
        broken[-1 - rng.integers(200)] = rng.integers(256)
    else:
        start, n = rng.integers(len(broken)), rng.integers(1, 50)
        broken[start:start + n] = rng.bytes(rng.integers(0, 50))
    changed.write_bytes(broken)
    try:
        loaded = load_model(changed)
    except ValueError as error:
        assert str(error).startswith("changed "), error
    else:
        n_loaded += 1
        assert np.array_equal(loaded.predict(X), expected)
assert not seen, seen
print(n_loaded)
"""


def test_damage_anywhere(saved, tmp_path):
    _, folder = saved
    path = folder / f"{list(MODELS).index('DML-S2R')}.dmls2r"
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, path, "0"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 60  # dates, for example, matter to nobody


def leaves(packed):
    """Every place in JSON, as a container and a key."""
    for key, value in list(packed.items() if isinstance(packed, dict) else enumerate(packed)):
        yield packed, key
        if isinstance(value, dict | list):
            yield from leaves(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["DML-S2R", "SVR", "extra trees", "Gaussian process", "3-NN", "COREG", "median"]
)
def test_tampering_anywhere(name, saved, split, tmp_path):
    """Values are exchanged for others in files that are whole: it works, or is refused, but nothing else."""
    _, folder = saved
    content, numbers = parts(folder / f"{list(MODELS).index(name)}.dmls2r")
    rng = np.random.default_rng(0)
    text = json.dumps(content)
    values = [None, True, -1, 0, 3, 1e300, "x", "C", [], {}, {"float": "nan"}, {"array": ["<f8", [0], "C"]}]
    n_refused = 0
    for number in range(60):
        content, changed = json.loads(text), bytearray(numbers)
        places = list(leaves(content))
        container, key = places[rng.integers(len(places))]
        if number % 3 == 0:
            container[key] = values[rng.integers(len(values))]
        elif number % 3 == 1:
            other, other_key = places[rng.integers(len(places))]
            container[key] = json.loads(json.dumps(other[other_key]))
        else:
            for place in rng.integers(len(changed), size=5):
                changed[place] = rng.integers(256)
        write(tmp_path / "m", content, changed)
        try:
            load_model(tmp_path / "m").predict(split.X_test)
        except ValueError:
            n_refused += 1
        (tmp_path / "m").unlink()
    assert n_refused > 15
