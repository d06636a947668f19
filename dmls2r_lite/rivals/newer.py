"""Newer losses in place of step 2: what has been proposed since, as steps of the same training.

Pass a step to `DMLS2RRegressor` as `metric_step`. A loss of one's own is a function of a `MixedBatch`, in a
`MixedStep`. Whatever one of them gains, compare it with what it gains on rows without structure, see
`dmls2r_lite.rivals.placebos.shuffle_columns`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ..foundation.parameters import check_rules
from ..model import SiameseNetwork
from ..training import Batches, Orders, TrainingSet, draw_batches


@dataclass(frozen=True)
class _MetricStep:
    name: ClassVar[str] = "metric"

    def __post_init__(self) -> None:
        check_rules(vars(self), at_least={"n_unlabeled": 1})


class MixedBatch(NamedTuple):
    """What a loss of a `MixedStep` is given: all N labeled rows, then some unlabeled ones, n rows in all.

    Attributes
    ----------
    x : Tensor of shape (n, ...)
        Scaled features.
    codes : Tensor of shape (n, n_codes)
        Of any length.
    differences : Tensor of shape (n, n)
        f^d(row, column) of eq. 1, or (n, n, t) with target vectors.
    y : Tensor of shape (N,) or (N, t)
        Scaled targets of the labeled rows.
    """

    x: Tensor
    codes: Tensor
    differences: Tensor
    y: Tensor

    @property
    def estimates(self) -> Tensor:
        """Eq. 4 for all rows, (n,) or (n, t)."""
        antisymmetric = (self.differences - self.differences.transpose(0, 1)) / 2
        return (antisymmetric[:, : len(self.y)] + self.y).mean(dim=1)

    @property
    def targets(self) -> Tensor:
        """The targets of labeled rows, and estimates of the others in their place, without gradient."""
        return torch.cat([self.y, self.estimates[len(self.y) :].detach()])


@dataclass(frozen=True)
class MixedStep(_MetricStep):
    """One gradient step an epoch under any loss on labeled and unlabeled rows.

    Attributes
    ----------
    mixed_loss : callable
        ``mixed_loss(batch)`` of a `MixedBatch`: a scalar.
    weight : float, default=1.0
        What the loss is multiplied with.
    n_unlabeled : int, default=64
        Unlabeled rows, drawn anew in each epoch; all, if there are fewer.
    """

    stacks: ClassVar[bool] = True
    mixed_loss: Callable[[MixedBatch], Tensor]
    weight: float = 1.0
    n_unlabeled: int = 64

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> Batches:
        """Numbers of unlabeled rows, and these rows."""
        return [draw_unlabeled(data, self.n_unlabeled, orders)]

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The loss of all labeled rows and those."""
        rows, x_unlabeled = batch
        axis = rows.ndim - 1  # networks side by side have one more in front
        x = torch.cat([data.x_labeled, x_unlabeled], dim=axis)
        codes = network.encoder(x)
        seen = MixedBatch(x, codes, network.compare_codes(codes, codes), data.y_labeled)
        return self.weight * network.each(self.mixed_loss)(seen)


def rank_n_contrast_loss(codes: Tensor, targets: Tensor, temperature: float = 2.0) -> Tensor:
    """Rank-N-Contrast: of all rows at least as far in the target as j, j shall be the nearest to i.

    The mean over ordered pairs i != j of -log(exp(s_ij) / sum exp(s_ik)), over all k != i with
    |y_i - y_k| >= |y_i - y_j|, where s is the negative distance of codes over the temperature. One sort for
    each row and a running sum: O(n^2) memory, where the formula read as it stands takes O(n^3).

    Parameters
    ----------
    codes : Tensor of shape (n, n_codes)
    targets : Tensor of shape (n,)
    temperature : float, default=2.0
        The paper's.

    Returns
    -------
    Tensor
        A scalar.

    References
    ----------
    Zha et al. (2023): Rank-N-Contrast: learning continuous representations for regression. NeurIPS.
    """
    distance = _without_diagonal((targets[:, None] - targets).abs())
    similarity = -_without_diagonal(torch.linalg.vector_norm(codes[:, None] - codes, dim=-1)) / temperature
    distance, order = distance.sort(dim=1, descending=True)
    similarity = similarity.gather(1, order)
    last_as_far = torch.searchsorted(-distance, -distance, right=True) - 1  # rows may be equally far
    return (similarity.logcumsumexp(dim=1).gather(1, last_as_far) - similarity).mean()


def log_ratio_loss(codes: Tensor, targets: Tensor) -> Tensor:
    """Log-ratio loss over all triples: distances of codes shall be as those of targets, up to a factor.

    The mean over anchors a and rows i, j of (log(D_ai / D_aj) - log(T_ai / T_aj))^2, with squared distances D
    of codes and T of targets. That is twice the variance over i of log D_ai - log T_ai: O(n^2) in place of
    O(n^3). So that rows may be equal, 10^-6 is added to D and 10^-3 to T.

    Parameters
    ----------
    codes : Tensor of shape (n, n_codes)
    targets : Tensor of shape (n,)

    Returns
    -------
    Tensor
        A scalar.

    References
    ----------
    Kim et al. (2019): Deep metric learning beyond binary supervision. CVPR.
    """
    of_codes = _without_diagonal((codes[:, None] - codes).square().sum(dim=-1))
    of_targets = _without_diagonal((targets[:, None] - targets).square())
    ratios = (of_codes + 1e-6).log() - (of_targets + 1e-3).log()
    return 2 * ratios.var(dim=1, correction=0).mean()


