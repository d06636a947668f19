"""One way to run a study, however many trials it has: resumable at any moment, and shared by several runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import RegressorMixin
from threadpoolctl import threadpool_limits

from ..data.catalog import DATASETS
from ..data.datasets import Dataset, load_dataset
from ..data.splits import check_split_sizes
from ..foundation.files import ending_with, write_whole
from ..foundation.parameters import ParameterError, check_rules, did_you_mean

AS_PUBLISHED = "air_quality_as_published"  # with -200 for a missing value, as in the paper
N_LABELED = (10, 20, 50)
REPORT_SEEDS = range(100, 120)  # no choice was based on them
TIME = "%Y-%m-%dT%H:%M:%SZ"
TIME_PATTERN = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
PACKAGES = ("dmls2r-lite", "numpy", "scikit-learn", "torch")

Cell = tuple[Any, ...]  # what its trials have in common: all columns of the key but the seed
Measure = Callable[[Sequence[int]], list[dict[str, Any]]]  # a row for each seed
Cells = Mapping[tuple[str, ...], Measure]  # by what a study adds to the key


@dataclass(frozen=True)
class Study:
    """What is tried, on which data, and the columns of its trials.

    Attributes
    ----------
    name : str
        Of its table, without the ending.
    key : tuple of str
        Columns that tell trials apart: `dataset`, `method`, what the study adds, `n_labeled` and `seed`.
    measured : tuple of str
        The other columns, before `versions` and `finished` (UTC).
    datasets : tuple of str
        Where it is run if nothing else is asked for.
    methods : callable
        Gives all methods by name.
    cells : callable
        ``cells(dataset, name, method, n_labeled)`` gives the cells of a method by what the study adds to the
        key, and for each how to measure it: a function of seeds that returns a row for each.
    min_labeled : int, default=3
    sizes : callable
        ``sizes(dataset, name)`` gives the values of N to try if nothing else is asked for.
    """

    name: str
    key: tuple[str, ...]
    measured: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: Callable[[], Mapping[str, RegressorMixin]]
    cells: Callable[[Dataset, str, RegressorMixin, int], Cells]
    min_labeled: int = 3
    sizes: Callable[[str, str], Sequence[int]] = lambda dataset, name: N_LABELED

    @property
    def columns(self) -> list[str]:
        """All columns, in order."""
        return [*self.key, *self.measured, "versions", "finished"]

    def path(self, folder: Path) -> Path:
        """The table in a folder, which is there when a run has come to its end."""
        return folder / f"{self.name}.csv"

    def run(
        self,
        output: Path,
        datasets: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        n_labeled: Sequence[int] | None = None,
        seeds: Sequence[int] = REPORT_SEEDS,
        n_jobs: int | None = None,
    ) -> Iterator[int]:
        """Run the trials that a folder does not hold yet, and keep those of each cell as it ends.

        The networks of all seeds of a cell are trained side by side. All methods of a seed have the same
        split and, where they are networks, the same initial weights. A run that was killed loses only the
        cells under way; the same call does the rest. Several may write into one folder.

        Parameters
        ----------
        output : Path
            A folder. It gets a file for each cell, and in the end a table with a row per trial.
        datasets, methods : sequence of str, optional
            All of the study if not given.
        n_labeled : sequence of int, optional
            10, 20 and 50 if not given, and for the methods of the paper's Table 1 also its 100.
        seeds : sequence of int
        n_jobs : int, optional
            As in joblib, whose `parallel_config` also decides where trials run.

        Yields
        ------
        int
            How many trials are still to do: first before any has run, then after each cell.

        Raises
        ------
        ParameterError
            If a name is unknown, a number out of range or a dataset too small, before anything runs.
        RuntimeError
            If a trial fails. It names the cell.
        """
        known = self.methods()
        datasets, methods = datasets or self.datasets, methods or list(known)
        for kind, names, among in (
            ("datasets", datasets, [*DATASETS, AS_PUBLISHED]),
            ("methods", methods, list(known)),
        ):
            for name in names:
                if name not in among:
                    raise ParameterError(
                        f"{kind} must be among {', '.join(map(repr, among))}, got {name!r}"
                        f"{did_you_mean(name, among)}"
                    )
        for n in n_labeled or ():
            check_rules({"n_labeled": n}, at_least={"n_labeled": self.min_labeled})
        for seed in seeds:
            check_rules({"seed": seed})
        check_rules({"n_jobs": n_jobs})
        cells: dict[Cell, Measure] = {}
        for data in map(load_benchmark_dataset, dict.fromkeys(datasets)):
            for name in methods:
                for n in n_labeled or self.sizes(data.name, name):
                    check_split_sizes(data, n, data.n_unlabeled)
                    for added, measure in self.cells(data, name, known[name], n).items():
                        cells[(data.name, name, *added, n)] = measure
        done = set(self._read(output)[list(self.key)].itertuples(index=False, name=None))
        calls = []
        # The longest first, so that no process waits for another at the end.
        for cell, measure in sorted(cells.items(), key=lambda item: item[0][-1], reverse=True):
            left = [seed for seed in dict.fromkeys(seeds) if (*cell, seed) not in done]
            if left:
                calls.append((cell, measure, left))
        return self._run(output, calls, n_jobs)

    def _run(
        self, folder: Path, calls: Sequence[tuple[Cell, Measure, list[int]]], n_jobs: int | None
    ) -> Iterator[int]:
        yield (left := sum(len(seeds) for *_, seeds in calls))
        parts = folder / self.name
        parts.mkdir(parents=True, exist_ok=True)  # what cannot be written is found before anything runs
        # In a larger batch finished cells would wait for the others, and be lost with them.
        ended = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(
            delayed(ending_with)(os.getpid(), _run_cell, dict(zip(self.key, cell, strict=False)), *rest)
            for cell, *rest in calls
        )
        for name, rows in ended:
            about = {"versions": _versions(), "finished": datetime.now(UTC).strftime(TIME)}
            _write(pd.DataFrame(rows).assign(**about).reindex(columns=self.columns), parts / f"{name}.csv")
            yield (left := left - len(rows))
        _write(self._read(folder), self.path(folder))

    def read(self, folder: Path) -> pd.DataFrame:
        """Read the trials of a folder: whole rows only, each trial once.

        Raises
        ------
        ValueError
            If the folder has no trials or a table in it is not one of this study.
        """
        trials = self._read(folder)
        if trials.empty:
            raise ValueError(f"cannot read trials from {folder}: there are none in {self.path(folder).name}")
        return trials

    def _read(self, folder: Path) -> pd.DataFrame:
        """The trials of the table that a run has made in the end, and of cells that came later."""
        parts = []
        for path in (self.path(folder), *sorted((folder / self.name).glob("[!.]*.csv"))):
            if path.exists():
                try:
                    # Tables of older versions grew line by line: one may be cut off, or glued to another.
                    part = pd.read_csv(path, dtype=str, on_bad_lines="skip")
                except (OSError, ValueError) as error:
                    raise ValueError(f"cannot read trials from {path}: {error}") from error
                if list(part) != self.columns:
                    wanted, found = ", ".join(self.columns), ", ".join(map(str, part))
                    raise ValueError(f"{path} must have the columns {wanted}, got {found}")
                parts.append(part[part["finished"].str.fullmatch(TIME_PATTERN, na=False)])
        trials = pd.concat(parts or [pd.DataFrame(columns=self.columns)])
        trials = trials.drop_duplicates(list(self.key), ignore_index=True)
        numbers = [*self.key[-2:], *self.measured]
        return trials.assign(**{name: pd.to_numeric(trials[name]) for name in numbers})

    def shipped(self) -> pd.DataFrame:
        """Read the trials that come with the package; `attrs` say how they were made."""
        folder = resources.files(__package__).joinpath("results")
        with folder.joinpath(f"{self.name}.csv.gz").open("rb") as file:
            trials = pd.read_csv(file, compression="gzip")
        trials.attrs = json.loads(folder.joinpath(f"{self.name}.json").read_text())
        return trials


@cache
def load_benchmark_dataset(name: str) -> Dataset:
    """`load_dataset` without rows that lack a target; Air Quality as published has a name of its own here."""
    if name == AS_PUBLISHED:
        return replace(load_dataset("air_quality", missing="as_published"), name=name)
    return load_dataset(name).with_known_targets()


def _run_cell(
    cell: Mapping[str, Any], measure: Measure, seeds: Sequence[int]
) -> tuple[str, list[dict[str, Any]]]:
    """In words which trials these are, which is their file's name, and a row for each."""
    of_seeds = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    name = ", ".join([*(f"{column} {value}" for column, value in cell.items()), of_seeds])
    try:
        with threadpool_limits(1):  # more threads round differently, and small fits gain nothing
            rows = measure(seeds)
    except Exception as error:
        raise RuntimeError(f"{name}: {error}") from error
    return name, [{**row, **cell, "seed": seed} for row, seed in zip(rows, seeds, strict=True)]


def _write(table: pd.DataFrame, path: Path) -> None:
    write_whole(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))


@cache
def _versions() -> str:
    return "; ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)
