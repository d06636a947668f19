"""From text to cells: what separates columns, which line holds their names, and what is no table."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..foundation.parameters import demand
from .forms import is_number

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_CHUNK = 2**15  # rows
MISSING = frozenset(["", "?", "-", ".", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan"])
MISSING |= {"NULL", "null", "None", "<NA>", "#NA", "#N/A"}


@dataclass(frozen=True)
class Source:
    """What is written in a file.

    Attributes
    ----------
    cells : pandas.DataFrame
        All rows and columns of the file, as they are written there.
    lines : list of int
        The line of the file, from 1, in which each row of `cells` starts; of files without lines the row.
    separator : str
        Between columns; a comma for files that are no text.
    assumed : tuple of str
        What was assumed of the file as a whole.
    missing : frozenset of str
        Texts that stand for no value in such a file.
    """

    cells: pd.DataFrame
    lines: list[int]
    separator: str
    assumed: tuple[str, ...]
    missing: frozenset[str] = MISSING


def parse(text: str, assumed: tuple[str, ...] = ()) -> Source:
    """The cells of a text, and what was assumed of it, besides what is given.

    Raises
    ------
    ValueError
        If columns have no name or the same one, rows have more or fewer cells than there are names, or
        what separates them cannot be told.
    """
    n_skipped, separator, said = _find_start(text)
    head = list(itertools.islice(_lines(text, n_skipped), 500))
    demand(any(map(str.strip, head)), "cannot be read as a table: it is empty")
    quote = "'" if re.match(r"\s*'([^']|'')*'\s*([,;\t|]|$)", next(filter(str.strip, head))) else '"'
    if not separator:
        separator = _find_separator(head, quote)
        said += "columns are separated by spaces" * (separator == " ")
    rows = _rows(text, n_skipped, separator, quote)
    _, header = next(rows, (0, []))
    names = [name.strip() for name in header]
    names[0] = re.sub(r"^#\s*", "", names[0]) or names[0]
    frames: list[pd.DataFrame] = []
    starts: list[int] = []
    while (chunk := list(itertools.islice(rows, _CHUNK))) or not frames:
        starts += [start for start, _ in chunk]
        frames.append(pd.DataFrame([row for _, row in chunk], columns=range(len(names)), dtype=str))
    cells = pd.concat(frames, ignore_index=True) if frames[1:] else frames[0]
    assumed += (said,) if said else ()
    return Source(name_columns(names, cells), starts, separator, assumed)


def name_columns(names: Sequence[str], cells: pd.DataFrame, are_certain: bool = False) -> pd.DataFrame:
    """What stands below a line of names, named by them.

    Raises
    ------
    ValueError
        If that line looks like one of values, or names repeat.
    """
    cells.columns = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    given, texts = [name for name in names if name], [name for name in map(str, cells) if not is_number(name)]
    numbers = [name for name in given if is_number(name)]
    repeated = sorted(name for name, n in Counter(cells.columns).items() if n > 1)
    values = [float(number) for number in numbers if re.fullmatch(r"\d+(\.\d+)?", number)]
    steps = np.diff(values)
    are_years = all(re.fullmatch(r"(19|20)\d\d", number) for number in numbers)
    is_scale = are_years or (len(values) > 2 and steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-3))

    def occurs(name: str) -> bool:
        return any(str(cell).strip() == name for cell in cells[name].tolist())

    if are_certain and not repeated and len(numbers) < len(given):
        return cells
    if len(numbers) > len(given) / 2 and (not is_scale or repeated or len(numbers) == len(given)):
        wrong = "numbers"
    elif repeated:
        advice = "rename them, and leave one line of names"
        raise ValueError(f"has more than one column named {', '.join(repeated)}: {advice}")
    elif any(map(occurs, texts)) if len(texts) < len(names) else len(texts) > 1 and all(map(occurs, texts)):
        wrong = f"{next(filter(occurs, texts))!r} occurs again below"
    else:
        return cells
    wanted, got = "must have the names of its columns in the first line", ", ".join(given[:5])
    raise ValueError(f"{wanted}, got {got}: {wrong}. Write a line of names above it")


def _lines(text: str, n_skipped: int) -> Iterator[str]:
    return itertools.islice(io.StringIO(text, newline=""), n_skipped, None)


def _find_start(text: str) -> tuple[int, str, str]:
    """Lines above the names, the separator if one of them names it, and what was assumed."""
    head = [line.rstrip("\r\n") for line in itertools.islice(_lines(text, 0), 1000)]
    if head and (named := re.fullmatch(r'"?sep=(.)"?', head[0], re.IGNORECASE)):
        return 1, named[1], f"the first line, {head[0]}, names the separator"
    comments = list(itertools.takewhile(lambda line: line.startswith("#") or not line.strip(), head))
    n_comments = len(comments)
    if not any(comments) or n_comments == len(head):
        return 0, "", ""
    last = next(line for line in reversed(comments) if line.strip())
    below, *more = [line for line in head[n_comments:] if line.strip()] or [""]
    bare = [re.sub('"[^"]*"', "", line) for line in (last, below)]
    alike = any(bare[0].count(separator) == bare[1].count(separator) > 0 for separator in ",;\t|")
    if alike and (_looks_like_values(below) or not (more and _looks_like_values(more[0]))):
        n_comments = head.index(last)
        if not any(head[:n_comments]):
            return 0, "", "the names are in the first line, though it starts with #"
    lines = f"{n_comments} lines that start" if n_comments > 1 else "the first line, which starts"
    return n_comments, "", f"{lines} with # {'are' if n_comments > 1 else 'is'} left out"


def _looks_like_values(line: str) -> bool:
    """Whether a cell of a line is empty or starts like a number, a date or a time."""
    return any(re.match(r'"?([+-]?\d|"?$)', cell.strip()) for cell in re.split(r"[,;\t|]", line))


def _split(lines: Iterable[str], separator: str, quote: str, strict: bool = False) -> Any:
    """A reader of the cells of lines."""
    lines = (line.strip() for line in lines) if separator == " " else lines
    return csv.reader(lines, delimiter=separator, quotechar=quote, skipinitialspace=True, strict=strict)


def _find_separator(head: list[str], quote: str) -> str:
    """The separator that cuts most lines into as many cells as the first, and leaves no other one in them."""
    budget = itertools.accumulate(map(len, head))
    head = [line for line, total in zip(head, budget, strict=True) if total < 2**18] or head[:1]
    cut: dict[str, list[list[str]]] = {}
    for separator in _SEPARATORS:
        with suppress(csv.Error):
            rows = [row for row in _split(head, separator, quote) if row]
            rows = rows[:-1] if len(rows) > 100 else rows  # the last may be cut off in a quoted cell
            if rows and len(rows[0]) > 1 and (separator != " " or (not cut and _cuts_numbers(rows))):
                cut[separator] = rows
    shares = {mark: sum(len(row) == len(rows[0]) for row in rows) / len(rows) for mark, rows in cut.items()}
    rivals = [separator for separator in shares if shares[separator] >= 0.9 * max(shares.values())]
    if len(rivals) < 2:
        return next(iter(rivals), ",")

    def cleanness(separator: str) -> float:
        others = re.compile("[" + re.escape("".join(set(rivals) - {separator})) + "]")
        cells = [cell.strip() for row in cut[separator] for cell in row]
        return sum(not others.search(cell) or is_number(cell) for cell in cells) / len(cells)

    order = sorted(rivals, key=lambda separator: (cleanness(separator), shares[separator]))
    first, second = (_SEPARATORS[separator] for separator in order[-1:-3:-1])
    is_clear = cleanness(order[-1]) - cleanness(order[-2]) >= 0.05
    why = f"its columns may be separated by {first} or by {second}"
    demand(is_clear, f'cannot be read as a table: {why}. Write cells that hold one of them as "a,b"')
    return order[-1]


def _cuts_numbers(rows: list[list[str]]) -> bool:
    """Whether spaces cut all lines into as many cells, most of them numbers."""
    cells = [cell for row in rows[1:] for cell in row]
    return len({len(row) for row in rows}) == 1 and 2 * sum(map(is_number, cells)) > len(cells)


def _rows(text: str, n_skipped: int, separator: str, quote: str) -> Iterator[tuple[int, list[str]]]:
    """The line in which each row starts, and its cells; first that of the names."""
    reader = _split(_lines(text, n_skipped), separator, quote, strict=True)
    start, n_names = n_skipped + 1, 0
    try:
        for row in reader:
            if row and (len(row) > 1 or n_names < 2 or row[0].strip()):  # else an empty line
                n_names = n_names or len(row)
                if len(row) != n_names:
                    why = f"{n_names} names in the first line, but {len(row)} values in line {start}"
                    raise ValueError(f"cannot be read as a table: {why}")
                yield start, row
            start = n_skipped + reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"cannot be read as a table: {error}, in the row from line {start}") from error
