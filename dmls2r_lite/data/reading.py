"""From a file of any dialect to a frame, and how it was understood."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from ..foundation.parameters import check_rules, demand, did_you_mean, shown
from .dialect import Source, name_columns, parse
from .noticing import enumerate_names, shorten
from .recognising import DECIMALS, KINDS, WITH_NA, recognise
from .unpacking import decode, split_sheet, unpack

MAX_LISTED = 50  # columns in a message


@dataclass(frozen=True, kw_only=True)
class Reading(Source):
    """A table, and how it was understood.

    Attributes
    ----------
    table : pandas.DataFrame of shape (n_rows, n_columns)
        Its columns are float, bool, datetime64, timedelta64 or text; its index counts the file's rows, the
        first being 0.
    columns : pandas.DataFrame of shape (n_columns, 5)
        A row per column of the table: `taken_for` (number, category, text, truth, date or time), `rule`
        (how it was understood), `written` (its first values as in the file), `read` (the same as
        read), `guessed` (whether the file leaves open what was assumed, and it could change numbers).
    marked : dict of (str, str) to pandas.Series of int
        By what `missing_values` names, "" for all columns, and value: how often each column had it.
    cells, lines, separator, assumed, missing
        See `Source`; the index of `cells` is that of `table`, with rows that are left out there.
    """

    table: pd.DataFrame
    columns: pd.DataFrame
    marked: dict[tuple[str, str], pd.Series]

    def lines_of(self, rows: pd.Index) -> np.ndarray:
        """The line of each of some rows, which are named by the index of `table`."""
        return np.array(self.lines)[rows]


def read(
    path: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    column_types: str | Mapping[str, str] | None = None,
    missing_values: str = "",
    min_rows: int = 3,
    target: str = "",
) -> Reading:
    """Read a table from a CSV file of any dialect, a Parquet file or a sheet, and say how it was understood.

    Separator (comma, semicolon, tab, bar, spaces), decimal mark, thousands mark, quotes and encoding of a
    CSV file are found out, for the whole file; where they leave open which number is meant, it is refused.
    Empty cells and ?, -, ., NA and the like are missing values. Codes with leading zeros, identifiers of
    more than 15 digits and codes with a point (1.9, 1.10) stay texts. Columns of dates or times of day are
    recognised; where day and month could be either, another column of the file decides, or the day comes
    first, and `columns` says so. Rows without any value are left out, and so is a column without a name
    that only counts the rows.

    Parameters
    ----------
    path : str or Path
        Ends in .csv, .tsv, .txt, .dat, .data or .parquet, perhaps with .gz, .bz2, .xz or .zip after it, or
        in .xlsx (which needs the extra ``excel``). ``file.xlsx::name`` is one of several sheets.
    drop_columns : str or sequence of str, default=()
        Columns to leave out, before they are checked: names, in a text separated by commas, or patterns
        like ``lab_*``.
    column_types : str or mapping of str to str, optional
        What columns hold, whatever they look like: number, category, text, date (or: day first, month
        first) or time; as a text ``gen=category, when=date``. Of a number it says too that a mark which may
        be one of decimals is; decimal point, decimal comma: if it is that one; number of any mark: no. In a
        category with NA that is a text; in one that is said to be a category or text it is missing.
    missing_values : str, default=""
        What stands for a missing value besides, separated by commas: in all columns, or in one, as in
        ``-999; age=98,99``.
    min_rows : int, default=3
        Fewer rows are refused.
    target : str, default=""
        A column that must hold numbers, if any: its message advises nothing else.

    Returns
    -------
    Reading

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If it is not what its name says, damaged, or too large; if columns have no name or the same one; if
        a column of numbers holds something else too, infinity for example.
    """
    check_rules({"path": path, "missing_values": missing_values})
    path = Path(path)
    source = read_source(path)
    names = list(map(str, source.cells))
    kinds = check_types(path.name, column_types, names)
    cells = source.cells.drop(columns=expand_columns(path.name, drop_columns, names))
    given = split_missing(missing_values, names)
    try:
        missing = {name: source.missing.union(given.get("", ()), given.get(name, ())) for name in names}
        table, columns = recognise(cells.set_axis(source.lines), kinds, missing, target)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    unnamed = [name for name in table if str(name).startswith("Unnamed: ") and name not in kinds]
    counts = [name for name in unnamed if any(np.array_equal(table[name], cells.index + n) for n in (0, 1))]
    table = table.set_axis(cells.index).drop(columns=counts).dropna(how="all")
    wanted = f"{path} must hold {min_rows} rows or more with values below the line of names"
    demand(len(table) >= min_rows, f"{wanted}, got {len(table)}")
    table, marked = _mark_missing(table, source.cells, given)
    return Reading(**vars(source), table=table, columns=columns.drop(index=counts), marked=marked)


def read_table(
    path: Path, drop_columns: str | Sequence[str] = (), target: str | None = None, **options: Any
) -> tuple[Reading, pd.DataFrame, pd.Series]:
    """Read the table in a file and take it apart.

    For the parameters see `load_dataset`; `options` are column_types and missing_values.

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
    reading = read(path, drop_columns, target=target or "", **options)
    table = reading.table
    for (column, value), found in reading.marked.items():
        if column:
            check_column("missing_values", column, path.name, reading.cells)
        counts = found.filter(table.columns)[lambda counts: counts > 0]
        place = f"in {shorten(column)}" if column else "in the file"
        demand(found.any(), f"missing_values must occur {place}, got {value}, which does not")
        if not column and len(counts) > 1:
            times = enumerate_names(f"{shorten(name)} ({n})" for name, n in counts.items())
            for_one = f"{counts.index[0]}={value} is for one column"
            said = f"{value} stands for a missing value in {times}; {for_one}"
            reading = replace(reading, assumed=(*reading.assumed, said))
    if target is None:
        return reading, table, pd.Series(np.nan, index=table.index, name="")
    is_left_out = target in reading.cells and target not in table
    demand(not is_left_out, f"drop_columns must not name the target, got {target}")
    are_several = target not in table and "," in target and {*map(str.strip, target.split(","))} <= {*table}
    advice = "run once for each, with the others in drop_columns; in Python y may have several columns"
    demand(not are_several, f"target must name one column, got {target}: {advice}")
    check_column("target", target, path.name, table)
    y, table = table[target], table.drop(columns=target)  # a pop would leave a block for each column
    values, rule = ", ".join(map(shorten, y.dropna().unique()[:3])), reading.columns["rule"][target]
    got = f"{shorten(target)} of {path.name} holds {values}"
    got += f" ({rule.partition(';')[0]})" * ("assumed" in rule)
    demand(types.is_float_dtype(y), f"target must name a column of numbers, but {got}")
    return reading, table, y


