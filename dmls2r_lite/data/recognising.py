"""From columns of texts to numbers, dates, times and categories, and how each was understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from pandas.api import types

from .dates import DATE, TIME, are_seasons, read_dates, read_times, show_time, without_zone
from .numerals import Marks, decide_marks, fitting, is_number, look_like_codes, may_have_groups, shape

MISSING = frozenset(["", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan"])
MISSING |= {"NULL", "null", "None", "<NA>", "#NA", "#N/A"}
KINDS = ("number", "category", "text", "date", "time")
ORDERS = ("day first", "month first")  # of dates: kinds too
_FORMS: Mapping[str, Callable] = {"number": is_number, "date": DATE.fullmatch, "time": TIME.fullmatch}
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
_NOT_KNOWN = re.compile(  # words that people write in place of a number
    r"n\.? ?[adb]\.?|k\.? ?a\.?|n/[ad]|nil|none|null|nan|missing|unknown|unbekannt|keine angabe|fehlt|"
    r"(below|under|unter) .*|b\.?d\.?l?\.?|[<>]? ?lo[dq]|bql|not .*|nicht .*|tr|traces?|#.*!?|"
    r"err(or)?|[-–—.*?/]+",
    re.IGNORECASE,
)
_DECORATED = re.compile(  # a number with a sign, brackets or a unit around it
    r"[^\w\s]{0,3}\s?[^\w\s]?\d[\d.,'’\s]*(e[+-]?\d+)?\s?"
    r"([^\W\d]{0,4}|[°%€$£µ‰][^\W\d]{0,3})(/[^\W\d]{1,4}[\d²³]?)?[^\w\s]{0,2}"
)


@dataclass
class Column:
    """A column of texts while it is being recognised.

    Attributes
    ----------
    name : str
    said : str
        What `column_types` says that it holds; "" if nothing.
    index : pandas.Index of shape (n_rows,)
    codes : numpy.ndarray of shape (n_rows,)
        Which of the texts is in a row; -1 if the value is missing.
    texts : list of str
        All different ones, without spaces around them.
    marks : list of str
        What was taken for a missing value, besides nothing at all.
    kind : str
        number, category, text, truth, date or time; "" before it is known.
    rule : str
        How it was understood.
    guessed : bool
        Whether the texts leave that open.
    shapes : dict of str to str
        Of numbers: a text of each shape.
    readings : dict of str to pandas.Series of shape (n_texts,)
        What dates may mean, see `read_dates`, or what times mean.
    """

    name: str
    said: str
    index: pd.Index
    codes: np.ndarray
    texts: list[str]
    marks: list[str]
    kind: str = ""
    rule: str = ""
    guessed: bool = False
    shapes: dict[str, str] = field(default_factory=dict)
    readings: dict[str, pd.Series] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: pd.Series, said: str, missing: frozenset[str]) -> Column:
        """The column of a series of texts, recognised as far as it shows alone.

        Raises
        ------
        ValueError
            If its texts are not of one kind, or not of that which is said.
        """
        stripped = cells.astype(object).where(cells.notna(), "").str.strip()
        distinct = list(stripped.unique())
        known = [text for text in distinct if text not in missing]
        has_na = {"NA"} & missing & set(distinct) and len(known) > 1
        is_code = has_na and all(re.fullmatch("[A-Z]{2}", text) for text in known)  # Namibia among countries
        missing -= {"NA"} if is_code else set()
        codes, texts = pd.factorize(stripped.mask(stripped.isin(missing)))
        marks = [text for text in distinct if text and text in missing]
        column = cls(str(cells.name), said, cells.index, codes, list(texts), marks, guessed=bool(is_code))
        column.rule = "texts; NA is one of them, as the others have two letters too" if is_code else ""
        column._find_kind()
        return column

    def spread(self, values: Sequence[Any] | np.ndarray | pd.Series, dtype: Any = None) -> pd.Series:
        """One value for each text becomes one for each row."""
        of_texts = pd.Series(values, index=range(len(self.texts)), dtype=dtype)
        return of_texts.reindex(self.codes).set_axis(self.index).rename(self.name)

    def _row_of(self, text: str) -> int:
        """The first row with a text, from 1."""
        return int(np.flatnonzero(self.codes == self.texts.index(text))[0]) + 1

    def _refuse(self, what: str) -> NoReturn:
        """Raise ValueError about this column, with what a user can do."""
        raise ValueError(
            f"column {self.name!r} {what}, or leave the column out with drop_columns, or "
            f"say what it holds by column_types={f'{self.name}=category'!r}"
        )

    def _find_kind(self) -> None:
        """Say what the texts are, as far as this column alone shows; of numbers and dates all possible."""
        said = "date" if self.said in ORDERS else self.said
        if self.said in _FORMS and (wrong := [text for text in self.texts if not _FORMS[said](text)]):
            raise ValueError(
                f"column {self.name!r} must hold {said}s, as column_types says, "
                f"got {wrong[0]!r} (row {self._row_of(wrong[0])})"
            )

        def is_all(kind: str) -> bool:
            return said == kind or (not said and all(map(_FORMS[kind], self.texts)))

        if said in ("category", "text"):
            self.kind, self.rule = said, "as column_types says"
        elif not self.texts:
            self.kind, self.rule = said or "number", "no value in any row"
        elif not said and set(self.texts) <= _TRUTH.keys() and (self.codes >= 0).all():
            self.kind, self.rule = "truth", "true or false"
        elif not said and are_seasons(self.texts):
            self.kind, self.guessed = "text", True
            self.rule = f"texts: {self.texts[0]} is a season of two years (assumed: no month)"
        elif is_all("time") or is_all("date"):
            self.kind = "time" if is_all("time") else "date"
            self._find_times()
        elif said or (is_number(self.texts[0]) and all(map(fitting, self._find_shapes()))):
            self._find_numbers()
        else:
            self._find_texts()
        self.guessed = self.guessed and not said

    def _find_times(self) -> None:
        """The readings of dates or times; of dates those in the order that is said."""
        texts, first = pd.Series(self.texts), ", ".join(map(repr, self.texts[:3]))
        try:
            if self.kind == "date":
                self.readings = read_dates(texts)
            else:
                self.readings["time"], self.rule, self.guessed = read_times(texts)
        except ValueError as error:
            self._refuse(f"{error}, got {first}")
        if self.said in ORDERS:
            orders = self.readings.keys() & {self.said, "year first", "month by name"}
            self.readings = {order: self.readings[order] for order in orders}
            if not orders:
                self._refuse(f"must hold dates with the {self.said}, as column_types says, got {first}")

    def _find_shapes(self) -> dict[str, str]:
        for text in self.texts:
            self.shapes.setdefault(shape(text), text)
        return self.shapes

    def _find_numbers(self) -> None:
        """Numbers, or codes that are written like them."""
        shapes = self.shapes or self._find_shapes()
        padded = [text for shaped, text in shapes.items() if re.match("[+-]?09", shaped)]
        if self.said:
            self.kind, self.rule = "number", "numbers, as column_types says"
            return
        self.kind = "text"
        if padded and any(map(str.isdecimal, padded)):
            self.rule, self.guessed = f"codes with leading zeros, such as {padded[0]}, kept as texts", True
        elif any(re.fullmatch("9{16,}", shaped) for shaped in shapes):
            self.rule = "identifiers of more than 15 digits, kept as texts"
        elif len(shapes) < 10 and look_like_codes(self.texts):
            last = max(self.texts, key=len)
            self.rule, self.guessed = f"codes with a point, such as {last}, kept as texts", True
        else:
            self.kind = "number"
            if padded:
                self.rule, self.guessed = f"numbers, {padded[0]} among them (assumed: no codes)", True

    def _find_texts(self) -> None:
        """Texts; refused where they seem to be numbers with words, units or marks among them."""
        self.kind, self.rule = "text", self.rule or "texts"
        numbers = {text for text in self.texts if is_number(text)}
        decorated = {text for text in self.texts if text not in numbers and _DECORATED.fullmatch(text)}
        units = {unit[0] for text in decorated if (unit := re.search(r"(?<=\d)[^\W\d]+", text))}
        if len(units) > 1:  # 12a and 12b are no numbers with units
            decorated = {text for text in decorated if not re.search(r"\d[^\W\d]+", text)}
        near = numbers | decorated
        if not near:
            return
        words = [text for text in self.texts if text not in near]
        is_near = np.array([text in near for text in self.texts])[self.codes[self.codes >= 0]]
        n_not_known = sum(bool(_NOT_KNOWN.fullmatch(text)) for text in words)
        if (
            is_near.mean() > 0.5
            or (numbers and n_not_known == len(words))
            or (len(numbers) > 1 and n_not_known)
            or len(numbers) > max(1, len(words))
            or any(re.search(r"\d[.,]\d", text) for text in numbers)
        ):
            others = [text for text in self.texts if text not in numbers]
            is_other = np.array([text not in numbers for text in self.texts])[self.codes] & (self.codes >= 0)
            above = "; if the first rows belong to the names, or hold units, delete these lines"
            self._refuse(
                f"seems to hold numbers, but has {', '.join(map(repr, others[:3]))} (row "
                f"{self._row_of(others[0])}); write plain numbers there, or nothing where there is none (or "
                f"name it in missing_values){'' if is_other[2:].any() else above}"
            )
        self.rule += f"; {len(near)} of {len(self.texts)} look like numbers"
        self.guessed = bool(numbers)


def recognise(
    cells: pd.DataFrame, kinds: Mapping[str, str], missing: frozenset[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns of a frame as float, bool, datetime64, timedelta64 or text, whichever they are.

    Parameters
    ----------
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

    Raises
    ------
    ValueError
        If a column is not of one kind, or what its texts mean is open.
    """
    known: dict[str, pd.Series] = {}
    columns: dict[str, Column] = {}
    rules: dict[str, tuple[str, str, bool]] = {}
    names = list(map(str, cells))
    for name in names:
        series = cells[name]
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype)
        typed = None if _is_text(series) else _keep_type(series, kinds.get(name))
        if typed is not None:
            known[name], kind = typed
            what = {"truth": "true or false"}.get(kind, f"{kind}s")
            rules[name] = (kind, f"{what}, as in the file", False)
        else:
            texts = series if _is_text(series) else _as_texts(series)
            columns[name] = Column.of(texts, kinds.get(name, ""), missing)
    numbers = {name: column for name, column in columns.items() if column.kind == "number"}
    marks = decide_marks(
        {name: column.shapes for name, column in numbers.items()},
        {name for name, column in numbers.items() if column.said},
    )
    _decide_orders([column for column in columns.values() if column.kind == "date" and column.texts])
    for name, column in columns.items():
        known[name] = _convert(column, marks)
        told = [column.rule, f"{', '.join(column.marks)} for missing"] if column.marks else [column.rule]
        rules[name] = (column.kind, "; ".join(told), column.guessed)
    table = pd.DataFrame({name: known[name] for name in names}, index=cells.index)
    for name, values in known.items():
        if types.is_float_dtype(values) and (is_infinite := np.isinf(values.to_numpy())).any():
            row = int(is_infinite.argmax())
            raise ValueError(
                f"column {name!r} must be finite, got {str(cells[name].iloc[row]).strip()} in row {row + 1}"
            )
    rows = [(*rules[name][:2], *_first_values(cells[name], table[name]), rules[name][2]) for name in names]
    index = pd.Index(names, name="column")
    return table, pd.DataFrame(rows, index=index, columns=["taken_for", "rule", "written", "read", "guessed"])


