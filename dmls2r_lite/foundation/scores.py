"""The same at scale: eq. 2 over all pairs and Algorithm 1 without forming pairs, with equal results."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal

import torch
from torch import Tensor

from .parameters import COUNT, check_rules, demand, shown

MiningMode = Literal["absolute", "signed"]


def pairs_from_numbers(numbers: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Number the N(N-1) ordered pairs with i != j row by row; return i and j of the given numbers."""
    i, rest = numbers // (n - 1), numbers % (n - 1)
    return i, rest + (rest >= i).long()


def pairwise_similarity_loss_all_pairs(g: Tensor, h: Tensor, y: Tensor) -> Tensor:
    """Eq. 2 over all N(N-1) ordered pairs of a separable f^d(x_i, x_j) = g_i + h_j, in O(N).

    With u = y - g and v = y + h the error of a pair is u_i - v_j, and a double sum over a
    difference of two terms is a formula in their means and variances.

    Parameters
    ----------
    g, h, y : Tensor of shape (N,) or (N, t)
        Scores in first and second place, and targets; N is 2 or more.

    Returns
    -------
    Tensor
        The mean over pairs, a scalar.

    Raises
    ------
    ParameterError
        If N is below 2, or shapes differ.
    """
    n = len(y)
    wanted = "g, h and y must have the same shape (N,) or (N, t) with N of 2 or more"
    got = f"got {tuple(g.shape)}, {tuple(h.shape)} and {tuple(y.shape)}"
    demand(g.shape == h.shape == y.shape and n > 1, f"{wanted}, {got}")
    y = y - y.mean(dim=0)  # only differences of y matter: a large offset would cost digits
    u, v = y - g, y + h
    # Only sums of squares around the means: n * sum(u^2) - ... would cancel when u is large.
    between = (u.mean(dim=0) - v.mean(dim=0)).square()
    all_pairs = n * (u.var(dim=0, correction=0) + v.var(dim=0, correction=0) + between)
    with_itself = (u - v).square().mean(dim=0)
    return ((all_pairs - with_itself) / (n - 1)).mean()


