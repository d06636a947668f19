"""Placebos for step 2: the same gradient steps, without what mining found out.

Pass them to `DMLS2RRegressor` as `miner` or `metric_loss`. What they gain, step 2 does not owe to
the unlabeled samples that it chose.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..losses import MetricBatch
from ..miner import mine
from ..model import SiameseNetwork


def null_loss(batch: MetricBatch) -> Tensor:
    """The loss of step 2 times zero: weights move by the optimizer's momentum only."""
    return 0 * (batch.anchors.sum() + batch.positives.sum() + batch.negatives.sum())


def mine_random(
    network: SiameseNetwork, x_anchors: Tensor, x_unlabeled: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Positives and negatives drawn at random, with replacement, by PyTorch's generator."""
    drawn = torch.randint(len(x_unlabeled), (2, len(x_anchors), int(k)), device=x_anchors.device)
    return drawn[0], drawn[1]


def mine_swapped(
    network: SiameseNetwork, x_anchors: Tensor, x_unlabeled: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """The mined negatives as positives, and the mined positives as negatives."""
    positives, negatives = mine(network, x_anchors, x_unlabeled, k)
    return negatives, positives
