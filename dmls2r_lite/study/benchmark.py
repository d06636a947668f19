"""The paper's experiments over many seeds, with the controls that it lacks; resumable at any moment."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import RegressorMixin

from ..data.catalog import DATASETS
from ..data.datasets import Dataset, load_dataset
from ..data.splits import check_split_sizes
from ..parameters import check_rules
from .trials import run_seeds

if TYPE_CHECKING:
    from ..estimators import DMLS2RRegressor

AS_PUBLISHED = "air_quality_as_published"  # with -200 for a missing value, as in the paper
BENCHMARK_DATASETS = ("boston", "superconductivity", AS_PUBLISHED, "air_quality")
N_LABELED = (10, 20, 50)
REPORT_SEED = 100  # the first of the seeds that no choice was based on
TABLE_1 = ("superconductivity", 100)  # the paper's ablation has one N more
TABLE_1_METHODS = ("DML-S2R", "step 1", "placebo null", "placebo random", "placebo swapped")
MAX_TEST_ROWS = {"extra trees on pairs": 2000}  # every test row makes 2 N pairs
KEY = ["dataset", "method", "n_labeled", "seed"]
COLUMNS = [
    *KEY, "mae", "rmse", "fit_seconds", "predict_seconds", "n_unlabeled", "n_test", "versions", "finished",
]  # fmt: skip
TIME = "%Y-%m-%dT%H:%M:%SZ"
TIME_PATTERN = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
PACKAGES = ("dmls2r-lite", "numpy", "scikit-learn", "torch")


def paper_methods() -> dict[str, RegressorMixin]:
    """What the paper's tables compare: DML-S2R, its first step alone, COREG and MSSR."""
    from ..estimators import DMLS2RRegressor
    from ..rivals.coreg import COREGRegressor
    from ..rivals.mssr import MSSRRegressor

    return {
        "DML-S2R": DMLS2RRegressor(),
        "step 1": DMLS2RRegressor(schedule="pairwise_only"),
        "COREG": COREGRegressor(),
        "MSSR": MSSRRegressor(),
    }


def control_arms() -> dict[str, DMLS2RRegressor]:
    """DML-S2R with one thing changed, by which to find out why step 2 does what it does.

    First the placebos (see `dmls2r_lite.rivals.placebos`) and the other ways to combine the steps; then both
    steps, step 1 and placebos where each step has an Adam of its own, where step 1 is
    under-trained (all pairs in one batch: a gradient step an epoch), and where the target is not
    scaled. With an Adam of its own the null placebo is step 1 alone, to the bit.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals.placebos import mine_random, mine_swapped, null_loss

    arms: dict[str, dict[str, Any]] = {
        "placebo null": {"metric_loss": null_loss},
        "placebo random": {"miner": mine_random},
        "placebo swapped": {"miner": mine_swapped},
        "joint": {"schedule": "joint"},
        "sequential": {"schedule": "sequential"},
        "sequential (step 2 first)": {"schedule": "sequential_metric_first"},
        "DML-S2R (own Adam)": {"optimizer_state": "separate"},
        "placebo random (own Adam)": {"optimizer_state": "separate", "miner": mine_random},
    }
    settings: dict[str, dict[str, Any]] = {
        "one batch": {"pair_batch_size": None},
        "raw target": {"target_scaling": "none"},
    }
    for name, changed in settings.items():
        arms |= {
            f"step 1 ({name})": {**changed, "schedule": "pairwise_only"},
            f"DML-S2R ({name})": changed,
            f"placebo null ({name})": {**changed, "metric_loss": null_loss},
            f"placebo random ({name})": {**changed, "miner": mine_random},
        }
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


def all_methods() -> dict[str, RegressorMixin]:
    """Every method of the benchmark, by name."""
    from ..rivals.plain import plain_models

    return {**paper_methods(), **control_arms(), **plain_models()}


def load_benchmark_dataset(name: str) -> Dataset:
    """`load_dataset`, which also knows Air Quality as published by a name of its own."""
    if name == AS_PUBLISHED:
        return replace(load_dataset("air_quality", missing="as_published"), name=name)
    return load_dataset(name)


def run_benchmark(
    output: Path,
    datasets: Sequence[str] = BENCHMARK_DATASETS,
    methods: Sequence[str] | None = None,
    n_labeled: Sequence[int] | None = None,
    seeds: Sequence[int] = range(REPORT_SEED, REPORT_SEED + 20),
    n_jobs: int | None = None,
) -> Iterator[int]:
    """Run the trials that a folder does not hold yet, and add those of each cell as it ends.

    A cell is a method on a dataset with one N; the networks of all its seeds are trained side by side. All
    methods of a seed have the same split and, where they are networks, the same initial weights. A run
    that was killed loses only the cells under way; the same call does the rest. Several may write into one
    folder.

    Parameters
    ----------
    output : Path
        A folder. Its `trials.csv` has a row per trial, see `read_trials`.
    datasets : sequence of str
    methods : sequence of str, optional
        Names from `all_methods`; all if not given.
    n_labeled : sequence of int, optional
        If not given, 10, 20 and 50, and for the methods of the paper's Table 1 also its 100.
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
    known = all_methods()
    for name in methods or ():
        if name not in known:
            raise ValueError(f"methods must be among {', '.join(map(repr, known))}, got {name!r}")
    known_datasets = (*DATASETS, AS_PUBLISHED)
    for name in datasets:
        if name not in known_datasets:
            raise ValueError(f"datasets must be among {', '.join(known_datasets)}, got {name!r}")
    for n in n_labeled or ():  # three nearest neighbours need three labels
        check_rules({"n_labeled": n}, at_least={"n_labeled": 3})
    for seed in seeds:
        check_rules({"seed": seed})
    check_rules({"n_jobs": n_jobs})
    loaded = {name: load_benchmark_dataset(name) for name in datasets}
    cells = [
        (dataset, method, n, seed)
        for dataset in dict.fromkeys(datasets)
        for n in dict.fromkeys(n_labeled or (*N_LABELED, TABLE_1[1]))
        for seed in dict.fromkeys(seeds)
        for method in dict.fromkeys(methods or known)
        if n_labeled or n in N_LABELED or ((dataset, n) == TABLE_1 and method in TABLE_1_METHODS)
    ]
    for name, n in dict.fromkeys((name, n) for name, _, n, _ in cells):
        check_split_sizes(loaded[name], n, loaded[name].n_unlabeled)
    path = output / "trials.csv"
    done = set(read_trials(output)[KEY].itertuples(index=False, name=None)) if path.exists() else set()
    to_do = [cell for cell in cells if cell not in done]
    return _run(path, to_do, loaded, known, n_jobs)


