"""Tables in, splits out: the only folder that knows where data comes from.

The names below are loaded when they are first asked for, so that the list of datasets costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .datasets import Dataset, Split, check_split_sizes, load_dataset, split_dataset

__all__ = ["Dataset", "Split", "check_split_sizes", "load_dataset", "split_dataset"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".datasets", __name__), name)
