"""A file that holds a fitted model and a text about it, and what it may hold.

What a file may ask for is on the lists below. `torch.load` with `weights_only=True` makes numbers, texts,
lists and tensors, and calls what PyTorch's own list names and `MAKERS`. Each of those only makes data, and
distrusts what it is given: arrays of numbers, since NumPy would let a file say what its memory means, trees,
since they would lead out of theirs, and objects of known classes, of which a file sets the attributes.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from collections import OrderedDict
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree
from torch import Tensor

from ..foundation.parameters import ParameterError


def _by_name(names: dict[str, str]) -> dict[str, str]:
    return {name: module for module, several in names.items() for name in several.split()}


VERSION = 2  # of the format; in 1 the second part was numbers.bin
PARTS = ["model.json", "model.pt"]
PACKAGE = __name__.split(".")[0]
CLASSES = _by_name(  # whose objects a file may hold
    {
        f"{PACKAGE}.estimators": "DMLS2RRegressor",
        f"{PACKAGE}.foundation.checks": "RangeScaler",
        f"{PACKAGE}.model": "LinearPairHead SiameseNetwork",
        f"{PACKAGE}.rivals.coreg": "COREGRegressor",
        f"{PACKAGE}.rivals.mssr": "MSSRRegressor",
        f"{PACKAGE}.rivals.trees": "ExtraTrees RandomForest",
        f"{PACKAGE}.rivals.twins": "MLPRegressor PairwiseDifferenceRegressor",
        f"{PACKAGE}.practice.averaging": "AveragedRegressor",
        f"{PACKAGE}.practice.intervals": "ConformalRegressor",
        "sklearn.compose": "ColumnTransformer TransformedTargetRegressor",
        "sklearn.dummy": "DummyRegressor",
        "sklearn.ensemble": "ExtraTreesRegressor RandomForestRegressor",
        "sklearn.gaussian_process": "GaussianProcessRegressor",
        "sklearn.gaussian_process.kernels": "ConstantKernel DotProduct Matern Product RBF "
        "RationalQuadratic Sum WhiteKernel",
        "sklearn.impute": "SimpleImputer",
        "sklearn.linear_model": "LinearRegression Ridge RidgeCV",
        "sklearn.neighbors": "KNeighborsRegressor",
        "sklearn.pipeline": "Pipeline",
        "sklearn.preprocessing": "FunctionTransformer MinMaxScaler OneHotEncoder StandardScaler",
        "sklearn.svm": "SVR",
        "sklearn.tree": "DecisionTreeRegressor ExtraTreeRegressor",
        "torch.nn": "Identity Linear ReLU Sequential",
    }
)
NAMES = _by_name(  # what they may refer to, as a parameter for example
    {
        f"{PACKAGE}.data.preparing": "_name_of_category _to_days _to_hours _to_numbers _to_texts",
        f"{PACKAGE}.rivals.placebos": "mine_random mine_swapped null_loss",
        f"{PACKAGE}.training": "alternate",
        "builtins": "bool float int object str",
        "numpy": "float32 float64 int64",
    }
)
_LOADING = Lock()  # PyTorch's list is one for all threads


def write_parts(path: Path, text: dict[str, Any], packed: bytes) -> None:
    """Write a text and a packed model; without the time of day, so that the same gives the same bytes."""
    content = json.dumps(text | {"version": VERSION}, default=np.generic.item)
    with ZipFile(path, "w") as archive:
        archive.writestr(ZipInfo(PARTS[0]), content, ZIP_DEFLATED, compresslevel=1)
        archive.writestr(ZipInfo(PARTS[1]), packed, ZIP_DEFLATED, compresslevel=1)


def read_parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """Read both; no more is unpacked than a file of its size may hold.

    Raises
    ------
    ValueError
        If they are not whole; the message goes on after the name of the file.
    """
    content = path.read_bytes()
    _demand(content.startswith(b"PK"), "is no model that `save_model` wrote")
    try:
        archive = ZipFile(io.BytesIO(content))
        names, n_bytes = archive.namelist(), sum(part.file_size for part in archive.infolist())
        is_small = n_bytes <= 2**26 + 100 * len(content)
        parts = [archive.read(name) for name in names if is_small]  # and see that their CRC is right
    except Exception as error:  # of many kinds
        raise ValueError(f"is damaged or cut off: {tell(error)}") from error
    is_old = names == ["model.json", "numbers.bin"]
    _demand(not is_old, "is of an earlier dmls2r-lite and not read any more: fit the model anew and save it")
    _demand(names == PARTS, "is no model: it is a zip of something else, or damaged")
    _demand(is_small, f"is no model: unpacked it would be {n_bytes} bytes large")
    try:
        text = json.loads(parts[0])
        version = int(text["version"])
    except Exception as error:
        raise ValueError(f"is damaged, or no model: {tell(error)}") from error
    known = f"this dmls2r-lite knows {VERSION}: update it"
    _demand(version <= VERSION, f"is of version {version} of the format; {known}")
    return text, parts[1]


def tell(error: object) -> str:
    """An error in one line that is safe to print."""
    text = str(error) if isinstance(error, ValueError) else repr(error)
    return "".join(letter if letter.isprintable() else " " for letter in text[:300])


def pack(model: Any, preprocessor: Any = None) -> bytes:
    """A model, and what goes before it, as a file of `torch.save`.

    Raises
    ------
    ParameterError
        If something in it is on no list.
    """
    buffer = io.BytesIO()
    try:
        torch.save([model, preprocessor], buffer, pickle_module=_Pickling)
    except _UnlistedError as error:
        [value] = error.args
        named = value if hasattr(value, "__qualname__") else type(value)
        parameters = model.get_params().items()
        where = next((f"model.{name}" for name, part in parameters if part is value), "model")
        raise ParameterError(
            f"{where} cannot be stored: it has {'' if named is value else 'an object of '}"
            f"{named.__module__}.{named.__qualname__}, which is not on the list. What predictions do without "
            "may be removed first, for example by model.set_params(callback=None)"
        ) from error
    return buffer.getvalue()


def unpack(content: bytes) -> list[Any]:
    """What `pack` was given; whatever does not fit raises an exception of some kind."""
    _demand(content.startswith(b"PK\x03\x04"), "its model is no file of PyTorch")  # nor one of an old kind
    where = None if torch.cuda.is_available() else "cpu"
    try:
        with _LOADING, torch.serialization.safe_globals([*MAKERS, slice]):
            return torch.load(io.BytesIO(content), map_location=where, weights_only=True)
    except pickle.UnpicklingError as error:
        if found := re.search(r"GLOBAL (\S+)", str(error)):
            raise ValueError(f"it asks for {found[1]}, which is not on the list of what it may") from error
        raise ValueError("it asks for what it may not, or for nothing") from error


class _UnlistedError(Exception):
    """Of a value that cannot be stored."""


class _Pickler(pickle.Pickler):
    """Says which maker makes a value anew; those of Python's plainest types do not come here."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is np.ndarray and value.dtype.kind in "OU":
            return _objects, (value.ravel().tolist(), list(value.shape))
        if kind is np.ndarray and value.dtype.kind in "biuf":
            return _array, (torch.from_numpy(value.astype(value.dtype.newbyteorder("="), order="K")),)
        if isinstance(value, np.generic):
            return _scalar, (np.asarray(value),)
        if isinstance(value, np.dtype):
            return _dtype, (value.str,)
        if isinstance(value, pd.Series | pd.DataFrame):
            frame = value.to_frame(value.name) if isinstance(value, pd.Series) else value
            columns = [_values(frame.iloc[:, place]) for place in range(frame.shape[1])]
            return _frame, (columns, _values(value.index), _values(frame.columns), kind is pd.Series)
        if isinstance(value, torch.device):
            return _device, (value.type,)
        if isinstance(value, Tree):
            state = value.__getstate__()
            fields = [state["nodes"][name] for name in NODE_DTYPE.names]  # integers below 2 ** 53, and floats
            table = np.vstack([*fields, state["values"][:, :, 0].T])
            return _tree, (value.n_features, value.max_depth, list(NODE_DTYPE.names), table)
        if _is_on(CLASSES, kind):
            state = {
                name: None if isinstance(part, np.random.RandomState | np.random.Generator) else part
                for name, part in vars(value).items()
                if name != "_tree"  # of neighbours: made anew from the rest
            }
            return _object, (kind.__name__, state)
        if isinstance(value, Tensor | OrderedDict | slice):
            return NotImplemented  # as PyTorch does it always
        if isinstance(value, FunctionType | type):
            if _is_on(NAMES, value):
                return _named, (value.__name__,)
            if value.__module__ in ("torch", "torch._utils", __name__) or value in (OrderedDict, set, slice):
                return NotImplemented
        raise _UnlistedError(value)


