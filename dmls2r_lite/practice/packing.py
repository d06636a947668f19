"""What a fitted model is made of, as JSON and numbers.

No code is stored, and none is run that a file brings: it can only name what the tables below name. Numbers
of all arrays lie one after the other in `bytes`, in the order in which the JSON mentions them, so that
nothing a file claims can be larger than the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree._tree import NODE_DTYPE, Tree
from torch import Tensor, nn

from ..foundation.parameters import ParameterError
from ..model import LinearPairHead, SiameseNetwork


def _by_name(names: dict[str, str]) -> dict[str, str]:
    return {name: module for module, several in names.items() for name in several.split()}


PACKAGE = __name__.split(".")[0]
CLASSES = _by_name(
    {
        f"{PACKAGE}.base": "RangeScaler",
        f"{PACKAGE}.estimators": "DMLS2RRegressor",
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
    }
)
FUNCTIONS = _by_name(
    {
        f"{PACKAGE}.data.preparing": "_name_of_category _to_days _to_hours _to_numbers _to_texts",
        f"{PACKAGE}.rivals.placebos": "mine_random mine_swapped null_loss",
        f"{PACKAGE}.training": "alternate",
    }
)
_KINDS: tuple[type, ...] = (bool, int, float, str, object, np.float32, np.float64, np.int64)
TYPES = {kind.__name__: kind for kind in _KINDS}
# Of each module: what its constructor is told, its parts (None: any number), and its weights.
MODULES: dict[str, tuple[type[nn.Module], tuple[str, ...], tuple[str, ...] | None, tuple[str, ...]]] = {
    "Linear": (nn.Linear, ("in_features", "out_features"), (), ("weight", "bias")),
    "ReLU": (nn.ReLU, ("inplace",), (), ()),
    "Identity": (nn.Identity, (), (), ()),
    "Sequential": (nn.Sequential, (), None, ()),
    "LinearPairHead": (LinearPairHead, ("n_targets",), ("activation", "linear"), ()),
    "SiameseNetwork": (SiameseNetwork, ("max_pairs",), ("encoder", "head"), ()),
}
_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f[248]|U\d{1,6})|\|O")


class Packer:
    """Turns a value into JSON; the numbers of its arrays are added to `bytes`."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def pack(self, value: Any, where: str = "model") -> Any:
        """The value as JSON.

        Raises
        ------
        ParameterError
            If it, or something in it, cannot be stored; `where` says what it is called.
        """
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if kind is list:
            return self._pack_all(value, where)
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # a state of randomness has no part in predictions
        for name, (base, pack) in _PACKERS.items():
            if kind is base or (base.__module__ != "builtins" and isinstance(value, base)):
                return {name: pack(self, value, where)}
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return {"type": value.__name__}
        if kind is FunctionType and _look_up(FUNCTIONS, value.__name__) is value:
            return {"function": value.__name__}
        if _look_up(CLASSES, kind.__name__) is kind:
            return {"object": [kind.__name__, self._pack_state(value, where)]}
        named: Any = value if hasattr(value, "__qualname__") else kind
        what = f"{named.__module__}.{named.__qualname__}"
        raise ParameterError(
            f"{where} cannot be stored: it is {what if named is value else f'an object of {what}'}, which is "
            "not on the list. What predictions do without may be removed first, for example by "
            "model.set_params(callback=None)"
        )

    def _pack_all(self, values: Any, where: str) -> list[Any]:
        return [self.pack(value, f"{where}[{place}]") for place, value in enumerate(values)]

    def _pack_state(self, value: Any, where: str) -> dict[str, Any]:
        left_out: tuple[str, ...] = _REBUILT.get(type(value).__name__, ())
        return {
            name: self.pack(part, f"{where}.{name}")
            for name, part in vars(value).items()
            if name not in left_out
        }

    def _pack_dict(self, value: dict[Any, Any], where: str) -> list[Any]:
        return [[self.pack(key, where), self.pack(part, f"{where}[{key!r}]")] for key, part in value.items()]

    def _pack_array(self, value: np.ndarray, where: str) -> list[Any]:
        dtype = value.dtype.newbyteorder("<")
        if not _DTYPE.fullmatch(dtype.str) or type(value) is not np.ndarray:
            raise ParameterError(f"{where} cannot be stored: it is a {type(value).__name__} of {value.dtype}")
        if dtype.hasobject:
            return ["|O", list(value.shape), self._pack_all(value.ravel().tolist(), where)]
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        self.bytes += value.astype(dtype, copy=False).tobytes(order)  # type: ignore[arg-type]
        return [dtype.str, list(value.shape), order]  # sums depend on the order, in their last digits

    def _pack_series(self, value: pd.Series, where: str) -> list[Any]:
        return [self.pack(part, where) for part in (value.name, value.index, _values(value))]

    def _pack_index(self, value: pd.Index, where: str) -> list[Any]:
        return [self.pack(part, where) for part in (value.name, _values(value))]

    def _pack_frame(self, value: pd.DataFrame, where: str) -> list[Any]:
        columns = [_values(value.iloc[:, place]) for place in range(value.shape[1])]
        return [self.pack(part, where) for part in (value.columns, value.index, columns)]

    def _pack_tensor(self, value: Tensor, where: str) -> list[Any]:
        if value.dtype not in (torch.float32, torch.float64):
            raise ParameterError(f"{where} cannot be stored: it is a tensor of {value.dtype}")
        return [self._pack_array(value.detach().cpu().contiguous().numpy(), where), value.requires_grad]

    def _pack_module(self, module: nn.Module, where: str) -> list[Any]:
        name = type(module).__name__
        if MODULES.get(name, (None,))[0] is not type(module):
            known = ", ".join(MODULES)
            raise ParameterError(
                f"{where} cannot be stored: it is a {type(module).__module__}.{name}, and among modules only "
                f"{known} can"
            )
        if module._forward_hooks or module._forward_pre_hooks:
            raise ParameterError(f"{where} cannot be stored: a hook is registered on it")
        _, values, _, weights = MODULES[name]
        return [
            name,
            module.training,
            [self.pack(getattr(module, value), where) for value in values],
            [self._pack_module(part, f"{where}.{child}") for child, part in module.named_children()],
            [self.pack(getattr(module, weight), f"{where}.{weight}") for weight in weights],
        ]

    def _pack_tree(self, tree: Tree, where: str) -> list[Any]:
        state = tree.__getstate__()
        nodes = [[name, self._pack_array(state["nodes"][name], where)] for name in state["nodes"].dtype.names]
        return [tree.n_features, tree.max_depth, nodes, self._pack_array(state["values"], where)]


