"""From columns of texts to numbers, dates, times and categories, and how each was understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from . import forms
from .forms import COMPACT, DATE, TIME, Marks, fitting, is_number, shape, show_time
from .noticing import MAX_NAMES, shorten

ORDERS = ("day first", "month first")  # of dates
KINDS = ("number", "category", "text", "date", "time", *ORDERS)
WITH_NA = "category with NA"  # in which that is a text, whatever stands beside it
# The marks that stand before decimals in a column of numbers, where its file leaves that open: by a user's
# answer, or as in the table of which this one has more rows
DECIMALS = {"number": ".,", "decimal point": ".", "decimal comma": ",", "number of any mark": ""}
_FORMS: Mapping[str, Callable] = {"number": is_number, "date": DATE.fullmatch, "time": TIME.fullmatch}
_NOT_KNOWN = re.compile(  # words that people write in place of a number
    r"n\.? ?[adb]\.?|k\.? ?a\.?|n/[ad]|nil|none|null|nan|missing|unknown|unbekannt|keine angabe|fehlt|"
    r"(below|under|unter) .*|b\.?d\.?l?\.?|[<>]? ?lo[dq]|bql|not .*|nicht .*|tr|traces?|#.*!?|"
    r"err(or)?|[-–—.*?/]+",
    re.IGNORECASE,
)


@dataclass
class Column:
    """A column while it is being recognised.

    Attributes
    ----------
    name : str
    said : str
        What `column_types` says that it holds; "" if nothing.
    texts : list of str
        All different ones, without spaces around them, in the order of their first rows; none if the file
        has types.
    places : numpy.ndarray of shape (n_rows,)
        Of each row's text in `texts`; -1 where one is missing.
    lines : numpy.ndarray of shape (n_rows,)
        Of the file, in which each row stands.
    kind : str
        number, category, text, truth, date or time; "" before it is known.
    known : array of shape (n_texts,), optional
        What the texts stand for, if not for themselves; of a file with types its different values.
    rule : str
        How it was understood; says what was assumed where the texts leave that open.
    marks : str
        What to add to the rule of texts that were taken for a missing value.
    readings : dict of str to pandas.Series of shape (n_texts,)
        What dates may mean, see `read_dates`.
    """

    name: str
    said: str
    texts: list[str]
    places: np.ndarray
    lines: np.ndarray
    kind: str = ""
    known: Any = None
    rule: str = ""
    marks: str = ""
    readings: dict[str, pd.Series] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: pd.Series, said: str, missing: frozenset[str]) -> Column:
        """The column of a series, recognised as far as it shows alone.

        Raises
        ------
        ValueError
            If its texts are not of one kind, or not of that which is said; does not name the column.
        """
        if isinstance(cells.dtype, pd.CategoricalDtype):
            cells = cells.astype(cells.cat.categories.dtype)
        name, lines = str(cells.name), cells.index.to_numpy()
        if not types.is_string_dtype(cells):
            values, kind = _keep_type(cells.infer_objects(), "number" if said in DECIMALS else said)
            if kind:
                what = "true or false" if kind == "truth" else f"{kind}s"
                places, known = values.factorize()
                return cls(name, said, [], places, lines, kind, known, f"{what}, as in the file")
            cells = forms.as_texts(cells)
        stripped = [text.strip() if isinstance(text, str) else "" for text in cells.tolist()]
        distinct = list(dict.fromkeys(stripped))
        texts, rule = [text for text in distinct if text not in missing], ""
        are_codes = not said and len(texts) > 1 and all(re.fullmatch("[A-Z]{2}", text) for text in texts)
        if (are_codes or said == WITH_NA) and "NA" in missing.intersection(distinct):  # Namibia
            rule = "texts; NA is one of them" + " (assumed: all have two letters)" * are_codes
            missing = missing - {"NA"}
            texts = [text for text in distinct if text not in missing]
        places = pd.Index(texts, dtype=object).get_indexer(pd.Index(stripped, dtype=object))
        column = cls(name, said.removesuffix(" with NA"), texts, places, lines, rule=rule)
        column._find_kind()
        if marks := [text for text in distinct if text and text in missing]:
            column.marks = f"; {', '.join(marks)} for missing"
        return column

    @cached_property
    def shapes(self) -> dict[str, str]:
        """Of numbers: a text of each shape."""
        found: dict[str, str] = {}
        for text in self.texts:
            found.setdefault(shape(text), text)
        return found

    def _has(self, texts: Container[str]) -> np.ndarray:
        """Whether each row has one of some texts."""
        return np.isin(self.places, [place for place, text in enumerate(self.texts) if text in texts])

    def _line_of(self, text: str) -> str:
        """The first line with a text."""
        return f"(line {self.lines[self._has([text]).argmax()]})"

    def _find_kind(self) -> None:
        """Say what the texts are, as far as this column alone shows; of numbers and dates all possible."""
        said = "date" if self.said in ORDERS else "number" if self.said in DECIMALS else self.said
        form = None if self.said in ORDERS else _FORMS.get(said)
        wrong = [text for text in self.texts if form and not form(text)]
        if wrong := [text for text in wrong if said != "date" or not COMPACT.fullmatch(text)]:
            raise ValueError(f"must hold {said}s, got {wrong[0]!r} {self._line_of(wrong[0])}")

        def is_all(kind: str) -> bool:
            return said == kind or (not said and all(map(_FORMS[kind], self.texts)))

        if said in ("category", "text"):
            self.kind, self.rule = said, self.rule or "as column_types says"
        elif not self.texts:
            self.kind, self.rule = said or "number", "no value in any row"
            dtypes: dict[str, Any] = {"date": "datetime64[us]", "time": "timedelta64[us]"}
            self.known = np.array([], dtypes.get(said, float))
        elif not said and {*map(str.lower, self.texts)} <= {"true", "false"} and (self.places >= 0).all():
            self.kind, self.rule = "truth", "true or false"
            self.known = [text.lower() == "true" for text in self.texts]
        elif not said and forms.are_seasons(self.texts):
            self.kind = "text"
            self.rule = f"texts: {self.texts[0]} is a season of two years (assumed: no month)"
        elif is_all("date"):
            self.kind, self.readings = "date", forms.read_dates(pd.Series(self.texts), self.said)
        elif is_all("time"):
            self.kind = "time"
            self.known, self.rule = forms.read_times(pd.Series(self.texts))
        elif said or (is_number(self.texts[0]) and all(map(fitting, self.shapes))):
            self._find_numbers()
        else:
            self._find_texts()

    def _find_numbers(self) -> None:
        """Numbers, or codes that are written like them."""
        padded = [text for shaped, text in self.shapes.items() if re.match("[+-]?09", shaped)]
        exponents = [text for shaped, text in self.shapes.items() if "E" in shaped]
        codes = ""
        if padded and any(map(str.isdecimal, padded)):
            codes = padded[0]
        elif exponents and all(re.fullmatch("[09]9*(E9+)?", shaped) for shaped in self.shapes):
            codes = exponents[0]  # 3E12, of a room or a plate
        elif len(self.shapes) < 10 and forms.look_like_codes(self.texts):
            codes = max(self.texts, key=len)  # 1.10 beside 1.9
        self.kind, self.rule = "number", "numbers"
        if self.said:
            self.rule += ", as column_types says" * (self.said == "number")
        elif codes:
            self.kind, self.rule = "text", f"codes, such as {codes}, kept as texts (assumed: no numbers)"
        elif any(re.fullmatch("9{16,}", shaped) for shaped in self.shapes):
            self.kind, self.rule = "text", "identifiers of more than 15 digits, kept as texts"
        elif padded:
            self.rule += f", {padded[0]} among them (assumed: no codes)"
        elif len(self.texts) > 1 and all(map(COMPACT.fullmatch, self.texts)):
            self.rule += f", such as {self.texts[0]} (assumed: no dates; see column_types)"

    def _find_texts(self) -> None:
        """Texts; refused where they seem to be numbers with words, units or marks among them, or dates."""
        self.kind, self.rule = "text", self.rule or "texts"
        plain = {text for text in self.texts if any(fits(text) for fits in _FORMS.values())}
        near = plain | forms.decorated(text for text in self.texts if text not in plain)
        words = [text for text in self.texts if text not in near]
        not_known = {text for text in words if _NOT_KNOWN.fullmatch(text)}
        if near and (
            self._has(near).sum() > (self.places >= 0).sum() / 2
            or len(not_known) == len(words)
            or (len(plain) > 1 and not_known)
            or len(plain) > max(1, len(words))
            or any(re.search(r"\d[.,]\d", text) and is_number(text) for text in plain)
        ):
            kind = max(_FORMS, key=lambda kind: sum(bool(_FORMS[kind](text)) for text in near))
            others = [text for text in self.texts if not _FORMS[kind](text)]
            first = f"{', '.join(repr(shorten(text)) for text in others[:3])} {self._line_of(others[0])}"
            is_below = self._has(set(others))[2:].any()
            above = "; if the first rows belong to the names, or hold units, delete these lines"
            raise ValueError(f"seems to hold {kind}s, but has {first}{'' if is_below else above}")
        unread = [text for text in self.texts if text not in not_known]
        if not unread:
            self.rule = "texts, though all may stand for a missing value (assumed: names)"
        elif forms.seem_unread(unread):
            self.rule = (
                f"looks like numbers or dates in a form that is not read, such as {shorten(unread[0])}; "
                f"write plain ones, or say column_types={f'{self.name}=text'!r} (assumed: texts)"
            )
        elif plain:
            self.rule += f"; {len(plain)} of {len(self.texts)} look like numbers (assumed: names)"


def recognise(
    cells: pd.DataFrame, kinds: Mapping[str, str], missing: Mapping[str, frozenset[str]], target: str = ""
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns of a frame as float, bool, datetime64, timedelta64 or text, whichever they are.

    Parameters
    ----------
    cells : pandas.DataFrame
        Texts, or what a file with types gives; its index are the lines of the file.
    kinds : mapping of str to str
        What some columns are said to hold.
    missing : mapping of str to frozenset of str
        For each column texts that stand for no value.
    target : str, default=""
        The column that must hold numbers.

    Returns
    -------
    table, columns : pandas.DataFrame
        See `Reading`.

    Raises
    ------
    ValueError
        If columns are not of one kind, or what texts mean is open.
    """
    columns, refused = [], {}
    for name, series in cells.items():
        try:
            columns.append(Column.of(series, kinds.get(str(name), ""), missing[str(name)]))
        except ValueError as error:
            refused[str(name)] = f"column {name!r} {error}"
    _refuse(refused, [name for name in refused if name not in kinds], target)
    numbers = [column for column in columns if column.kind == "number" and column.texts]
    settled = {}  # columns of which a user says what they hold, and whether that tells what their marks mean
    for column in filter(lambda column: column.said, numbers):
        settled[column.name] = {*"".join(column.shapes)} & {*".,"} <= {*DECIMALS.get(column.said, "")}
    marks = forms.decide_marks({column.name: column.shapes for column in numbers}, settled)
    for column in numbers:
        _to_numbers(column, marks, settled.get(column.name, False))
    _decide_orders([column for column in columns if column.readings])
    rows, table = [], {}
    for column in columns:
        name = column.name
        known = np.array(column.texts, dtype=object) if column.known is None else column.known
        written = column.texts or list(cells[name].dropna().unique())
        if column.kind == "number" and (infinite := np.flatnonzero(np.isinf(known))).size:
            line = column.lines[np.argmax(column.places == infinite[0])]
            refused[name] = f"column {name!r} must be finite, got {written[infinite[0]]} in line {line}"
        values = pd.api.extensions.take(np.asarray(known), column.places, allow_fill=True)
        table[name] = pd.Series(values, cells.index, dtype=object) if values.dtype == object else values
        shown = [" | ".join(map(_show, values[:3])) for values in (written, known)]
        is_guess = "(assumed: " in column.rule and column.said in ("", "date")  # which leaves the order open
        rows.append((name, column.kind, column.rule + column.marks, *shown, is_guess))
    _refuse(refused, list(refused), target)
    told = pd.DataFrame(rows, columns=["column", "taken_for", "rule", "written", "read", "guessed"])
    return pd.DataFrame(table, index=cells.index), told.set_index("column")