class _Pickling:
    Pickler = _Pickler


def _values(column: pd.Series | pd.Index) -> np.ndarray:
    array = column.to_numpy()
    return array if array.dtype.kind in "biufO" else np.asarray(column.astype(object), dtype=object)


def _is_on(names: dict[str, str], value: Any) -> bool:
    name = value.__name__
    return name in names and _find(names, name) is value


def _find(names: dict[str, str], name: str) -> Any:
    _demand(name in names, f"{str(name)[:100]!r} is not on the list of what may be stored")
    return getattr(import_module(names[name]), name)


def _demand(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ValueError(otherwise)


def _array(tensor: Tensor) -> np.ndarray:
    size = tensor.numel() * tensor.element_size()
    _demand(size <= tensor.untyped_storage().nbytes(), "an array has more numbers than the file")
    return tensor.numpy().copy(order="K")  # a file might exchange a tensor's memory later


def _objects(values: list[Any], shape: list[int]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array.reshape(shape)


def _scalar(array: np.ndarray) -> Any:
    return array[()]


def _dtype(text: str) -> np.dtype[Any]:
    _demand(re.fullmatch(r"[<>|]([biuf]\d|O)", text) is not None, f"there are no arrays of {text!r}")
    return np.dtype(text)


def _frame(
    values: list[np.ndarray], index: np.ndarray, columns: np.ndarray, is_series: bool
) -> pd.DataFrame | pd.Series:
    frame = pd.DataFrame(dict(enumerate(values)), index).set_axis(columns, axis=1)
    return frame.iloc[:, 0] if is_series else frame


def _device(kind: str) -> torch.device:
    return torch.device("cuda" if kind == "cuda" and torch.cuda.is_available() else "cpu")


def _named(name: str) -> Any:
    return _find(NAMES, name)


def _tree(n_features: int, max_depth: int, fields: list[str], table: np.ndarray) -> Tree:
    _demand(fields == list(NODE_DTYPE.names), "trees of this scikit-learn are made otherwise")
    n_features, table = int(n_features), np.asarray(table, dtype=float)
    nodes = np.zeros(table.shape[1], NODE_DTYPE)
    for name, row in zip(fields, table, strict=False):
        nodes[name] = row
    values = np.array(table[len(fields) :].T[:, :, None], order="C")
    # scikit-learn goes where a node sends it, out of its memory too, or in circles.
    number, left, right = np.arange(len(nodes)), nodes["left_child"], nodes["right_child"]
    is_leaf, feature = left == -1, nodes["feature"]
    goes_on = (left > number) & (left < len(nodes)) & (right > number) & (right < len(nodes))
    looks_well = (feature >= 0) & (feature < n_features)
    _demand(len(nodes) > 0 and (right[is_leaf] == -1).all(), "a tree has no leaves")
    _demand((goes_on & looks_well)[~is_leaf].all(), "a tree leads out of itself")
    tree = Tree(n_features, np.ones(values.shape[1], dtype=np.intp), values.shape[1])
    tree.__setstate__({"max_depth": max_depth, "node_count": len(nodes), "nodes": nodes, "values": values})
    return tree


def _object(name: str, state: dict[str, Any]) -> Any:
    kind = _find(CLASSES, name)
    own = getattr(kind, "__dataclass_fields__", ())
    hidden = [key for key in state if hasattr(kind, key) and key not in own]
    _demand(hidden == [], f"an object of {name} brings {', '.join(hidden)} of its own")
    value = kind.__new__(kind)
    value.__dict__.update(state)
    if isinstance(value, ExtraTreesRegressor | RandomForestRegressor) and hasattr(value, "estimators_"):
        value.estimators_ = [*value.estimators_]  # a file cannot add to this list any more
        widths = {part.n_features_in_ for part in value.estimators_}
        _demand(widths == {value.n_features_in_}, "a forest's trees ask for other features")
    elif hasattr(value, "tree_"):
        _demand(isinstance(value.tree_, Tree), "a tree is none")
        _demand(value.tree_.n_features == value.n_features_in_, "a tree asks for other features")
    elif name == "KNeighborsRegressor" and hasattr(value, "_fit_X"):
        names = value.__dict__.pop("feature_names_in_", None)
        value.fit(value._fit_X, value._y)
        if names is not None:
            value.feature_names_in_ = names
    elif name == "SVR" and hasattr(value, "support_"):
        n = len(value.support_vectors_)
        arrays = value.support_, value.support_vectors_, value._dual_coef_, value._intercept_
        found = list(map(np.shape, (*arrays, value._n_support, value._probA, value._probB)))
        expected = [(n,), (n, value.n_features_in_), (1, n), (1,), (2,), (0,), (0,)]
        is_usual = value.kernel in ("linear", "poly", "rbf", "sigmoid") and value._sparse is False
        _demand(found == expected and is_usual, "an SVR's arrays do not belong together")
    elif name == "Pipeline":
        _demand(value.memory is None, "a Pipeline has a folder as its memory")
    return value


MAKERS = (_array, _objects, _scalar, _dtype, _frame, _device, _named, _tree, _object)