def _is_text(series: pd.Series) -> bool:
    if series.dtype == object:
        return all(isinstance(value, str) for value in series)
    return types.is_string_dtype(series.dtype)


def _as_texts(series: pd.Series) -> pd.Series:
    """A column of a file with types as texts: whole numbers without a point."""
    known = series.dropna()
    if known.map(lambda value: isinstance(value, (list, dict, np.ndarray, bytes))).any():
        raise ValueError(f"column {series.name!r} must hold one value per cell, got {known.iloc[0]!r}")
    whole = types.is_float_dtype(series) and (known % 1 == 0).all()
    return (known.astype("int64") if whole else known).astype(str).astype(object).reindex(series.index)


def _keep_type(series: pd.Series, said: str | None) -> tuple[pd.Series, str] | None:
    """The column of a file with types and its kind, unless it is to be read from texts."""
    if series.dtype == object:  # as from a spreadsheet
        kind = types.infer_dtype(series.dropna())
        if kind in ("integer", "floating", "mixed-integer-float"):
            series = series.astype(float)
        elif kind in ("datetime", "datetime64"):
            series = pd.to_datetime(series)
        elif kind in ("time", "timedelta", "timedelta64"):
            series = pd.to_timedelta(series.map(str, na_action="ignore"))
    if types.is_bool_dtype(series) and said in (None, "category"):
        return (series.astype(bool), "truth") if series.notna().all() else None
    if types.is_numeric_dtype(series) and said in (None, "number"):
        if said is None and types.is_integer_dtype(series) and series.abs().max() > 2**53:
            return None  # identifiers that a float would merge
        return series.astype(float), "number"
    if types.is_datetime64_any_dtype(series) and said in (None, "date"):
        return without_zone(series), "date"
    if types.is_timedelta64_dtype(series) and said in (None, "time"):
        return series, "time"
    return None