def _refuse(refused: Mapping[str, str], advised: Sequence[str], target: str) -> None:
    """Raise ValueError if there are messages on columns, with what helps those that are `advised`."""
    if not refused:
        return
    more = f"; and {len(refused) - MAX_NAMES} other columns" if len(refused) > MAX_NAMES else ""
    message = "; ".join(list(refused.values())[:MAX_NAMES]) + more
    if advised:
        how = "write plain numbers or dates there, or nothing where there is none"
        message += f"; {how} (or name it in missing_values)"
    if features := [name for name in advised if name != target]:
        how = f"column_types={f'{features[0]}=category'!r}"
        message += f", or leave the column out with drop_columns, or say what it holds by {how}"
    raise ValueError(message)


def _keep_type(series: pd.Series, said: str) -> tuple[pd.Series, str]:
    """The column of a file with types and its kind; "" for that if it is to be read from texts."""
    is_decimal = types.infer_dtype(series) == "decimal"
    # a float would merge long identifiers
    is_long = (is_decimal or types.is_integer_dtype(series)) and (series.dropna().abs() > 2**53).any()
    if types.is_bool_dtype(series) and said in ("", "category"):
        return (series.astype(bool), "truth") if series.notna().all() else (series, "")
    if (is_decimal or types.is_numeric_dtype(series)) and (said == "number" or not (said or is_long)):
        return series.astype(float), "number"
    kind = {"M": "date", "m": "time"}.get(series.dtype.kind, "")
    return (forms.without_zone(series), kind) if kind and said in ("", kind) else (series, "")


