"""What choosing rows, averaging and intervals are worth: trials over many seeds, with placebos."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.base import RegressorMixin
from sklearn.cluster import KMeans
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ..data.datasets import Dataset
from ..data.splits import Split, check_split_sizes, split_dataset
from ..estimators import DMLS2RRegressor
from ..foundation.parameters import check_rules
from ..practice.averaging import AveragedRegressor
from ..practice.choosing import choose_rows
from ..practice.errors import correct_for_choice
from ..practice.folds import fit_with_seed, fit_with_seeds
from ..practice.intervals import ConformalRegressor, rank_of_bound
from ..rivals.plain import plain_models
from .benchmark import AS_PUBLISHED, N_LABELED, REPORT_SEED, check_grid, load_benchmark_dataset
from .tables import TrialTable, name_seeds

DATASETS = ("boston", "superconductivity", AS_PUBLISHED, "air_quality", "diabetes", "friedman")
COVERAGES = (0.8, 0.9)
MAX_TEST_ROWS = 1000
N_NEAR = 20  # rows near one another that are to be estimated

FEW_LABELS = TrialTable(
    "few_labels",
    ("dataset", "method", "choice", "n_labeled", "seed"),
    (
        "mae", "expected", "expected_corrected", "coverage_80", "width_80", "coverage_90", "width_90",
        "constant_coverage_80", "constant_width_80", "constant_coverage_90", "constant_width_90", "n_test",
    ),
)  # fmt: skip

# How labels are chosen. The first two are what a user decides between. The next one is the strong simple
# rival. Three more continue from N/2 random labels by the same rule in three spaces: of the input, and, to
# find out whether a metric learned from labels helps, of a network trained on these, and of one untrained.
# The others are measured on rows that were known to be wanted: a third of the pool, or 20 near one another.
RANDOM, CHOSEN = "random", "chosen"
SPACES = ("input space", "metric space", "untrained space")
WANTED = tuple(
    f"{how} ({which})" for which in ("a third", "20 near") for how in ("random", "chosen", "targets")
)  # in brackets what is measured
CHOICES = (RANDOM, CHOSEN, "k-means", *SPACES, *WANTED)


@cache
def few_label_methods() -> dict[str, RegressorMixin]:
    """The learners: DML-S2R, the average, and the plain models, of which some also stand for their kind."""
    return {"DML-S2R": DMLS2RRegressor(), "average": AveragedRegressor(), **plain_models()}


WITH_INTERVALS = ("DML-S2R", "extra trees", "average")
CHEAP = ("DML-S2R", "extra trees", "Gaussian process", "ridge", "3-NN standardised")


def choices_of(method: str) -> tuple[str, ...]:
    """The choices that a learner is tried with: all that its time allows."""
    if method == "extra trees":
        return CHOICES
    if method in CHEAP:
        return (RANDOM, CHOSEN, "k-means", *SPACES)
    return (RANDOM, CHOSEN) if method in ("average", "extra trees on pairs") else (RANDOM,)


def has_intervals(dataset: str, method: str, choice: str, n_labeled: int) -> bool:
    """Whether intervals are measured too, which takes several times as long."""
    is_too_long = method == "average" and choice == CHOSEN and n_labeled > 20
    return (
        method in WITH_INTERVALS
        and choice in (RANDOM, CHOSEN)
        and dataset != AS_PUBLISHED
        and not is_too_long
    )


def run_few_labels(
    output: Path,
    datasets: Sequence[str] = DATASETS,
    methods: Sequence[str] | None = None,
    n_labeled: Sequence[int] = N_LABELED,
    seeds: Sequence[int] = range(REPORT_SEED, REPORT_SEED + 20),
    n_jobs: int | None = None,
) -> Iterator[int]:
    """Run the trials that a folder does not hold yet, as `run_benchmark` does.

    Parameters
    ----------
    output : Path
        A folder. Its `few_labels.csv` has a row per trial, see `shipped_few_labels`.
    datasets : sequence of str
    methods : sequence of str, optional
        Names from `few_label_methods`; all if not given.
    n_labeled : sequence of int
    seeds : sequence of int
    n_jobs : int, optional
        As in joblib.

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
    known = few_label_methods()
    # An interval of 90 % takes nine labels.
    check_grid(methods or (), known, datasets, (*DATASETS, "toy"), n_labeled, 9, seeds)
    check_rules({"n_jobs": n_jobs})
    for name in datasets:
        dataset = _load(name)
        check_split_sizes(dataset, max(n_labeled), dataset.n_unlabeled)
    trials = [
        (dataset, method, choice, n, seed)
        for dataset in dict.fromkeys(datasets)
        for method in dict.fromkeys(methods or known)
        for choice in choices_of(method)
        if dataset != AS_PUBLISHED or (method, choice) == ("average", RANDOM)  # only for the paper's cells
        for n in dict.fromkeys(n_labeled)
        for seed in dict.fromkeys(seeds)
    ]
    done = FEW_LABELS.done(output)
    return FEW_LABELS.run(
        output,
        [trial for trial in trials if trial not in done],
        lambda cell, of_cell: delayed(_run_cell)(*cell, of_cell),
        n_jobs,
        cost=lambda cell: cell[3] * (20 if cell[1] == "average" else 5 if cell[1] in WITH_INTERVALS else 1),
    )