def split_missing(given: str, columns: Iterable[str]) -> dict[str, list[str]]:
    """What stands for a missing value by column, "" for all, from a text like ``-999; age=98,99``."""
    special = sorted(filter(re.compile("[;=<>~]").search, columns), key=len, reverse=True)
    known = "|".join(map(re.escape, special)) or "(?!)"
    found: dict[str, list[str]] = {}
    for column, values in re.findall(rf"\s*(?:({known}|[^;=<>~]+?)\s*=)?([^;]*)(?:;|\Z)", given):
        found.setdefault(column, []).extend(filter(None, map(str.strip, values.split(","))))
    return found


def _mark_missing(
    table: pd.DataFrame, cells: pd.DataFrame, given: Mapping[str, list[str]]
) -> tuple[pd.DataFrame, dict[tuple[str, str], pd.Series]]:
    """A table without what is `given` as missing, however written, and how often that occurs."""
    marked, pairs = {}, [(name, value) for name, values in given.items() for value in values]
    for name, value in pairs:
        number = float(pd.to_numeric(value, errors="coerce"))
        near = (table.select_dtypes("float") - number).abs() <= 1e-12 * abs(number)
        date = pd.to_datetime(value, errors="coerce", format="%Y-%m-%d")
        days = table.select_dtypes("datetime").apply(lambda column: column.dt.normalize())
        stands = (near & np.isfinite(number)).join(days == date)
        has_text = [[str(cell).strip() == value for cell in cells[place].tolist()] for place in cells]
        where = stands.reindex_like(cells).eq(True) | np.column_stack(has_text)
        where = where.filter([name]) if name else where
        marked[name, value] = where.sum()
        table = table.mask(where.reindex_like(table).eq(True))
    return table, marked


def read_source(path: str | Path) -> Source:
    """What is written in the file of a table, as it is written there: for the errors see `read`."""
    file, sheet = split_sheet(path)
    try:
        name, content = unpack(file)
        if name.endswith(".xlsx"):
            return _read_sheet(file.name, content, sheet)
        return _read_parquet(content) if name.endswith(".parquet") else parse(*decode(content))
    except ValueError as error:
        raise ValueError(f"{file} {error}") from error


