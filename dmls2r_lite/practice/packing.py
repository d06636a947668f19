"""A file that holds a fitted model and what belongs to it, and what it may hold.

It is a line of JSON that says with what the model was made, compressed what `torch.save` makes of it, and
the SHA-256 digest of both: a file that was damaged or changed is refused, unless that is made anew, too.
What a file may ask for is on the lists of packing.toml. `torch.load` with `weights_only=True` makes numbers,
texts, lists and tensors, and calls what PyTorch's own list names and `MAKERS`. Each of those only makes data,
and distrusts what it is given: arrays of numbers, since NumPy would let a file say what its memory means,
trees, since they would lead out of theirs, and objects of known classes, of which a file sets the attributes.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import threading
import tomllib
import zlib
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree
from torch import Tensor

from ..foundation.parameters import demand

VERSION = 4  # of the format; 1 and 2 were zip files, 3 had no digest
N_DIGEST = 32  # bytes, at the end
START = b'{"dmls2r": '
LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CLASSES, NAMES = (  # whose objects a file may hold, and what they may refer to: by name, where it is
    {name: module for module, names in LISTS[kind].items() for name in names} for kind in ("classes", "names")
)
_LOADING = threading.Lock()  # PyTorch's list is one for all threads


def pack(versions: dict[str, str], contents: dict[str, Any]) -> bytes:
    """What a file holds; the same of the same, without the time of day."""
    buffer = io.BytesIO()
    torch.save(contents, buffer, pickle_module=_Pickling)
    first_line = START + f"{VERSION}, {json.dumps({'versions': versions})[1:]}\n".encode()
    content = first_line + zlib.compress(buffer.getvalue(), level=1)
    return content + hashlib.sha256(content).digest()


def read_versions(content: bytes) -> dict[str, str]:
    """With what a file was made, as it says; ValueError if it is none, or of another format."""
    demand(content.startswith(START), "it begins otherwise; one of an earlier dmls2r-lite must be made anew")
    header = json.loads(content.partition(b"\n")[0])
    version = header["dmls2r"]
    demand(version == VERSION, f"it is of version {version} of the format, and here is {VERSION}")
    return header["versions"]


def unpack(content: bytes) -> dict[str, Any]:
    """What `pack` was given; whatever does not fit raises an exception of some kind."""
    content, digest = content[:-N_DIGEST], content[-N_DIGEST:]
    is_whole = hashlib.sha256(content).digest() == digest
    demand(is_whole, "its digest is that of another content: it was changed, or is cut off")
    compressed, stream = content.partition(b"\n")[2], zlib.decompressobj()
    packed = stream.decompress(compressed, 2**26 + 100 * len(compressed))
    demand(stream.eof, "it is much larger than it looks")
    demand(packed.startswith(b"PK\x03\x04"), "its model is no file of PyTorch")  # nor one of an old kind
    n_bytes = sum(part.file_size for part in ZipFile(io.BytesIO(packed)).infolist())
    demand(n_bytes <= len(packed), "its parts are compressed, which PyTorch never does")
    where = None if torch.cuda.is_available() else "cpu"
    try:
        with _LOADING, torch.serialization.safe_globals([*MAKERS, slice]):
            return torch.load(io.BytesIO(packed), map_location=where, weights_only=True)
    except pickle.UnpicklingError as error:  # whose text tells how to read it without these lists
        found = re.search(r"GLOBAL (\S+)", str(error))
        asked_for = found[1] if found else "something"
        raise ValueError(f"it asks for {asked_for}, which is not on the list of what may be stored") from None


def as_in_fit(model: Any, X: np.ndarray) -> Any:
    """A model's features, as a frame if it was fitted on one."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


class _Pickling:
    class Pickler(pickle.Pickler):
        """Says which maker makes a value anew; those of Python's plainest types do not come here.

        What no maker makes is pickled as ever: reading it is refused, but for what PyTorch itself allows.
        """

        def reducer_override(self, value: Any) -> Any:
            kind = type(value)
            if kind is np.ndarray and value.dtype.kind in "OU":
                return _objects, (value.ravel().tolist(), list(value.shape))
            if kind is np.ndarray and value.dtype.kind in "biuf":
                return _array, (torch.from_numpy(value.astype(value.dtype.newbyteorder("="), order="K")),)
            if isinstance(value, np.generic):
                return _scalar, (np.asarray(value),)
            if isinstance(value, np.dtype) and value.kind in "biufO":
                return _dtype, (np.empty(0, value),)
            if isinstance(value, pd.DataFrame):
                columns = [column.to_numpy() for _, column in value.items()]
                return _frame, (columns, value.index.to_numpy(), value.columns.to_numpy())
            if isinstance(value, pd.Series):
                return _series, (value.to_frame(value.name),)
            if isinstance(value, torch.device):
                return _device, (torch.empty(0, device=value),)
            if _is_on(CLASSES, kind):  # neighbours have a _tree, which is made anew from the rest
                state = {name: _plain(name, part) for name, part in vars(value).items() if name != "_tree"}
                return _object, (kind.__name__, state)
            if isinstance(value, FunctionType | type) and _is_on(NAMES, value):
                return _named, (value.__name__,)
            return NotImplemented


