"""What newer losses are worth in place of step 2, beside placebos: trials over many seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from joblib import delayed
from sklearn.metrics import mean_absolute_error
from threadpoolctl import threadpool_limits

from ..data.datasets import Dataset
from ..data.splits import check_split_sizes, split_dataset
from ..foundation.parameters import check_rules
from ..practice.folds import fit_with_seeds
from .benchmark import N_LABELED, REPORT_SEED, check_grid, load_benchmark_dataset
from .tables import TrialTable, name_seeds

if TYPE_CHECKING:
    from ..estimators import DMLS2RRegressor
    from ..training import Step

DATASETS = ("boston", "superconductivity", "air_quality", "diabetes", "friedman")
MAX_TEST_ROWS = 1000
REAL, SHUFFLED, NOISE = ROWS = ("real", "shuffled", "noise")  # what is given as unlabeled rows
NEWER_LOSSES = TrialTable(
    "newer_losses", ("dataset", "method", "rows", "n_labeled", "seed"), ("mae", "n_test")
)
STOPPED = "stopped"  # by cross-validation
N_PEERS = 7


def newer_methods() -> dict[str, DMLS2RRegressor]:
    """Step 1 and what may come beside it, by name.

    Weights were chosen on the seeds 0 to 9, see notebook 11.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals.newer import (
        BarycentreStep,
        CodeLoss,
        MixedStep,
        PeerStep,
        labeled_pairs_loss,
        log_ratio_loss,
        loop_consistency_loss,
        rank_n_contrast_loss,
    )
    from ..rivals.placebos import null_loss

    step_1 = {"schedule": "pairwise_only"}
    more, times_100 = MixedStep(labeled_pairs_loss), MixedStep(labeled_pairs_loss, weight=100)
    barycentre, stopped = BarycentreStep(), {"early_stopping": "cross_validation"}

    def of_codes(loss: Any, labeled_only: bool = False) -> dict[str, Any]:
        return {"metric_step": MixedStep(CodeLoss(loss, labeled_only), weight=0.1)}

    arms: dict[str, dict[str, Any]] = {
        "step 1": step_1,
        f"step 1 {STOPPED}": {**step_1, **stopped},
        f"step 1 x {N_PEERS}": {**step_1, "n_networks": N_PEERS},
        "times zero": {"metric_loss": null_loss},
        "labeled pairs": {"metric_step": more},
        "labeled pairs x 100": {"metric_step": times_100},
        "labeled pairs x 100 (own Adam)": {"metric_step": times_100, "optimizer_state": "separate"},
        "ranked list": {},
        "Rank-N-Contrast on labels": of_codes(rank_n_contrast_loss, labeled_only=True),
        "Rank-N-Contrast": of_codes(rank_n_contrast_loss),
        "log-ratio on labels": of_codes(log_ratio_loss, labeled_only=True),
        "log-ratio": of_codes(log_ratio_loss),
        "loop consistency": {"metric_step": MixedStep(loop_consistency_loss)},
        "barycentre": {"metric_step": barycentre},
        f"barycentre {STOPPED}": {"metric_step": barycentre, **stopped},
        f"peers x {N_PEERS}": {"metric_step": PeerStep(N_PEERS), "n_networks": N_PEERS},
    }
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


def rows_of(method: str) -> tuple[str, ...]:
    """What a method is tried with as unlabeled rows: without a use for them, with real ones only."""
    if method in ("ranked list", "Rank-N-Contrast", "log-ratio", "loop consistency", "barycentre"):
        return ROWS
    if method.startswith("peers"):
        return ROWS
    return (REAL, SHUFFLED) if method == f"barycentre {STOPPED}" else (REAL,)


