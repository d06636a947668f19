"""From cells to columns of numbers, dates, times and texts, and how each was understood."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api import types

from ..foundation.parameters import did_you_mean
from .columns import MISSING, TRUTH, Column
from .dates import show_time, without_zone
from .numerals import PLAIN, Marks, decide_marks, may_have_groups

KINDS = ("number", "category", "text", "date", "time")
ORDERS = ("day first", "month first")  # of dates: kinds too


def check_types(name: str, given: str | Mapping[str, str] | None, columns: Sequence[str]) -> dict[str, str]:
    """Kinds of columns by name, from a text like ``gen=category, zip=text`` or a mapping.

    Raises
    ------
    ValueError
        If a table of that name has no such column, or there is no such kind.
    """
    if isinstance(given, str):
        kinds = "|".join((*KINDS, *ORDERS))
        pairs = re.findall(rf"\s*(.+?)\s*=\s*({kinds})\s*(?:,|$)", given)
        rest = re.sub(rf"\s*(.+?)\s*=\s*({kinds})\s*(?:,|$)", "", given).strip()
        named = [
            *pairs,
            *(map(str.strip, part.rpartition("=")[::2]) for part in rest.split(",") if part.strip()),
        ]
        given = dict(named)
    given = dict(given or {})
    for column, kind in given.items():
        if kind not in (*KINDS, *ORDERS):
            raise ValueError(
                f"column_types must give a column one of {', '.join(KINDS)}, as in 'zip=text, when=date', "
                f"got {column}={kind}"
            )
        if column not in columns:
            raise ValueError(
                f"column_types must name columns of {name} ({', '.join(columns)}), "
                f"got {column}{did_you_mean(column, columns)}"
            )
    return given


def recognise(
    path: Path, cells: pd.DataFrame, kinds: Mapping[str, str], missing: frozenset[str] = MISSING
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns of a frame as float, bool, datetime64, timedelta64 or text, whichever they are.

    Parameters
    ----------
    path : Path
        For messages.
    cells : pandas.DataFrame
        Texts, or what a file with types gives.
    kinds : mapping of str to str
        What some columns are said to hold.
    missing : frozenset of str
        Texts that stand for no value.

    Returns
    -------
    table, columns : pandas.DataFrame
        See `Reading`.
    """
    known: dict[str, pd.Series] = {}
    columns: dict[str, Column] = {}
    rules: dict[str, tuple[str, str, bool]] = {}
    names = list(map(str, cells))
    for name in names:
        series = cells[name]
        typed = None if _is_text(series) else _keep_type(path, name, series, kinds.get(name))
        if typed is not None:
            known[name], rules[name] = typed
        else:
            texts = series if _is_text(series) else _as_texts(path, name, series)
            columns[name] = Column.of(path, texts, missing)
            columns[name].kind = kinds.get(name, "")
            columns[name].find_kind()
    numbers = {name: column for name, column in columns.items() if column.kind == "number"}
    marks = _decide_marks(path, numbers, [name for name in numbers if kinds.get(name) == "number"])
    _decide_orders([column for column in columns.values() if column.dates])
    for name, column in columns.items():
        known[name] = _convert(column, marks)
        told = [column.rule, f"{', '.join(column.marks)} for missing"] if column.marks else [column.rule]
        rules[name] = (column.kind, "; ".join(told), column.guessed)
    table = pd.DataFrame({name: known[name] for name in names}, index=cells.index)
    rows = [(*rules[name][:2], *_first_values(cells[name], table[name]), rules[name][2]) for name in names]
    index = pd.Index(names, name="column")
    return table, pd.DataFrame(rows, index=index, columns=["taken_for", "rule", "written", "read", "guessed"])


def _is_text(series: pd.Series) -> bool:
    if series.dtype == object:
        return all(isinstance(value, str) for value in series)
    return types.is_string_dtype(series.dtype) and not isinstance(series.dtype, pd.CategoricalDtype)


def _as_texts(path: Path, name: str, series: pd.Series) -> pd.Series:
    """A column of a file with types as texts: whole numbers without a point."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    known = series.dropna()
    if known.map(lambda value: isinstance(value, (list, dict, np.ndarray, bytes))).any():
        raise ValueError(f"{path}: column {name!r} must hold one value per cell, got {known.iloc[0]!r}")
    whole = types.is_float_dtype(series) and (known % 1 == 0).all()
    return (known.astype("int64") if whole else known).astype(str).astype(object).reindex(series.index)


def _keep_type(
    path: Path, name: str, series: pd.Series, kind: str | None
) -> tuple[pd.Series, tuple[str, str, bool]] | None:
    """The column of a file with types, unless it is to be read from texts."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if series.dtype == object:
        series = _infer_type(series)
    if types.is_bool_dtype(series) and kind in (None, "category"):
        if series.notna().all():
            return series.astype(bool), ("truth", "true or false, as in the file", False)
        return None
    if types.is_numeric_dtype(series) and kind in (None, "number"):
        if kind is None and types.is_integer_dtype(series) and series.abs().max() > 2**53:
            return None  # identifiers that a float would merge
        values = series.astype(float)
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(
                f"{path}: column {name!r} must be finite, got {values.iloc[row]} in row {row + 1}"
            )
        return values, ("number", "numbers, as in the file", False)
    if types.is_datetime64_any_dtype(series) and kind in (None, "date"):
        return without_zone(series), ("date", "dates, as in the file", False)
    if types.is_timedelta64_dtype(series) and kind in (None, "time"):
        return series, ("time", "times, as in the file", False)
    return None


