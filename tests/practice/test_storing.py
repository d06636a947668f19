"""A model in a file: all of it comes back, and nothing else ever comes out of a file."""

import doctest
import hashlib
import io
import os
import pickle
import re
import subprocess
import sys
import zlib
from functools import partial
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor as AnotherMLP
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.checks import takes_unlabeled
from dmls2r_lite.foundation.files import versions
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

CARD = Card("toy", "y", np.int64(15), 40, "m", 0.51234, 0.1, 0.8, "Fine.")
SHORT = {"n_epochs": 4, "max_steps_per_epoch": 3}
SMALL = {"hidden_sizes": (8, 6), "random_state": 0, **SHORT}

LAYERS = torch.nn.Sequential(torch.nn.Linear(2, 5, bias=False), torch.nn.ReLU())
FUNCTIONS = {"schedule": alternate, "miner": mine_random, "metric_loss": null_loss}
SCALING = {"metric_space": "before_relu", "feature_scaling": "standard", "target_scaling": "none"}
SEED = {"random_state": np.random.RandomState(0), "hidden_sizes": [np.int64(5)], "early_stopping": "held_out"}
MODELS = {
    **plain_models(),
    "MLP": MLPRegressor(**SHORT),
    "COREG": COREGRegressor(),
    "MSSR": MSSRRegressor(**SHORT),
    "ridge on pairs": PairwiseDifferenceRegressor(Ridge()),
    "step 1": DMLS2RRegressor(schedule="pairwise_only", **SMALL),
    "DML-S2R": DMLS2RRegressor(n_networks=3, **SMALL),
    "with much set": DMLS2RRegressor(**SMALL | SEED | SCALING | FUNCTIONS),
    "an encoder of known layers": DMLS2RRegressor(encoder=LAYERS, **SMALL),
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
    for name, model in models.items():
        save_model(model, folder / f"{name}.dmls2r", CARD)
    return models, folder


LOAD_ALL = """
import sys
from pathlib import Path
import numpy as np, pandas as pd
from dmls2r_lite.practice.storing import load_model
X = pd.read_pickle("X.pickle")
for path in Path(sys.argv[1]).glob("*.dmls2r"):
    np.save(path.stem, load_model(path).predict(X))
"""


def test_the_same_bits_in_another_process_and_folder(saved, split, tmp_path):
    models, folder = saved
    assert len(models) >= 21
    split.X_test.to_pickle(tmp_path / "X.pickle")
    subprocess.run([sys.executable, "-c", LOAD_ALL, folder], cwd=tmp_path, check=True)
    for name, model in models.items():
        assert_array_equal(np.load(tmp_path / f"{name}.npy"), model.predict(split.X_test), name)
        path = folder / f"{name}.dmls2r"
        save_model(load_model(path).model, tmp_path / "again", CARD, overwrite=True)
        assert_array_equal(load_model(tmp_path / "again").predict(split.X_test), model.predict(split.X_test))
    assert sorted(os.listdir(folder)) == sorted(f"{name}.dmls2r" for name in models)


@pytest.mark.parametrize("name", ["DML-S2R", "with much set"])
def test_all_that_was_learned_comes_back(saved, split, name):
    model, loaded = saved[0][name], load_model(saved[1] / f"{name}.dmls2r").model
    without_seconds = model.history_.drop(columns="seconds")
    pd.testing.assert_frame_equal(loaded.history_, without_seconds, check_dtype=False)
    assert_array_equal(loaded.transduction_, model.transduction_)
    assert_array_equal(loaded.transform(split.X_test), model.transform(split.X_test))
    X = split.X_test[:5]
    assert_array_equal(loaded.pairwise_difference(X, X), model.pairwise_difference(X, X))
    seed = None if name == "with much set" else 0
    assert loaded.get_params() == model.get_params() | {"random_state": seed}
    loaded.fit(split.X_train, split.y_train)
    assert_array_equal(loaded.feature_names_in_, ["x1", "x2"])
    trees = [saved[0]["extra trees"], load_model(saved[1] / "extra trees.dmls2r").model]
    assert len({str([tree.get_depth() for tree in forest.estimators_]) for forest in trees}) == 1


def test_card_and_versions(saved):
    stored = load_model(saved[1] / "median.dmls2r")
    assert (stored.card, stored.versions) == (CARD, versions())
    assert str(stored.card).splitlines() == [
        "Estimates y [m], learned from toy: 15 labeled rows and 40 without a label.",
        "Expected mean absolute error on new rows: 0.512 ± 0.1 [m].",
        *["Its intervals are made to hold 80% of the targets.", "Fine."],
    ]
    assert stored.columns == {"x1": "number", "x2": "number"}
    assert stored.predict_interval(pd.DataFrame({"x1": [0.0], "x2": [0.0]})) is None


def test_without_a_card_it_says_what_the_model_knows(split, tmp_path):
    rows = "Estimates a target, learned from a table: 15 labeled rows and 40 without a label."
    sure = ConformalRegressor(Ridge(), 3, random_state=0)
    error = "\nExpected mean absolute error on new rows: {:.3g}."
    for model, said in [
        (Ridge(), "Estimates a target, learned from a table."),
        (COREGRegressor(random_state=0), rows),
        (make_pipeline(MinMaxScaler(), MSSRRegressor(random_state=0, **SHORT)), rows),
        (sure, rows + error),
        (ConformalRegressor(DMLS2RRegressor(**SMALL), 3, "metric", random_state=0), rows),
    ]:
        X, y = (split.X_train, split.y_train) if said.startswith(rows) else (split.X_labeled, split.y_labeled)
        for name in ("first", "second"):
            save_model(clone(model).fit(X, y), tmp_path / name, overwrite=True)
        stored = load_model(tmp_path / "first")
        assert str(stored.card) == said.format(stored.model.errors_.mean() if "{" in said else None)
        assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_targets_that_are_vectors_and_features_without_names(split, tmp_path):
    X, y = split.X_train.to_numpy(), np.column_stack([split.y_train, -split.y_train])
    model = DMLS2RRegressor(n_networks=2, **SMALL).fit(X, y)
    save_model(model, tmp_path / "m", CARD)
    stored = load_model(tmp_path / "m")
    assert stored.columns == {}
    assert_array_equal(stored.predict(X), model.predict(X))


def test_example_in_docstring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(storing) == (0, 10)  # failures, lines tried


@pytest.fixture(scope="module")
def table():
    rng, n = np.random.default_rng(0), 60
    columns = {
        "size": rng.uniform(size=n).round(2),
        "day": pd.Timestamp(2024, 1, 1) + pd.to_timedelta(rng.integers(0, 90, n), "D"),
        "colour": rng.choice(["red", "green", "blue"], n),
        "hour": pd.to_timedelta(rng.integers(0, 24, n), "h"),
        "nothing": np.nan,
        "is_new": rng.choice([True, False], n),
    }
    table = pd.DataFrame(columns)
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
    kinds = ["number", "date", "category", "time", "category"]
    assert stored.columns == dict(zip(["size", "day", "colour", "hour", "is_new"], kinds, strict=True))
    assert_array_equal(stored.predict(table), expected)
    others = table.drop(columns="nothing").iloc[::-1, ::-1].assign(more="x")
    assert_array_equal(stored.predict(others), expected[::-1])
    assert np.isfinite(stored.predict(table.assign(colour="pink", size=np.nan))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns=["hour", "size"]), "must be a frame that has the columns size, hour"),
        (lambda t: t.assign(size="large"), "column 'size' must hold numbers, as in training"),
        (lambda t: t.assign(day=1.5), "column 'day' must hold dates, as in training"),
        (lambda t: t.assign(size=np.inf), "features must hold finite numbers .* in column size"),
        (lambda t: t.to_numpy(), "features must be a frame that has the columns size, day"),
        (lambda t: pd.concat([t, t[["size"]]], axis=1), "columns of different names, got 'size' twice"),
    ],
)
def test_other_columns_are_named(of_table, table, change, message):
    with pytest.raises(ValueError, match=message):
        of_table[0].predict(change(table))


