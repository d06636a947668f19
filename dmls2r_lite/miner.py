"""Algorithm 1: which unlabeled samples are an anchor's positives and negatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import torch
from torch import Tensor

from .model import SiameseNetwork

Miner = Callable[[SiameseNetwork, Tensor, Tensor, int], tuple[Tensor, Tensor]]
MiningMode = Literal["absolute", "signed"]


@torch.no_grad()
def mine(
    network: SiameseNetwork, x_anchors: Tensor, x_unlabeled: Tensor, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """Positives and negatives of each anchor by the network's own estimates (Algorithm 1).

    One sort, O(M log M), if the network is separable and targets are numbers; else O(N M), with
    ``network.max_pairs`` differences in memory. Unlabeled samples are encoded in blocks, each moved to
    the device of the anchors, so they may lie elsewhere.

    Parameters
    ----------
    network : SiameseNetwork
    x_anchors : Tensor of shape (N, ...)
    x_unlabeled : Tensor of shape (M, ...)
    k, mode
        As in `mine_positives_negatives`.

    Returns
    -------
    positives, negatives : Tensor of int64, shape (N, k)
        Rows of `x_unlabeled`.
    """
    device, z_anchors = x_anchors.device, network.encoder(x_anchors)
    if network.is_separable and (g_anchors := network.head.scores(z_anchors)[0]).ndim == 1:
        h_unlabeled = g_anchors.new_empty(len(x_unlabeled))
        for start in range(0, len(x_unlabeled), network.max_pairs):
            rows = slice(start, start + network.max_pairs)
            # A list of small results between large temporary ones would fragment the memory, by gigabytes.
            h_unlabeled[rows] = network.scores(x_unlabeled[rows].to(device))[1]
        return mine_from_scores(g_anchors, h_unlabeled, k, mode)
    blocks = x_unlabeled.split(max(1, network.max_pairs // len(x_anchors)))
    chunks = (network.compare_codes(z_anchors, network.encoder(rows.to(device))) for rows in blocks)
    return mine_by_chunks(chunks, len(x_unlabeled), k, mode)


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

    Raises
    ------
    ValueError
        If an argument is out of range or a difference is not finite.
    """
    if differences.ndim not in (2, 3):
        raise ValueError(f"differences must have shape (N, M) or (N, M, t), got {tuple(differences.shape)}")
    return mine_by_chunks([differences], differences.shape[1], k, mode)


def mine_by_chunks(
    chunks: Iterable[Tensor], m: int, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """`mine_positives_negatives` of differences that come some columns at a time, in O(N M).

    Parameters
    ----------
    chunks : iterable of Tensor of shape (N, m_i) or (N, m_i, t)
        Side by side they are the differences. Only one is held at a time.
    m : int
        M, the number of all columns.
    k, mode
        As in `mine_positives_negatives`.

    Returns
    -------
    positives, negatives : Tensor of int64, shape (N, k)

    Raises
    ------
    ValueError
        If an argument is out of range or a difference is not finite.
    """
    _check(k, m, mode)
    best: list[tuple[Tensor, Tensor] | None] = [None, None]
    start = 0
    for chunk in chunks:
        _check(k, m, mode, chunk)
        if chunk.ndim == 3:
            if mode == "signed":
                raise ValueError("mode must be 'absolute' for vector targets, got 'signed'")
            rank_by = torch.linalg.vector_norm(chunk, dim=-1)
        else:
            rank_by = chunk.abs() if mode == "absolute" else chunk
        columns = torch.arange(start, start + chunk.shape[1], device=chunk.device).expand_as(rank_by)
        start += chunk.shape[1]
        for side, kept in enumerate(best):
            values, numbers = rank_by, columns
            if kept is not None:
                values, numbers = torch.cat([kept[0], values], dim=1), torch.cat([kept[1], numbers], dim=1)
            # A stable sort keeps equal values in the order of their columns; topk promises no order.
            order = values.sort(dim=1, stable=True, descending=side == 1).indices[:, :k]
            best[side] = values.gather(1, order), numbers.gather(1, order)
    positives, negatives = (kept[1] for kept in best if kept is not None)
    return positives, negatives


def mine_from_scores(
    g_anchors: Tensor, h_unlabeled: Tensor, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """Choose what `mine_positives_negatives` would from g_a + h_u, without that (N, M) matrix.

    An anchor's positives lie around -g_a among the sorted h, its negatives at the two ends:
    one sort serves all anchors, O(M log M + N (log M + k log k)). Sums are taken in float64,
    where those of two float32 numbers of like size do not round: ties are true ties.

    Parameters
    ----------
    g_anchors : Tensor of shape (N,)
        Score of each anchor in first place.
    h_unlabeled : Tensor of shape (M,)
        Score of each unlabeled sample in second place.
    k, mode
        As in `mine_positives_negatives`.

    Returns
    -------
    positives, negatives : Tensor of int64, shape (N, k)

    Raises
    ------
    ValueError
        If an argument is out of range or a score is not finite.
    """
    if g_anchors.ndim != 1 or h_unlabeled.ndim != 1:
        raise ValueError(
            "g_anchors and h_unlabeled must have shapes (N,) and (M,), "
            f"got {tuple(g_anchors.shape)} and {tuple(h_unlabeled.shape)}"
        )
    n, m = len(g_anchors), len(h_unlabeled)
    _check(k, m, mode, g_anchors, h_unlabeled)
    g, (h, order) = g_anchors.double(), h_unlabeled.double().sort(stable=True)
    steps = torch.arange(k, device=h.device)

    def downwards(start: Tensor) -> Tensor:
        """Positions start, start - 1, ...; within a run of equal h, upwards: low columns first."""
        positions = start[..., None] - steps
        values = h[positions.clamp(min=0)]
        mirrored = torch.searchsorted(h, values) + torch.searchsorted(h, values, right=True) - 1 - positions
        return torch.where(positions < 0, positions, mirrored)

    smallest, largest = steps, downwards(torch.tensor(m - 1, device=h.device))
    if mode == "signed":  # g_a shifts all differences of an anchor alike
        return order[smallest].expand(n, k).clone(), order[largest].expand(n, k).clone()

    first_above = torch.searchsorted(h, -g)
    around = torch.cat([downwards(first_above - 1), first_above[:, None] + steps], dim=1)
    ends = torch.cat([smallest, largest[largest >= k]]).expand(n, -1)

    def best(candidates: Tensor, sign: int) -> Tensor:
        inside = (candidates >= 0) & (candidates < m)
        position = candidates.clamp(0, m - 1)
        size = torch.where(inside, sign * (g[:, None] + h[position]).abs(), torch.inf)
        column = order[position]
        by_column = column.argsort(dim=1)  # then a stable sort by size breaks ties by column
        by_size = size.gather(1, by_column).sort(dim=1, stable=True).indices[:, :k]
        return column.gather(1, by_column.gather(1, by_size))

    return best(around, 1), best(ends, -1)


def _check(k: int, m: int, mode: str, *values: Tensor) -> None:
    if mode not in ("absolute", "signed"):
        raise ValueError(f"mode must be 'absolute' or 'signed', got {mode!r}")
    if not 1 <= k <= m:
        raise ValueError(f"k must be between 1 and the number of unlabeled samples, {m}, got {k}")
    if not all(value.isfinite().all() for value in values):
        raise ValueError("estimated differences must be finite: has training diverged?")
