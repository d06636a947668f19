"""Datasets by name and tables by path, ready to be split."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pandas as pd
from pandas.api import types

from ..parameters import check_rules
from .catalog import DATASETS, SENTINEL
from .preparing import describe_columns
from .reading import expand_columns, read, table_name


@dataclass(frozen=True)
class Dataset:
    """A table with a numeric target.

    Attributes
    ----------
    name : str
    features : pandas.DataFrame of shape (n_samples, n_features)
        Numbers, or whatever `make_preprocessor` can turn into numbers.
    target : pandas.Series of shape (n_samples,)
        NaN where it is not known.
    unit : str
        Of the target.
    source : str
    note : str
        What a user should know before using it.
    n_unlabeled : int
        How many unlabeled samples the paper has, or what else is usual with this dataset.
    columns : pandas.DataFrame, optional
        What the columns hold and what is done with them, see `describe_columns`.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    unit: str
    source: str
    note: str
    n_unlabeled: int = 200
    columns: pd.DataFrame | None = None

    @property
    def target_label(self) -> str:
        """The target with its unit, for axes and tables."""
        name = str(self.target.name)
        return name if self.unit == _own_unit(name) else f"{name} [{self.unit}]"

    def with_known_targets(self) -> Dataset:
        """The samples whose target is known."""
        known = self.target.notna()
        if known.all():
            return self
        features, target = self.features[known], self.target[known]
        return replace(self, features=features, target=target, n_unlabeled=_usual_n_unlabeled(target))


def load_dataset(
    name: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    target: str | None = None,
    column_types: str | Mapping[str, str] | None = None,
    missing: Literal["drop", "as_published"] = "drop",
    data_dir: str | Path | None = None,
) -> Dataset:
    """Load a dataset by name, or a table from a file.

    Parameters
    ----------
    name : str or Path
        One of `DATASETS`, or the path of a file that `read_table` can read.
    drop_columns : str or sequence of str, default=()
        Features to leave out: names, in a text separated by commas, or patterns like ``lab_*``.
    target : str, optional
        Column to estimate: needed for a file; of a dataset another one than its own. In a file it may
        be empty in some rows: these are the unlabeled ones.
    column_types : str or mapping of str to str, optional
        What columns of a file hold, see `read`.
    missing : {"drop", "as_published"}, default="drop"
        Of air_quality: read -200 as missing and drop rows without target, or keep it as the number
        that it is, in features and target, as the paper's Table 4 seems to.
    data_dir : str or Path, optional
        Where to look for superconductivity and air_quality, as zip files from UCI or unpacked. After
        it come the folder named in the environment variable DMLS2R_DATA, the user's cache, and a
        download.

    Returns
    -------
    Dataset

    Warns
    -----
    UserWarning
        If columns of a file are left out, filled in or look like identifiers.

    Raises
    ------
    ValueError
        If there is no such dataset or column, or a file does not hold such a table.
    OSError
        If a file is missing, may not be read or cannot be downloaded.
    """
    check_rules({"missing": missing})
    known = DATASETS.get(str(name))
    if known is None:
        if not is_path(name):
            raise ValueError(
                f"dataset must be one of {', '.join(DATASETS)} or the path of a file, got {str(name)!r}"
            )
        return _load_file(Path(name), drop_columns, target, column_types)
    if column_types:
        raise ValueError(f"column_types is for tables from a file, got it with {name}")
    table = known.load(data_dir)
    target = target or known.target
    _check_target(str(name), table, target)
    note = known.note
    if name == "air_quality" and missing == "drop":
        table = table.mask(table == SENTINEL).dropna(subset=target)
        note += (
            " Rows without a target are left out here, and other missing values are filled in by the split."
        )
    elif name == "air_quality":
        note += " Here it is kept as a number, in features and target, as the paper's Table 4 seems to."
    unit = known.unit if target == known.target else known.units.get(target, _own_unit(target))
    y = table.pop(target)
    features = _drop_columns(str(name), table, drop_columns)
    described = describe_columns(features)
    return Dataset(str(name), features, y, unit, known.source, note, known.n_unlabeled, described)


def is_path(name: str | Path) -> bool:
    """Whether a name that is not a dataset's is meant as a path."""
    return (
        isinstance(name, Path) or bool(re.search(r"[./\\]", name)) or os.path.exists(name)
    )  # which long names do not trouble


def _load_file(
    path: Path,
    drop_columns: str | Sequence[str],
    target: str | None,
    column_types: str | Mapping[str, str] | None,
) -> Dataset:
    if not target:
        names = read(path).table.columns
        raise ValueError(f"target must name a column of {path.name} ({', '.join(names)}), got nothing")
    reading = read(path, drop_columns, column_types=column_types)
    table = reading.table
    if target in reading.cells and target not in table:
        raise ValueError(f"drop_columns must not name the target, got {target}")
    _check_target(path.name, table, target)
    y = table.pop(target)
    if not types.is_float_dtype(y):
        values = ", ".join(map(str, y.dropna().unique()[:3]))
        raise ValueError(f"target must name a column of numbers, but {target} of {path.name} holds {values}")
    if y.notna().sum() < 3:
        raise ValueError(f"target must have a value in 3 rows or more, but {target} has {y.notna().sum()}")
    described = describe_columns(table)
    notices = []
    for column, row in described.iterrows():
        told = [row["treatment"]] if re.search("left out|missing", row["treatment"]) else []
        told += [row["warning"]] if row["warning"] else []
        if told:
            notices.append(f"{column}: {', '.join(told)}")
    left_out = described.index[described["treatment"].str.startswith("left out")]
    if len(left_out) == table.shape[1]:
        raise ValueError(
            f"{path.name} must have a column that can be used besides the target, "
            f"got {'; '.join(notices) or 'none'}"
        )
    if notices:
        warnings.warn(f"{path.name}: " + "; ".join(notices), stacklevel=3)
    note = f"{len(y)} rows, {int(y.isna().sum())} of them without a target."
    if notices:
        note += f" What was done to columns: {'; '.join(notices)}."
    features = table.drop(columns=left_out)
    return Dataset(
        table_name(path),
        features,
        y,
        _own_unit(target),
        path.name,
        note,
        _usual_n_unlabeled(y),
        described,
    )


def _own_unit(target: str) -> str:
    """What to call the unit of a column that nobody has told us."""
    if len(target) > 12 or "$" in target:  # matplotlib takes what stands between two $ for mathematics
        return "units of the target"
    return f"units of {target}"


def _usual_n_unlabeled(target: pd.Series) -> int:
    """All without a target, but not more than the paper has at most; else two fifths, as for Boston."""
    n_empty = int(target.isna().sum())
    return min(n_empty, 1000) if n_empty else max(1, min(2 * len(target) // 5, 1000))


def _check_target(name: str, table: pd.DataFrame, target: str) -> None:
    if target not in table:
        raise ValueError(
            f"target must name a column of {name} ({', '.join(map(str, table))}), got {target!r}"
        )


def _drop_columns(name: str, features: pd.DataFrame, drop_columns: str | Sequence[str]) -> pd.DataFrame:
    left_out = expand_columns(name, drop_columns, list(map(str, features)))
    if len(left_out) == features.shape[1]:
        raise ValueError("drop_columns must leave at least one column, got all of them")
    return features.drop(columns=left_out)