def _plain(name: str, part: Any) -> Any:
    """An attribute of an object, as it is in a file."""
    if name == "history_":
        return part.drop(columns="seconds", errors="ignore")  # which differ each time
    if isinstance(part, Tree):
        state = part.__getstate__()
        fields = [state["nodes"][name] for name in NODE_DTYPE.names]  # integers below 2 ** 53, and floats
        return list(NODE_DTYPE.names), np.array(fields, dtype=float), state["values"]
    return None if isinstance(part, np.random.RandomState | np.random.Generator) else part


def _is_on(names: dict[str, str], value: Any) -> bool:
    name = value.__name__
    return name in names and _find(names, name) is value


def _find(names: dict[str, str], name: str) -> Any:
    demand(name in names, f"{str(name)[:100]!r} is not on the list of what may be stored")
    return getattr(import_module(names[name]), name)


def _array(tensor: Tensor) -> np.ndarray:
    size = tensor.numel() * tensor.element_size()
    demand(size <= tensor.untyped_storage().nbytes(), "an array has more numbers than the file")
    return tensor.numpy().copy(order="K")  # as in all makers, since a file might exchange its memory later


def _objects(values: list[Any], shape: list[int]) -> np.ndarray:
    return np.array(values, dtype=object).reshape(shape)


def _scalar(array: np.ndarray) -> Any:
    return array[()]


def _dtype(array: np.ndarray) -> np.dtype[Any]:
    return array.dtype


def _frame(columns: list[np.ndarray], index: np.ndarray, names: np.ndarray) -> pd.DataFrame:
    values = {place: np.array(column) for place, column in enumerate(columns)}
    return pd.DataFrame(values, np.array(index)).set_axis(np.array(names), axis=1)


def _series(frame: pd.DataFrame) -> pd.Series:
    return frame.iloc[:, 0]


def _device(tensor: Tensor) -> torch.device:
    return tensor.device


def _named(name: str) -> Any:
    return _find(NAMES, name)


def _object(name: str, state: dict[str, Any]) -> Any:
    kind = _find(CLASSES, name)
    own = getattr(kind, "__dataclass_fields__", ())
    hidden = [key for key in state if hasattr(kind, key) and key not in own]
    demand(hidden == [], f"an object of {name} brings {', '.join(hidden)} of its own")
    value = kind.__new__(kind)
    value.__dict__.update(state)
    if "n_features_in_" in state:  # a file might exchange a tensor's memory later
        value.n_features_in_ = int(value.n_features_in_)
    if "tree_" in state:
        value.tree_ = _tree(value.n_features_in_, *value.tree_)
    elif isinstance(value, ExtraTreesRegressor | RandomForestRegressor) and "estimators_" in state:
        value.estimators_ = [*value.estimators_]  # a file cannot add to this list any more
        are_trees = all(isinstance(part, DecisionTreeRegressor) for part in value.estimators_)
        widths = {part.n_features_in_ for part in value.estimators_}
        demand(are_trees and widths == {value.n_features_in_}, "a forest's trees ask for other features")
    elif name == "KNeighborsRegressor" and "_fit_X" in state:
        demand(value.metric_params is None, "neighbours have a metric of their own")
        value.fit(as_in_fit(value, np.array(value._fit_X)), np.array(value._y))
    elif name == "SVR" and "support_" in state:
        n = len(value.support_vectors_)
        arrays = value.support_, value.support_vectors_, value._dual_coef_, value._intercept_
        found = list(map(np.shape, (*arrays, value._n_support, value._probA, value._probB)))
        expected = [(n,), (n, value.n_features_in_), (1, n), (1,), (2,), (0,), (0,)]
        is_usual = value.kernel in ("linear", "poly", "rbf", "sigmoid") and value._sparse is False
        demand(found == expected and is_usual, "an SVR's arrays do not belong together")
    elif name == "Pipeline":
        demand(value.memory is None, "a Pipeline has a folder as its memory")
    return value


def _tree(n_features: int, names: list[str], fields: np.ndarray, values: np.ndarray) -> Tree:
    """No maker: a tree takes rows of any width, so a file has none but in what checks how wide they are."""
    demand(names == list(NODE_DTYPE.names), "trees of this scikit-learn are made otherwise")
    nodes = np.zeros(len(values), NODE_DTYPE)
    for name, field in zip(names, fields, strict=True):
        nodes[name] = field
    # scikit-learn goes where a node sends it, out of its memory too, or in circles; and believes the depth.
    children = np.column_stack([nodes["left_child"], nodes["right_child"]])
    splits = children[:, 0] != -1
    is_once = np.array_equal(np.sort(children[splits], axis=None), np.arange(1, len(nodes)))
    asked = nodes["feature"][splits]
    demand(is_once and ((asked >= 0) & (asked < n_features)).all(), "a tree leads out of itself")
    level, depth = np.zeros(1, dtype=int), -1
    while len(level):
        level, depth = children[level[splits[level]]].ravel(), depth + 1
    tree = Tree(n_features, np.ones(values.shape[1], dtype=np.intp), values.shape[1])
    tree.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values})
    return tree


MAKERS = (_array, _objects, _scalar, _dtype, _frame, _series, _device, _named, _object)