def test_without_a_preprocessor_columns_are_checked_too(saved, split):
    stored = load_model(saved[1] / "ridge.dmls2r")
    for change, message in [
        ({"x2": "a"}, "'x2' must hold numbers"),
        ({"x1": np.nan}, "no gaps.* some in x1"),
    ]:
        with pytest.raises(ValueError, match=message):
            stored.predict(split.X_test.assign(**change))


def test_averages_with_intervals(table, tmp_path):
    preprocessor = make_preprocessor(table).fit(table)
    X, y = preprocessor.transform(table), pd.Series(np.sqrt(np.arange(60.0)))
    y[30:] = np.nan
    ours = DMLS2RRegressor(n_networks=2, **SMALL)
    models = {"ridge": Ridge(), "trees": ExtraTreesRegressor(3), "ours": ours}
    for normalizer, estimator in [("spread", AveragedRegressor(models, cv=3)), ("metric", ours)]:
        model = ConformalRegressor(estimator, cv=3, normalizer=normalizer, random_state=0).fit(X, y)
        path = tmp_path / f"{normalizer}.dmls2r"
        save_model(model, path, CARD, preprocessor=preprocessor)
        stored = load_model(path)
        save_model(stored.model, path, CARD, preprocessor=stored.preprocessor, overwrite=True)  # once more
        stored = load_model(path)
        assert_array_equal(stored.predict(table), model.predict(X))
        assert_array_equal(stored.predict_interval(table), model.predict_interval(X, CARD.coverage))
        assert_array_equal(stored.predict_interval(table, 0.5), model.predict_interval(X, 0.5))
    with pytest.raises(ParameterError, match=r"coverage must be a number above 0 and below 1, got 0"):
        stored.predict_interval(table, 0)
    too_much = Card("toy", "y", 30, 30, coverage=0.99)
    with pytest.raises(ParameterError, match=r"model cannot be stored: .*coverage"):
        save_model(model, tmp_path / "m", too_much, preprocessor=preprocessor)


