"""Dates and times of day as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pandas as pd

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


def are_seasons(texts: Iterable[str]) -> bool:
    """Whether all texts are like 2005-06, two years in a row, so that the last part is hardly a month."""
    pairs = [re.fullmatch(r"(\d{4})-(\d\d)", text, re.ASCII) for text in texts]
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
        try:
            return without_zone(pd.to_datetime(texts, format=date_format, utc=bool(has_zone.any())))
        except ValueError:
            continue
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
    how = f"with the {said}, as column_types says, and" if other else "in one order, with"
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
