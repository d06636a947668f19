"""One column of texts: what it may be, from its different texts alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from .dates import are_dates, are_seasons, are_times, read_dates, read_times
from .numerals import fitting, is_number, look_like_codes, shape

MISSING = frozenset(
    [
        "",
        "?",
        "-",
        ".",
        "NA",
        "N/A",
        "n/a",
        "NaN",
        "nan",
        "-NaN",
        "-nan",
        "NULL",
        "null",
        "None",
        "<NA>",
        "#NA",
        "#N/A",
    ]
)
TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}
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
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)


@dataclass
class Column:
    """A column of texts while it is being recognised.

    Attributes
    ----------
    name : str
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
    dates : dict of str to pandas.Series
        The readings of dates, see `read_dates`.
    """

    path: Path
    name: str
    index: pd.Index
    codes: np.ndarray
    texts: list[str]
    marks: list[str]
    kind: str = ""
    rule: str = ""
    guessed: bool = False
    shapes: dict[str, str] = field(default_factory=dict)
    dates: dict[str, pd.Series] = field(default_factory=dict)
    times: pd.Series | None = None

    @classmethod
    def of(cls, path: Path, cells: pd.Series, missing: frozenset[str]) -> Column:
        """The column of a series of texts."""
        stripped = cells.astype(object).where(cells.notna(), "").str.strip()
        codes, distinct = pd.factorize(stripped)
        is_missing = [text in missing for text in distinct]
        marks = [text for text, is_one in zip(distinct, is_missing, strict=True) if is_one and text]
        texts = [text for text, is_one in zip(distinct, is_missing, strict=True) if not is_one]
        if "NA" in marks and len(texts) > 1 and all(re.fullmatch("[A-Z]{2}", text) for text in texts):
            column = cls.of(path, cells, missing - {"NA"})  # Namibia among countries
            column.rule = "texts; NA is one of them, as the others have two letters too"
            column.guessed = True
            return column
        new = np.cumsum(~np.array(is_missing, dtype=bool)) - 1
        new[np.array(is_missing, dtype=bool)] = -1
        return cls(path, str(cells.name), cells.index, new[codes] if len(new) else codes, texts, marks)

    def spread(self, values: Sequence[Any] | np.ndarray, dtype: Any) -> pd.Series:
        """One value for each text becomes one for each row."""
        filler = {"f": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT"), "O": np.nan, "b": False}
        dtype = np.dtype(dtype)
        padded = np.empty(len(self.texts) + 1, dtype=dtype)
        padded[:-1] = values
        padded[-1] = filler[dtype.kind]
        return pd.Series(padded[self.codes], index=self.index, name=self.name, dtype=dtype)

    def row_of(self, text: str) -> int:
        """The first row with a text, from 1."""
        return int(np.flatnonzero(self.codes == self.texts.index(text))[0]) + 1

    def refuse(self, what: str) -> NoReturn:
        """Raise ValueError about this column, with what a user can do."""
        raise ValueError(
            f"{self.path}: column {self.name!r} {what}, or leave the column out with drop_columns, or "
            f"say what it holds by column_types={f'{self.name}=category'!r}"
        )

    def find_kind(self) -> None:
        """Say what the texts are, as far as this column alone shows; of numbers and dates all possible.

        Raises
        ------
        ValueError
            If they are not of one kind.
        """
        if self.kind in ("category", "text"):
            self.rule = "as column_types says"
        elif not self.texts:
            self.kind, self.rule = self.kind or "number", "no value in any row"
        elif self.kind:
            self._find_said_kind()
        elif set(self.texts) <= TRUTH.keys() and (self.codes >= 0).all():
            self.kind, self.rule = "truth", "true or false"
        elif are_times(self.texts):
            self._find_times()
        elif are_seasons(self.texts):
            self.kind, self.guessed = "text", True
            self.rule = f"texts: {self.texts[0]} is a season of two years (assumed: no month)"
        elif are_dates(self.texts):
            self._find_dates()
        elif is_number(self.texts[0]) and all(map(fitting, self._find_shapes())):
            self._find_numbers()
        else:
            self._find_texts()

    def _find_said_kind(self) -> None:
        if self.kind in ("day first", "month first"):
            order, self.kind = self.kind, "date"
            self._find_dates()
            if len(self.dates) > 1:
                self.dates = {order: self.dates[order]}
            elif not {order, "year first", "month by name"} & self.dates.keys():
                self.refuse(f"must hold dates with the {order}, as column_types says, got {self._first()}")
        elif self.kind == "time" and are_times(self.texts):
            self._find_times()
        elif self.kind == "date" and are_dates(self.texts):
            self._find_dates()
        elif self.kind == "number" and all(map(is_number, self.texts)):
            self._find_shapes()
            self.rule = "numbers, as column_types says"
        else:
            fits = {
                "number": is_number,
                "date": lambda text: are_dates([text]),
                "time": lambda text: are_times([text]),
            }
            wrong = next(text for text in self.texts if not fits[self.kind](text))
            raise ValueError(
                f"{self.path}: column {self.name!r} must hold {self.kind}s, as column_types says, "
                f"got {wrong!r} (row {self.row_of(wrong)})"
            )
        self.guessed = False

    def _find_times(self) -> None:
        self.kind = "time"
        try:
            self.times, self.rule, self.guessed = read_times(pd.Series(self.texts))
        except ValueError as error:
            self.refuse(f"{error}, got {self._first()}")

    def _find_dates(self) -> None:
        self.kind = "date"
        try:
            self.dates = read_dates(pd.Series(self.texts))
        except ValueError as error:
            self.refuse(f"{error}, got {self._first()}")

    def _find_shapes(self) -> dict[str, str]:
        self.shapes = {}
        for text in self.texts:
            self.shapes.setdefault(shape(text), text)
        return self.shapes

    def _find_numbers(self) -> None:
        self.kind = "text"
        padded = [text for shaped, text in self.shapes.items() if re.match("[+-]?09", shaped)]
        if padded and any(map(str.isdecimal, padded)):
            self.rule, self.guessed = f"codes with leading zeros, such as {padded[0]}, kept as texts", True
        elif any(re.fullmatch("9{16,}", shaped) for shaped in self.shapes):
            self.rule = "identifiers of more than 15 digits, kept as texts"
        elif len(self.shapes) < 10 and look_like_codes(self.texts):
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
        n_rows = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))
        share = sum(n for n, text in zip(n_rows, self.texts, strict=True) if text in near) / n_rows.sum()
        not_known = [text for text in words if _NOT_KNOWN.fullmatch(text)]
        if (
            share > 0.5
            or (numbers and len(not_known) == len(words))
            or (len(numbers) > 1 and not_known)
            or len(numbers) > max(1, len(words))
            or any(re.search(r"\d[.,]\d", text) for text in numbers)
        ):
            self._refuse_numbers([text for text in self.texts if text not in numbers])
        self.rule += f"; {len(near)} of {len(self.texts)} look like numbers"
        self.guessed = bool(numbers)

    def _refuse_numbers(self, others: list[str]) -> NoReturn:
        row = self.row_of(others[0])
        if _INFINITE.fullmatch(others[0]):
            raise ValueError(
                f"{self.path}: column {self.name!r} must be finite, got {others[0]} in row {row}"
            )
        other_texts = set(others)
        places = [place for place, text in enumerate(self.texts) if text in other_texts]
        is_other = np.isin(self.codes, places)
        above = (
            "; if the first rows belong to the names, or hold units, delete these lines"
            if not is_other[2:].any()
            else ""
        )
        self.refuse(
            f"seems to hold numbers, but has {', '.join(map(repr, others[:3]))} (row {row}); write plain "
            f"numbers there, or nothing where there is none (or name it in missing_values){above}"
        )

    def _first(self) -> str:
        return ", ".join(map(repr, self.texts[:3]))
