"""Tables of trials that grow while they are made: resumable at any moment, and shared by several runs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from ..foundation.files import add_whole, ending_with

TIME = "%Y-%m-%dT%H:%M:%SZ"
TIME_PATTERN = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
PACKAGES = ("dmls2r-lite", "numpy", "scikit-learn", "torch")
TEXTS = ("dataset", "method", "choice", "rows", "versions", "finished")  # the other columns are numbers


@dataclass(frozen=True)
class TrialTable:
    """What a study's trials are kept in: a CSV file with a row per trial.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    key : tuple of str
        Columns that tell trials apart; the last is the seed.
    measured : tuple of str
        The other columns, before `versions` and `finished` (UTC).
    """

    name: str
    key: tuple[str, ...]
    measured: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """All columns, in order."""
        return [*self.key, *self.measured, "versions", "finished"]

    def path(self, folder: Path) -> Path:
        """The file in a folder."""
        return folder / f"{self.name}.csv"

    def read(self, folder: Path) -> pd.DataFrame:
        """Read the trials of a folder: whole rows only, each trial once.

        Raises
        ------
        ValueError
            If the folder has no trials or the table is not one of trials.
        """
        path = self.path(folder)
        try:
            # No cell needs quotes; a quote in a line that was cut off must not swallow those that follow.
            table = pd.read_csv(path, dtype=str, on_bad_lines="skip", quoting=csv.QUOTE_NONE)
        except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise ValueError(f"cannot read trials from {path}: {error}") from error
        if list(table) != self.columns:
            raise ValueError(
                f"{path} must have the columns {', '.join(self.columns)}, got {', '.join(map(str, table))}"
            )
        whole = table["finished"].str.fullmatch(TIME_PATTERN, na=False)  # the end of a line, not cut off
        return self._typed(table[whole].drop_duplicates(list(self.key)).reset_index(drop=True))

    def done(self, folder: Path) -> set[tuple[Any, ...]]:
        """Keys of the trials that a folder holds."""
        if not self.path(folder).exists():
            return set()
        return set(self.read(folder)[list(self.key)].itertuples(index=False, name=None))

    def shipped(self) -> pd.DataFrame:
        """Read the trials that come with the package; `attrs` say how they were made."""
        folder = resources.files(__package__).joinpath("results")
        with folder.joinpath(f"{self.name}.csv.gz").open("rb") as file:
            trials = self._typed(pd.read_csv(file, dtype=str, compression="gzip"))
        trials.attrs = json.loads(folder.joinpath(f"{self.name}.json").read_text())
        return trials

    def run(
        self,
        folder: Path,
        trials: Sequence[tuple[Any, ...]],
        call: Callable[[tuple[Any, ...], list[int]], Any],
        n_jobs: int | None,
        cost: Callable[[tuple[Any, ...]], float],
    ) -> Iterator[int]:
        """Run trials and add those of each cell as it ends.

        Parameters
        ----------
        folder : Path
        trials : sequence of tuple
            Keys of what is to do; those that differ in their seed only make a cell.
        call : callable
            Is given a key without its seed, and the seeds; returns what joblib's `delayed` makes of a
            function and its arguments. That function returns a row for each seed.
        n_jobs : int, optional
            As in joblib.
        cost : callable
            Of a cell, by which the longest come first, so that no process waits for another at the end.

        Yields
        ------
        int
            How many trials are still to do: first before any has run, then after each cell.
        """
        yield (left := len(trials))
        self._add(folder, b"")  # what cannot be written is found before anything runs
        cells: dict[tuple[Any, ...], list[int]] = {}
        for *cell, seed in trials:
            cells.setdefault(tuple(cell), []).append(seed)
        # In a larger batch finished cells would wait for the others, and be lost with them.
        calls = (call(cell, cells[cell]) for cell in sorted(cells, key=cost, reverse=True))
        parts = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(
            delayed(ending_with)(os.getpid(), function, *arguments, **options)
            for function, arguments, options in calls
        )
        for rows in parts:
            self._append(folder, rows)
            yield (left := left - len(rows))

    def _append(self, folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        about = {"versions": _versions(), "finished": datetime.now(UTC).strftime(TIME)}
        lines = [
            ",".join(_text((dict(row) | about).get(column, "")) for column in self.columns) + "\n"
            for row in rows
        ]
        self._add(folder, "".join(lines).encode())

    def _add(self, folder: Path, lines: bytes) -> None:
        add_whole(self.path(folder), lines, heading=(",".join(self.columns) + "\n").encode())

    def _typed(self, table: pd.DataFrame) -> pd.DataFrame:
        numbers = [name for name in self.columns if name not in TEXTS]
        return table.assign(**{name: pd.to_numeric(table[name]) for name in numbers})


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def name_seeds(seeds: Sequence[int]) -> str:
    """Seeds in words."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


@cache
def _versions() -> str:
    return "; ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)