def _decide_orders(columns: Sequence[Column]) -> None:
    """Leave one reading of the dates of each column, and say by which rule.

    Where a column leaves open whether day or month comes first, others with the same mark between them
    may show it; else it is the day.
    """

    def mark(column: Column) -> str:
        return next((char for char in column.texts[0] if not char.isdigit()), "")  # none in years

    alone = [column for column in reversed(columns) if len(column.readings) == 1]  # the first one is told
    shown = {(mark(column), *column.readings): column.name for column in alone}
    for column in columns:
        order, by_others = next(iter(column.readings)), [o for o in ORDERS if (mark(column), o) in shown]
        if len(column.readings) == 1:
            column.rule = f"dates, {order}" if order != "year first" else "dates"
        elif column.readings["day first"].equals(column.readings["month first"]):
            column.rule = "dates, day and month are the same in all"
        elif len(by_others) == 1:
            (order,) = by_others
            column.rule = f"dates, {order} (assumed: as in column {shown[mark(column), order]})"
        else:
            column.rule = "dates, day first (assumed: no date shows it); else column_types 'A=month first'"
        column.known = column.readings[order]


def _to_numbers(column: Column, marks: Marks, is_settled: bool) -> None:
    column.known = np.array([marks.to_float(text) for text in column.texts])
    told = [column.rule]
    if marks.decimal == "," and any("," in shaped for shaped in column.shapes):
        told.append("decimal comma")
    if any(map(marks.group, column.shapes)):
        alike = marks.thousands == " " and len(column.shapes) == 1 and marks.decimal not in column.texts[0]
        is_sure = not alike and any(marks.prove(s) or not marks.group(s) for s in column.shapes)
        told.append(f"{marks.thousands!r} between thousands{'' if is_sure else ' (assumed: no codes)'}")
    if forms.may_have_groups(column.shapes) and not marks.thousands and not is_settled:
        told.append(f"{marks.decimal!r} before decimals (assumed: as in other columns)")
    ends_in_zero = (text for text in column.texts if re.fullmatch(r".*[.,]\d+0", text))
    shorter = {text.rstrip("0"): text for text in ends_in_zero}
    twice = [text for text in column.texts if text in shorter]  # 2.1, and 2.10
    if twice and not column.said:
        told.append(f"{shorter[twice[0]]} is the same as {twice[0]} (assumed: no codes)")
    column.rule = ", ".join(told)


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, pd.Timedelta):
        return show_time(value)
    return str(value).strip().removesuffix(" 00:00:00")  # of a date
