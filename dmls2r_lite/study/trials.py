"""Trials over many seeds: a few at once, or a whole study into a folder, resumable at any moment."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from ..data.datasets import Dataset, Split, check_split_sizes, load_dataset, split_dataset
from ..foundation.files import ending_with_us, versions, write_whole
from ..foundation.parameters import check_rules, demand, did_you_mean, shown
from ..practice.folds import check_regressors, fit_with_seeds

AS_PUBLISHED = "air_quality_as_published"  # with -200 for a missing value, as in the paper
N_LABELED = (10, 20, 50)
REPORT_SEEDS = range(100, 120)  # no choice was based on them
TIME = "%Y-%m-%dT%H:%M:%SZ"
RESULTS = Path(__file__).parent / "results"  # what comes with the package

Rows = list[dict[str, Any]]  # one for each seed
Replacing = Callable[[pd.DataFrame, int], pd.DataFrame]  # of rows and a seed: others in their place
Sets = tuple[pd.DataFrame, pd.Series, pd.DataFrame, pd.Series]  # X and y to learn from, and to measure on


def as_split(split: Split, seed: int, unlabeled: Replacing | None = None) -> Sets:
    """All samples, with other rows in the place of unlabeled ones if a function of these is given."""
    if unlabeled is not None:
        before, rows = split.X_unlabeled, unlabeled(split.X_unlabeled, seed)
        is_like = isinstance(rows, pd.DataFrame) and rows.shape == before.shape and list(rows) == list(before)
        demand(is_like, f"unlabeled must return a frame like that given, {before.shape}, got {shown(rows)}")
        split = replace(split, X_unlabeled=rows)
    return split.X_train, split.y_train, split.X_test, split.y_test


def run_trials(
    dataset: Dataset,
    methods: Mapping[str, RegressorMixin],
    n_labeled: Sequence[int],
    n_unlabeled: int,
    seeds: Sequence[int],
    n_jobs: int | None = None,
    unlabeled: Replacing | None = None,
) -> pd.DataFrame:
    """Fit every method on every split and measure it on the rest.

    For one seed all methods see the same split and, where they have a `random_state`, start from
    it. A `SemiSupervisedRegressor` is given labeled and unlabeled samples, any other the labeled.

    Parameters
    ----------
    dataset : Dataset
    methods : mapping of str to estimator
        Estimators are cloned, never fitted.
    n_labeled : sequence of int
        Values of N.
    n_unlabeled : int
        M.
    seeds : sequence of int
    n_jobs : int, optional
        Processes, as in joblib. A trial runs on one thread, so results are the same for any number.
    unlabeled : callable, optional
        Rows to give in the place of unlabeled ones, from these and the seed: `shuffle_columns`, for example.

    Returns
    -------
    pandas.DataFrame
        A row per trial: `dataset`, `method`, `n_labeled`, `seed`, `mae` and `rmse` on the test
        set in the target's unit, `fit_seconds`, `predict_seconds`, `n_unlabeled`, `n_test`.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range: before anything runs, where that can be known.
    """
    check_rules({"n_jobs": n_jobs})
    check_regressors("methods", methods)
    for name, values in {"n_labeled": n_labeled, "seeds": seeds}.items():
        demand(isinstance(values, Sized) and len(values), f"{name} must hold integers, got {shown(values)}")
    sets = partial(as_split, unlabeled=unlabeled)
    for n in n_labeled:  # what would stop a later cell is found before the first one runs
        sets(split_dataset(dataset, n, n_unlabeled, min(seeds)), min(seeds))
    parts = Parallel(n_jobs=n_jobs, **ending_with_us())(
        delayed(run_seeds)(dataset, name, method, n, n_unlabeled, list(seeds), prepare=sets)
        for n in n_labeled
        for name, method in methods.items()
    )
    of_each_n = [parts[start : start + len(methods)] for start in range(0, len(parts), len(methods))]
    return pd.DataFrame([row for rows in of_each_n for of_seed in zip(*rows, strict=True) for row in of_seed])


@threadpool_limits.wrap(limits=1)  # more threads round differently, and small fits gain nothing
def run_seeds(
    dataset: Dataset,
    name: str,
    method: RegressorMixin,
    n_labeled: int,
    n_unlabeled: int,
    seeds: Sequence[int],
    max_test_rows: int | None = None,
    prepare: Callable[[Split, int], Sets] = as_split,
    also: Callable[..., Mapping[str, float]] = lambda model, *sets: {},
) -> Rows:
    """Rows of `run_trials`, for the method of that name: one a seed, networks trained side by side.

    Parameters
    ----------
    dataset, name, method, n_labeled, n_unlabeled, seeds
        See `run_trials`.
    max_test_rows : int, optional
        Measure on the first so many rows of the test set, whose order is random: for slow methods.
    prepare : callable, optional
        Of a split and its seed: `Sets` other than `as_split`.
    also : callable, optional
        Of a fitted model and the rows that it is measured on, what else to measure.
    """
    sets = [prepare(split_dataset(dataset, n_labeled, n_unlabeled, seed), seed) for seed in seeds]
    start = time.perf_counter()
    models = fit_with_seeds(method, [(X, y) for X, y, *_ in sets], seeds)
    fit_seconds = (time.perf_counter() - start) / len(seeds)
    rows = []
    for seed, (_, _, X_test, y_test), model in zip(seeds, sets, models, strict=True):
        X_test, y_test = X_test[:max_test_rows], y_test[:max_test_rows]
        start = time.perf_counter()
        predicted = model.predict(X_test)
        rows.append(
            {
                "dataset": dataset.name,
                "method": name,
                "n_labeled": n_labeled,
                "seed": seed,
                "mae": mean_absolute_error(y_test, predicted),
                "rmse": root_mean_squared_error(y_test, predicted),
                "fit_seconds": fit_seconds,
                "predict_seconds": time.perf_counter() - start,
                "n_unlabeled": n_unlabeled,
                "n_test": len(y_test),
                **also(model, X_test, y_test),
            }
        )
    return rows


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
    measure : callable
        ``measure(dataset, name, method, *kind, n_labeled, seeds)`` gives a row for each seed.
    min_labeled : int, default=3
    kinds : callable
        ``kinds(dataset, name)`` gives what a method is tried with on a dataset: the values of what the study
        adds to the key, () where that is nothing.
    sizes : callable
        ``sizes(dataset, name)`` gives the values of N to try if nothing else is asked for.
    """

    name: str
    key: tuple[str, ...]
    measured: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: Callable[[], Mapping[str, RegressorMixin]]
    measure: Callable[..., Rows]
    min_labeled: int = 3
    kinds: Callable[[str, str], Sequence[tuple[str, ...]]] = lambda dataset, name: [()]
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
        ValueError
            If a name is unknown, a number out of range or a dataset too small, before anything runs.
        RuntimeError
            If a trial fails. It names the cell.
        """
        known = self.methods()
        wanted = f"methods must be among {', '.join(map(repr, known))}"
        for name in methods or ():
            demand(name in known, f"{wanted}, got {name!r}{did_you_mean(name, known)}")
        for n in n_labeled or ():
            check_rules({"n_labeled": n}, at_least={"n_labeled": self.min_labeled})
        check_rules({"n_jobs": n_jobs})
        done = set(self._read(output)[list(self.key)].itertuples(index=False, name=None))
        calls: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for data in map(load_benchmark_dataset, datasets or self.datasets):
            for name in methods or known:
                for n in n_labeled or self.sizes(data.name, name):
                    check_split_sizes(data, n, data.n_unlabeled)
                    for kind in self.kinds(data.name, name):
                        cell = (data.name, name, *kind, n)
                        measure = partial(self.measure, data, name, known[name], *kind, n)
                        if left := [seed for seed in dict.fromkeys(seeds) if (*cell, seed) not in done]:
                            calls[cell] = dict(zip(self.key, cell, strict=False)), measure, left
        yield (n_left := sum(len(left) for *_, left in calls.values()))
        parts = output / self.name
        parts.mkdir(parents=True, exist_ok=True)  # what cannot be written is found before anything runs
        made_with = "; ".join(map(" ".join, versions().items()))
        # In a larger batch finished cells would wait for the others, and be lost with them.
        options = {"batch_size": 1, "return_as": "generator_unordered", **ending_with_us()}
        ended = Parallel(n_jobs=n_jobs, **options)(
            delayed(_run_cell)(*calls[cell])
            # The longest first, so that no process waits for another at the end.
            for cell in sorted(calls, key=lambda cell: cell[-1], reverse=True)
        )
        for name, rows in ended:
            about = {"versions": made_with, "finished": datetime.now(UTC).strftime(TIME)}
            _write(pd.DataFrame(rows).assign(**about).reindex(columns=self.columns), parts / f"{name}.csv")
            yield (n_left := n_left - len(rows))
        _write(self._read(output), self.path(output))

    def read(self, folder: Path) -> pd.DataFrame:
        """Read the trials of a folder: whole rows only, each trial once.

        Raises
        ------
        ValueError
            If the folder has no trials or a table in it is not one of this study.
        """
        trials = self._read(folder)
        demand(len(trials), f"cannot read trials from {folder}: there are none in {self.path(folder).name}")
        return trials

    def _read(self, folder: Path) -> pd.DataFrame:
        """The trials of the table that a run has made in the end, and of cells that came later."""
        parts = []
        for path in filter(Path.exists, (self.path(folder), *sorted((folder / self.name).glob("[!.]*.csv")))):
            try:
                # Tables of older versions grew line by line: one may be cut off, or glued to another.
                part = pd.read_csv(path, dtype=str, on_bad_lines="skip")
            except (OSError, ValueError) as error:
                raise ValueError(f"cannot read trials from {path}: {error}") from error
            wanted, found = ", ".join(self.columns), ", ".join(map(str, part))
            demand(found == wanted, f"{path} must have the columns {wanted}, got {found}")
            parts.append(part[pd.to_datetime(part["finished"], format=TIME, errors="coerce").notna()])
        trials = pd.concat(parts or [pd.DataFrame(columns=self.columns)])
        trials = trials.drop_duplicates(list(self.key), ignore_index=True)
        numbers = [*self.key[-2:], *self.measured]
        return trials.assign(**{name: pd.to_numeric(trials[name]) for name in numbers})


def read_shipped(name: str) -> pd.DataFrame:
    """Trials that come with the package; `attrs` say how they were made.

    Parameters
    ----------
    name : str
        "trials" for those of the paper's tables, "few_labels" and "newer_losses" for those of the studies of
        these names, which say what the columns hold.
    """
    trials = pd.read_csv(RESULTS / f"{name}.csv.gz")
    trials.attrs = json.loads((RESULTS / f"{name}.json").read_text())
    return trials


@cache
def load_benchmark_dataset(name: str) -> Dataset:
    """`load_dataset` without rows that lack a target; Air Quality as published has a name of its own here."""
    if name == AS_PUBLISHED:
        return replace(load_dataset("air_quality", missing="as_published"), name=name)
    return load_dataset(name).with_known_targets()


def _run_cell(
    cell: Mapping[str, Any], measure: Callable[[Sequence[int]], Rows], seeds: Sequence[int]
) -> tuple[str, Rows]:
    """In words which trials these are, which is their file's name, and a row for each."""
    of_seeds = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    name = ", ".join([*(f"{column} {value}" for column, value in cell.items()), of_seeds])
    try:
        rows = measure(seeds)
    except Exception as error:
        raise RuntimeError(f"{name}: {error}") from error
    return name, [{**row, **cell, "seed": seed} for row, seed in zip(rows, seeds, strict=True)]


def _write(table: pd.DataFrame, path: Path) -> None:
    write_whole(path, table.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
