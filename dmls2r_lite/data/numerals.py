"""Numbers as people write them: which marks stand for what is decided for a whole file, or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache


class _Table(dict):
    """For `str.translate`: digits of all scripts and their marks in ASCII."""

    def __missing__(self, code: int) -> int | str:
        digit = unicodedata.decimal(chr(code), None)
        self[code] = code if digit is None else str(digit)
        return self[code]


_TO_ASCII = _Table(
    {
        ord(char): mark
        for mark, chars in {".": "٫．", ",": "٬，", " ": "\xa0\u2009\u202f", "'": "’"}.items()
        for char in chars
    }
)
_TO_SHAPE = str.maketrans("0123456789", "9" * 10)


@dataclass(frozen=True)
class Marks:
    """What stands before decimals and between groups of three digits; "" if nothing does."""

    decimal: str
    thousands: str

    def to_float(self, text: str) -> float:
        """The number that a text stands for; ValueError if it is none."""
        return float(to_ascii(text).replace(self.thousands, "").replace(self.decimal, "."))


PLAIN = Marks(".", "")
_ALL = (PLAIN, *(Marks(".", t) for t in ",' "), Marks(",", ""), *(Marks(",", t) for t in ".' "))


def to_ascii(text: str) -> str:
    """The text with digits and marks of other scripts in ASCII."""
    return text if text.isascii() else text.translate(_TO_ASCII)


def shape(text: str) -> str:
    """A text with 9 for each digit but a leading zero: as many shapes as there are ways to write a number."""
    text = text if text.isascii() else to_ascii(text)
    shaped = text.translate(_TO_SHAPE)
    if text[:1] == "0":
        return "0" + shaped[1:]
    if text[1:2] == "0" and text[0] in "+-":
        return text[0] + "0" + shaped[2:]
    return shaped


@cache
def _patterns(marks: Marks) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Numbers without groups, and numbers with them."""
    d, t = re.escape(marks.decimal), re.escape(marks.thousands or "x")
    plain = rf"[+-]?([09]9*({d}9*)?|{d}9+)(e[+-]?[09]9*)?"
    return re.compile(plain, re.IGNORECASE), re.compile(rf"[+-]?9{{1,3}}({t}999)+({d}9+)?")


@cache
def fitting(shaped: str) -> frozenset[Marks]:
    """The marks under which a shape is that of a number."""
    return frozenset(
        marks for marks in _ALL if any(pattern.fullmatch(shaped) for pattern in _patterns(marks))
    )


def is_number(text: str) -> bool:
    """Whether a text is a number, whatever its marks stand for."""
    return len(text) < 400 and bool(fitting(shape(text.strip())))


def _has_groups(shaped: str, marks: Marks) -> bool:
    return bool(marks.thousands) and marks.thousands in shaped


def _proves_groups(shaped: str, marks: Marks) -> bool:
    """Whether the mark between groups can be nothing else: it comes twice, or before a decimal mark."""
    return shaped.count(marks.thousands) > 1 or marks.decimal in shaped


def decide_marks(columns: Mapping[str, Mapping[str, str]], settled: Iterable[str] = ()) -> Marks:
    """The one meaning of marks under which all numbers of a file are numbers.

    Parameters
    ----------
    columns : mapping of str to mapping of str to str
        For each column of numbers a text of each shape in it.
    settled : iterable of str
        Columns that are said to hold numbers: where they alone leave open whether a mark is that of
        decimals, it is.

    Raises
    ------
    ValueError
        If there is none, or more than one which give different numbers. The message names cells.
    """
    examples = {shaped: (column, text) for column, texts in columns.items() for shaped, text in texts.items()}
    possible = frozenset(_ALL).intersection(*map(fitting, examples))
    proven = {
        marks
        for marks in possible
        for shaped in examples
        if _has_groups(shaped, marks) and _proves_groups(shaped, marks)
    }
    open_shapes = [
        shaped
        for shaped in examples
        if any(_has_groups(shaped, marks) for marks in possible - proven) and not proven
    ]
    if not possible:
        raise ValueError(_name_conflict(examples))
    if proven:
        return next(iter(proven))
    without_groups = [marks for marks in _ALL if marks in possible and not marks.thousands]
    if open_shapes and not (
        without_groups and all(examples[shaped][0] in set(settled) for shaped in open_shapes)
    ):
        column, text = examples[open_shapes[0]]
        raise ValueError(
            f"{text!r} in column {column!r} may have a decimal mark or a thousands separator: write numbers "
            "without the latter, or say that it is the former by column_types=" + repr(f"{column}=number")
        )
    return without_groups[0]


def may_have_groups(shapes: Iterable[str]) -> bool:
    """Whether all numbers with a mark, and one at least, may have it between groups of three digits."""
    marked = [shaped for shaped in shapes if re.search("[.,]", shaped)]
    return bool(marked) and all(
        any(_has_groups(shaped, marks) for marks in fitting(shaped)) for shaped in marked
    )


def _name_conflict(examples: Mapping[str, tuple[str, str]]) -> str:
    """What to say where no meaning of marks suits all numbers."""
    by_mark: dict[str, tuple[str, str]] = {}
    for shaped, example in examples.items():
        decimals = {marks.decimal for marks in fitting(shaped)}
        if len(decimals) == 1:
            by_mark.setdefault(next(iter(decimals)), example)
    if len(by_mark) == 2:
        (column, text), (other, other_text) = by_mark[","], by_mark["."]
        return (
            f"mixes decimal marks: comma in column {column!r} ({text!r}), point in column {other!r} "
            f"({other_text!r}): write all numbers with one of them"
        )
    column, text = next(iter(examples.values()))
    marked = [
        f"{text!r} in column {column!r}"
        for shaped, (column, text) in examples.items()
        if re.search(r"[., ']", shaped)
    ]
    return f"mixes ways to write numbers: {', '.join(marked[:3])}: write numbers without thousands separators"


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
    lengths = {len(last) for last in lasts}
    if (
        lengths != {1, 2}
        or not any(map(lasts.__contains__, "123456789"))
        or any(last[0] == "0" and last != "0" for last in lasts)
    ):
        return False
    if (
        len({len((whole + last).lstrip("0")) for whole, last in parts}) == 1
    ):  # of as many digits as are significant
        return False
    return any(last in ("10", "20") for last in lasts) and max(map(int, lasts)) <= 10 + 2 * len(lasts)
