"""From a file of any dialect to a frame."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
from pandas.api import types

MISSING = ("?", "-", ".")  # read as missing besides what pandas takes for missing
_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")
_MAGIC = {b"PK\x03\x04": "zip", b"PK\x05\x06": "zip", b"\x1f\x8b": "gzip", b"PAR1": "Parquet"}
_SEPARATORS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
_COMMA_NUMBER = re.compile(r"\s*[+-]?(\d+,\d*|,\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}([.,]\d{3})+\s*")
_DECORATED_NUMBER = re.compile(r"\s*[-+−$€£]?\s*\d[\d.,'’\s]*\s*[%$€£]?\s*")  # thousands, units, ...
_DATE = re.compile(
    r"(\d{4}-\d{2}|\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))"
    r"([T ]\d{1,2}[:.]\d{2}\S*)?"
)
_TIME = re.compile(r"\d{1,3}:[0-5]\d(:[0-5]\d)?")
DAY_FIRST, MONTH_FIRST = (
    [f"%{a}{mark}%{b}{mark}%Y{time}" for mark in "./-" for time in ("", " %H:%M", " %H:%M:%S")]
    for a, b in ("dm", "md")
)


@dataclass(frozen=True)
class Reading:
    """A table, and how it was understood.

    Attributes
    ----------
    table : pandas.DataFrame of shape (n_rows, n_columns)
        See `read_table`.
    columns : pandas.DataFrame of shape (n_columns, 5)
        A row per column of the table: `taken_for` (number, category, text, truth, date or time), `rule`
        (how it was understood), `written` (its first values as in the file), `read` (the same as
        read), `guessed` (whether the file leaves open what was assumed, and it could change numbers).
    assumed : tuple of str
        What was assumed of the file as a whole.
    cells : pandas.DataFrame
        All rows and columns as written in the file; index as in `table`.
    lines : list of int of length n_cells
        The line of the file, from 1, in which each row of `cells` starts; of files without lines the row.
    separator : str
        Between columns; a comma for files that are no text.
    """

    table: pd.DataFrame
    columns: pd.DataFrame
    assumed: tuple[str, ...]
    cells: pd.DataFrame
    lines: list[int]
    separator: str


def read(
    path: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    column_types: str | Mapping[str, str] | None = None,
    min_rows: int = 3,
) -> Reading:
    """Read a table as `read_table` does, and say how it was understood."""
    table = _read_table(path, drop_columns, min_rows=min_rows)
    cells = read_cells(path)
    lines, separator = find_lines(path)
    kinds = {"f": "number", "b": "truth", "M": "date", "m": "time"}
    rows = []
    for column in table:
        first = table[column].dropna().drop_duplicates()[:3]
        written = cells[column].loc[first.index].astype(str)
        kind = kinds.get(table[column].dtype.kind, "text")
        rows.append((kind, kind, " | ".join(written), " | ".join(map(str, first)), False))
    index = pd.Index(table.columns, name="column")
    columns = pd.DataFrame(rows, index=index, columns=["taken_for", "rule", "written", "read", "guessed"])
    return Reading(table, columns, (), cells, lines, separator)


def read_table(
    path: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    column_types: str | Mapping[str, str] | None = None,
    min_rows: int = 3,
) -> pd.DataFrame:
    """The table of `read`."""
    return read(path, drop_columns, column_types=column_types, min_rows=min_rows).table


def _read_table(path: str | Path, drop_columns: Sequence[str] = (), *, min_rows: int = 3) -> pd.DataFrame:
    """Read a CSV file of any dialect, or a Parquet file.

    Separator (comma, semicolon, tab, bar), decimal mark, quotes and encoding of a CSV file are found
    out; it may be packed as .gz or .zip. Empty cells and ?, -, ., NA and the like are missing values.
    Columns of dates or times of day are recognised; where day and month could be either, the day comes
    first, unless another column of the file shows that it does not. Rows without any value are left
    out, and so is a column without a name that only counts the rows.

    Parameters
    ----------
    path : str or Path
        Ends in .csv, .tsv, .txt or .parquet, perhaps with .gz or .zip after it.
    drop_columns : sequence of str, default=()
        Columns to leave out, before they are checked.
    min_rows : int, default=3
        Fewer rows are refused.

    Returns
    -------
    pandas.DataFrame
        Columns are float, bool, datetime64, timedelta64 or text. The index counts the rows of the
        file from 0.

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If it is not what its name says, or damaged; if columns have no name or the same one; if a
        column of numbers holds something else too, infinity for example.
    """
    path = Path(path)
    name, content = _unpack(path)
    table = _read_parquet(path, content) if name.endswith(".parquet") else _parse_csv(path, content)
    names = [str(column).strip() for column in table.columns]
    _check_names(path, names)
    check_drop_columns(path.name, drop_columns, names)
    table.columns = names
    table = table.drop(columns=list(drop_columns))
    month_first = any(_is_month_first(table[column]) for column in table.columns)
    table = pd.DataFrame(
        {column: _recognise(path, column, table[column], month_first) for column in table.columns}
    )
    counts = [
        column
        for column in table.columns
        if str(column).startswith("Unnamed: ") and _counts_rows(table[column])
    ]
    table = table.drop(columns=counts)
    table = table.dropna(how="all")
    if len(table) < min_rows:
        raise ValueError(
            f"{path} must hold {min_rows} rows or more below the line of names, got {len(table)}"
        )
    return table


def read_cells(path: str | Path) -> pd.DataFrame:
    """The cells of a table as they are written in its file, all rows and columns, index as in `read_table`.

    Of a CSV file they are texts.
    """
    path = Path(path)
    name, content = _unpack(path)
    table = _read_parquet(path, content) if name.endswith(".parquet") else _parse_csv(path, content, True)
    table.columns = [str(column).strip() for column in table.columns]
    return table


def find_lines(path: str | Path) -> tuple[list[int], str]:
    """The line of a file in which each row of `read_cells` starts, from 1, and what separates its columns.

    A Parquet file has no lines: its rows are counted, and the separator is a comma.
    """
    path = Path(path)
    name, content = _unpack(path)
    if name.endswith(".parquet"):
        return list(range(1, len(_read_parquet(path, content)) + 1)), ","
    text = _decode(path, content)
    separator, quote = _find_dialect(text)
    return _find_rows(path, text, separator, quote), separator


def _read_parquet(path: Path, content: bytes) -> pd.DataFrame:
    try:
        table = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow raises many kinds
        raise ValueError(f"{path} is not a Parquet file, or damaged: {error}") from error
    return table.reset_index(drop=table.index.names == [None], allow_duplicates=True)


def _counts_rows(column: pd.Series) -> bool:
    n = len(column)
    return any(np.array_equal(column, np.arange(start, start + n)) for start in (0, 1))


def table_name(path: str | Path) -> str:
    """The name of a file without what says how it is written.

    Raises
    ------
    ValueError
        If it would be no name for a folder of results.
    """
    name = re.sub(r"\.(gz|zip)$", "", Path(path).name, flags=re.IGNORECASE)
    name = re.sub(r"\.(csv|tsv|txt|parquet)$", "", name, flags=re.IGNORECASE)
    if name.strip(". ") == "" or name == "index.html":
        raise ValueError(f"rename the file {path}: a folder of results takes its name from it")
    return name


def check_drop_columns(name: str, drop_columns: Sequence[str], columns: Sequence[str]) -> None:
    """Raise ValueError if a table of that name lacks a column that is to be left out."""
    unknown = [column for column in drop_columns if column not in columns]
    if unknown:
        raise ValueError(
            f"drop_columns must name columns of {name} ({', '.join(columns)}), "
            f"got {', '.join(map(str, unknown))}"
        )


def _unpack(path: Path) -> tuple[str, bytes]:
    """Name and content of the table in a file: of itself, or of the only one that is packed in it."""
    if path.is_dir():
        raise IsADirectoryError(f"dataset must be a file, but {path} is a folder")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    packed = name.endswith((".gz", ".zip"))
    if not name.removesuffix(".gz").removesuffix(".zip").endswith(_SUFFIXES) and not name.endswith(".zip"):
        raise ValueError(
            f"{path} must end in {', '.join(_SUFFIXES)}, perhaps with .gz or .zip after it; "
            "save a spreadsheet as CSV first"
        )
    try:
        content = path.read_bytes()
    except PermissionError as error:
        raise PermissionError(f"{path} may not be read: permission denied") from error
    kind = next((kind for magic, kind in _MAGIC.items() if content.startswith(magic)), "text")
    expected = {".gz": "gzip", ".zip": "zip", ".parquet": "Parquet"}.get(path.suffix.lower(), "text")
    if kind != expected and not (packed and content == b""):
        raise ValueError(f"{path} is not what its name says: by its first bytes it is a {kind} file")
    try:
        if kind == "gzip":
            return name.removesuffix(".gz"), gzip.decompress(content)
        if kind == "zip":
            return _unpack_zip(path, content)
    except (BadZipFile, EOFError, zlib.error, OSError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged or cut off: {error}") from error
    return name, content


def _unpack_zip(path: Path, content: bytes) -> tuple[str, bytes]:
    with ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        for name in names:
            if name.startswith("/") or ".." in re.split(r"[/\\]", name) or re.match(r"[a-zA-Z]:", name):
                raise ValueError(f"{path} holds {name!r}, which would lie outside of its folder: not read")
        tables = [name for name in names if name.lower().endswith(_SUFFIXES) and "__MACOSX" not in name]
        if len(tables) != 1:
            raise ValueError(f"{path} must hold one table, got {', '.join(names) or 'none'}")
        return tables[0].lower(), archive.read(tables[0])


def _decode(path: Path, content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in content[: 2**16]:
        raise ValueError(f"{path} is not what its name says: it is not text")
    else:
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding == "utf-16" or not content[: error.start].isascii():
            raise ValueError(f"{path} is damaged or cut off at byte {error.start}: {error.reason}") from error
        return content.decode("cp1252", errors="replace")  # what spreadsheets on Windows write


def _find_rows(path: Path, text: str, separator: str, quote: str) -> list[int]:
    """The lines, from 1, in which the rows below the names start; ValueError if it is no table."""
    source = io.StringIO(text, newline=None)
    rows = csv.reader(source, delimiter=separator, quotechar=quote, skipinitialspace=True, strict=True)
    lines = []
    try:
        header = next(filter(None, rows), [])  # without lines that are empty
        _check_names(path, [name.strip() for name in header])
        line = rows.line_num + 1
        for number, row in enumerate(rows, start=1):
            if row and len(row) != len(header):  # pandas would fill up, or take a column for an index
                raise ValueError(
                    f"{path} cannot be read as a table: {len(header)} names in the first line, "
                    f"but {len(row)} values in row {number}"
                )
            if row:
                lines.append(line)
            line = rows.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    return lines


def _parse_csv(path: Path, content: bytes, as_text: bool = False) -> pd.DataFrame:
    text = _decode(path, content)
    separator, quote = _find_dialect(text)
    _find_rows(path, text, separator, quote)

    def parse(**options: Any) -> pd.DataFrame:
        try:
            source = io.StringIO(text)
            return pd.read_csv(
                source, sep=separator, quotechar=quote, skipinitialspace=True, low_memory=False, **options
            )
        except ValueError as error:  # pandas' own are among them
            raise ValueError(f"{path} cannot be read as a table: {error}") from error

    if as_text:
        return parse(dtype=str, keep_default_na=False)
    table = parse(na_values=list(MISSING))
    with_commas = [column for column in table if _all_match(table[column], _COMMA_NUMBER, _NUMBER)]
    numeric = [column for column in table if types.is_numeric_dtype(table[column])]
    if with_commas:
        if separator != ";":
            _refuse_thousands(path, table[with_commas], ",")
        table = parse(na_values=list(MISSING), decimal=",")
        lost = [column for column in numeric if not types.is_numeric_dtype(table[column])]
        if lost:
            raise ValueError(
                f"{path} mixes decimal marks: comma in column {with_commas[0]!r}, point in column {lost[0]!r}"
            )
    elif separator == ";":  # where a decimal comma is usual
        _refuse_thousands(path, parse(dtype=str, keep_default_na=False)[numeric], ".")
    return table


def _refuse_thousands(path: Path, table: pd.DataFrame, mark: str) -> None:
    """Raise ValueError if all numbers with a mark could have it to separate thousands."""
    marked = table.melt(var_name="column", value_name="text").dropna().astype(str)
    marked = marked[marked["text"].str.contains(mark, regex=False)]
    if len(marked) and all(_THOUSANDS.fullmatch(text) for text in marked["text"].unique()):
        column, text = marked.iloc[0]
        raise ValueError(
            f"{path}: {text!r} in column {column!r} may have a decimal mark or a thousands separator: "
            "write numbers without the latter"
        )


def _find_dialect(text: str) -> tuple[str, str]:
    """The separator that cuts most lines into as many fields as the first, and the quotation mark."""
    lines = text[: 2**17].splitlines()[:500]
    if len(text) > 2**17:
        lines = lines[:-1]
    quote = "'" if lines and lines[0].lstrip("\ufeff").startswith("'") else '"'

    def score(separator: str) -> tuple[float, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator, quotechar=quote) if row]
        except csv.Error:
            return 0.0, 0
        if not widths or widths[0] < 2:
            return 0.0, 0
        return sum(width == widths[0] for width in widths) / len(widths), widths[0]

    return max(_SEPARATORS, key=score), quote


def _check_names(path: Path, names: Sequence[str]) -> None:
    given = [name for name in names if name]
    repeated = sorted({name for name in given if given.count(name) > 1})
    if repeated:
        raise ValueError(f"{path} has more than one column named {', '.join(repeated)}: rename them")
    if given and all(_NUMBER.fullmatch(name) for name in given):
        raise ValueError(
            f"{path} must have the names of its columns in the first line, got {', '.join(given[:5])}"
        )


def _all_match(column: pd.Series, needed: re.Pattern[str], allowed: re.Pattern[str]) -> bool:
    """Whether all texts in a column match one of two patterns, and at least one the first."""
    if not _is_text(column):
        return False
    values = column.dropna().astype(str).unique()
    matches = [bool(needed.fullmatch(value)) for value in values]
    return any(matches) and all(
        m or allowed.fullmatch(value) for m, value in zip(matches, values, strict=True)
    )


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object or types.is_string_dtype(column.dtype)


def _is_month_first(column: pd.Series) -> bool:
    """Whether a column holds dates in which the month must come first."""
    if not _is_text(column):
        return False
    texts = column.dropna().astype(str).str.strip()
    if not all(map(_DATE.fullmatch, texts.unique())):
        return False
    return parse_dates(texts, ["ISO8601", *DAY_FIRST]) is None and parse_dates(texts, MONTH_FIRST) is not None


def _recognise(path: Path, name: str, column: pd.Series, month_first: bool) -> pd.Series:
    """The column as float, bool, datetime64, timedelta64 or text, whichever it is."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    known = column.dropna()
    if types.is_bool_dtype(column) and len(known) == len(column):
        return column.astype(bool)
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        values = column.astype(float)
        if np.isinf(values).any():
            row = np.flatnonzero(np.isinf(values))[0]
            raise ValueError(
                f"{path}: column {name!r} must be finite, got {values.iloc[row]} in row {row + 1}"
            )
        return values
    if types.is_datetime64_any_dtype(column):
        return without_zone(column)
    if types.is_timedelta64_dtype(column):
        return column
    if known.map(lambda value: isinstance(value, (list, dict, np.ndarray, bytes))).any():
        raise ValueError(f"{path}: column {name!r} must hold one value per cell, got {known.iloc[0]!r}")
    if known.empty:
        return column.astype(float)
    texts = known.astype(str).str.strip()
    distinct = texts.unique()
    if all(map(_TIME.fullmatch, distinct)):
        clock = texts.where(texts.str.count(":") == 2, texts + ":00")
        return pd.to_timedelta(clock).reindex(column.index)
    if all(map(_DATE.fullmatch, distinct)):
        orders = (MONTH_FIRST, DAY_FIRST) if month_first else (DAY_FIRST, MONTH_FIRST)
        dates = parse_dates(texts, ["ISO8601", *orders[0], *orders[1]])
        if dates is None:
            raise ValueError(
                f"{path}: column {name!r} must hold dates in one order, with years of four digits, "
                f"got {', '.join(map(repr, distinct[:3]))}"
            )
        return dates.reindex(column.index)
    if all(map(_NUMBER.fullmatch, distinct)):  # decimals of Parquet, for example
        return pd.to_numeric(texts).astype(float).reindex(column.index)
    plain = [value for value in distinct if _NUMBER.fullmatch(value) or _COMMA_NUMBER.fullmatch(value)]
    decorated = [value for value in distinct if _DECORATED_NUMBER.fullmatch(value)]
    if texts.isin(decorated).mean() > 0.5:
        others = [value for value in distinct if value not in set(plain)] or [
            next(filter(pattern.fullmatch, plain)) for pattern in (_NUMBER, _COMMA_NUMBER)
        ]
        row = int(np.flatnonzero(column.astype(str).str.strip() == others[0])[0]) + 1
        raise ValueError(
            f"{path}: column {name!r} seems to hold numbers, but has {', '.join(map(repr, others[:3]))} "
            f"(row {row}); write plain numbers there, or leave the column out with drop_columns"
        )
    return texts.astype(object).reindex(column.index)


def without_zone(dates: pd.Series) -> pd.Series:
    """Dates with a time zone in UTC, others as they are."""
    return dates.dt.tz_convert(None) if getattr(dates.dt, "tz", None) else dates


def parse_dates(texts: pd.Series, formats: Sequence[str]) -> pd.Series | None:
    """Dates without a time zone, by the first format that fits them all."""
    has_zone = bool(texts.str.contains(r":\d{2}\S*(?:Z|[+-]\d{2}:?\d{2})$").any())
    for date_format in formats:
        try:
            dates = pd.to_datetime(texts, format=date_format, utc=has_zone)
        except ValueError:
            continue
        return dates.dt.tz_localize(None) if has_zone else dates
    return None
