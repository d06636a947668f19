"""Random tables in random dialects, with what is meant by each of their cells."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

SEPARATORS = [",", ";", "\t", "|"]
MARKS = [(".", ""), (",", ""), (".", ","), (",", "."), (",", " "), (".", "'"), (".", " "), (",", "\xa0")]
DATES = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d-%b-%Y", "%Y/%m/%d", "%Y-%m"]
DATES += ["%B %d, %Y", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%d.%m.%y"]
TIMES = ["%H:%M", "%H:%M:%S", "%I:%M %p"]
GAPS = ["", "", "NA", "?", "-", "null", "n/a"]
NAMES = ["a", "size", "Größe", "price, total", "x;y", "t|u", "'t Hof", "n (mm)", "город", "2020", "#id"]
NAMES += ['q"r', "tab\there", "温度", "patient", ""]
WORDS = ["north", "Süd", "x, y", "a;b", "Tver", "it's", "2nd floor", "#3", "a|b", "12-a", "n.d.", "yes"]
WORDS += ["no", "AT", "DE", "tab\t.", "12a", "12b", "18-24", "Москва"]
UNREAD = [
    "{a} years",
    "EUR {a}",
    "{x} USD",
    "ca. {a}",
    "{x}±0.1",
    "{a}-{b}",
    "{a}/{b}",
    "pH {x}",
    "{a} mg / l",
]
UNREAD += ["{d.year}Q{q}", "{d.year}-W{d.day:02}", "{d:%m}/{d.year}", "{month} {d.year}", "{q}:{s:02}.{q}"]
UNREAD += [
    "{d.day:02}-{month}-{d.year}",
    "{d.day}. {month} {d:%y}",
    "{d:%Y%m%d}",
    "{a} ft {q} in",
    "{a} x {b}",
]
MONTHS = ["janv", "févr", "mars", "avril", "mai", "juin", "juil", "août", "sept", "okt", "nov.", "Dezember"]
CODES = [((98, 99), 1, 5), ((-9, -8), 1, 5), ((888, 999), 20, 45), ((0,), 20, 46), ((-1,), 20, 46)]
MARKS_OF_GAPS = ["--", "missing", "n.d.", "k.A.", "unknown"]  # that are not on the list
WITH_MARKS = {"float", "fixed", "whole", "date", "time", "unread", "units"}
AMONG_NUMBERS = ["n.d.", "<0.5", "k.A.", "(5)", "8 mm", "5-", "–5", "Total", "inf", "1e400", "−2", "x"]
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "cp1251", "cp850", "gb18030"]
KINDS = ["float", "fixed", "whole", "huge", "small", "sentinel", "date", "time", "truth"]
KINDS += ["codes", "points", "long", "words", "ratio", "season", "mixed", "units", "constant", "row", "group"]
KINDS += ["unread", "unread", "unread", "coded", "rooms"]
PLAIN = {"float", "fixed", "whole", "truth", "row", "group"}


@dataclass
class Table:
    """A table as somebody writes it, and how it is asked to be read."""

    name: str
    content: bytes
    columns: dict[str, list]  # by name, what is meant; empty where a part of the file is lost
    options: dict[str, str] = field(default_factory=dict)
    expected: list[tuple[str, int]] = field(default_factory=list)  # what is to be noticed, at which column
    plain: bool = False


def make_column(
    kind: str, n: int, marks: tuple[str, str], rng: np.random.Generator
) -> tuple[list, list[str]]:
    """What is meant by n cells, and what is written in them."""
    if kind == "float":
        meant = rng.normal(scale=10.0 ** rng.integers(-3, 6), size=n).round(int(rng.integers(1, 9))).tolist()
        if rng.random() < 0.2:
            meant = (rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)).tolist()
        return meant, [repr(value).replace(".", marks[0]) for value in meant]
    if kind in ("fixed", "whole", "huge", "small", "sentinel"):
        decimals = {"whole": 0, "huge": 2 * rng.integers(2), "small": 3}.get(kind, rng.integers(1, 5))
        low, high = {"huge": (1000, 10**7), "small": (1, 9), "sentinel": (0, 90)}.get(kind, (-5000, 5000))
        meant = rng.uniform(low, high, n).round(decimals).tolist()
        if kind == "sentinel":
            meant = [float(rng.choice([value, value, -999, 9999])) for value in meant]
        written = [f"{value:{',' * bool(marks[1])}.{decimals}f}" for value in meant]
        return meant, [text.translate({ord("."): marks[0], ord(","): marks[1]}) for text in written]
    if kind == "coded":
        codes, low, high = CODES[rng.integers(len(CODES))]
        others = rng.integers(low, high + 1, n)
        meant = np.where(rng.random(n) < 0.4, rng.choice(codes, n), others).astype(float).tolist()
        return meant, [f"{value:.0f}" for value in meant]
    if kind == "date":
        form = str(rng.choice(DATES))
        dates = [datetime(1950, 1, 1) + timedelta(seconds=int(s)) for s in rng.integers(0, 10**9 * 3, n)]
        dates = [value.replace(day=1) for value in dates] if rng.random() < 0.3 else dates
        written = [value.strftime(form) for value in dates]
        meant = [datetime.strptime(text, form) for text in written]
        return (written if form == "%d.%m.%y" else meant), written
    if kind == "time":
        form = str(rng.choice(TIMES))
        times = [datetime(1900, 1, 1) + timedelta(seconds=int(s)) for s in rng.integers(0, 86400, n)]
        written = [value.strftime(form) for value in times]
        return [datetime.strptime(text, form) - datetime(1900, 1, 1) for text in written], written
    if kind == "truth":
        meant = (rng.random(n) < 0.5).tolist()
        return meant, [str(value) for value in meant]
    numbers, whole = rng.integers(0, 99, n), rng.integers(1, 4, n)
    texts = {
        "rooms": lambda: [f"{a}E{b}" for a, b in zip(whole, numbers, strict=True)],
        "unread": lambda: [write_unread(form, rng) for _ in range(n)],
        "codes": lambda: [f"{value:05}" for value in rng.integers(0, 99999, n)],
        "points": lambda: [f"{a}.{b}" for a, b in zip(whole, rng.integers(1, 13, n), strict=True)],
        "long": lambda: [str(value) for value in rng.integers(10**16, 10**18, n)],
        "words": lambda: rng.choice(rng.choice(WORDS, 4), n).tolist(),
        "ratio": lambda: [f"{a}:{b}" for a, b in zip(whole, rng.integers(10, 60, n), strict=True)],
        "season": lambda: [f"{year}-{(year + 1) % 100:02}" for year in rng.integers(1990, 2011, n)],
        "mixed": lambda: [str(rng.choice([word, number])) for number in numbers],
        "units": lambda: [f"{number}{unit}" for number in numbers],
        "constant": lambda: [str(rng.choice(WORDS))] * n,
        "row": lambda: [f"row {number}" for number in rng.permutation(n)],
        "group": lambda: [f"P{place // 2}" for place in range(n)],
    }
    word, unit = rng.choice(AMONG_NUMBERS), rng.choice([" mm", "%", " €", "kg/ha"])
    form = str(rng.choice(UNREAD))
    written = texts[kind]()
    return [(text,) for text in written] if kind in ("unread", "units") else written, written


def write_unread(form: str, rng: np.random.Generator) -> str:
    """A number, date or time in a form that is not read."""
    a, b, q, s = rng.integers((1, 1, 1, 10), (120, 80, 5, 60))
    day = date(1990, 1, 1) + timedelta(days=int(rng.integers(10**4)))
    return form.format(a=a, b=a + b, q=q, s=s, x=rng.integers(1, 500) / 10, d=day, month=rng.choice(MONTHS))


def make_table(rng: np.random.Generator) -> Table:
    """A table of 3 to 40 rows, its last column y a number that may be missing."""

    def chance(p: float) -> bool:
        return rng.random() < p

    n, separator = int(rng.integers(3, 12 if chance(0.6) else 41)), str(rng.choice(SEPARATORS))
    marks = MARKS[rng.integers(len(MARKS)) if chance(0.7) else 0]
    names = [*rng.choice(NAMES, rng.integers(1, 5), replace=False).tolist(), "y"]
    kinds = [*rng.choice(KINDS, len(names) - 1), str(rng.choice(["fixed", "whole", "float", "sentinel"]))]
    gap, has_gaps, quote_all = str(rng.choice(GAPS)), chance(0.5), chance(0.3)
    meant, written, expected = {}, [], []
    is_plain = marks == MARKS[0] and set(kinds) <= PLAIN | {"sentinel"}
    unlabeled = rng.permutation(n) < rng.choice([1, 2, n // 2])  # where the first column has gaps, too
    on_one_side = n > 12 and len(names) > 2 and chance(0.2)
    kinds[0] = "float" if on_one_side else kinds[0]
    for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        values, texts = make_column(kind, n, marks, rng)
        share = 0.4 if name == "y" else 0.2
        empty = rng.random(n) < (share if has_gaps else 0)
        if on_one_side and (place == 0 or name == "y"):
            empty = unlabeled
        mark = str(rng.choice(MARKS_OF_GAPS)) if kind in WITH_MARKS and chance(0.1) else gap
        meant[name] = [None if gone else value for gone, value in zip(empty, values, strict=True)]
        written.append([mark if gone else text for gone, text in zip(empty, texts, strict=True)])
        known = [value for value in meant[name] if value is not None]
        if kind == "coded":
            rest = set(known) & set(range(1, 47))
            n_times = min(map(known.count, set(known) - rest), default=0)
            expected += [("codes", place)] * (
                n_times > 2 and len(rest) > (3 if max(rest, default=9) < 6 else 8)
            )
    twice = str(rng.choice(["none"] * 18 + ["some", "all"]))
    if on_one_side and len(set(meant[names[0]])) > 3 and (unlabeled.sum() > 2 or twice == "none"):
        expected.append(("left out" if unlabeled.sum() > 2 else "kept", 0))
    rows = [list(row) for row in zip(*written, strict=True)]
    if twice != "none":
        again = list(range(n)) if twice == "all" else rng.integers(0, n, max(1, n // 3)).tolist()
        is_clear = (
            twice == "all" and n > 12 and kinds[0] == "float" and kinds[-1] != "sentinel" and not has_gaps
        )
        expected += [("repeats", 0)] * is_clear
        rows += [rows[place] for place in again]
        meant = {name: [*values, *(values[place] for place in again)] for name, values in meant.items()}
    if chance(0.04):
        rows, meant, expected = [[*(f"[{name[:2]}]" for name in names[1:]), ""], *rows], {}, [("total", 0)]
    options: dict[str, str] = {}
    if chance(0.15):
        kind = rng.choice(["number", "category", "text", "date", "time", "day first", "month first"])
        options["column_types"] = f"{rng.choice([name for name in names if name])}={kind}"
    if chance(0.1):
        options["missing_values"] = str(rng.choice(["-999", "9999", "n.d., -999", "5"]))
    if chance(0.03):
        frame = io.BytesIO()
        pd.DataFrame(meant).to_parquet(frame)
        return Table("t.parquet", frame.getvalue(), meant, options)

    def quote(text: str) -> str:
        needs = quote_all or any(char in text for char in (separator, '"', "\n"))
        return '"' + text.replace('"', '""') + '"' if needs else text

    lines = [separator.join(map(quote, row)) for row in [names, *rows]]
    start = str(rng.choice(["", "", "", "", "# a logger", f"sep={separator}", "# one\n# two"]))
    is_whole, has_names = not chance(0.02), not chance(0.03)
    lines = [*start.splitlines(), *(lines if has_names else lines[1:])]
    text = str(rng.choice(["\n", "\n", "\r\n", "\r"])).join([*lines, ""])
    encoding = str(rng.choice(ENCODINGS))
    fits = text.encode(encoding, errors="ignore").decode(encoding) == text
    content = text.encode(encoding if fits else "utf-8")
    content = content if is_whole else content[:-7]
    ending = str(rng.choice(["csv"] * 6 + ["tsv", "txt", "csv.gz", "csv.bz2", "zip"]))
    packings: dict[str, Any] = {"csv.gz": gzip.compress, "csv.bz2": bz2.compress, "zip": _zipped}
    meant = meant if is_whole and has_names else {}
    expected = expected if is_whole and has_names and not options else []
    return Table(f"t.{ending}", packings.get(ending, bytes)(content), meant, options, expected, is_plain)


def _zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("folder/t.csv", content)
    return file.getvalue()


def are_equal(read_as: pd.Series, meant: list) -> bool:
    """Whether what was read is what was meant; numbers of texts may be numbers if nothing is lost."""
    if [value is None for value in meant] != read_as.isna().tolist():
        return False
    known = [value for value in meant if value is not None]
    got = read_as.dropna().tolist()
    if all(isinstance(value, str) for value in known) and read_as.dtype.kind == "f":
        decimals = {len(text.strip().partition(".")[2]) for text in known}  # as a number format writes them
        form = ".15g" if len(decimals) > 1 else f".{max(decimals, default=0)}f"
        return all(f"{value:{form}}" == text.strip() for value, text in zip(got, known, strict=True))
    if any(isinstance(value, bool) for value in known):
        return [str(value) for value in got] == [str(value) for value in known]
    return all(map(_same, got, known))


def _same(got: Any, meant: Any) -> bool:
    if isinstance(meant, int | float):
        return isinstance(got, float) and bool(np.isclose(got, meant, rtol=1e-12, atol=0))
    if isinstance(meant, date):
        return isinstance(got, pd.Timestamp) and got == pd.Timestamp(meant)
    return got == (meant.strip() if isinstance(meant, str) else meant)


def overlooked(data: Any, table: Table) -> str:
    """What should have been noticed in a table, or done to a column, and was not; "" if nothing."""
    for what, place in table.expected:
        name, topics = list(data.reading.cells)[place], [notice.topic for notice in data.notices]
        if what not in [*topics, "kept" if name in data.features else "left out"]:
            return f"{what} of {name} in {topics}"
    return ""


def misread(reading: Any, table: Table) -> str:
    """What was read as something else than meant although nothing was said to be a guess; "" if nothing."""
    if not table.columns or table.options or any("UTF-8" in said for said in reading.assumed):
        return ""
    is_text = not table.name.endswith("parquet")
    names = [name.lstrip("# " * (is_text and place == 0)) for place, name in enumerate(table.columns)]
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    if list(reading.cells) != names:
        return f"names {list(reading.cells)}"
    places = reading.cells.index.get_indexer(reading.table.index)
    for name, values in zip(names, table.columns.values(), strict=True):
        values = [values[place] for place in places]
        if name not in reading.table or reading.columns["guessed"][name]:
            continue
        if not are_equal(reading.table[name], values):
            return f"{name}: {values[:5]} as {reading.table[name].tolist()[:5]}"
    return ""
