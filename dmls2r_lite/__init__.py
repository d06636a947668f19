"""DML-S2R: semi-supervised deep metric regression with alternate learning.

The names below are loaded when they are first asked for, so that `import dmls2r_lite` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors, which complete names without running anything
    from .data import load_dataset as load_dataset
    from .data import split_dataset as split_dataset
    from .estimators import DMLS2RRegressor as DMLS2RRegressor
    from .practice.averaging import AveragedRegressor as AveragedRegressor
    from .practice.choosing import choose_rows as choose_rows
    from .practice.errors import cross_val_error as cross_val_error
    from .practice.folds import LabeledKFold as LabeledKFold
    from .practice.intervals import ConformalRegressor as ConformalRegressor
    from .practice.storing import load_model as load_model
    from .practice.storing import save_model as save_model
    from .rivals.coreg import COREGRegressor as COREGRegressor
    from .rivals.mssr import MSSRRegressor as MSSRRegressor

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
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
