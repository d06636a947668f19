"""DML-S2R: semi-supervised deep metric regression with alternate learning.

The names below are loaded when they are first asked for, so that `import dmls2r_lite` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import load_dataset, split_dataset
    from .estimators import DMLS2RRegressor
    from .rivals.coreg import COREGRegressor
    from .rivals.mssr import MSSRRegressor

__all__ = ["COREGRegressor", "DMLS2RRegressor", "MSSRRegressor", "load_dataset", "split_dataset"]

_MODULES = {
    "COREGRegressor": ".rivals.coreg",
    "DMLS2RRegressor": ".estimators",
    "MSSRRegressor": ".rivals.mssr",
    "load_dataset": ".data",
    "split_dataset": ".data",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