def test_all_that_is_on_the_lists_is_where_they_say():
    for names in (packing.CLASSES, packing.NAMES):
        assert {packing._find(names, name).__name__ for name in names} == set(names)


class OwnEncoder(torch.nn.Linear):
    pass


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DMLS2RRegressor(encoder=OwnEncoder(2, 3), **SMALL), r"test_storing.OwnEncoder, which is not on"),
        (DMLS2RRegressor(miner=lambda *_: mine_random(*_), **SMALL), r"<lambda>"),
        (DMLS2RRegressor(metric_loss=partial(null_loss), **SMALL), "functools.partial, which is not on"),
        (DMLS2RRegressor(callback=print, **SMALL), "print, which is not on"),
        (make_pipeline(AnotherMLP(max_iter=1)), r"sklearn.neural_network.*, which is not on"),
        (
            AveragedRegressor({"trees": HistGradientBoostingRegressor(max_iter=2)}),
            "HistGradientBoostingRegressor, which is not on .* Put one of them in its place",
        ),
        (KNeighborsRegressor(weights=np.reciprocal), "numpy.reciprocal, which is not on"),
        (KNeighborsRegressor(metric_params={"w": [1, 2]}), "neighbours have a metric of their own"),
        (KNeighborsRegressor(weights=lambda d: d + 1), r"<lambda>"),
        (make_pipeline(StandardScaler(), Ridge(), memory="cache"), "has a folder as its memory"),
        (make_pipeline("passthrough", Ridge()), "no n_features_in_, or begins with 'passthrough'"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_refused_to_store(model, message, split, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=f"model cannot be stored: .*{message}"):
        save_model(fitted(model, split), tmp_path / "m", CARD)
    assert set(os.listdir(tmp_path)) <= {"cache"}


@pytest.fixture
def ridge(split):
    return LinearRegression().fit(split.X_labeled, split.y_labeled)


def test_arguments_are_checked(split, ridge, tmp_path):
    model_of_table = make_pipeline(make_preprocessor(split.X_labeled), Ridge())
    for wrong, message in [
        ({"model": Ridge()}, "not fitted"),
        ({"model": KMeans(2).fit(split.X_labeled)}, "model must be a regressor, got KMeans"),
        ({"card": "Fine."}, "card must be a Card, got 'Fine.'"),
        (
            {"preprocessor": MinMaxScaler()},
            "preprocessor must be a ColumnTransformer, or .* got MinMaxScaler",
        ),
        ({"preprocessor": make_preprocessor(split.X_labeled)}, "not fitted"),
        ({"model": model_of_table.fit(split.X_labeled, split.y_labeled)}, "must not hold a ColumnTransf"),
        ({"column_types": {"day": 3}}, "column_types must be a dict of text"),
        ({"column_types": "day=date"}, "column_types must be a dict of text"),
        ({"path": 3}, "path must be a path, a string for example, got 3"),
        ({"missing_values": -999}, "missing_values must be text"),
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


def test_a_file_is_not_lost_unasked(split, tmp_path):
    path = tmp_path / "m"
    first, second = (Ridge(alpha).fit(split.X_labeled, split.y_labeled) for alpha in (1, 2))
    save_model(first, path, CARD)
    with pytest.raises(ParameterError, match=r"path must name a new file, unless overwrite=True, .* exists"):
        save_model(second, path, CARD)
    with pytest.raises(ParameterError, match="cannot be stored"):  # not by a failure either
        save_model(fitted(SVR(kernel=lambda a, b: a @ b.T), split), path, CARD, overwrite=True)
    assert load_model(path).model.alpha == 1
    save_model(second, path, CARD, overwrite=True)
    assert load_model(path).model.alpha == 2
    assert os.listdir(tmp_path) == ["m"]
    link = tmp_path / "latest"
    link.symlink_to(path)
    save_model(first, link, CARD, overwrite=True)  # as whatever else writes through a link
    assert link.is_symlink()
    assert load_model(path).model.alpha == load_model(link).model.alpha == 1


def test_card_is_checked():
    for name, wrong in [("data", 3), ("target", "a\x1b[31m"), ("n_labeled", 0), ("error_margin", np.nan)]:
        with pytest.raises(ParameterError, match=f"{name} must be"):
            Card(**{"data": "a", "target": "b", "n_labeled": 2, "n_unlabeled": 0} | {name: wrong})


def rewritten(content, change, name=""):
    """A file whose packed model, or a part of it, is exchanged for another; its digest is made anew."""
    first_line, _, compressed = content[:-32].partition(b"\n")
    packed, buffer = zlib.decompress(compressed), io.BytesIO()
    if not name:
        buffer.write(change(packed))
    else:
        with ZipFile(io.BytesIO(packed)) as old, ZipFile(buffer, "w") as new:
            for part in old.namelist():
                new.writestr(part, change(old.read(part)) if part == name else old.read(part))
    return with_digest(first_line + b"\n" + zlib.compress(buffer.getvalue()))


def with_digest(content):
    return content + hashlib.sha256(content).digest()


@pytest.fixture
def ridge_file(ridge, tmp_path):
    save_model(ridge, tmp_path / "m", CARD)
    return tmp_path / "m"


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"^{path} is no model that `save_model` wrote") as caught:
        load_model(path)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_no_file_and_other_files(tmp_path, ridge_file):
    for nothing in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load_model(nothing)
    content = ridge_file.read_bytes()
    for wrong in (b"", b"model", b"\x80\x04K\x01.", b"PK\x03\x04", b"[" * 100_000, content[:5]):
        assert "it begins otherwise; one of an earlier dmls2r-lite must be made" in refused(ridge_file, wrong)
    first_line, again = content.partition(b"\n")[0], io.BytesIO()
    with ZipFile(again, "w", ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))
    for other, message in [
        (content.replace(b'"dmls2r": 4', b'"dmls2r": 3'), "of version 3 of the format, and here is 4"),
        (b'{"dmls2r": ' + b"[" * 100_000, "maximum recursion depth"),
        (b'{"dmls2r": 4}\n', "versions"),
        (b'{"dmls2r": 4, "versions": null}\n', "NoneType"),
        (first_line, "it was changed, or is cut off"),
        (content[:-1], "it was changed, or is cut off"),
        (content.replace(b'"torch": "', b'"torch": "9'), "it was changed, or is cut off"),
        (rewritten(content, lambda packed: bytes(2**27)), "it is much larger than it looks"),
        (rewritten(content, lambda packed: packed[:-30]), "not a zip file"),
        (rewritten(content, lambda packed: again.getvalue()), "its parts are compressed"),
    ]:
        assert message in refused(ridge_file, other)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"card": None}, "NoneType"),
        ({"card": {"data": "a", "target": "b", "n_labeled": "9", "n_unlabeled": 1}}, "n_labeled must be an"),
        ({"column_types": {"a": "\x1b[31m"}}, "column_types must be a dict of text"),
        ({"more": 1}, "unexpected keyword"),
        ({"model": 3}, "model must be a regressor, got 3"),
        ({"preprocessor": Ridge()}, "preprocessor must be a ColumnTransformer"),
        ({"of_model": {"intercept_": 17.0}}, "it predicts what it did not before"),
        ({"of_model": {"intercept_": np.nan}}, "its predictions are not finite"),
        ({"of_model": {"coef_": None}}, "; it was made with 'scikit-learn 0.1', which may be why"),
    ],
)
def test_contents_that_are_others(changes, message, ridge_file):
    contents = packing.unpack(ridge_file.read_bytes())
    vars(contents["model"]).update(changes.get("of_model", {}))
    contents |= {name: value for name, value in changes.items() if name != "of_model"}
    assert message in refused(ridge_file, packing.pack(versions() | {"scikit-learn": "0.1"}, contents))


