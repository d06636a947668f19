"""The datasets that have a name: where they come from, and what is known of them unread."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

# What data needs is imported where data is loaded, so that `dmls2r datasets` is fast.

if TYPE_CHECKING:
    import pandas as pd

_FILES = resources.files(__package__).joinpath("files")


@dataclass(frozen=True)
class KnownDataset:
    """What is known about a dataset without reading it.

    Attributes
    ----------
    name : str
    n_rows, n_features : int
        After `load_dataset`.
    target, unit : str
        The target that the dataset is known for, and its unit.
    source, licence, note : str
    n_unlabeled : int
        See `Dataset`.
    units : dict
        Of other columns that may serve as the target.
    missing : dict
        What `load_dataset` does with -200, where it stands for a missing value, by its `missing`.
    """

    name: str
    n_rows: int
    n_features: int
    target: str
    unit: str
    source: str
    licence: str
    note: str
    n_unlabeled: int = 200
    units: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def load(self, data_dir: str | Path | None = None) -> pd.DataFrame:
        """The whole table, target included; files from UCI may be in `data_dir`, see `uci.find`."""
        import numpy as np
        import pandas as pd
        from sklearn import datasets

        from . import uci

        if self.name == "boston":
            with _FILES.joinpath("boston.csv").open() as file:
                return pd.read_csv(file, dtype=float)
        if self.name == "diabetes":
            bunch = datasets.load_diabetes(as_frame=True, scaled=False)
            return bunch.data.assign(progression=bunch.target)
        if self.name == "friedman":
            X, y = datasets.make_friedman1(n_samples=1500, n_features=10, noise=1.0, random_state=0)
            return pd.DataFrame(X, columns=[f"x{i}" for i in range(1, 11)]).assign(y=y)
        if self.name == "toy":
            rng = np.random.default_rng(0)
            X = pd.DataFrame(rng.uniform(-1, 1, size=(400, 2)), columns=["x1", "x2"])
            return X.assign(y=3 * X["x1"] ** 2 + 2 * X["x2"] + rng.normal(scale=0.1, size=len(X)))
        return uci.load(self.name, data_dir)


DATASETS = {
    name: KnownDataset(name, **facts)
    for name, facts in tomllib.loads(_FILES.joinpath("datasets.toml").read_text(encoding="utf-8")).items()
}
