"""Algorithm 1: which unlabeled samples are an anchor's positives and negatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .foundation.parameters import demand
from .foundation.scores import MiningMode, check_mining, mine_by_chunks, mine_from_scores, rank_by
from .model import SiameseNetwork

Miner = Callable[[SiameseNetwork, Tensor, Tensor, int], tuple[Tensor, Tensor]]


@torch.no_grad()
def mine(
    network: SiameseNetwork,
    x_anchors: Tensor,
    x_unlabeled: Tensor | Sequence[Tensor],
    k: int,
    mode: MiningMode = "absolute",
) -> tuple[Tensor, Tensor]:
    """Positives and negatives of each anchor by the network's own estimates (Algorithm 1).

    One sort, O(M log M), if the network is separable and targets are numbers; else O(N M), with
    ``network.max_pairs`` differences in memory. Unlabeled samples, (M, ...), are encoded in blocks, each
    moved to the device of the anchors, (N, ...), so they may lie elsewhere; of networks side by side they
    are a list. The rest is as in `mine_positives_negatives`.
    """
    device, z_anchors = x_anchors.device, network.encoder(x_anchors)
    pools = [x_unlabeled] if (alone := isinstance(x_unlabeled, Tensor)) else list(x_unlabeled)
    m = len(pools[0])
    if network.is_separable and (g := network.head.scores(z_anchors)[0]).ndim == (1 if alone else 2):
        h, size = g.new_empty(*g.shape[:-1], m), max(1, network.max_pairs // len(pools))
        for start in range(0, m, size):
            # A list of small results between large temporary ones would fragment the memory, by gigabytes.
            blocks = [pool[start : start + size].to(device) for pool in pools]
            h[..., start : start + size] = network.scores(blocks[0] if alone else torch.stack(blocks))[1]
        return mine_from_scores(g, h, k, mode)
    parts = pools[0].split(max(1, network.max_pairs // len(x_anchors)))
    chunks = (network.compare_codes(z_anchors, network.encoder(part.to(device))) for part in parts)
    return mine_by_chunks(chunks, m, k, mode)


def mine_positives_negatives(
    differences: Tensor, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """Choose k positives and k negatives for each anchor from estimated differences (Algorithm 1).

    Parameters
    ----------
    differences : Tensor of shape (N, M) or (N, M, t)
        f^d(anchor, unlabeled sample).
    k : int
        Samples in each set, 1 to M. The paper has 5.
    mode : {"absolute", "signed"}, default="absolute"
        Rank by the size of the difference (of a vector: its norm), or by the difference itself as
        Algorithm 1 is printed, which vectors do not allow.

    Returns
    -------
    positives, negatives : Tensor of int64, shape (N, k)
        Columns of `differences`, smallest difference first and largest first. Of equal
        differences the lower column wins.

    ValueError says that an argument is out of range, or a difference is not finite.
    """
    got = tuple(differences.shape)
    demand(len(got) in (2, 3), f"differences must have shape (N, M) or (N, M, t), got {got}")
    check_mining(k, differences.shape[1], mode, differences)
    size = rank_by(differences, mode)
    # A stable sort keeps equal values in the order of their columns; topk promises no order.
    positives = size.sort(dim=1, stable=True).indices[:, :k]
    negatives = size.sort(dim=1, stable=True, descending=True).indices[:, :k]
    return positives, negatives