def run_newer_losses(
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
        A folder. Its `newer_losses.csv` has a row per trial, see `shipped_newer_losses`.
    datasets : sequence of str
    methods : sequence of str, optional
        Names from `newer_methods`; all if not given.
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
    known = newer_methods()
    check_grid(methods or (), known, datasets, (*DATASETS, "toy"), n_labeled, 3, seeds)
    check_rules({"n_jobs": n_jobs})
    loaded = {name: load_benchmark_dataset(name) for name in datasets}
    for dataset in loaded.values():
        check_split_sizes(dataset, max(n_labeled), dataset.n_unlabeled)
    trials = [
        (dataset, method, rows, n, seed)
        for dataset in loaded
        for method in dict.fromkeys(methods or known)
        for rows in rows_of(method)
        for n in dict.fromkeys(n_labeled)
        for seed in dict.fromkeys(seeds)
    ]
    done = NEWER_LOSSES.done(output)
    return NEWER_LOSSES.run(
        output,
        [trial for trial in trials if trial not in done],
        lambda cell, of_cell: delayed(_run_cell)(
            loaded[cell[0]], cell[1], known[cell[1]], cell[2], cell[3], of_cell
        ),
        n_jobs,
        # about as many networks as the cell trains
        cost=lambda cell: cell[3] * (N_PEERS if cell[1].endswith((f"x {N_PEERS}", STOPPED)) else 1),
    )


def shipped_newer_losses() -> pd.DataFrame:
    """The trials that come with the package, on the report seeds.

    Returns
    -------
    pandas.DataFrame
        A row per `dataset`, `method` (see `newer_methods`), `rows` (what was given as unlabeled rows: real
        ones, the same with shuffled columns, or noise), `n_labeled` and `seed`, with `mae` on `n_test` rows.
        Its `attrs` say how and when it was made.
    """
    return NEWER_LOSSES.shipped()


def name_arms(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with the kind of rows in a method's name where there are several: "barycentre (shuffled)".

    So `give_verdict` can take one for the other's placebo.
    """
    several = trials["method"].map(lambda method: len(rows_of(method)) > 1)
    named = trials["method"] + " (" + trials["rows"] + ")"
    return trials.assign(method=named.where(several, trials["method"])).drop(columns="rows")


def run_beside_placebos(
    datasets: Iterable[Dataset], step: Step, n_labeled: int, seeds: Sequence[int]
) -> pd.DataFrame:
    """Try a step of one's own in place of step 2: beside step 1, and on rows without structure.

    Parameters
    ----------
    datasets : iterable of Dataset
    step : Step
        For example a `dmls2r_lite.rivals.newer.MixedStep`.
    n_labeled : int
    seeds : sequence of int
        Of the splits.

    Returns
    -------
    pandas.DataFrame
        A row per trial: `dataset`, `method` ("step 1", "own loss", "own loss (shuffled)" or "own loss
        (noise)"), `n_labeled`, `seed`, `mae` and `n_test`.
    """
    from ..estimators import DMLS2RRegressor

    step_1, own = DMLS2RRegressor(schedule="pairwise_only"), DMLS2RRegressor(metric_step=step)
    arms = [("step 1", step_1, REAL), ("own loss", own, REAL)]
    arms += [(f"own loss ({rows})", own, rows) for rows in (SHUFFLED, NOISE)]
    return pd.DataFrame(
        row
        for dataset in datasets
        for name, method, rows in arms
        for row in _run_cell(dataset, name, method, rows, n_labeled, seeds)
    ).drop(columns="rows")


def without_structure(X: pd.DataFrame, rows: str, seed: int) -> pd.DataFrame:
    """Unlabeled rows as they are, with shuffled columns, or noise in their place: one of `ROWS`."""
    from ..rivals.placebos import draw_noise, shuffle_columns

    return {REAL: lambda X, seed: X, SHUFFLED: shuffle_columns, NOISE: draw_noise}[rows](X, seed)


@threadpool_limits.wrap(limits=1)
def _run_cell(
    dataset: Dataset, name: str, method: DMLS2RRegressor, rows: str, n: int, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    splits = [split_dataset(dataset, n, dataset.n_unlabeled, seed) for seed in seeds]
    sets = []
    for seed, split in zip(seeds, splits, strict=True):
        X = split.X_train
        sets.append((pd.concat([X[:n], without_structure(X[n:], rows, seed)]), split.y_train))
    try:
        models = fit_with_seeds(method, sets, seeds)
    except Exception as error:
        raise RuntimeError(
            f"{name} on {dataset.name}, {rows} rows, N = {n}, {name_seeds(seeds)}: {error}"
        ) from error
    return [
        {"dataset": dataset.name, "method": name, "rows": rows, "n_labeled": n, "seed": seed,
         "n_test": len(y := split.y_test[:MAX_TEST_ROWS]),
         "mae": float(mean_absolute_error(y, model.predict(split.X_test[:MAX_TEST_ROWS])))}
        for seed, split, model in zip(seeds, splits, models, strict=True)
    ]  # fmt: skip
