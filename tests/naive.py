"""The paper's formulas written as plain loops: slow and obvious, to hold the package against."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from dmls2r_lite.losses import MetricBatch, RankedListLoss
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.training import MetricStep, PairwiseStep, Step, TrainingSet, alternate, plan, train

PairFunction = Callable[[Tensor, Tensor], Tensor]  # f^d of eq. 1: two samples in, a scalar out


class MLPHead(nn.Module):
    """A head that is not separable: a small network on (z_i, z_j, z_i - z_j)."""

    def __init__(self, n_codes: int, n_targets: int | None = None) -> None:
        super().__init__()
        self.n_targets = n_targets
        self.layers = nn.Sequential(nn.Linear(3 * n_codes, 6), nn.Tanh(), nn.Linear(6, n_targets or 1))

    def forward(self, z_i: Tensor, z_j: Tensor) -> Tensor:
        estimated = self.layers(torch.cat([z_i, z_j, z_i - z_j], dim=-1))
        return estimated if self.n_targets else estimated.squeeze(-1)


HEADS = {"linear": LinearPairHead, "MLP": MLPHead}


def make_network(
    separable: bool = True,
    max_pairs: int = 2**16,
    seed: int = 0,
    head: str | None = None,
    n_targets: int | None = None,
) -> SiameseNetwork:
    """A network for three features, small enough for loops, in float64."""
    torch.manual_seed(seed)
    made = HEADS[head or ("linear" if separable else "MLP")](8, n_targets=n_targets)
    return SiameseNetwork(make_encoder(3, (12, 8)), made, max_pairs).double()


def draw(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    """Normal numbers, the same whatever was drawn before."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def batch_of(anchors: Tensor, positives: Tensor, negatives: Tensor) -> MetricBatch:
    """A batch of codes for a loss that asks for no targets."""
    nothing = torch.full(positives.shape[:2], torch.nan, dtype=anchors.dtype)
    return MetricBatch(anchors, positives, negatives, nothing[:, 0], nothing, nothing)


def make_plan(
    schedule: Callable = alternate,
    n_epochs: int = 30,
    pair_batch_size: int | None = 32,
    anchor_batch_size: int | None = None,
    max_steps_per_epoch: int = 100,
    k: int = 5,
    miner: str | Callable = "absolute",
    metric_loss: Callable | None = None,
    embedding: str = "unit",
    **loss_options: float,
) -> list[Step]:
    """The steps that an estimator with these parameters would take."""
    loss = metric_loss or RankedListLoss(**loss_options)
    metric = MetricStep(k, miner, loss, embedding, anchor_batch_size, max_steps_per_epoch)
    return plan(schedule, n_epochs, PairwiseStep(pair_batch_size, max_steps_per_epoch), metric)


OF_THE_TRAINING = ("learning_rate", "optimizer_state", "seed")


def train_by_parameters(network, x, y, u, *, callback=None, **parameters) -> pd.DataFrame:
    """`train` with the parameters that the estimator has."""
    own = {name: parameters.pop(name) for name in OF_THE_TRAINING if name in parameters}
    hooks = [callback] if callback else []
    return train(network, TrainingSet(x, y, u), make_plan(**parameters), hooks=hooks, **own)


def pair_function(network: nn.Module) -> PairFunction:
    """f^d of two single samples."""
    return lambda x_i, x_j: network(x_i[None], x_j[None])[0]


def difference_matrix(f: PairFunction, x_a: Tensor, x_b: Tensor) -> Tensor:
    """f^d of every row of `x_a` with every row of `x_b`."""
    return torch.stack([torch.stack([f(a, b) for b in x_b]) for a in x_a])


def assert_same_value_and_gradients(loss: Tensor, looped: Tensor, inputs: Sequence[Tensor]) -> None:
    """Equal to rounding, and not all zero."""
    exact = {"rtol": 1e-10, "atol": 1e-10}
    assert_close(loss, looped, **exact)
    gradients, expected = (torch.autograd.grad(value, inputs, retain_graph=True) for value in (loss, looped))
    assert any(gradient.abs().max() > 0 for gradient in expected)
    assert_close(gradients, expected, **exact)


def pairwise_similarity_loss(estimated: Sequence[Tensor], differences: Sequence[Tensor]) -> Tensor:
    """Eq. 2 on a batch of pairs; of vectors the mean over their entries."""
    total = torch.zeros((), dtype=torch.float64)
    for f_ij, z_ij in zip(estimated, differences, strict=True):
        total = total + ((z_ij - f_ij) ** 2).mean()
    return total / len(estimated)


def all_pairs_loss(f: PairFunction, x: Tensor, y: Tensor) -> Tensor:
    """Eq. 2."""
    n = len(y)
    total = torch.zeros((), dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if i != j:
                total = total + ((y[i] - y[j] - f(x[i], x[j])) ** 2).mean()
    return total / (n * (n - 1))


def mine(differences: Tensor, k: int, mode: str = "absolute") -> tuple[list[list[int]], list[list[int]]]:
    """Algorithm 1 for each row of differences; of equal ones the first column is taken.

    Vectors (N, M, t) are ranked by their length.
    """
    positives, negatives = [], []
    for row in differences.tolist():
        if isinstance(row[0], list):
            values = [sum(entry**2 for entry in vector) ** 0.5 for vector in row]
        else:
            values = [abs(d) for d in row] if mode == "absolute" else row
        chosen_p: list[int] = []
        while len(chosen_p) < k:
            left = [i for i in range(len(values)) if i not in chosen_p]
            chosen_p.append(min(left, key=lambda i: values[i]))
        chosen_n: list[int] = []
        while len(chosen_n) < k:
            left = [i for i in range(len(values)) if i not in chosen_n]
            chosen_n.append(max(left, key=lambda i: values[i]))
        positives.append(chosen_p)
        negatives.append(chosen_n)
    return positives, negatives


def ranked_list_loss(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    boundary: float,
    margin: float,
    temperature: float,
    weighting: str,
    weight_gradient: bool,
) -> Tensor:
    """Eq. 3."""
    total = torch.zeros((), dtype=torch.float64)
    for anchor, positive_set, negative_set in zip(anchors, positives, negatives, strict=True):
        for members, kind in ((positive_set, "positive"), (negative_set, "negative")):
            weights, costs = [], []
            for member in members:
                d = ((anchor - member) ** 2).sum().sqrt()
                if kind == "negative" and weighting == "ranked_list":
                    w = torch.exp(temperature * (boundary - d))
                else:
                    w = torch.exp(temperature * (d - (boundary - margin)))
                weights.append(w if weight_gradient else w.detach())
                cost = d - (boundary - margin) if kind == "positive" else boundary - d
                costs.append(cost if cost > 0 else 0 * cost)
            for w, cost in zip(weights, costs, strict=True):
                total = total + w / sum(weights) * cost
    return total / (2 * len(anchors))


def predict(f: PairFunction, x: Tensor, x_labeled: Tensor, y_labeled: Tensor) -> Tensor:
    """Eq. 4."""
    estimates = []
    for x_new in x:
        total = torch.zeros_like(y_labeled[0])
        for x_i, y_i in zip(x_labeled, y_labeled, strict=True):
            total = total + (f(x_new, x_i) - f(x_i, x_new)) / 2 + y_i
        estimates.append(total / len(y_labeled))
    return torch.stack(estimates)