class Unpacker:
    """Turns JSON back into what it was made of; whatever does not fit raises an exception of some kind."""

    def __init__(self, content: bytes) -> None:
        self.content = memoryview(content)
        self.read = 0

    def unpack(self, packed: Any) -> Any:
        """What `Packer.pack` was given."""
        if isinstance(packed, list):
            return [self.unpack(part) for part in packed]
        if not isinstance(packed, dict):
            return packed
        [(kind, content)] = packed.items()
        if kind == "type":
            return TYPES[content]
        if kind == "function":
            return _look_up(FUNCTIONS, content, strict=True)
        if kind == "object":
            return self._unpack_object(*content)
        return _UNPACKERS[kind](self, content)

    def _unpack_object(self, name: str, state: dict[str, Any]) -> Any:
        kind = _look_up(CLASSES, name, strict=True)
        own = getattr(kind, "__dataclass_fields__", ())
        hidden = [key for key in state if hasattr(kind, key) and key not in own]
        _demand(hidden == [], f"an object of {name} brings {', '.join(hidden)} of its own")
        value = kind.__new__(kind)
        value.__dict__.update({key: self.unpack(part) for key, part in state.items()})
        _check(value)
        return value

    def _unpack_array(self, content: list[Any]) -> np.ndarray:
        text, shape, order = content  # of objects the values, in place of their order
        _demand(all(type(n) is int and n >= 0 for n in shape), f"an array has the shape {shape}")
        dtype, size = _dtype(text), math.prod(shape)
        if dtype.hasobject:
            array = np.empty(len(order), object)
            for place, part in enumerate(order):
                array[place] = self.unpack(part)
            return array.reshape(shape)
        _demand(order in ("C", "F"), f"an array has the order {order!r}")
        end = self.read + size * dtype.itemsize
        _demand(end <= len(self.content), "it ends before its numbers do")
        array = np.frombuffer(self.content[self.read : end], dtype).reshape(shape, order=order).copy(order)
        self.read = end
        return array.astype(dtype.newbyteorder("="), copy=False)

    def _unpack_series(self, content: list[Any]) -> pd.Series:
        name, index, values = map(self.unpack, content)
        return pd.Series(values, index, name=name)

    def _unpack_index(self, content: list[Any]) -> pd.Index:
        name, values = map(self.unpack, content)
        return pd.Index(values, name=name)

    def _unpack_frame(self, content: list[Any]) -> pd.DataFrame:
        names, index, columns = map(self.unpack, content)
        frame = pd.DataFrame(dict(enumerate(columns)), index=index)
        frame.columns = names
        return frame

    def _unpack_tensor(self, content: list[Any]) -> Tensor:
        array, requires_grad = content
        return torch.from_numpy(self._unpack_array(array)).requires_grad_(requires_grad)

    def _unpack_module(self, content: list[Any]) -> nn.Module:
        name, training, values, parts, weights = content
        kind, value_names, part_names, weight_names = MODULES[name]
        module = kind.__new__(kind)
        nn.Module.__init__(module)
        module.training = bool(training)
        for name, value in zip(value_names, values, strict=True):
            setattr(module, name, self.unpack(value))
        names = map(str, range(len(parts))) if part_names is None else part_names
        for name, part in zip(names, parts, strict=True):
            module.add_module(name, self._unpack_module(part))
        for name, packed in zip(weight_names, weights, strict=True):
            weight = self.unpack(packed)
            if weight is not None:
                weight = nn.Parameter(weight.detach(), requires_grad=weight.requires_grad)
            module.register_parameter(name, weight)
        return module

    def _unpack_tree(self, content: list[Any]) -> Tree:
        n_features, max_depth, fields, values = content
        columns = {name: self._unpack_array(field) for name, field in fields}
        nodes = np.zeros(len(columns["feature"]), NODE_DTYPE)
        _demand(set(columns) == set(nodes.dtype.names), "trees of this scikit-learn are made otherwise")
        for name, column in columns.items():
            nodes[name] = column
        number, left, right = np.arange(len(nodes)), nodes["left_child"], nodes["right_child"]
        is_leaf = left == -1
        inner = ~is_leaf
        # scikit-learn goes where a node sends it, out of its memory too, or in circles.
        goes_on = (left > number) & (left < len(nodes)) & (right > number) & (right < len(nodes))
        looks_well = (nodes["feature"] >= 0) & (nodes["feature"] < n_features)
        _demand(len(nodes) > 0 and (right[is_leaf] == -1).all(), "a tree has no leaves")
        _demand((goes_on & looks_well)[inner].all(), "a tree leads out of itself")
        value = self._unpack_array(values)
        n_targets = value.shape[1]
        tree = Tree(int(n_features), np.ones(n_targets, dtype=np.intp), n_targets)
        tree.__setstate__({"max_depth": max_depth, "node_count": len(nodes), "nodes": nodes, "values": value})
        return tree