def check_column(parameter: str, column: str, name: str, columns: Iterable[object]) -> None:
    """Raise ValueError if a table of that name has no such column."""
    columns = list(map(str, columns))
    if not column or column not in columns:
        listed = ", ".join(map(shorten, columns[:MAX_LISTED])) + ", ..." * (len(columns) > MAX_LISTED)
        got = f"{repr(column) if column else 'nothing'}{did_you_mean(column, columns)}"
        raise ValueError(f"{parameter} must name a column of {name} ({listed}), got {got}")


def expand_columns(name: str, given: str | Sequence[str], columns: Sequence[str]) -> list[str]:
    """Names of columns from a list, or a text that separates them by commas, of names and patterns.

    A name that holds commas, or looks like a pattern, is found as it is.

    Raises
    ------
    ValueError
        If a table of that name lacks a column that is to be left out.
    """
    is_list = isinstance(given, Sequence | pd.Index) and not isinstance(given, bytes)
    demand(is_list, f"drop_columns must be a string or a sequence of strings, got {shown(given)}")
    if isinstance(given, str):
        with_commas = sorted(filter(re.compile(",").search, columns), key=len, reverse=True)
        known = "|".join(map(re.escape, with_commas)) or "(?!)"
        given = list(filter(None, re.findall(rf"\s*({known}|[^,]*?)\s*(?:,|\Z)", given)))
    found: list[str] = []
    for part in given:
        matching = [part] if part in columns else [c for c in columns if fnmatchcase(c, str(part))]
        if not matching:
            check_column("drop_columns", part, name, columns)
        found += matching
    return list(dict.fromkeys(found))


def check_types(name: str, given: str | Mapping[str, str] | None, columns: Sequence[str]) -> dict[str, str]:
    """Kinds of columns by name, from a text like ``gen=category, zip=text`` or a mapping.

    Raises
    ------
    ValueError
        If a table of that name has no such column, or there is no such kind.
    """
    is_given = isinstance(given, str | Mapping | None)
    demand(is_given, f"column_types must be a string, a mapping or None, got {shown(given)}")
    if isinstance(given, str):
        given = dict(re.findall(r"\s*(.+?)\s*(?:=\s*([^=,]*?)\s*(?:,|$)|$)", given.strip(), re.S))
    for column, kind in (given or {}).items():
        wanted = f"column_types must give a column one of {', '.join(KINDS)}, as in 'zip=text, when=date'"
        demand(kind in (*KINDS, *DECIMALS, WITH_NA), f"{wanted}, got {column}={kind}")
        check_column("column_types", column, name, columns)
    return dict(given or {})


def _read_parquet(content: bytes) -> Source:
    try:
        table = pd.read_parquet(io.BytesIO(content), dtype_backend="numpy_nullable")  # no integer is rounded
    except Exception as error:  # pyarrow raises many kinds
        raise ValueError(f"is not a Parquet file, or damaged: {error}") from error
    counts = table.index.names == [None] and types.is_numeric_dtype(table.index)
    index_names = ["" if name is None else name for name in table.index.names]
    table = table.reset_index(names=index_names, drop=counts, allow_duplicates=True)
    cells = name_columns([str(name).strip() for name in table], table, are_certain=True)
    return Source(cells, list(range(1, len(table) + 1)), ",", (), frozenset([""]))  # it knows missing values


def _read_sheet(file_name: str, content: bytes, sheet: str) -> Source:
    options: dict[str, Any] = {"header": None, "dtype": object, "keep_default_na": False, "na_values": [""]}
    try:
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, engine="calamine", **options)
    except ImportError as error:
        raise ValueError("needs one more package: pip install 'dmls2r-lite[excel]'") from error
    except Exception as error:  # calamine raises kinds of its own
        raise ValueError(f"is not an Excel file, or damaged: {error}") from error
    filled = [name for name, cells in sheets.items() if cells.notna().any(axis=None)]
    if sheet not in filled and (sheet or len(filled) != 1):
        raise ValueError(
            f"must be given with the name of one of its sheets ({', '.join(filled) or 'all are empty'}), as "
            f"in '{file_name}::{next(iter(filled), 'name')}', got {sheet or 'none'}"
        )
    name = sheet or filled[0]
    cells = sheets[name].dropna(how="all").dropna(how="all", axis=1)
    names = ["" if pd.isna(cell) else str(cell).strip() for cell in cells.iloc[0]]
    others = f" of {len(sheets)}" if len(sheets) > 1 else ""
    below, lines = cells.iloc[1:].reset_index(drop=True), [row + 1 for row in cells.index[1:]]
    return Source(name_columns(names, below), lines, ",", (f"sheet {name}{others} is read",))
