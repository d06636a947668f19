"""Algorithm 1: which unlabeled samples are an anchor's positives and negatives."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

MiningMode = Literal["absolute", "signed"]


def mine_positives_negatives(
    differences: Tensor, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """Choose k positives and k negatives for each anchor from estimated differences (Algorithm 1).

    Parameters
    ----------
    differences : Tensor of shape (N, M)
        f^d(anchor, unlabeled sample).
    k : int
        Samples in each set, 1 to M. The paper has 5.
    mode : {"absolute", "signed"}, default="absolute"
        Rank by the size of the difference, or by the difference itself as Algorithm 1 is printed.

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
    if differences.ndim != 2:
        raise ValueError(f"differences must have shape (N, M), got {tuple(differences.shape)}")
    _check(k, differences.shape[1], mode, differences)
    rank_by = differences.abs() if mode == "absolute" else differences
    # A stable sort keeps equal values in the order of their columns; topk promises no order.
    positives = rank_by.sort(dim=1, stable=True).indices[:, :k]
    negatives = rank_by.sort(dim=1, stable=True, descending=True).indices[:, :k]
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