def _decide_orders(columns: Sequence[Column]) -> None:
    """Leave one reading of the dates of each column, and say by which rule.

    Where a column leaves open whether day or month comes first, others with the same mark between them
    may show it; else it is the day.
    """

    def mark(column: Column) -> str:
        return next(char for char in column.texts[0] if not char.isdigit())

    shown: dict[str, dict[str, str]] = {}  # by mark and order, in which column
    for column in columns:
        (order, *others) = column.readings
        if not others and order in ORDERS:
            shown.setdefault(mark(column), {}).setdefault(order, column.name)
    for column in columns:
        (order, *others) = column.readings
        column.rule = f"dates, {order}" if order != "year first" else "dates"
        if not others:
            continue
        if column.readings["day first"].equals(column.readings["month first"]):
            column.rule = "dates, day and month are the same in all"
        elif len(of_mark := shown.get(mark(column), {})) == 1:
            (order,) = of_mark
            column.rule, column.guessed = f"dates, {order} (assumed: as in column {of_mark[order]})", True
        else:
            column.rule, column.guessed = "dates, day first (assumed: no date shows it)", True
        column.readings = {order: column.readings[order]}


def _convert(column: Column, marks: Marks) -> pd.Series:
    if column.kind == "number":
        return _to_numbers(column, marks)
    if column.kind == "truth":
        return column.spread([_TRUTH[text] for text in column.texts])
    if column.kind in ("date", "time"):
        nothing = pd.Series(dtype="datetime64[us]" if column.kind == "date" else "timedelta64[us]")
        return column.spread(next(iter(column.readings.values()), nothing))
    return column.spread(column.texts, object)


def _to_numbers(column: Column, marks: Marks) -> pd.Series:
    values = np.array([marks.to_float(text) for text in column.texts], dtype=float)
    told = [column.rule or "numbers"]
    if marks.decimal == "," and any("," in shaped for shaped in column.shapes):
        told.append("decimal comma")
    if any(map(marks.group, column.shapes)):
        told.append(f"{marks.thousands!r} between thousands")
    guesses = []
    if may_have_groups(column.shapes) and not marks.thousands and not column.said:
        guesses.append(f"{marks.decimal!r} before decimals (assumed: as in other columns)")
    if not all(map(str.isascii, column.texts)):
        told.append("digits of another script")
    if len(set(values)) < len(values) and (same := _written_twice(column.texts, values)):
        guesses.append(f"{same[0]} is the same as {same[1]} (assumed: no codes)")
    column.rule = ", ".join([*told, *guesses])
    column.guessed |= bool(guesses) and not column.said
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
