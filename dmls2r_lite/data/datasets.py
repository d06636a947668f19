"""Datasets by name and tables by path, ready to be split."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.datasets import load_diabetes, make_friedman1

from ..foundation.parameters import check_rules, did_you_mean
from .catalog import DATASETS, FILES, fetch, find, read_content
from .noticing import Notice, enumerate_names, find_notices, shorten
from .preparing import describe_columns
from .reading import Reading, check_column, expand_columns, read
from .unpacking import is_path, table_name

MIN_LABELS = 5  # below, there is nothing to estimate an error from


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
        What was taken for missing besides what `read` takes.
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
        target, groups = self.target[known], None if self.groups is None else self.groups[known]
        n_unlabeled = _usual_n_unlabeled(target)
        return replace(
            self, features=self.features[known], target=target, n_unlabeled=n_unlabeled, groups=groups
        )


def load_dataset(
    name: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    target: str | None = None,
    column_types: str | Mapping[str, str] | None = None,
    missing_values: str = "",
    missing: Literal["drop", "as_published"] = "drop",
) -> Dataset:
    """Load a dataset by name, or a table from a file.

    The files of superconductivity and air_quality, as zip files from UCI or unpacked, are looked for in the
    folder that the environment variable DMLS2R_DATA names, then in the user's cache, and else downloaded.

    Parameters
    ----------
    name : str or Path
        One of `DATASETS`, or the path of a file that `read` can read.
    drop_columns : str or sequence of str, default=()
        Features to leave out, see `read`.
    target : str, optional
        Column to estimate: needed for a file; of a dataset another one than its own. It may be empty in
        some rows: these are the unlabeled ones.
    column_types : str or mapping, optional
        Of a file, what columns hold, see `read`.
    missing_values : str, default=""
        Of a file, numbers, dates and texts that stand for a missing value, separated by commas.
    missing : {"drop", "as_published"}, default="drop"
        Of air_quality: read -200 as missing, or keep it as the number that it is, in features and target,
        as the paper's Table 4 seems to.

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
    if str(name) not in DATASETS:
        if is_path(name):
            path = Path(name)
            parts = read_table(path, drop_columns, target or "", column_types, missing_values)
            return _of_file(path, *parts, missing_values)
        raise ValueError(
            f"dataset must be one of {', '.join(DATASETS)} or the path of a file, got {shorten(name)!r}"
            f"{did_you_mean(name, DATASETS)}"
        )
    known, name = DATASETS[str(name)], str(name)
    for parameter, value in {"column_types": column_types, "missing_values": missing_values}.items():
        if value:
            raise ValueError(f"{parameter} must be left out for {name}, which is no file; got {value!r}")
    table, note = _load_known(name), known.note
    target = target or known.target
    check_column("target", target, name, table)
    if known.missing:
        table = table.mask(table == -200) if missing == "drop" else table
        note += f" {known.missing[missing]}"
    unit = known.unit if target == known.target else known.units.get(target, _own_unit(target))
    y = table.pop(target)
    table = table.drop(columns=expand_columns(name, drop_columns, list(map(str, table))))
    if table.empty:
        raise ValueError("drop_columns must leave at least one column, got all of them")
    described = describe_columns(table)
    return Dataset(name, table, y, unit, known.source, note, known.n_unlabeled, described)


def _load_known(name: str) -> pd.DataFrame:
    """The whole table of a dataset, target included; from UCI as published.

    Of Air Quality without its blank rows and columns; `Date` becomes days since the first day, `Time` the
    hour of the day.
    """
    if name == "boston":
        return pd.read_csv(io.BytesIO(FILES.joinpath("boston.csv").read_bytes()), dtype=float)
    if name == "diabetes":
        bunch = load_diabetes(as_frame=True, scaled=False)
        return bunch.data.assign(progression=bunch.target)
    if name == "friedman":
        X, y = make_friedman1(n_samples=1500, n_features=10, noise=1.0, random_state=0)
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(1, 11)]).assign(y=y)
    if name == "toy":
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.uniform(-1, 1, size=(400, 2)), columns=["x1", "x2"])
        noise = rng.normal(scale=0.1, size=400)
        return table.assign(y=3 * table["x1"] ** 2 + 2 * table["x2"] + noise)
    content = io.BytesIO(read_content(name, find(name) or fetch(name)))
    if name == "superconductivity":
        return pd.read_csv(content, dtype=float)
    table = pd.read_csv(content, sep=";", decimal=",")
    table = table.dropna(how="all").dropna(axis=1, how="all").reset_index(drop=True)
    days = pd.to_datetime(table["Date"], format="%d/%m/%Y")
    table["Date"] = (days - days.min()).dt.days
    table["Time"] = pd.to_datetime(table["Time"], format="%H.%M.%S").dt.hour
    return table.astype(float)


