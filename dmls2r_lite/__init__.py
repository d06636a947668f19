"""DML-S2R: semi-supervised deep metric regression with alternate learning.

The names below are loaded when they are first asked for, so that `import dmls2r_lite` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import load_dataset, split_dataset
    from .estimators import DMLS2RRegressor
    from .practice.averaging import AveragedRegressor
    from .practice.choosing import choose_rows
    from .practice.errors import cross_val_error
    from .practice.folds import LabeledKFold
    from .practice.intervals import ConformalRegressor
    from .practice.storing import load_model, save_model
    from .rivals.coreg import COREGRegressor
    from .rivals.mssr import MSSRRegressor

__all__ = [
    "AveragedRegressor",
    "COREGRegressor",
    "ConformalRegressor",
    "DMLS2RRegressor",
    "LabeledKFold",
    "MSSRRegressor",
    "choose_rows",
    "cross_val_error",
    "load_dataset",
    "load_model",
    "save_model",
    "split_dataset",
]

_MODULES = {
    "AveragedRegressor": ".practice.averaging",
    "COREGRegressor": ".rivals.coreg",
    "ConformalRegressor": ".practice.intervals",
    "DMLS2RRegressor": ".estimators",
    "LabeledKFold": ".practice.folds",
    "MSSRRegressor": ".rivals.mssr",
    "choose_rows": ".practice.choosing",
    "cross_val_error": ".practice.errors",
    "load_dataset": ".data",
    "load_model": ".practice.storing",
    "save_model": ".practice.storing",
    "split_dataset": ".data",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
