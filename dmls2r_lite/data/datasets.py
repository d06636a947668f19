"""Datasets by name and tables by path, ready to be split."""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from ..foundation.parameters import check_rules, did_you_mean
from .catalog import DATASETS, SENTINEL
from .noticing import Notice, enumerate_names, find_notices, shorten
from .preparing import describe_columns
from .reading import Reading, expand_columns, read, read_table, table_name

MIN_LABELS = 5  # below, there is nothing to estimate an error from
MAX_LISTED = 50  # columns in a message


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
    notices : tuple of Notice, default=()
        What may be wrong with the table, see `find_notices`.
    reading : Reading, optional
        How a file was understood.
    missing_values : str, default=""
        What was taken for missing besides what `read_table` takes.
    groups : pandas.Series of shape (n_samples,), optional
        Which rows belong together.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    unit: str
    source: str
    note: str
    n_unlabeled: int = 200
    columns: pd.DataFrame | None = None
    notices: tuple[Notice, ...] = ()
    reading: Reading | None = None
    missing_values: str = ""
    groups: pd.Series | None = None

    @property
    def target_label(self) -> str:
        """The target with its unit, for axes and tables."""
        name = str(self.target.name)
        return name if self.unit == _own_unit(name) else f"{name} [{self.unit}]"

    @property
    def doubts(self) -> list[str]:
        """What was guessed of a file, and what may be wrong with it, in sentences."""
        guessed = [] if self.reading is None else tell_reading(self.reading)
        return guessed + [notice.text for notice in self.notices]

    @property
    def column_types(self) -> dict[str, str]:
        """How another file is to be read for the same features; empty for what was not read from one."""
        return {} if self.reading is None else same_types(self.reading, self.features)

    def with_known_targets(self) -> Dataset:
        """The samples whose target is known."""
        known = self.target.notna()
        if known.all():
            return self
        features, target = self.features[known], self.target[known]
        groups = None if self.groups is None else self.groups[known]
        n_unlabeled = _usual_n_unlabeled(target)
        return replace(self, features=features, target=target, n_unlabeled=n_unlabeled, groups=groups)


