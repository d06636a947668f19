"""What newer losses are worth in place of step 2, beside placebos: trials over many seeds.

``read_shipped("newer_losses")`` gives those that come with the package, on the report seeds: a row per
`dataset`, `method` (see `newer_methods`), `rows` (what was given as unlabeled rows: real ones, the same with
shuffled columns, or noise), `n_labeled` and `seed`, with `mae` on `n_test` rows. `make.py` makes them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.base import RegressorMixin

from dmls2r_lite.data.datasets import Dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals import newer
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.study.benchmark import HALF
from dmls2r_lite.study.trials import Rows, Study, as_split, run_seeds

MAX_TEST_ROWS = 1000
REAL, SHUFFLED, NOISE = ROWS = ("real", "shuffled", "noise")  # what is given as unlabeled rows
STOPPED = "stopped"  # by cross-validation
N_PEERS = 7


def newer_methods() -> dict[str, RegressorMixin]:
    """Step 1 and what may come beside it, by name.

    Weights were chosen on the seeds 0 to 9, see notebook 11.
    """
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
    unlabeled = {REAL: None, SHUFFLED: shuffle_columns, NOISE: draw_noise}[rows]
    prepare = partial(as_split, unlabeled=unlabeled)
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