def _look_up(names: dict[str, str], name: str, strict: bool = False) -> Any:
    """What a table calls by that name, or None."""
    if name in names:
        return getattr(import_module(names[name]), name)
    _demand(not strict, f"{str(name)[:100]!r} is not on the list of what may be stored")
    return None


def _demand(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ValueError(otherwise)


def _dtype(text: str) -> np.dtype[Any]:
    _demand(bool(_DTYPE.fullmatch(text)), f"there are no arrays of {text!r}")
    return np.dtype(text)


def _check(value: Any) -> None:
    """Finish an object, and see that compiled code will not be led out of its memory by it.

    Raises
    ------
    ValueError
        If it would be.
    """
    name = type(value).__name__
    if name == "Pipeline":
        _demand(value.memory is None, "a Pipeline has a folder as its memory")
    elif name == "KNeighborsRegressor" and hasattr(value, "_fit_X"):
        names = value.__dict__.pop("feature_names_in_", None)
        value.fit(value._fit_X, value._y)
        if names is not None:
            value.feature_names_in_ = names
    elif hasattr(value, "tree_"):
        _demand(value.tree_.n_features == value.n_features_in_, "a tree asks for other features")
    elif isinstance(value, ExtraTreesRegressor | RandomForestRegressor) and hasattr(value, "estimators_"):
        widths = {part.n_features_in_ for part in value.estimators_}
        _demand(widths == {value.n_features_in_}, "a forest's trees ask for other features")
    elif name == "SVR" and hasattr(value, "support_"):
        n = len(value.support_vectors_)
        found = [
            np.shape(part)
            for part in (value.support_, value.support_vectors_, value._dual_coef_, value._intercept_)
        ]
        found += [np.shape(value._n_support), np.shape(value._probA), np.shape(value._probB)]
        expected = [(n,), (n, value.n_features_in_), (1, n), (1,), (2,), (0,), (0,)]
        is_usual = value.kernel in ("linear", "poly", "rbf", "sigmoid") and value._sparse is False
        _demand(found == expected and is_usual, "an SVR's arrays do not belong together")
    elif name == "DMLS2RRegressor" and hasattr(value, "networks_"):
        value._x_labeled, value._y_labeled = (
            part.to(value._device) for part in (value._x_labeled, value._y_labeled)
        )
        value.networks_ = [network.to(value._device) for network in value.networks_]


def _values(column: pd.Series | pd.Index) -> np.ndarray:
    array = column.to_numpy()
    return array if _DTYPE.fullmatch(array.dtype.str) else np.asarray(column.astype(object), dtype=object)


def _unpack_float(unpacker: Unpacker, content: str) -> float:
    _demand(content in ("nan", "inf", "-inf"), f"there is no number {content!r}")
    return float(content)


def _unpack_device(unpacker: Unpacker, content: str) -> torch.device:
    return torch.device("cuda" if content == "cuda" and torch.cuda.is_available() else "cpu")


# What is made anew from the rest, when an object is unpacked.
_REBUILT = {
    "KNeighborsRegressor": (
        "_tree", "_fit_method", "effective_metric_", "effective_metric_params_", "n_samples_fit_",
    ),
}  # fmt: skip
_PACKERS: dict[str, tuple[Any, Callable[[Packer, Any, str], Any]]] = {
    "scalar": (np.generic, lambda self, value, where: [value.dtype.str, self.pack(value.item(), where)]),
    "float": (float, lambda self, value, where: repr(float(value))),
    "tuple": (tuple, Packer._pack_all),
    "dict": (dict, Packer._pack_dict),
    "slice": (slice, lambda self, value, where: [value.start, value.stop, value.step]),
    "dtype": (np.dtype, lambda self, value, where: value.str),
    "array": (np.ndarray, Packer._pack_array),
    "index": (pd.Index, Packer._pack_index),
    "series": (pd.Series, Packer._pack_series),
    "frame": (pd.DataFrame, Packer._pack_frame),
    "tensor": (Tensor, Packer._pack_tensor),
    "device": (torch.device, lambda self, value, where: value.type),
    "module": (nn.Module, Packer._pack_module),
    "tree": (Tree, Packer._pack_tree),
}
_UNPACKERS: dict[str, Callable[[Unpacker, Any], Any]] = {
    "scalar": lambda self, content: _dtype(content[0]).type(self.unpack(content[1])),
    "float": _unpack_float,
    "tuple": lambda self, content: tuple(map(self.unpack, content)),
    "dict": lambda self, content: {self.unpack(key): self.unpack(part) for key, part in content},
    "slice": lambda self, content: slice(*map(self.unpack, content)),
    "dtype": lambda self, content: _dtype(content),
    "array": Unpacker._unpack_array,
    "index": Unpacker._unpack_index,
    "series": Unpacker._unpack_series,
    "frame": Unpacker._unpack_frame,
    "tensor": Unpacker._unpack_tensor,
    "device": _unpack_device,
    "module": Unpacker._unpack_module,
    "tree": Unpacker._unpack_tree,
}
