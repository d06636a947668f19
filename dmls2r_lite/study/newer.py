"""What newer losses are worth in place of step 2, beside placebos: trials over many seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.base import RegressorMixin

from ..data.datasets import Dataset
from ..data.splits import Split
from .driver import Cells, Study
from .trials import Sets, as_split, run_seeds

if TYPE_CHECKING:
    from ..estimators import DMLS2RRegressor
    from ..training import Step

MAX_TEST_ROWS = 1000
REAL, SHUFFLED, NOISE = ROWS = ("real", "shuffled", "noise")  # what is given as unlabeled rows
STOPPED = "stopped"  # by cross-validation
N_PEERS = 7


def newer_methods() -> dict[str, DMLS2RRegressor]:
    """Step 1 and what may come beside it, by name.

    Weights were chosen on the seeds 0 to 9, see notebook 11.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals import newer
    from ..rivals.placebos import null_loss

    step_1 = {"schedule": "pairwise_only"}
    more, times_100 = (
        newer.MixedStep(newer.labeled_pairs_loss),
        newer.MixedStep(newer.labeled_pairs_loss, weight=100),
    )
    barycentre, stopped = newer.BarycentreStep(), {"early_stopping": "cross_validation"}

    def of_codes(loss: Any, labeled_only: bool = False) -> dict[str, Any]:
        return {"metric_step": newer.MixedStep(newer.CodeLoss(loss, labeled_only), weight=0.1)}

    arms: dict[str, dict[str, Any]] = {
        "step 1": step_1,
        f"step 1 {STOPPED}": {**step_1, **stopped},
        f"step 1 x {N_PEERS}": {**step_1, "n_networks": N_PEERS},
        "times zero": {"metric_loss": null_loss},
        "labeled pairs": {"metric_step": more},
        "labeled pairs x 100": {"metric_step": times_100},
        "labeled pairs x 100 (own Adam)": {"metric_step": times_100, "optimizer_state": "separate"},
        "ranked list": {},
        "Rank-N-Contrast on labels": of_codes(newer.rank_n_contrast_loss, labeled_only=True),
        "Rank-N-Contrast": of_codes(newer.rank_n_contrast_loss),
        "log-ratio on labels": of_codes(newer.log_ratio_loss, labeled_only=True),
        "log-ratio": of_codes(newer.log_ratio_loss),
        "loop consistency": {"metric_step": newer.MixedStep(newer.loop_consistency_loss)},
        "barycentre": {"metric_step": barycentre},
        f"barycentre {STOPPED}": {"metric_step": barycentre, **stopped},
        f"peers x {N_PEERS}": {"metric_step": newer.PeerStep(N_PEERS), "n_networks": N_PEERS},
    }
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


def rows_of(method: str) -> tuple[str, ...]:
    """What a method is tried with as unlabeled rows: without a use for them, with real ones only."""
    in_place_of_step_2 = ("ranked list", "Rank-N-Contrast", "log-ratio", "loop consistency", "barycentre")
    if method in (*in_place_of_step_2, f"peers x {N_PEERS}"):
        return ROWS
    return (REAL, SHUFFLED) if method == f"barycentre {STOPPED}" else (REAL,)


def _measure(
    dataset: Dataset, name: str, method: RegressorMixin, rows: str, n_labeled: int, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    given = partial(_give, rows)
    return run_seeds(dataset, name, method, n_labeled, dataset.n_unlabeled, seeds, MAX_TEST_ROWS, given)


def _give(rows: str, split: Split, seed: int) -> Sets:
    """A split with one of `ROWS` in place of its unlabeled ones."""
    from ..rivals.placebos import draw_noise, shuffle_columns

    if rows != REAL:
        change = {SHUFFLED: shuffle_columns, NOISE: draw_noise}[rows]
        split = replace(split, X_unlabeled=change(split.X_unlabeled, seed))
    return as_split(split, seed)


def _cells(dataset: Dataset, name: str, method: RegressorMixin, n_labeled: int) -> Cells:
    return {(rows,): partial(_measure, dataset, name, method, rows, n_labeled) for rows in rows_of(name)}


NEWER_LOSSES = Study(
    name="newer_losses",
    key=("dataset", "method", "rows", "n_labeled", "seed"),
    measured=("mae", "n_test"),
    datasets=("boston", "superconductivity", "air_quality", "diabetes", "friedman"),
    methods=newer_methods,
    cells=_cells,
)
run_newer_losses = NEWER_LOSSES.run


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
    trials = pd.DataFrame(
        row
        for dataset in datasets
        for name, method, rows in arms
        for row in _measure(dataset, name, method, rows, n_labeled, seeds)
    )
    return trials[["dataset", "method", "n_labeled", "seed", "mae", "n_test"]]
