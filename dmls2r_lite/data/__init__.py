"""Tables in, splits out: the only folder that knows where data comes from."""

from .datasets import Dataset, load_dataset
from .splits import Split, check_split_sizes, split_dataset

__all__ = ["Dataset", "Split", "check_split_sizes", "load_dataset", "split_dataset"]
