"""What newer losses are worth in place of step 2, beside placebos: trials over many seeds.

``read_shipped("newer_losses")`` gives those that come with the package, on the report seeds: a row per
`dataset`, `method` (see `newer_methods`), `rows` (what was given as unlabeled rows: real ones, the same with
shuffled columns, or noise), `n_labeled` and `seed`, with `mae` on `n_test` rows. `make.py` makes them anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from sklearn.base import RegressorMixin
from torch import Tensor

from dmls2r_lite.data.datasets import Dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import demand
from dmls2r_lite.model import SiameseNetwork
from dmls2r_lite.rivals import newer
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.study.benchmark import HALF
from dmls2r_lite.study.trials import Rows, Study, as_split, run_seeds
from dmls2r_lite.training import Orders, TrainingSet

MAX_TEST_ROWS = 1000
REAL, SHUFFLED, NOISE = ROWS = ("real", "shuffled", "noise")  # what is given as unlabeled rows
STOPPED = "stopped"  # by cross-validation
N_PEERS = 7


@dataclass(frozen=True)
class PeerStep:
    """Networks side by side teach each other: what the others estimate on the mean is a target.

    The mean over pairs of a labeled row l and an unlabeled one u of
    [(f(l, u') - y_l + t_u)^2 + (f(u', l) + y_l - t_u)^2] / 2, where u' is u with noise, and t_u the mean
    estimate (eq. 4) of the other networks for u. For `n_networks` of `n_peers`, or several times as many,
    which are then several teams; they must be ones that can be stacked, and targets numbers.

    Attributes
    ----------
    n_peers : int, default=7
    weight : float, default=10.0
    n_unlabeled : int, default=64
        Rows u of each network, drawn anew in each epoch.
    noise : float, default=0.05
        Standard deviation, of scaled features.
    """

    name: ClassVar[str] = "metric"
    stacks: ClassVar[bool] = True
    n_peers: int = 7
    weight: float = 10.0
    n_unlabeled: int = 64
    noise: float = 0.05

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> newer.Batches:
        """Numbers of unlabeled rows, these rows, and the same with noise."""
        rows, x = newer.draw_unlabeled(data, self.n_unlabeled, orders)
        noise = torch.from_numpy(orders.anchors.normal(scale=self.noise, size=x.shape)).to(x)
        return [(rows, x, x + noise)]

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """How far differences are from what the others say."""
        rows, x, noisy = batch
        n_networks = len(rows) if rows.ndim == 2 else 1
        wanted = f"n_networks must be n_peers, {self.n_peers}, or several times as many"
        of_whom = "of networks that can be stacked and have numbers as targets"
        y = data.y_labeled
        demand(n_networks % self.n_peers == 0 and y.ndim < 3, f"{wanted}, {of_whom}, got {n_networks}")
        t = self._estimates_of_others(network, data, x)
        (g_l, h_l), (g_u, h_u) = network.scores(data.x_labeled), network.scores(noisy)
        z = y[:, :, None] - t[:, None]
        forth, back = g_l[:, :, None] + h_u[:, None] - z, g_u[:, None] + h_l[:, :, None] + z
        return self.weight * (forth.square() + back.square()).mean(dim=(1, 2)) / 2

    @torch.no_grad()
    def _estimates_of_others(self, network: SiameseNetwork, data: TrainingSet, x: Tensor) -> Tensor:
        """(R, m): the mean estimate of a network's peers for its own rows (R, m, ...)."""
        p, m = self.n_peers, x.shape[1]
        of_team = x.unflatten(0, (-1, p)).flatten(1, 2).repeat_interleave(p, dim=0)  # (R, p m, ...)
        (g, h), (g_l, h_l) = network.scores(of_team), network.scores(data.x_labeled)
        constant = (data.y_labeled - (g_l - h_l) / 2).mean(dim=1, keepdim=True)
        estimates = ((g - h) / 2 + constant).reshape(-1, p, p, m)  # team, by whom, for whose rows
        own = estimates.diagonal(dim1=1, dim2=2).movedim(-1, 1)
        return ((estimates.sum(dim=1) - own) / (p - 1)).reshape(-1, m)


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
        f"peers x {N_PEERS}": {"metric_step": PeerStep(N_PEERS), "n_networks": N_PEERS},
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
