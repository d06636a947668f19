"""Random tables in random dialects are read back equal, or refused with a reason; a guess is told."""

from dataclasses import dataclass
from datetime import date, datetime

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dmls2r_lite.data.reading import Reading, read

SEPARATORS = [",", ";", "\t", "|"]
MARKS = [(".", ""), (",", ""), (".", ","), (",", "."), (",", " "), (".", "'"), (".", " ")]
DATES = [
    *(
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d-%m-%Y",
        "%d-%b-%Y",
        "%Y/%m/%d",
        "%Y-%m",
        "%B %d, %Y",
    ),
    *("%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p"),
]
KINDS = [
    *(
        "float",
        "fixed",
        "whole",
        "huge",
        "small",
        "codes",
        "points",
        "long",
        "words",
        "date",
        "time",
        "ratio",
    ),
    *("season", "truth", "mixed", "units"),
]
TIMES = ["%H:%M", "%H:%M:%S", "%I:%M %p"]
GAPS = ["", "NA", "?", "-", "null"]
NAMES = [
    "a",
    "size",
    "Größe",
    "price, total",
    "x;y",
    "t|u",
    "'t Hof",
    "n (mm)",
    "город",
    "2020",
    "#id",
    'q"r',
    "tab\there",
]
WORDS = [
    "north",
    "Süd",
    "x, y",
    "a;b",
    "Tver",
    "it's",
    "2nd floor",
    "#3",
    "a|b",
    "12-a",
    "n.d.",
    "yes",
    "no",
    "AT",
    "tab\t.",
]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "cp1251", "gb18030"]


@dataclass
class Table:
    """A table as somebody writes it."""

    content: bytes
    columns: dict[str, list]  # by name, what is meant


def number(value, decimals, decimal, thousands):
    text = f"{value:,.{decimals}f}" if thousands else f"{value:.{decimals}f}"
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


@st.composite
def columns(draw, n, marks):
    """What is meant and what is written in a column, None for a gap."""
    kind = draw(st.sampled_from(KINDS))

    def lists(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    if kind == "float":
        meant = lists(st.floats(-1e6, 1e6, width=32).map(float))
        return meant, [repr(value).replace(".", marks[0]) for value in meant]
    if kind in ("fixed", "whole", "huge", "small"):
        decimals = {"whole": 0, "huge": draw(st.sampled_from([0, 2])), "small": 3}.get(
            kind, draw(st.integers(1, 4))
        )
        low, high = {"huge": (1000, 10**7), "small": (1, 9)}.get(kind, (-5000, 5000))
        meant = [round(value, decimals) for value in lists(st.floats(low, high))]
        return meant, [number(value, decimals, *marks) for value in meant]
    if kind == "codes":
        meant = [f"{value:05}" for value in lists(st.integers(0, 99999))]
        return meant, meant
    if kind == "points":
        meant = [f"{whole}.{part}" for whole, part in lists(st.tuples(st.integers(1, 9), st.integers(1, 12)))]
        return meant, meant
    if kind == "long":
        meant = [str(value) for value in lists(st.integers(10**16, 10**18))]
        return meant, meant
    if kind == "words":
        meant = lists(st.sampled_from(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))))
        return meant, meant
    if kind == "date":
        pattern = draw(st.sampled_from(DATES))
        dates = lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
        if draw(st.booleans()):
            dates = [value.replace(day=1) for value in dates]
        written = [value.strftime(pattern) for value in dates]
        return [datetime.strptime(text, pattern) for text in written], written
    if kind == "time":
        pattern = draw(st.sampled_from(TIMES))
        written = [value.strftime(pattern) for value in lists(st.times())]
        return [datetime.strptime(text, pattern) - datetime(1900, 1, 1) for text in written], written
    if kind == "ratio":
        meant = [f"{draw(st.integers(1, 3))}:{part}" for part in lists(st.integers(10, 59))]
        return meant, meant
    if kind == "season":
        meant = [f"{year}-{(year + 1) % 100:02}" for year in lists(st.integers(1990, 2011))]
        return meant, meant
    if kind == "truth":
        meant = lists(st.booleans())
        return meant, [str(value) for value in meant]
    if kind == "mixed":
        word = draw(st.sampled_from(["n.d.", "<0.5", "k.A.", "(5)", "8 mm", "5-", "–5", "Total", "inf"]))
        meant = lists(st.sampled_from([word]) | st.integers(0, 99).map(str))
        return meant, meant
    meant = [f"{value} mm" for value in lists(st.integers(0, 99))]
    return meant, meant