def _infer_type(series: pd.Series) -> pd.Series:
    """Objects of one kind, as from a spreadsheet, get the type of that kind."""
    known = series.dropna()
    kind = types.infer_dtype(known)
    if kind in ("integer", "floating", "mixed-integer-float"):
        return series.astype(float)
    if kind in ("datetime", "datetime64"):
        return pd.to_datetime(series)
    if kind == "time":
        return pd.to_timedelta(series.map(str, na_action="ignore"))
    if kind in ("timedelta", "timedelta64"):
        return pd.to_timedelta(series)
    return series


def _decide_marks(path: Path, numbers: Mapping[str, Column], settled: Sequence[str]) -> Marks:
    try:
        return decide_marks({name: column.shapes for name, column in numbers.items()}, settled)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _decide_orders(columns: Sequence[Column]) -> None:
    """Leave one reading of the dates of each column, and say by which rule.

    Where a column leaves open whether day or month comes first, others with the same mark between them
    may show it; else it is the day.
    """
    shown: dict[str, dict[str, str]] = {}  # by mark and order, in which column
    for column in columns:
        (order, *others) = column.dates
        if not others and order in ("day first", "month first"):
            shown.setdefault(_mark(column), {}).setdefault(order, column.name)
    for column in columns:
        (order, *others) = column.dates
        column.rule = f"dates, {order}" if order != "year first" else "dates"
        if not others:
            continue
        if column.dates["day first"].equals(column.dates["month first"]):
            column.rule = "dates, day and month are the same in all"
        elif len(of_mark := shown.get(_mark(column), {})) == 1:
            (order,) = of_mark
            column.rule, column.guessed = f"dates, {order} (assumed: as in column {of_mark[order]})", True
        else:
            column.rule, column.guessed = "dates, day first (assumed: no date shows it)", True
        column.dates = {order: column.dates[order]}


def _mark(column: Column) -> str:
    return next(char for char in column.texts[0] if not char.isdigit())


def _convert(column: Column, marks: Marks) -> pd.Series:
    if column.kind == "number":
        return _to_numbers(column, marks)
    if column.kind == "truth":
        return column.spread([TRUTH[text] for text in column.texts], bool)
    if column.kind == "date":
        (dates,) = column.dates.values() or (pd.Series(dtype="datetime64[us]"),)
        return column.spread(dates.to_numpy(), dates.dtype)
    if column.kind == "time":
        times = pd.Series(dtype="timedelta64[us]") if column.times is None else column.times
        return column.spread(times.to_numpy(), times.dtype)
    return column.spread(column.texts, object)


def _to_numbers(column: Column, marks: Marks) -> pd.Series:
    settled = "column_types" in column.rule
    is_ascii = all(map(str.isascii, column.texts))
    if marks == PLAIN and is_ascii:
        values = np.array(column.texts, dtype=object).astype(float)
    else:
        values = np.array([marks.to_float(text) for text in column.texts])
    if not np.isfinite(values).all():
        text = column.texts[int(np.flatnonzero(~np.isfinite(values))[0])]
        raise ValueError(
            f"{column.path}: column {column.name!r} must be finite, got {text} in row {column.row_of(text)}"
        )
    said = [column.rule or "numbers"]
    if marks.decimal == "," and any("," in shaped for shaped in column.shapes):
        said.append("decimal comma")
    if marks.thousands and any(marks.thousands in shaped for shaped in column.shapes):
        said.append(f"{marks.thousands!r} between thousands")
    if may_have_groups(column.shapes) and not marks.thousands and not settled:
        said.append(f"{marks.decimal!r} before decimals (assumed: as in other columns)")
        column.guessed = True
    if not is_ascii:
        said.append("digits of another script")
    if len(set(values)) < len(values) and (same := _written_twice(column.texts, values)):
        said.append(f"{same[0]} is the same as {same[1]} (assumed: no codes)")
        column.guessed = not settled
    column.rule = ", ".join(said)
    return column.spread(values, float)


def _written_twice(texts: Sequence[str], values: np.ndarray) -> tuple[str, str] | None:
    """Two texts of one number, the longer with two decimals or more, which end in zeros: 2.10 and 2.1."""
    first: dict[float, str] = {}
    for text, value in zip(texts, values, strict=True):
        short, long = sorted((first.setdefault(value, text), text), key=len)
        if re.fullmatch(r".*[.,]\d+0", long) and re.search(r"[.,]\d", short) and len(short) < len(long):
            return long, short
    return None


def _first_values(cells: pd.Series, read: pd.Series) -> tuple[str, str]:
    """The first different values as written and as read."""
    first = read.dropna().drop_duplicates()[:3]
    return " | ".join(cells.loc[first.index].map(_show)), " | ".join(first.map(_show))


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, pd.Timestamp):
        return value.isoformat(sep=" ").removesuffix(" 00:00:00")
    if isinstance(value, pd.Timedelta):
        return show_time(value)
    return str(value).strip()