def mine_from_scores(
    g_anchors: Tensor, h_unlabeled: Tensor, k: int, mode: MiningMode = "absolute"
) -> tuple[Tensor, Tensor]:
    """Choose what `mine_positives_negatives` would from g_a + h_u, without that (N, M) matrix.

    An anchor's positives lie around -g_a among the sorted h, its negatives at the two ends:
    one sort serves all anchors, O(M log M + N (log M + k log k)). Sums are taken in float64,
    where those of two float32 numbers of like size do not round: ties are true ties.

    Parameters
    ----------
    g_anchors : Tensor of shape (N,), or (R, N) of networks side by side
        Score of each anchor in first place.
    h_unlabeled : Tensor of shape (M,), or (R, M)
        Score of each unlabeled sample in second place.
    k, mode
        As in `mine_positives_negatives`.

    Returns
    -------
    positives, negatives : Tensor of int64, shape (N, k), or (R, N, k)

    Raises
    ------
    ValueError
        If an argument is out of range or a score is not finite.
    """
    (*networks, n), m = g_anchors.shape, h_unlabeled.shape[-1]
    check_mining(k, m, mode, g_anchors, h_unlabeled)
    g, (h, order) = g_anchors.double(), h_unlabeled.double().sort(stable=True)
    steps = torch.arange(k, device=h.device)

    def at(values: Tensor, positions: Tensor) -> Tensor:
        return values.gather(-1, positions.flatten(len(networks))).view(positions.shape)

    def downwards(start: Tensor) -> Tensor:
        """Positions start, start - 1, ...; within a run of equal h, upwards: low columns first."""
        positions = start[..., None] - steps
        values = at(h, positions.clamp(min=0)).flatten(len(networks))
        run = torch.searchsorted(h, values) + torch.searchsorted(h, values, right=True)
        return torch.where(positions < 0, positions, run.view(positions.shape) - 1 - positions)

    # Each of shape (1, k): what lies at the ends is the same for all anchors.
    smallest, largest = steps.expand(*networks, 1, k), downwards(h.new_full((*networks, 1), m - 1).long())
    if mode == "signed":  # g_a shifts all differences of an anchor alike
        low, high = (at(order, end).expand(*networks, n, k).clone() for end in (smallest, largest))
        return low, high

    first_above = torch.searchsorted(h, -g)
    around = torch.cat([downwards(first_above - 1), first_above[..., None] + steps], dim=-1)
    ends = torch.cat([smallest, torch.where(largest < k, -1, largest)], dim=-1).expand(*networks, n, 2 * k)

    def best(candidates: Tensor, sign: int) -> Tensor:
        inside = (candidates >= 0) & (candidates < m)
        position = candidates.clamp(0, m - 1)
        size = torch.where(inside, sign * (g[..., None] + at(h, position)).abs(), torch.inf)
        column = at(order, position)
        by_column = column.argsort(dim=-1)  # then a stable sort by size breaks ties by column
        by_size = size.gather(-1, by_column).sort(dim=-1, stable=True).indices[..., :k]
        return column.gather(-1, by_column.gather(-1, by_size))

    return best(around, 1), best(ends, -1)


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
        As in `mine_positives_negatives`, and so is what is returned and raised.
    """
    best: list[list[Tensor]] = [[], []]  # sizes and columns of the positives so far, then of the negatives
    start = 0
    for chunk in chunks:
        check_mining(k, m, mode, chunk)
        size = rank_by(chunk, mode)
        columns = torch.arange(start, start + chunk.shape[1], device=chunk.device).expand_as(size)
        start += chunk.shape[1]
        for side, kept in enumerate(best):
            found = ([size], [columns]) if not kept else ([kept[0], size], [kept[1], columns])
            values, numbers = (torch.cat(parts, dim=1) for parts in found)
            order = values.sort(dim=1, stable=True, descending=side == 1).indices[:, :k]
            best[side] = [values.gather(1, order), numbers.gather(1, order)]
    (_, positives), (_, negatives) = best
    return positives, negatives


def rank_by(differences: Tensor, mode: MiningMode) -> Tensor:
    """What mining sorts by, shape (N, M): the size of a difference, the norm of a vector, or its value.

    Raises
    ------
    ValueError
        If vectors are to be ranked by their value.
    """
    if differences.ndim == 2:
        return differences.abs() if mode == "absolute" else differences
    demand(mode != "signed", "mode must be 'absolute' for vector targets, got 'signed'")
    return torch.linalg.vector_norm(differences, dim=-1)


def check_mining(k: int, m: int, mode: str, *values: Tensor) -> None:
    """Raise ValueError if an argument of a miner is out of range or a value is not finite."""
    check_rules({"mode": mode})
    wanted = f"k must be between 1 and the number of unlabeled samples, {m}"
    demand(COUNT.fits(k) and k <= m, f"{wanted}, got {shown(k)}")
    are_finite = all(value.isfinite().all() for value in values)
    demand(are_finite, "estimated differences must be finite: has training diverged?")


def check_mined(mined: Any, n: int, m: int, k: int) -> Tensor:
    """What a miner has returned, or ValueError if it is not two sets of k of m rows for each of n anchors.

    The sets of an anchor stand side by side, (n, 2k): positives, then negatives.
    """
    try:
        rows = torch.stack([torch.as_tensor(rows) for rows in islice(mined, 3)], dim=1)
        is_whole = not (rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool)
        if is_whole and rows.shape == (n, 2, k) and rows.min() >= 0 and rows.max() < m:
            return rows.long().flatten(1)
        got = f"{rows.dtype} of shape {tuple(rows.shape)} from {rows.min()} to {rows.max()}"
    except (TypeError, ValueError, RuntimeError, IndexError):
        got = shown(mined)
    wanted = f"miner must return two tensors of integers of shape ({n}, {k}), rows from 0 to {m - 1}"
    raise ValueError(f"{wanted}, got {got}")


def check_loss(loss: object) -> Tensor:
    """What a loss has returned, or ValueError if it is not a scalar tensor that depends on weights."""
    if not isinstance(loss, Tensor) or loss.ndim > 0 or not loss.requires_grad:
        wanted = "a scalar tensor that depends on the network's weights"
        raise ValueError(f"metric_loss must give {wanted}, got {shown(loss)}")
    return loss