@st.composite
def tables(draw):
    n, separator, marks = (
        draw(st.integers(3, 12)),
        draw(st.sampled_from(SEPARATORS)),
        draw(st.sampled_from(MARKS)),
    )
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True))
    quote_all, encoding = draw(st.booleans()), draw(st.sampled_from(ENCODINGS))
    gap, has_gaps = draw(st.sampled_from(GAPS)), draw(st.booleans())
    end, start = (
        draw(st.sampled_from(["\n", "\r\n", "\r"])),
        draw(st.sampled_from(["", "", "", "# a logger", "sep="])),
    )
    meant, written = {}, []
    for name in names:
        values, texts = draw(columns(n, marks))
        empty = [has_gaps and draw(st.integers(0, 4)) == 0 for _ in range(n)]
        meant[name] = [None if is_empty else value for is_empty, value in zip(empty, values, strict=True)]
        written.append([gap if is_empty else text for is_empty, text in zip(empty, texts, strict=True)])

    def quote(text):
        needs = quote_all or any(char in text for char in (separator, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if needs else text

    rows = [names, *zip(*written, strict=True)]
    lines = [separator.join(map(quote, row)) for row in rows]
    lines = [start + (separator if start == "sep=" else ""), *lines] if start else lines
    text = end.join(lines) + end
    try:
        content = text.encode(encoding)
    except UnicodeEncodeError:
        content = text.encode()
    return Table(content, meant)


def judge(table: Table, folder) -> str:
    """equal, told (a guess is wrong, and said to be one) or refused; what is misread fails."""
    path = folder / "t.csv"
    path.write_bytes(table.content)
    try:
        reading = read(path)
    except ValueError as error:
        return "refused" if str(error).startswith(str(path)) else f"an error that names no file: {error}"
    return compare(reading, table)


def compare(reading: Reading, table: Table) -> str:
    told = bool(reading.assumed) and any("UTF-8" in said for said in reading.assumed)
    verdict = "equal"
    names = [name.lstrip("# ") if place == 0 else name for place, name in enumerate(table.columns)]
    if list(reading.cells) != names:
        assert told, (list(reading.cells), names)
        return "told"
    kept = [place for place in range(len(reading.cells)) if place in set(reading.table.index)]
    for name, values in zip(names, table.columns.values(), strict=True):
        values = [values[place] for place in kept]
        if name not in reading.table or are_equal(reading.table[name], values):
            continue
        assert reading.columns["guessed"][name] or told, (
            name,
            values,
            reading.table[name].tolist(),
            reading.columns.loc[name].tolist(),
        )
        verdict = "told"
    return verdict


def are_equal(read_as: pd.Series, meant: list) -> bool:
    """Whether what was read is what was meant; numbers of texts may be numbers if nothing is lost."""
    if any((value is None) != bool(gap) for value, gap in zip(meant, read_as.isna(), strict=True)):
        return False
    known = [value for value in meant if value is not None]
    got = read_as.dropna().tolist()
    if all(isinstance(value, str) for value in known) and read_as.dtype.kind == "f":
        decimals = {len(text.strip().partition(".")[2]) for text in known}  # as a number format writes them
        formats = [".15g"] if len(decimals) > 1 else [f".{n}f" for n in decimals]
        return all(f"{value:{formats[0]}}" == text.strip() for value, text in zip(got, known, strict=True))
    if any(isinstance(value, bool) for value in known):
        return [str(value) for value in got] == [str(value) for value in known]
    return all(same(a, b) for a, b in zip(got, known, strict=True))


def same(got, meant) -> bool:
    if isinstance(meant, int | float):
        return isinstance(got, float) and np.isclose(got, meant, rtol=1e-12, atol=0)
    if isinstance(meant, date):
        return isinstance(got, pd.Timestamp) and got == pd.Timestamp(meant)
    return got == meant


@settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ]
)
@given(table=tables())
def test_what_is_written_is_read_back_or_refused(table, tmp_path):
    assert judge(table, tmp_path) in ("equal", "told", "refused")
