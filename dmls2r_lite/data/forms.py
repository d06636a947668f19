"""Numbers, dates and times of day as people write them.

Which marks stand for what in numbers is decided for a whole file, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

_TO_ASCII = str.maketrans(
    {"٫": ".", "．": ".", "٬": ",", "，": ",", "’": "'"} | dict.fromkeys("\xa0\u2009\u202f", " ")
)
_TO_SHAPE = str.maketrans("0123456789", "9" * 10)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_CLOCK = r"([T ]\d{1,2}[:.]\d{2}\S*( ?[ap]m)?)?"
DATE = re.compile(
    rf"(\d{{4}}-\d{{2}}|\d{{4}}([-/.])\d{{1,2}}\2\d{{1,2}}|\d{{1,2}}([-/.])\d{{1,2}}\3(\d{{4}}|\d{{2}})"
    rf"|\d{{1,2}}([-/. ]){_MONTH}\5(\d{{4}}|\d{{2}})|{_MONTH} \d{{1,2}},? \d{{4}}){_CLOCK}"
    r"|\d{8}T(\d\d){2,3}Z?",
    re.IGNORECASE | re.ASCII,
)
COMPACT = re.compile(  # 20200131, 2020013123: dates only if that is said
    r"((?:18|19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))((?:[01]\d|2[0-3])(?:[0-5]\d){0,2})?",
    re.ASCII,
)
TIME = re.compile(r"(\d{1,3}):[0-5]\d(:[0-5]\d)?( ?[ap]m)?", re.IGNORECASE | re.ASCII)
_ZONE = re.compile(r"(?:\dZ|:\d{2}\S*[+-]\d{2}(?::?\d{2})?)$")
_NEEDLESS = re.compile(r"\.0$| 00:00:00$")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_BY_NAME = ("%d-%b-%Y", "%d/%b/%Y", "%d.%b.%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y")
_DATES = {
    "year first": ["ISO8601", "%Y-%m-%d", "%Y/%m/%d"],  # ISO 8601 has no AM and PM
    "month by name": [date.replace("b", name) for date in _BY_NAME for name in "bB"],
    "day first": [f"%d{mark}%m{mark}%Y" for mark in "./-"],
    "month first": [f"%m{mark}%d{mark}%Y" for mark in "./-"],
}
FORMATS = {
    order: [f"{date}{clock}" for date in dates for clock in _CLOCKS] for order, dates in _DATES.items()
}


_QUANTITY = r"(\d{1,3}([.,'’\s]\d{3})+([.,]\d+)?|\d{1,2}(,\d\d)+,\d{3}|\d+([.,]\d*)?|[.,]\d+)"
_CURRENCY = (
    "EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|BRL|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|ZAR|Rs|kr|zł|[A-Z]{1,2}\\$"
)
_DECORATED = re.compile(  # a number with a sign, brackets, a currency or a unit around it
    rf"([^\w\s]{{0,3}}|{_CURRENCY}|ca|approx|about|etwa)\.?\s?[^\w\s]?{_QUANTITY}(e[+-]?\d+)?\s?"
    r"[°%€$£µ‰]?(?!(?:st|nd|rd|th)\b)(?P<unit>([^\W\d]+[²³23]?([ ./*^·-]{1,3}[^\W\d]+[²³23]?){0,3})?)"
    r"[^\w\s]{0,2}"
)
_PART = re.compile(r"\d+(?:[.,]\d+)*")  # of a text: a number, perhaps
_PADDED = re.compile(r"(?<![\d.,:°'h])0\d")
_YEAR = "(18|19|20)[0-9]{2}"
_ANY_MONTH = (  # by its first letters, in a few languages
    r"(?<![^\W\d])(jan|ene|gen|f[eé][bv]|m[aä]r|mrt|ma[giyj]|[aá][pbv]r|ju[ilno]|giu|lug|a[uo][guû]|ago|se[pt]"
    r"|o[ck]t|ott|out|nov|d[eéi][czs])[^\W\d]*\.?"
)
_LIKE_DATE = re.compile(
    rf"\D*(\d{{1,2}}\D+){{0,2}}{_YEAR}(\D+(\d{{1,2}}|{_YEAR})){{0,3}}\D*"
    rf"|(\d{{1,2}}\W{{0,2}})?{_ANY_MONTH}\W?\d\d|\d+ ?h ?\d\d",
    re.IGNORECASE,
)


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
            advice = "write all with one decimal mark, and without thousands separators"
            raise ValueError(f"mixes ways to write numbers: {', '.join(narrowing)}: {advice}")
    for marks in possible:
        if any(map(marks.prove, examples)):
            return marks
    unclear = [  # a space or an apostrophe is no decimal mark
        example
        for shaped, example in examples.items()
        if any(marks.thousands in ".," and marks.group(shaped) for marks in possible)
    ]
    without_groups = [marks for marks in possible if not marks.thousands]
    if unclear and not (without_groups and all(settled.get(column) for column, _ in unclear)):
        column, text = min(unclear, key=lambda example: example[0] in settled)
        how = f", or say that it is the former by column_types={f'{column}=number'!r}"
        raise ValueError(
            f"{text!r} in column {column!r} may have a decimal mark or a thousands separator: write numbers "
            f"without the latter{'' if column in settled else how}"
        )
    return (without_groups or possible)[0]


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


def decorated(texts: Iterable[str]) -> set[str]:
    """Those of some texts that hold one number, with a sign, brackets, a currency or a unit around it.

    12a and 12b do not, nor do 221 Baker Street and 10 Downing Street: units are few.
    """
    units = {text: match["unit"][:3] for text in texts if (match := _DECORATED.fullmatch(text))}
    unsure = {text for text, unit in units.items() if unit and re.search(r"[0-9][^\W\d]|[^\W\d]{5}", text)}
    return set(units) - unsure if len({units[text] for text in unsure}) > 1 else set(units)


def seem_unread(texts: Sequence[str]) -> bool:
    """Whether texts are rather numbers, dates or times in a form that is not read than names.

    Their parts count. All have a year, and beside it at most a day, month, quarter or week. Or all begin with
    a number, as 5-10, 120/80 and 5 ft 3 in do, or have decimals, as 0.5±0.1 and pH 7.4. Parts of names, as of
    12a, 50-00-0 and 1.2.3, are letters, led by zeros, long and of one length, or no numbers; or what stands
    between them differs.
    """
    texts = texts[:1000]  # which tell enough
    numbers = [part for text in texts for part in _PART.findall(text)]
    between = {_PART.sub("0", re.sub(_ANY_MONTH, "month", text.lower())) for text in texts}
    if not all(map(_PART.search, texts)) or len(between) > max(1, len(texts) / 2):
        return False
    if all(map(_LIKE_DATE.fullmatch, texts)):
        return True
    if any(map(_PADDED.search, texts)) or not all(re.fullmatch(_QUANTITY, number) for number in numbers):
        return False
    n_digits = {len(number) for number in numbers}
    differ = len(n_digits) > 1 or (len(numbers) > len(texts) and max(n_digits) < 4)
    begin = all(re.match(r"\W*[0-9]", text) for text in texts) and max(map(len, between)) > 2  # not as in 12a
    return not all(map(str.isdecimal, numbers)) or (begin and differ)


def are_seasons(texts: Iterable[str]) -> bool:
    """Whether all texts are like 2005-06, two years in a row, so that the last part is hardly a month."""
    pairs = (re.fullmatch(r"(\d{4})-(\d\d)", text, re.ASCII) for text in texts)
    return all(pair and (int(pair[1]) + 1) % 100 == int(pair[2]) for pair in pairs)


def as_texts(values: pd.Series) -> pd.Series:
    """Values as a text file has them, each by itself: whole numbers without a point, days without a clock.

    Raises
    ------
    ValueError
        If a value is a list, for example; does not name the column.
    """
    cells = values.tolist()
    if several := [cell for cell in cells if isinstance(cell, (list, dict, np.ndarray, bytes))]:
        raise ValueError(f"must hold one value per cell, got {several[0]!r}")
    pairs = zip(values.astype(str), cells, strict=True)
    texts = [text if isinstance(cell, str) else _NEEDLESS.sub("", str(text)) for text, cell in pairs]
    return pd.Series(texts, values.index, dtype=object).str.strip().where(values.notna(), np.nan)


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
    _check_alike(texts, texts.str.contains(_ZONE), "dates that all have a time zone,")
    for date_format in formats:
        with suppress(ValueError):
            return without_zone(pd.to_datetime(texts, format=date_format, utc=True))
    return None


def _check_alike(texts: pd.Series, is_one: pd.Series, all_have: str) -> None:
    """Raise ValueError unless all texts are of a kind, or none; names one of each."""
    if is_one.any() and not is_one.all():
        got = " and ".join(repr(some.iloc[0]) for some in (texts[is_one], texts[~is_one]))
        raise ValueError(f"must hold {all_have} or none of them, got {got}")


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
        If no order suits all of them; names those that the best one does not suit, but not the column.
    """
    other = {"day first": "month first", "month first": "day first"}.get(said)
    texts = texts.str.replace(COMPACT, lambda match: "T".join(filter(None, match.groups())), regex=True)
    texts = texts.str.replace("(?<=[0-9])(?=[ap]m$)", " ", regex=True, case=False)
    found = {order: parse_dates(texts, FORMATS[order]) for order in FORMATS if order != other}
    if known := {order: dates for order, dates in found.items() if dates is not None}:
        return known
    formats = (form for order in found for form in FORMATS[order])
    parsed = (pd.to_datetime(texts, format=form, errors="coerce", utc=True) for form in formats)
    wrong = min((texts[dates.isna()] for dates in parsed), key=len)
    how = f"with the {said} and" if other else "in one order, with"
    raise ValueError(f"must hold dates {how} years of four digits, got {', '.join(map(repr, wrong[:3]))}")


def read_times(texts: pd.Series) -> tuple[pd.Series, str]:
    """Times since midnight, and the rule by which they were read.

    Raises
    ------
    ValueError
        If some have seconds or AM and PM, and others do not; does not name the column.
    """
    with_seconds, halves = texts.str.count(":") == 2, texts.str.contains("m", case=False)
    all_have = "times that all have AM or PM, from 1 to 12,"
    _check_alike(texts, halves, all_have)
    if halves.any():
        times = parse_dates(texts.str.upper().str.replace(" ", ""), ["%I:%M%p", "%I:%M:%S%p"])
        if times is None:
            raise ValueError(f"must hold {all_have} got {texts.iloc[0]!r}")
        return times - times.dt.normalize(), "times of day, AM and PM"
    _check_alike(texts, with_seconds, "times that all have seconds,")
    if with_seconds.any():
        return pd.to_timedelta(texts), "times, hours:minutes:seconds"
    times, hours = pd.to_timedelta(texts + ":00"), texts.str.partition(":")[0]
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