def load_dataset(
    name: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    target: str | None = None,
    column_types: str | Mapping[str, str] | None = None,
    missing_values: str = "",
    missing: Literal["drop", "as_published"] = "drop",
    data_dir: str | Path | None = None,
) -> Dataset:
    """Load a dataset by name, or a table from a file.

    Parameters
    ----------
    name : str or Path
        One of `DATASETS`, or the path of a file that `read_table` can read.
    drop_columns : str or sequence of str, default=()
        Features to leave out, see `read_table`.
    target : str, optional
        Column to estimate: needed for a file; of a dataset another one than its own. It may be empty in
        some rows: these are the unlabeled ones.
    column_types : str or mapping, optional
        Of a file, what columns hold, see `read_table`.
    missing_values : str, default=""
        Of a file, numbers, dates and texts that stand for a missing value, separated by commas.
    missing : {"drop", "as_published"}, default="drop"
        Of air_quality: read -200 as missing, or keep it as the number that it is, in features and target,
        as the paper's Table 4 seems to.
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
        If columns of a file are left out, filled in or look like identifiers; if something was guessed
        that could change numbers; and what `find_notices` finds.

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
                f"dataset must be one of {', '.join(DATASETS)} or the path of a file, got {shorten(name)!r}"
                f"{did_you_mean(name, DATASETS)}"
            )
        return _load_file(Path(name), drop_columns, target, column_types, missing_values)
    for parameter, value in {"column_types": column_types, "missing_values": missing_values}.items():
        if value:
            raise ValueError(f"{parameter} must be left out for {name}, which is no file; got {value!r}")
    table = known.load(data_dir)
    target = target or known.target
    check_column("target", target, str(name), table)
    note = known.note
    if name == "air_quality" and missing == "drop":
        table = table.mask(table == SENTINEL)
        note += " It is read as missing here, and filled in by the split."
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
    missing_values: str,
) -> Dataset:
    if not target:
        names = ", ".join(map(shorten, read_table(path).columns))
        raise ValueError(f"target must name a column of {path.name} ({names}), got nothing")
    reading = read(path, drop_columns, column_types=column_types, missing_values=missing_values)
    table = mark_missing(reading, missing_values, must_occur=True)
    if target in reading.cells and target not in table:
        raise ValueError(f"drop_columns must not name the target, got {target}")
    check_column("target", target, path.name, table)
    y = table.pop(target)
    _check_numbers(y, path.name)
    described = describe_columns(table, y)
    left_out = described.index[described["treatment"].str.startswith("left out")]
    told = tell_columns(described)
    if len(left_out) == table.shape[1]:
        raise ValueError(
            f"{path.name} must have a column that can be used besides the target, "
            f"got {'; '.join(told) or 'none'}"
        )
    notices = tuple(find_notices(table, y, described))
    parts = {"How the file was read": tell_reading(reading), "What was done to columns": told}
    if doubts := [*itertools.chain(*parts.values()), *(notice.text for notice in notices)]:
        warnings.warn(f"{path.name}: " + "; ".join(doubts), stacklevel=3)
    note = [f"{len(y)} rows, {int(y.isna().sum())} of them without a target."]
    note += [f"{heading}: {'; '.join(texts)}." for heading, texts in parts.items() if texts]
    return Dataset(
        table_name(path),
        table.drop(columns=left_out),
        y,
        _own_unit(target),
        path.name,
        " ".join(note),
        _usual_n_unlabeled(y),
        described,
        notices,
        reading,
        missing_values,
    )


def mark_missing(reading: Reading, missing_values: str, must_occur: bool = False) -> pd.DataFrame:
    """The table of a file without numbers and dates that stand for a missing value, however written.

    Parameters
    ----------
    reading : Reading
        For which texts that are just so have been taken for missing.
    missing_values : str
        Numbers (with a point), dates (as 1900-01-01) or texts, separated by commas.
    must_occur : bool, default=False
        Whether each of them must be in the file.

    Raises
    ------
    ValueError
        If one is not.
    """
    table = reading.table.copy()
    for value in filter(None, map(str.strip, missing_values.split(","))):
        found = {column: _equals(table[column], value) for column in table}
        is_there = any(is_it.any() for is_it in found.values())
        if must_occur and not is_there and not (reading.cells.astype(str) == value).any(axis=None):
            raise ValueError(f"missing_values must occur in the file, got {value}, which does not")
        table = table.assign(**{str(c): table[c].mask(is_it) for c, is_it in found.items() if is_it.any()})
    return table


def _equals(column: pd.Series, value: str) -> pd.Series:
    if types.is_datetime64_any_dtype(column):
        return column == pd.to_datetime(value, errors="coerce", format="%Y-%m-%d")
    number = float(pd.to_numeric(value, errors="coerce")) if types.is_float_dtype(column) else np.nan
    is_it = np.isclose(column, number, rtol=1e-12, atol=0) if np.isfinite(number) else False
    return pd.Series(is_it, index=column.index)


def _check_numbers(y: pd.Series, name: str) -> None:
    """Raise ValueError unless a target holds different numbers."""
    if not types.is_float_dtype(y):
        values = ", ".join(map(shorten, y.dropna().unique()[:3]))
        raise ValueError(
            f"target must name a column of numbers, but {shorten(y.name)} of {name} holds {values}"
        )
    n_known = int(y.notna().sum())
    if n_known < 2:
        raise ValueError(
            f"target must have a value in {MIN_LABELS} rows or more, but {shorten(y.name)} has {n_known}; "
            "dmls2r choose says which rows to label"
        )
    if y.min() == y.max():
        raise ValueError(
            f"target must have different values, but {shorten(y.name)} is {y.dropna().iloc[0]:g} in all "
            f"{n_known} rows that have one"
        )


def tell_reading(reading: Reading) -> list[str]:
    """What was guessed of a file and could change numbers, in sentences."""
    guessed = reading.columns.loc[reading.columns["guessed"].astype(bool), "rule"]
    return [*reading.assumed, *_gather(guessed.items())]


def same_types(reading: Reading, columns: Iterable[object]) -> dict[str, str]:
    """The `column_types` by which another file is read as this one was."""
    types_ = {}
    for name in map(str, columns):
        kind, rule = map(str, reading.columns.loc[name, ["taken_for", "rule"]])
        order = re.match("dates, ((day|month) first)", rule)
        types_[name] = order[1] if order else {"truth": "category"}.get(kind, kind)
    return types_


def tell_columns(described: pd.DataFrame) -> list[str]:
    """What is done to columns that are not just kept, in sentences."""
    told = {}
    for column, row in described.iterrows():
        parts = [row["treatment"]] if re.search("left out|missing", row["treatment"]) else []
        told[column] = ", ".join(parts + ([row["warning"]] if row["warning"] else []))
    return _gather((column, text) for column, text in told.items() if text)


def _gather(told: Iterable[tuple[Any, str]]) -> list[str]:
    """The same sentence on many columns as one."""
    columns: dict[str, list[object]] = {}
    for column, text in told:
        columns.setdefault(text, []).append(column)
    return [f"{enumerate_names(names)}: {text}" for text, names in columns.items()]


def _own_unit(target: str) -> str:
    """What to call the unit of a column that nobody has told us."""
    if len(target) > 12 or "$" in target:  # matplotlib takes what stands between two $ for mathematics
        return "units of the target"
    return f"units of {target}"


def _usual_n_unlabeled(target: pd.Series) -> int:
    """All without a target, but not more than the paper has at most; else two fifths, as for Boston."""
    n_empty = int(target.isna().sum())
    return min(n_empty, 1000) if n_empty else max(1, min(2 * len(target) // 5, 1000))


def check_column(parameter: str, column: str, name: str, columns: Iterable[object]) -> None:
    """Raise ValueError if a table of that name has no such column."""
    columns = list(map(str, columns))
    if column not in columns:
        listed = ", ".join(map(shorten, columns[:MAX_LISTED])) + ", ..." * (len(columns) > MAX_LISTED)
        raise ValueError(
            f"{parameter} must name a column of {name} ({listed}), got {column!r}"
            f"{did_you_mean(column, columns)}"
        )


def _drop_columns(name: str, features: pd.DataFrame, drop_columns: str | Sequence[str]) -> pd.DataFrame:
    left_out = expand_columns(name, drop_columns, list(map(str, features)))
    if len(left_out) == features.shape[1]:
        raise ValueError("drop_columns must leave at least one column, got all of them")
    return features.drop(columns=left_out)
