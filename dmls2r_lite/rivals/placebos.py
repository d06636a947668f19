"""Placebos for step 2: the same gradient steps, without what mining found out, or without real samples.

Pass `null_loss` and the miners to `DMLS2RRegressor` as `metric_loss` or `miner`; put the rows of
`shuffle_columns` and `draw_noise` in the place of unlabeled ones. What they gain, step 2 does not owe to the
unlabeled samples.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ..foundation.parameters import check_calls
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


def shuffle_columns(X: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Each column in an order of its own: the same values, and nothing that ties columns together.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
    seed : int

    Returns
    -------
    pandas.DataFrame of shape (n_samples, n_features)
        With the index of X.
    """
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(X[name].to_numpy()) for name in X}, index=X.index)


def draw_noise(X: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rows of uniform noise, in each column between its smallest and its largest value.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        Numbers.
    seed : int

    Returns
    -------
    pandas.DataFrame of shape (n_samples, n_features)
        With the index of X.
    """
    noise = np.random.default_rng(seed).uniform(X.min(), X.max(), size=X.shape)
    return pd.DataFrame(noise, index=X.index, columns=X.columns)


check_calls(globals())
