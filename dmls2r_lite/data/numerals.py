"""Numbers as people write them: which marks stand for what is decided for a whole file, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

_TO_ASCII = str.maketrans(
    {"٫": ".", "．": ".", "٬": ",", "，": ",", "’": "'"} | dict.fromkeys("\xa0\u2009\u202f", " ")
)
_TO_SHAPE = str.maketrans("0123456789", "9" * 10)


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
    if unclear and not (without_groups and {column for column, _ in unclear} <= set(settled)):
        column, text = unclear[0]
        raise ValueError(
            f"{text!r} in column {column!r} may have a decimal mark or a thousands separator: write numbers "
            f"without the latter, or say that it is the former by column_types={f'{column}=number'!r}"
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
