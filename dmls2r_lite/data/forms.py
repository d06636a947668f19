"""Numbers, dates and times of day as people write them.

Which marks stand for what in numbers is decided for a whole file, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import pandas as pd

_TO_ASCII = str.maketrans(
    {"٫": ".", "．": ".", "٬": ",", "，": ",", "’": "'"} | dict.fromkeys("\xa0\u2009\u202f", " ")
)
_TO_SHAPE = str.maketrans("0123456789", "9" * 10)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_CLOCK = r"([T ]\d{1,2}[:.]\d{2}\S*( ?[ap]m)?)?"
DATE = re.compile(
    rf"(\d{{4}}-\d{{2}}|\d{{4}}([-/.])\d{{1,2}}\2\d{{1,2}}|\d{{1,2}}([-/.])\d{{1,2}}\3(\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}([-/. ]){_MONTH}\5(\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}}){_CLOCK}",
    re.IGNORECASE | re.ASCII,
)
TIME = re.compile(r"(\d{1,3}):[0-5]\d(:[0-5]\d)?( ?[ap]m)?", re.IGNORECASE | re.ASCII)
_ZONE = re.compile(r":\d{2}\S*(?:Z|[+-]\d{2}:?\d{2})$")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DATES = {
    "month by name": [
        *(f"%d{mark}%{b}{mark}%Y" for mark in "-/. " for b in "bB"),
        *(f"%{b} %d{comma} %Y" for comma in (",", "") for b in "bB"),
    ],
    "day first": [f"%d{mark}%m{mark}%Y" for mark in "./-"],
    "month first": [f"%m{mark}%d{mark}%Y" for mark in "./-"],
}
FORMATS = {"year first": ["ISO8601"]} | {
    order: [f"{date}{clock}" for date in dates for clock in _CLOCKS] for order, dates in _DATES.items()
}


@dataclass(frozen=True)
class Marks:
    """What stands before decimals and between groups of three digits; "" if nothing does."""

    decimal: str
    thousands: str

    def to_float(self, text: str) -> float:
        """The number that a text stands for; ValueError if it is none."""
        return float(text.translate(_TO_ASCII).replace(self.thousands, "").replace(self.decimal, "."))

    def group(self, shaped: str) -> bool:
        """Whether there are groups of three digits in a shape."""
        return bool(self.thousands) and self.thousands in shaped

    def prove(self, shaped: str) -> bool:
        """Whether the mark between groups can be nothing else: it comes twice, or before a decimal mark."""
        return self.group(shaped) and (shaped.count(self.thousands) > 1 or self.decimal in shaped)


_ALL = tuple(Marks(mark, t) for mark, groups in ((".", ["", *",' "]), (",", ["", *".' "])) for t in groups)


def shape(text: str) -> str:
    """A text with 9 for each digit but a leading zero: as many shapes as there are ways to write a number."""
    shaped = text.translate(_TO_SHAPE) if text.isascii() else re.sub(r"\d", "9", text.translate(_TO_ASCII))
    first = text.lstrip("+-")[:1]
    return shaped.replace("9", "0", 1) if first.isdecimal() and int(first) == 0 else shaped


@cache
def _pattern(marks: Marks) -> re.Pattern[str]:
    """Shapes of numbers without groups, and with them."""
    d, t = re.escape(marks.decimal), re.escape(marks.thousands) or "(?!)"
    plain, grouped = rf"([09]9*({d}9*)?|{d}9+)(e[+-]?9+)?", rf"9{{1,3}}({t}999)+({d}9+)?"
    return re.compile(rf"[+-]?({plain}|{grouped})", re.IGNORECASE)


@cache
def fitting(shaped: str) -> frozenset[Marks]:
    """The marks under which a shape is that of a number."""
    return frozenset(marks for marks in _ALL if _pattern(marks).fullmatch(shaped))


def is_number(text: str) -> bool:
    """Whether a text is a number, whatever its marks stand for."""
    return len(text) < 400 and bool(fitting(shape(text.strip())))


def decide_marks(columns: Mapping[str, Mapping[str, str]], settled: Mapping[str, bool]) -> Marks:
    """The one meaning of marks under which all numbers of a file are numbers.

    Parameters
    ----------
    columns : mapping of str to mapping of str to str
        For each column of numbers a text of each shape in it.
    settled : mapping of str to bool
        Columns that are said to hold numbers, and whether a mark that may be that of decimals then is: where
        they alone leave it open.

    Raises
    ------
    ValueError
        If there is none, or more than one which give different numbers. The message names cells.
    """
    examples = {shaped: (column, text) for column, texts in columns.items() for shaped, text in texts.items()}
    possible, narrowing = list(_ALL), []
    for shaped, (column, text) in examples.items():
        if not fitting(shaped).issuperset(possible):
            possible = [marks for marks in possible if marks in fitting(shaped)]
            narrowing.append(f"{text!r} in column {column!r}")
        if not possible:
            raise ValueError(
                f"mixes ways to write numbers: {', '.join(narrowing)}: write all with one decimal mark, and "
                "without thousands separators"
            )
    for marks in possible:
        if any(map(marks.prove, examples)):
            return marks
    unclear = [
        example for shaped, example in examples.items() if any(marks.group(shaped) for marks in possible)
    ]
    without_groups = [marks for marks in possible if not marks.thousands]
    if unclear and not (without_groups and all(settled.get(column) for column, _ in unclear)):
        column, text = min(unclear, key=lambda example: example[0] in settled)
        how = f", or say that it is the former by column_types={f'{column}=number'!r}"
        raise ValueError(
            f"{text!r} in column {column!r} may have a decimal mark or a thousands separator: write numbers "
            f"without the latter{'' if column in settled else how}"
        )
    return without_groups[0]


def may_have_groups(shapes: Iterable[str]) -> bool:
    """Whether all numbers with a mark, and one at least, may have it between groups of three digits."""
    marked = [shaped for shaped in shapes if re.search("[.,]", shaped)]
    return bool(marked) and all(any(marks.group(shaped) for marks in fitting(shaped)) for shaped in marked)


def look_like_codes(texts: Iterable[str]) -> bool:
    """Whether numbers with a point are rather codes, as 1.9, 1.10, 1.11 are, of plots or versions.

    Their last part counts: no zero leads it, it ends in one though others are shorter, and it stays small
    for as many codes as there are. Decimals, written with a fixed number of digits or as few as needed,
    do not.
    """
    parts = [text.partition(".")[::2] for text in texts]
    if not all(whole.isdecimal() and (last.isdecimal() or last == "") for whole, last in parts):
        return False
    lasts = {last for _, last in parts if last}
    n_digits = {len((whole + last).lstrip("0")) for whole, last in parts}
    return (
        {len(last) for last in lasts} == {1, 2}
        and not lasts.isdisjoint("123456789")
        and not any(last[0] == "0" and last != "0" for last in lasts)
        and len(n_digits) > 1  # else they have as many digits as are significant
        and not lasts.isdisjoint(("10", "20"))
        and max(map(int, lasts)) <= 10 + 2 * len(lasts)
    )


def are_seasons(texts: Iterable[str]) -> bool:
    """Whether all texts are like 2005-06, two years in a row, so that the last part is hardly a month."""
    pairs = (re.fullmatch(r"(\d{4})-(\d\d)", text, re.ASCII) for text in texts)
    return all(pair and (int(pair[1]) + 1) % 100 == int(pair[2]) for pair in pairs)


def without_zone(dates: pd.Series) -> pd.Series:
    """Dates with a time zone in UTC, others as they are."""
    return dates.dt.tz_convert(None) if getattr(dates.dt, "tz", None) else dates


def parse_dates(texts: pd.Series, formats: Sequence[str]) -> pd.Series | None:
    """Dates without a time zone, by the first format that fits them all; None if there is no such format.

    Raises
    ------
    ValueError
        If only some have a time zone.
    """
    has_zone = texts.str.contains(_ZONE)
    if has_zone.any() and not has_zone.all():
        raise ValueError("must hold dates that all have a time zone, or none of them")
    for date_format in formats:
        with suppress(ValueError):
            return without_zone(pd.to_datetime(texts, format=date_format, utc=bool(has_zone.any())))
    return None


def read_dates(texts: pd.Series, said: str = "") -> dict[str, pd.Series]:
    """What dates may mean, by the order of their parts: two readings where day and month may change places.

    Parameters
    ----------
    texts : pandas.Series of shape (n_dates,)
    said : str, default=""
        "day first" or "month first", if that is known.

    Returns
    -------
    dict of str to pandas.Series of shape (n_dates,)
        For "year first", "month by name", "day first" or "month first".

    Raises
    ------
    ValueError
        If no order suits all of them; without name and place of the column.
    """
    other = {"day first": "month first", "month first": "day first"}.get(said)
    found = {order: parse_dates(texts, FORMATS[order]) for order in FORMATS if order != other}
    if known := {order: dates for order, dates in found.items() if dates is not None}:
        return known
    how = f"with the {said} and" if other else "in one order, with"
    raise ValueError(f"must hold dates {how} years of four digits")


def read_times(texts: pd.Series) -> tuple[pd.Series, str]:
    """Times since midnight, and the rule by which they were read.

    Raises
    ------
    ValueError
        If some have seconds or AM and PM, and others do not; without name and place of the column.
    """
    with_seconds, halves = texts.str.count(":") == 2, texts.str.contains("m", case=False)
    if halves.any():
        tidy = texts.str.upper().str.replace(" ", "")
        times = parse_dates(tidy, ["%I:%M%p", "%I:%M:%S%p"])
        if times is None or not halves.all():
            raise ValueError("must hold times that all have AM or PM, from 1 to 12, or none of them")
        return times - times.dt.normalize(), "times of day, AM and PM"
    if with_seconds.any() and not with_seconds.all():
        raise ValueError("must hold times that all have seconds, or none of them")
    times = pd.to_timedelta(texts if with_seconds.any() else texts + ":00")
    if with_seconds.any():
        return times, "times, hours:minutes:seconds"
    hours = texts.str.partition(":")[0]
    of_day = int(hours.astype(int).max()) < 24 and len(set(hours)) > 1
    if of_day and (hours.str.len().eq(2).all() or len(set(hours.str.len())) > 1):
        return times, "times of day, hours:minutes"
    example = f"{texts.iloc[0]} is {show_time(times.iloc[0])}"
    return times, f"hours:minutes, {example} (assumed: no ratio, no minutes:seconds)"


def show_time(time: pd.Timedelta) -> str:
    """A time in words: 1 h 10 min."""
    seconds = time.total_seconds()
    text = f"{int(seconds // 3600)} h {int(seconds // 60 % 60)} min"
    return text + (f" {seconds % 60:g} s" if seconds % 60 else "")