def _run(
    path: Path,
    trials: Sequence[tuple[str, str, int, int]],
    datasets: Mapping[str, Dataset],
    methods: Mapping[str, RegressorMixin],
    n_jobs: int | None,
) -> Iterator[int]:
    yield (left := len(trials))
    _make_table(path)
    cells: dict[tuple[str, str, int], list[int]] = {}
    for dataset, method, n, seed in trials:
        cells.setdefault((dataset, method, n), []).append(seed)
    # The longest first, so that no process waits for another at the end. In a larger batch finished cells
    # would wait for the others, and be lost with them.
    order = sorted(cells, key=lambda cell: -cell[2])
    parts = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")(
        delayed(_run_cell)(datasets[dataset], method, methods[method], n, cells[dataset, method, n])
        for dataset, method, n in order
    )
    for rows in parts:
        _append(path, rows)
        yield (left := left - len(rows))


def _run_cell(
    dataset: Dataset, name: str, method: RegressorMixin, n_labeled: int, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    try:
        rows = run_seeds(
            dataset, name, method, n_labeled, dataset.n_unlabeled, seeds, MAX_TEST_ROWS.get(name)
        )
    except Exception as error:
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        raise RuntimeError(f"{name} on {dataset.name}, N = {n_labeled}, {which}: {error}") from error
    for row in rows:
        row |= {key: float(f"{value:.6g}") for key, value in row.items() if isinstance(value, float)}
        row |= {"versions": _versions(), "finished": datetime.now(UTC).strftime(TIME)}
    return rows


@cache
def _versions() -> str:
    return "; ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)


def _make_table(path: Path) -> None:
    """Create the table with its heading, unless there is one; end a line that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, heading = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        os.write(descriptor, (",".join(COLUMNS) + "\n").encode())
        os.close(descriptor)
        try:
            os.link(heading, path)  # unlike a rename this fails if another run has been faster
        except FileExistsError:
            pass
        finally:
            os.unlink(heading)
    with path.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            _write(path, b"\n")


def _append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = [",".join(str(row[column]) for column in COLUMNS) + "\n" for row in rows]
    _write(path, "".join(lines).encode())


def _write(path: Path, lines: bytes) -> None:
    """Add whole lines at once: two runs that write into one table cannot mix theirs."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        written = os.write(descriptor, lines)
    finally:
        os.close(descriptor)
    if written < len(lines):
        raise OSError(f"{path} could not be written to its end: is the disk full?")


def read_trials(folder: Path) -> pd.DataFrame:
    """The trials of a benchmark's folder: whole rows only, each trial once.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    pandas.DataFrame
        `dataset`, `method`, `n_labeled`, `seed`, `mae`, `rmse`, `fit_seconds`, `predict_seconds`,
        `n_unlabeled`, `n_test`, `versions` and `finished` (UTC).

    Raises
    ------
    ValueError
        If the folder has no trials or the table is not one of trials.
    """
    path = folder / "trials.csv"
    try:
        # No cell needs quotes; a quote in a line that was cut off must not swallow those that follow.
        table = pd.read_csv(path, dtype=str, on_bad_lines="skip", quoting=csv.QUOTE_NONE)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"cannot read trials from {path}: {error}") from error
    if list(table) != COLUMNS:
        raise ValueError(
            f"{path} must have the columns {', '.join(COLUMNS)}, got {', '.join(map(str, table))}"
        )
    whole = table["finished"].str.fullmatch(TIME_PATTERN, na=False)  # the end of a line that was not cut off
    return _typed(table[whole].drop_duplicates(KEY).reset_index(drop=True))


def shipped_trials() -> pd.DataFrame:
    """The trials that come with the package: the full benchmark on the report seeds.

    Returns
    -------
    pandas.DataFrame
        As from `read_trials`. Its `attrs` say with which `command` and `versions` it was made, on which
        `date` and `machine`, and how many `minutes` it took.
    """
    folder = resources.files(__package__).joinpath("results")
    with folder.joinpath("trials.csv.gz").open("rb") as file:
        trials = _typed(pd.read_csv(file, dtype=str, compression="gzip"))
    trials.attrs = json.loads(folder.joinpath("trials.json").read_text())
    return trials


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    texts = ("dataset", "method", "versions", "finished")
    return table.assign(**{name: pd.to_numeric(table[name]) for name in COLUMNS if name not in texts})