def _of_file(path: Path, reading: Reading, table: pd.DataFrame, y: pd.Series, missing_values: str) -> Dataset:
    """The dataset of a table that has been read."""
    target, n_known = str(y.name), int(y.notna().sum())
    if n_known < 2:
        raise ValueError(
            f"target must have a value in {MIN_LABELS} rows or more, but {shorten(target)} has {n_known}; "
            "dmls2r choose says which rows to label"
        )
    if y.min() == y.max():
        raise ValueError(
            f"target must have different values, but {shorten(target)} is {y.min():g} in all {n_known} rows "
            "that have one"
        )
    described = describe_columns(table, y)
    left_out = described.index[described["treatment"].str.startswith("left out")]
    told = tell_columns(described)
    if len(left_out) == table.shape[1]:
        raise ValueError(
            f"{path.name} must have a column that can be used besides the target, "
            f"got {'; '.join(told) or 'none'}"
        )
    guessed, notices = tell_reading(reading), tuple(find_notices(table, y, described))
    if doubts := [*guessed, *told, *(notice.text for notice in notices)]:
        warnings.warn(f"{path.name}: " + "; ".join(doubts), stacklevel=3)
    note = f"{len(y)} rows, {int(y.isna().sum())} of them without a target."
    note += f" How the file was read: {'; '.join(guessed)}." if guessed else ""
    note += f" What was done to columns: {'; '.join(told)}." if told else ""
    name, unit, n_unlabeled = table_name(path), _own_unit(target), _usual_n_unlabeled(y)
    features = table.drop(columns=left_out)
    return Dataset(
        name, features, y, unit, path.name, note, n_unlabeled, described, notices, reading, missing_values
    )


def read_table(
    path: Path,
    drop_columns: str | Sequence[str] = (),
    target: str | None = None,
    column_types: str | Mapping[str, str] | None = None,
    missing_values: str = "",
) -> tuple[Reading, pd.DataFrame, pd.Series]:
    """Read the table in a file and take it apart, without what stands for a missing value.

    For the parameters see `load_dataset`.

    Returns
    -------
    Reading
    features : pandas.DataFrame of shape (n_rows, n_columns)
    target : pandas.Series of shape (n_rows,)
        All missing if none is given.

    Raises
    ------
    OSError, ValueError
        As `read`; and if the target is no column of numbers, or a missing value does not occur.
    """
    reading = read(path, drop_columns, column_types=column_types, missing_values=missing_values)
    table = mark_missing(reading, missing_values, must_occur=True)
    if target is None:
        return reading, table, pd.Series(np.nan, index=table.index, name="")
    if target in reading.cells and target not in table:
        raise ValueError(f"drop_columns must not name the target, got {target}")
    check_column("target", target, path.name, table)
    y = table.pop(target)
    if not types.is_float_dtype(y):
        values = ", ".join(map(shorten, y.dropna().unique()[:3]))
        raise ValueError(
            f"target must name a column of numbers, but {shorten(target)} of {path.name} holds {values}"
        )
    return reading, table, y


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
    table = reading.table.copy()  # which a caller may change
    for value in filter(None, map(str.strip, missing_values.split(","))):
        number = float(pd.to_numeric(value, errors="coerce"))
        date = pd.to_datetime(value, errors="coerce", format="%Y-%m-%d")
        stands = {
            name: np.isclose(column, number, rtol=1e-12, atol=0)
            if types.is_float_dtype(column)
            else column == date
            for name, column in table.items()
        }
        table = table.mask(pd.DataFrame(stands, index=table.index))
        is_there = any(map(np.any, stands.values())) or (reading.cells.astype(str) == value).any(axis=None)
        if must_occur and not is_there:
            raise ValueError(f"missing_values must occur in the file, got {value}, which does not")
    return table


def tell_reading(reading: Reading) -> list[str]:
    """What was guessed of a file and could change numbers, in sentences."""
    guessed = reading.columns.loc[reading.columns["guessed"].astype(bool), "rule"]
    return [*reading.assumed, *_gather(guessed)]


def same_types(reading: Reading, columns: Iterable[object]) -> dict[str, str]:
    """The `column_types` by which another file is read as this one was."""
    told = reading.columns.loc[list(map(str, columns))]
    orders = told["rule"].str.extract("^dates, ((?:day|month) first)")[0]
    kinds = orders.fillna(told["taken_for"].replace("truth", "category"))
    return dict(zip(map(str, kinds.index), kinds, strict=True))


def tell_columns(described: pd.DataFrame) -> list[str]:
    """What is done to columns that are not just kept, in sentences."""
    treatments = described["treatment"]
    told = treatments.where(treatments.str.contains("left out|missing"), "") + ", " + described["warning"]
    told = told.str.strip(", ")
    return _gather(told[told != ""])


def _gather(told: pd.Series) -> list[str]:
    """The same sentence on many columns as one."""
    return [f"{enumerate_names(same.index)}: {text}" for text, same in told.groupby(told, sort=False)]


def _own_unit(target: str) -> str:
    """What to call the unit of a column that nobody has told us."""
    # matplotlib takes what stands between two $ for mathematics
    return "units of the target" if len(target) > 12 or "$" in target else f"units of {target}"


def _usual_n_unlabeled(target: pd.Series) -> int:
    """All without a target, but not more than the paper has at most; else two fifths, as for Boston."""
    return min(int(target.isna().sum()) or max(1, 2 * len(target) // 5), 1000)