def test_a_file_that_does_not_tell_all_versions(ridge_file):
    ridge_file.write_bytes(packing.pack({"numpy": "1.0"}, packing.unpack(ridge_file.read_bytes())))
    assert load_model(ridge_file).card == CARD


class Call:
    """A pickle of it calls a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


RISKY = [os.system, eval, exec, __import__, open, subprocess.Popen, getattr, partial, np.dtype, packing._tree]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((Call(function, "touch done"), f"{function.__name__}, which is not on") for function in RISKY),
        (np.zeros(3), "numpy.*, which is not on the list"),
        (Ridge(), "sklearn.*Ridge, which is not on the list"),
        (DecisionTreeRegressor().fit([[0.0], [1.0]], [0, 1]).tree_, "Tree, which is not on the list"),
        *((Call(packing._object, n, {}), f"'{n}' is not on") for n in ("Popen", "os.system", "alternate")),
        *((Call(packing._named, name), f"'{name}' is not on the list") for name in ("system", "Ridge")),
        *((Call(packing._object, "SVR", {n: 1}), f"SVR brings {n} of its") for n in ("predict", "__class__")),
        (Call(packing._object, "Pipeline", {"memory": "folder"}), "has a folder as its memory"),
        (Call(packing._array, torch.zeros(1).expand(9)), "an array has more numbers than the file"),
        (3, "'int' object"),
    ],
)
def test_what_files_may_not_ask_for(value, message, ridge_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = ridge_file.read_bytes()
    for save, found in [(torch.save, message), (pickle.dump, "its model is no file of PyTorch")]:
        buffer = io.BytesIO()
        save(value, buffer)
        assert re.search(found, refused(ridge_file, rewritten(content, lambda _, b=buffer: b.getvalue())))
        assert os.listdir() == ["m"]  # and nothing was run


def with_node(field, value):
    def change(forest):
        tree = forest.estimators_[1].tree_
        state = tree.__getstate__()
        state["nodes"][field][0] = value
        tree.__setstate__(state)

    return change


def with_attribute(name, value):
    return lambda model: setattr(model, name, value)


def without_checks(forest):
    """A Pipeline hands on that rows are checked, and to a tree of another width."""
    wide = DecisionTreeRegressor().fit(np.eye(9), np.arange(9))
    forest.estimators_[1] = Pipeline([("as they are", FunctionTransformer().fit(np.eye(2))), ("tree", wide)])


OUT, APART = "a tree leads out of itself", "an SVR's arrays do not belong together"
NODES = [("left_child", 10**6), ("left_child", 0), ("right_child", -5), ("feature", 2), ("feature", -2)]
OF_SVR = {
    **{"support_vectors_": np.zeros((3, 1)), "_dual_coef_": np.zeros((1, 2)), "_intercept_": np.zeros(0)},
    **{"_n_support": np.zeros(50, dtype=np.int32), "_probA": np.zeros(1)},
    **{"kernel": "precomputed", "_sparse": True},
}


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        *((ExtraTreesRegressor(2), with_node(*node), OUT) for node in NODES),
        *((SVR(), with_attribute(*one), APART) for one in OF_SVR.items()),
        (ExtraTreesRegressor(2), with_attribute("n_features_in_", 1), "a forest's trees ask for other"),
        (ExtraTreesRegressor(2), without_checks, "a forest's trees ask for other features"),
        (DecisionTreeRegressor(), with_attribute("n_features_in_", 1), OUT),
    ],
)
def test_what_compiled_code_would_believe(model, change, message, split):
    change(model.fit(split.X_labeled.assign(x1=0.0), split.y_labeled))
    with pytest.raises(ValueError, match=message):
        packing.unpack(packing.pack({}, {"model": model}))


def test_nothing_is_left_that_a_file_could_change_later():
    """PyTorch lets it exchange a tensor's memory, after somebody has looked at it."""
    X = torch.arange(3.0, dtype=torch.float64)[:, None]
    state = vars(KNeighborsRegressor(1)) | {"n_features_in_": torch.tensor(1), "_fit_X": X, "_y": X[:, 0]}
    assert type(packing._object("Ridge", state | {"metric": 1}).n_features_in_) is int
    neighbors = packing._object("KNeighborsRegressor", state)
    frame = packing._frame([X[:, 0]], X[:, 0], torch.zeros(1))
    for part in (neighbors._fit_X, neighbors._y, frame[0.0].to_numpy(), frame.index.to_numpy()):
        assert not np.shares_memory(part, X.numpy())