def loop_consistency_loss(batch: MixedBatch) -> Tensor:
    """Differences around a loop shall add up to zero: the mean of (d_ab + d_bc + d_ca)^2 over all triples.

    The square is multiplied out, so that sums of rows and columns do: O(n^2) in place of O(n^3).
    """
    d = batch.differences
    n = len(d)
    return 3 * d.square().mean() + 6 * (d.sum(dim=0) * d.sum(dim=1)).mean() / n**2


@dataclass(frozen=True)
class CodeLoss:
    """A loss of codes and targets, as a loss of a `MixedBatch`.

    Attributes
    ----------
    loss : callable
        ``loss(codes, targets)``, for example `rank_n_contrast_loss`.
    labeled_only : bool, default=False
        Whether it sees labeled rows alone; else all, with estimates for targets that are not known.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    labeled_only: bool = False

    def __call__(self, batch: MixedBatch) -> Tensor:
        """The loss of a batch, a scalar."""
        n = len(batch.y) if self.labeled_only else len(batch.codes)
        return self.loss(batch.codes[:n], batch.targets[:n])


@dataclass(frozen=True)
class BarycentreStep(_MetricStep):
    """A row shall be estimated as its neighbours are: locally linear, as in the embedding of that name.

    The mean over some rows a of (q(a) - sum_j w_j q(x_j))^2, with q of eq. 4. Neighbours are the nearest
    labeled or unlabeled rows by features; their weights put a together, sum w_j x_j, as well as they can.

    Attributes
    ----------
    weight : float, default=100.0
    n_rows : int, default=10
        Rows a, drawn anew in each epoch.
    n_neighbors : int, default=20

    References
    ----------
    Roweis and Saul (2000): Nonlinear dimensionality reduction by locally linear embedding. Science 290.
    """

    stacks: ClassVar[bool] = True
    weight: float = 100.0
    n_rows: int = 10
    n_neighbors: int = 20

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> Batches:
        """Numbers of rows; each row followed by its neighbours, (n, 1 + k, ...); their weights, (n, k)."""
        pool = torch.cat([data.x_labeled, data.x_unlabeled.to(data.x_labeled.device)])
        (rows,) = draw_batches(len(pool), self.n_rows, 1, orders.anchors)
        distances = torch.cdist(pool[rows].flatten(1), pool.flatten(1))
        distances[torch.arange(len(rows)), rows] = torch.inf  # itself, but not rows like it
        nearest = distances.topk(min(self.n_neighbors, len(pool) - 1), largest=False).indices
        with_nearest = torch.cat([rows[:, None].to(pool.device), nearest], dim=1)
        weights = barycentric_weights(pool[rows].flatten(1), pool[nearest].flatten(2))
        return [(rows, pool[with_nearest], weights)]

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """How far estimates of rows are from those of their neighbours, put together."""
        rows, x, weights = batch
        axis = rows.ndim - 1
        each = x.flatten(axis, axis + 1)
        if network.is_separable:
            g, h = network.scores(each)
            q = (g - h) / 2  # weights sum to one: a constant would cancel
        else:
            q = network.predict(each, data.x_labeled, data.y_labeled)
        q = q.unflatten(axis, x.shape[axis : axis + 2])
        own, others = q.select(axis + 1, 0), q.narrow(axis + 1, 1, weights.shape[-1])
        weights = weights.reshape(*weights.shape, *(1 for _ in range(q.ndim - weights.ndim)))
        return self.weight * (own - (weights * others).sum(dim=axis + 1)).square().flatten(axis).mean(dim=-1)


def barycentric_weights(x: Tensor, neighbors: Tensor) -> Tensor:
    """Weights (n, k), summing to one, that put rows (n, d) together from neighbours (n, k, d).

    They solve G w = 1 for the Gram matrix G of the neighbours around the row, with a thousandth of its trace
    on the diagonal, and are then divided by their sum.
    """
    around = (neighbors - x[:, None]).double()
    gram = around @ around.mT
    trace = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
    ridge = 1e-3 * trace.where(trace > 0, 1)  # all neighbours may equal the row
    on_diagonal = torch.diag_embed(ridge[:, None].expand(gram.shape[:2]))
    weights = torch.linalg.solve(gram + on_diagonal, around.new_ones(gram.shape[:2]))
    return (weights / weights.sum(dim=1, keepdim=True)).to(x.dtype)


def draw_unlabeled(data: TrainingSet, n: int, orders: Orders) -> tuple[Tensor, Tensor]:
    """Numbers of some unlabeled rows, and these rows beside the labeled ones."""
    (rows,) = draw_batches(len(data.x_unlabeled), n, 1, orders.anchors)
    return rows, data.x_unlabeled[rows.to(data.x_unlabeled.device)].to(data.x_labeled.device)


def _without_diagonal(matrix: Tensor) -> Tensor:
    """A square matrix without its diagonal: (n, n) to (n, n - 1)."""
    n = len(matrix)
    return matrix[~torch.eye(n, dtype=torch.bool, device=matrix.device)].unflatten(0, (n, n - 1))