def shipped_few_labels() -> pd.DataFrame:
    """The trials that come with the package, on the report seeds.

    Returns
    -------
    pandas.DataFrame
        A row per `dataset`, `method` (a learner), `choice` (see `CHOICES`), `n_labeled` and `seed`. `mae`
        is the error on `n_test` rows. For some learners also what held-out labels made one expect
        (`expected`, and `expected_corrected` for chosen rows), and the share of test rows that intervals of
        CV+ hold and their mean width (`coverage_80`, `width_80`, and so on), beside intervals of a constant
        width around the estimates. Its `attrs` say how and when it was made.
    """
    return FEW_LABELS.shipped()


@lru_cache(maxsize=2)
def _load(name: str) -> Dataset:
    return load_benchmark_dataset(name)


@lru_cache(maxsize=64)
def _split(dataset: str, n_labeled: int, seed: int) -> Split:
    data = _load(dataset)
    return split_dataset(data, n_labeled, data.n_unlabeled, seed)


@lru_cache(maxsize=1024)
def _choose(dataset: str, choice: str, n: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which rows of the pool (a split's labeled and unlabeled ones) get a label; which test rows count."""
    split = _split(dataset, n, seed)
    pool, half = split.X_train, np.arange(n // 2)
    how, _, which = choice.rstrip(")").partition(" (")
    wanted = _wanted(split, which, seed)
    if how == RANDOM:
        rows = np.arange(n)
    elif how == CHOSEN:
        rows = choose_rows(pool, n)
    elif how == "targets":
        rows = choose_rows(pool, n, targets=split.X_test.iloc[wanted])
    elif how == "k-means":
        rows = _nearest_to_centres(pool, n, seed)
    else:  # one of `SPACES`
        y = split.y_train.mask(np.arange(len(pool)) >= len(half))
        space = pool.to_numpy()
        if how != "input space":
            rate = 1e-3 if how == "metric space" else 1e-30  # as good as untrained
            space = fit_with_seed(DMLS2RRegressor(learning_rate=rate), pool, y, seed).transform(pool)
        rows = np.concatenate([half, choose_rows(space, n - len(half), labeled=half)])
    return tuple(map(int, rows)), tuple(map(int, wanted))


def _wanted(split: Split, which: str, seed: int) -> np.ndarray:
    """Positions of the test rows to measure on."""
    n_test = min(MAX_TEST_ROWS, len(split.X_test))
    if not which:
        return np.arange(n_test)
    Z = StandardScaler().fit(split.X_train).transform(split.X_test[:n_test]).clip(-5, 5)
    if which == "20 near":
        centre = Z[np.random.default_rng(seed).integers(n_test)]
        return np.linalg.norm(Z - centre, axis=1).argsort(kind="stable")[:N_NEAR]
    along = Z @ np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)[2][0]  # first principal component
    return np.flatnonzero(along >= np.quantile(along, 2 / 3))


def _nearest_to_centres(pool: pd.DataFrame, n: int, seed: int) -> np.ndarray:
    """For each centre of k-means the nearest row that is not taken."""
    Z = StandardScaler().fit_transform(pool).clip(-5, 5)
    rows: list[int] = []
    for centre in KMeans(n, n_init=10, random_state=seed).fit(Z).cluster_centers_:
        order = np.linalg.norm(Z - centre, axis=1).argsort(kind="stable")
        rows.append(next(int(row) for row in order if row not in rows))
    return np.array(rows)


@threadpool_limits.wrap(limits=1)
def _run_cell(dataset: str, name: str, choice: str, n: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    try:
        return _measure(dataset, name, choice, n, seeds)
    except Exception as error:
        raise RuntimeError(
            f"{name} on {dataset}, {choice} rows, N = {n}, {name_seeds(seeds)}: {error}"
        ) from error


def _measure(dataset: str, name: str, choice: str, n: int, seeds: Sequence[int]) -> list[dict[str, Any]]:
    method, sets, wanted = few_label_methods()[name], [], []
    for seed in seeds:
        split = _split(dataset, n, seed)
        rows, of_test = _choose(dataset, choice, n, seed)
        known = pd.concat([split.y_labeled, split.y_unlabeled])
        sets.append((split.X_train, known.where(np.isin(np.arange(len(known)), rows))))
        wanted.append((split.X_test.iloc[list(of_test)], split.y_test.iloc[list(of_test)].to_numpy()))
    more: list[Mapping[str, float]] = [{} for _ in seeds]
    if has_intervals(dataset, name, choice, n):
        models = fit_with_seeds(ConformalRegressor(method), sets, seeds)
        more = [_measure_intervals(*parts) for parts in zip(models, sets, wanted, strict=True)]
    else:
        models = fit_with_seeds(method, sets, seeds)
    return [
        {
            "dataset": dataset, "method": name, "choice": choice, "n_labeled": n, "seed": seed,
            "mae": float(mean_absolute_error(y, model.predict(X))), "n_test": len(y), **of_seed,
        }
        for seed, model, (X, y), of_seed in zip(seeds, models, wanted, more, strict=True)
    ]  # fmt: skip


def _measure_intervals(
    model: ConformalRegressor,
    training_set: tuple[pd.DataFrame, pd.Series],
    wanted: tuple[pd.DataFrame, np.ndarray],
) -> dict[str, float]:
    (X, y), (X_test, y_test) = training_set, wanted
    is_labeled = y.notna().to_numpy()
    errors, estimates = model.errors_, model.predict(X_test)
    measured = {
        "expected": float(errors.mean()),
        "expected_corrected": correct_for_choice(errors, model.fold_, X[is_labeled], X[~is_labeled])[0],
    }
    for coverage in COVERAGES:
        name = f"{100 * coverage:.0f}"
        low, high = model.predict_interval(X_test, coverage).T
        measured[f"coverage_{name}"] = float(((low <= y_test) & (y_test <= high)).mean())
        measured[f"width_{name}"] = float((high - low).mean())
        # Around the model of all labels, as wide as the held-out errors say.
        half = np.sort(errors)[len(errors) - rank_of_bound(len(errors), coverage)]
        measured[f"constant_coverage_{name}"] = float((np.abs(y_test - estimates) <= half).mean())
        measured[f"constant_width_{name}"] = 2 * float(half)
    return measured