FUZZ = """
import sys
from pathlib import Path
import numpy as np, pandas as pd, torch
from dmls2r_lite.practice.storing import load_model
from test_storing import rewritten

path, changed, n_files = Path(sys.argv[1]), Path("changed"), int(sys.argv[2])
X = pd.DataFrame(np.random.default_rng(1).uniform(size=(20, 2)), columns=["x1", "x2"])
content, n_refused, seen, rng = path.read_bytes(), 0, set(), np.random.default_rng(0)
load_model(path)
repr(torch.zeros(1))  # messages show some, for which PyTorch imports more
"".encode("cp437")  # of damaged names in a zip file, for which Python imports more
risky = "pickle.find_class marshal.loads exec compile os.system subprocess.Popen socket.connect".split()
sys.addaudithook(lambda event, args: seen.add(event) if event in risky else None)

def damage(whole, kind):
    start = rng.integers(len(whole))
    if kind == 0:
        return whole[:start]
    if kind == 1:
        return whole[:start] + bytes([whole[start] ^ 1 << rng.integers(8)]) + whole[start + 1:]
    return whole[:start] + rng.bytes(rng.integers(50)) + whole[start + rng.integers(1, 50):]

for number in range(n_files):
    is_inside, kind = number % 2, number // 2 % 3
    part = ["", "archive/data.pkl", "archive/data/3"][number // 6 % 3]
    changed.write_bytes(
        rewritten(content, lambda whole: damage(whole, kind), part) if is_inside else damage(content, kind)
    )
    try:
        load_model(changed).predict(X)
    except ValueError as error:
        n_refused += 1
        assert str(error).startswith("changed "), error
    else:
        assert is_inside  # whose digest was made anew
assert not seen, seen
print(n_refused)
"""


@pytest.mark.parametrize(("name", "n_files"), [("DML-S2R", 100), ("extra trees", 50)])
def test_damage_anywhere(name, n_files, saved, tmp_path):
    """A damaged file is refused; where somebody makes its digest anew, nothing is run."""
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, saved[1] / f"{name}.dmls2r", str(n_files)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0.7 * n_files
