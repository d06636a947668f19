"""What newer losses are worth in place of step 2, beside placebos: trials over many seeds.

``shipped_newer_losses()`` gives those that come with the package, on the report seeds: a row per `dataset`,
`method` (see `newer_methods`), `rows` (what was given as unlabeled rows: real ones, the same with shuffled
columns, or noise), `n_labeled` and `seed`, with `mae` on `n_test` rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.base import RegressorMixin

from ..data.datasets import Dataset, Split
from .benchmark import HALF
from .trials import Rows, Sets, Study, as_split, run_seeds

if TYPE_CHECKING:
    from ..training import Step

MAX_TEST_ROWS = 1000
REAL, SHUFFLED, NOISE = ROWS = ("real", "shuffled", "noise")  # what is given as unlabeled rows
STOPPED = "stopped"  # by cross-validation
N_PEERS = 7


def newer_methods() -> dict[str, RegressorMixin]:
    """Step 1 and what may come beside it, by name.

    Weights were chosen on the seeds 0 to 9, see notebook 11.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals import newer

    step_1 = {"schedule": "pairwise_only"}
    half = {**step_1, "n_epochs": DMLS2RRegressor.n_epochs // 2}
    barycentre = {"metric_step": newer.BarycentreStep()}
    stopped = {"early_stopping": "cross_validation"}

    def mixed(loss: Any, **options: Any) -> dict[str, Any]:
        return {"metric_step": newer.MixedStep(loss, **options)}

    arms: dict[str, dict[str, Any]] = {
        "step 1": step_1,
        HALF: half,
        f"step 1 {STOPPED}": {**step_1, **stopped},
        f"step 1 x {N_PEERS}": {**step_1, "n_networks": N_PEERS},
        f"{HALF} x {N_PEERS}": {**half, "n_networks": N_PEERS},
        "ranked list": {},
        "Rank-N-Contrast on labels": mixed(
            newer.CodeLoss(newer.rank_n_contrast_loss, labeled_only=True), weight=0.1
        ),
        "Rank-N-Contrast": mixed(newer.CodeLoss(newer.rank_n_contrast_loss), weight=0.1),
        "log-ratio": mixed(newer.CodeLoss(newer.log_ratio_loss), weight=0.1),
        "loop consistency": mixed(newer.loop_consistency_loss),
        "barycentre": barycentre,
        f"barycentre {STOPPED}": {**barycentre, **stopped},
        f"peers x {N_PEERS}": {"metric_step": newer.PeerStep(N_PEERS), "n_networks": N_PEERS},
    }
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


N_ROWS = {  # with how many of `ROWS` a method is tried: those that have no use for them with real ones only
    **dict.fromkeys(["ranked list", "Rank-N-Contrast", "log-ratio", "loop consistency", "barycentre"], 3),
    **{f"peers x {N_PEERS}": 3, f"barycentre {STOPPED}": 2},
}


def _measure(
    dataset: Dataset, name: str, method: RegressorMixin, rows: str, n_labeled: int, seeds: Sequence[int]
) -> Rows:
    from ..rivals.placebos import draw_noise, shuffle_columns

    change = {REAL: lambda X, seed: X, SHUFFLED: shuffle_columns, NOISE: draw_noise}[rows]

    def prepare(split: Split, seed: int) -> Sets:
        return as_split(replace(split, X_unlabeled=change(split.X_unlabeled, seed)), seed)

    return run_seeds(dataset, name, method, n_labeled, dataset.n_unlabeled, seeds, MAX_TEST_ROWS, prepare)


NEWER_LOSSES = Study(
    name="newer_losses",
    key=("dataset", "method", "rows", "n_labeled", "seed"),
    measured=("mae", "n_test"),
    datasets=("boston", "superconductivity", "air_quality", "diabetes", "friedman"),
    methods=newer_methods,
    measure=_measure,
    kinds=lambda dataset, method: [(rows,) for rows in ROWS[: N_ROWS.get(method, 1)]],
)
shipped_newer_losses = NEWER_LOSSES.shipped


def name_arms(trials: pd.DataFrame) -> pd.DataFrame:
    """The trials with the kind of rows in a method's name where there are several: "barycentre (shuffled)".

    So `give_verdict` can take one for the other's placebo.
    """
    named = trials["method"] + " (" + trials["rows"] + ")"
    return trials.assign(method=trials["method"].mask(trials["method"].isin(N_ROWS), named)).drop(
        columns="rows"
    )


def run_beside_placebos(
    datasets: Iterable[Dataset], step: Step, n_labeled: int, seeds: Sequence[int]
) -> pd.DataFrame:
    """Try a step of one's own in place of step 2: beside step 1 (also `HALF`), and on rows without structure.

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
        A row per trial: `dataset`, `method` ("step 1", `HALF`, "own loss", "own loss (shuffled)" or "own
        loss (noise)"), `n_labeled`, `seed`, `mae` and `n_test`.
    """
    from ..estimators import DMLS2RRegressor

    known, own = newer_methods(), DMLS2RRegressor(metric_step=step)
    arms = [*((name, known[name], REAL) for name in ("step 1", HALF)), ("own loss", own, REAL)]
    arms += [(f"own loss ({rows})", own, rows) for rows in (SHUFFLED, NOISE)]
    trials = pd.DataFrame(
        row
        for dataset in datasets
        for name, method, rows in arms
        for row in _measure(dataset, name, method, rows, n_labeled, seeds)
    )
    return trials[["dataset", "method", "n_labeled", "seed", "mae", "n_test"]]
