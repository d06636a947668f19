"""Alternate learning: one epoch of pairwise similarity modeling, one of triplet-based metric learning.

A step is a small object that owns its options. It cuts an epoch into batches, and gives the loss of a batch;
`descend` takes a gradient step on each, and `train` runs the steps in the order that it is given.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .foundation.scores import check_mined, pairs_from_numbers, pairwise_similarity_loss_all_pairs
from .hooks import Hook, kept_when_interrupted, refuse_divergence
from .losses import MetricBatch, MetricLoss, RankedListLoss, pairwise_similarity_loss
from .miner import Miner, mine
from .model import SiameseNetwork, take
from .schedules import Schedule
from .stacking import SideBySide


class TrainingSet(NamedTuple):
    """What a network is trained on: scaled features and targets.

    Attributes
    ----------
    x_labeled : Tensor of shape (N, ...)
        Pairs and anchors are taken from these. N is 2 or more.
    y_labeled : Tensor of shape (N,) or (N, t)
    x_unlabeled : Tensor of shape (M, ...)
        On any device. With M = 0 epochs of step 2, and joint ones, are skipped.
    """

    x_labeled: Tensor
    y_labeled: Tensor
    x_unlabeled: Tensor


class Orders(NamedTuple):
    """Generators for pairs and for anchors: step 1 sees the same pairs with and without step 2."""

    pairs: np.random.Generator
    anchors: np.random.Generator

    @classmethod
    def from_seed(cls, seed: int) -> Orders:
        """Two generators from one seed."""
        return cls(*(np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2)))


class Step(Protocol):
    """One kind of epoch."""

    name: ClassVar[str]  # "pairwise", "metric" or "joint"
    stacks: ClassVar[bool]  # whether `loss` knows networks side by side; may be left out

    def batches(
        self, network: SiameseNetwork, data: TrainingSet, orders: Orders
    ) -> Iterable[tuple[Tensor, ...]]:
        """What each gradient step of an epoch takes: tensors that `loss` is given, a tuple a step."""

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The loss of one gradient step, a scalar."""


@dataclass(frozen=True)
class PairwiseStep:
    """Step 1: all ordered pairs of labeled samples in random order, batch by batch (eq. 1 and 2).

    Attributes
    ----------
    batch_size : int or None, default=32
        Pairs in a gradient step; None takes all pairs at once.
    max_steps : int, default=100
        Gradient steps in an epoch at the most: 1000 labels make a million pairs.
    """

    name: ClassVar[str] = "pairwise"
    stacks: ClassVar[bool] = True
    batch_size: int | None = 32
    max_steps: int = 100

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> list[tuple[Tensor, ...]]:
        """Numbers of pairs, see `pairs_from_numbers`."""
        if self.batch_size is None:
            return [()]
        n = len(data.y_labeled)
        return [(part,) for part in draw_batches(n * (n - 1), self.batch_size, self.max_steps, orders.pairs)]

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """Eq. 2 on a batch of pairs, or on all of them."""
        x, y = data.x_labeled, data.y_labeled
        if not batch:
            return all_pairs_loss(network, x, y)
        (numbers,) = batch
        i, j = pairs_from_numbers(numbers.to(x.device), x.shape[numbers.ndim - 1])
        return network.each(pairwise_similarity_loss)(network.compare(x, i, j), take(y, i) - take(y, j))


@dataclass(frozen=True)
class MetricStep:
    """Step 2: mine once an epoch (Algorithm 1), then the ranked list loss of all anchors (eq. 3).

    Attributes
    ----------
    k : int, default=5
        Size of each set.
    mine : callable
        ``mine(network, x_anchors, x_unlabeled, k)`` returns what `dmls2r_lite.miner.mine` does.
    metric_loss : callable
        ``metric_loss(batch)`` of a `MetricBatch`.
    embedding : {"unit", "raw"}, default="unit"
        Whether the loss sees codes scaled to length 1.
    batch_size : int or None, default=None
        Anchors in a gradient step; None takes all at once.
    max_steps : int, default=100
        Gradient steps in an epoch at the most.
    """

    name: ClassVar[str] = "metric"
    stacks: ClassVar[bool] = True
    k: int = 5
    mine: Miner = mine
    metric_loss: MetricLoss = field(default_factory=RankedListLoss)
    embedding: Literal["unit", "raw"] = "unit"
    batch_size: int | None = None
    max_steps: int = 100

    def batches(
        self, network: SiameseNetwork, data: TrainingSet, orders: Orders
    ) -> Iterator[tuple[Tensor, ...]]:
        """Numbers of anchors, and the samples mined for them, an anchor's positives before its negatives."""
        mined = self.mine_sets(network, data)
        n = len(data.x_labeled)
        parts = draw_batches(n, self.batch_size or n, self.max_steps, orders.anchors)
        return (self.look_up(part, mined, data) for part in parts)

    def mine_sets(self, network: SiameseNetwork, data: TrainingSet) -> Tensor:
        """Rows of unlabeled samples (N, 2k) for all anchors: positives, then negatives."""
        if was_training := network.training:
            network.eval()
        mined = self.mine(network, data.x_labeled, data.x_unlabeled, self.k)
        if was_training:
            network.train()
        return torch.cat(check_mined(mined, len(data.x_labeled), len(data.x_unlabeled), self.k), dim=1)

    def look_up(self, anchors: Tensor, mined: Tensor, data: TrainingSet) -> tuple[Tensor, Tensor]:
        """The numbers of some anchors, and the samples mined for them one after the other."""
        device, u = data.x_labeled.device, data.x_unlabeled
        anchors = anchors.to(device)
        return anchors, u[mined[anchors].flatten().to(u.device)].to(device)

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The metric loss of some anchors."""
        anchors, x_mined = batch  # (n,) and (n 2k, ...), or (R, n) and (R, n 2k, ...) of R networks
        k, axis = int(self.k), anchors.ndim - 1
        z, z_mined = network.encoder(take(data.x_labeled, anchors)), network.encoder(x_mined)
        with torch.no_grad():
            d = network.head(z.repeat_interleave(2 * k, dim=axis), z_mined)
        if self.embedding == "unit":
            z, z_mined = (nn.functional.normalize(codes, dim=-1) for codes in (z, z_mined))
        positives, negatives = z_mined.unflatten(axis, (-1, 2, k)).unbind(axis + 1)  # (n, k, n_codes) each
        d_positives, d_negatives = d.unflatten(axis, (-1, 2, k)).unbind(axis + 1)
        y = take(data.y_labeled, anchors)
        seen = MetricBatch(z, positives, negatives, y, d_positives, d_negatives)
        return network.each(self.metric_loss)(seen)


@dataclass(frozen=True)
class JointStep:
    """The sum of both losses in every gradient step; mined once an epoch."""

    name: ClassVar[str] = "joint"
    stacks: ClassVar[bool] = True
    pairwise: PairwiseStep = PairwiseStep()
    metric: MetricStep = field(default_factory=MetricStep)

    def batches(
        self, network: SiameseNetwork, data: TrainingSet, orders: Orders
    ) -> Iterator[tuple[Tensor, ...]]:
        """Each batch of pairs with a batch of anchors drawn for it."""
        mined, n = self.metric.mine_sets(network, data), len(data.x_labeled)
        pairs = self.pairwise.batches(network, data, orders)
        size = self.metric.batch_size or n
        return (
            (*self.metric.look_up(draw_batches(n, size, 1, orders.anchors)[0], mined, data), *numbers)
            for numbers in pairs
        )

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The sum."""
        anchors, x_mined, *numbers = batch
        return self.pairwise.loss(network, data, *numbers) + self.metric.loss(network, data, anchors, x_mined)


def descend(losses: Iterable[Tensor], optimizer: torch.optim.Optimizer) -> Tensor:
    """Take a gradient step for each loss, and return the losses.

    Parameters
    ----------
    losses : iterable of Tensor
        Each is computed when it is asked for, with the weights that the step before has left. A scalar, or
        one number for each of several networks side by side.
    optimizer : torch.optim.Optimizer

    Returns
    -------
    Tensor
        All losses in order, without gradient.
    """
    values = []
    for loss in losses:
        optimizer.zero_grad()
        loss.sum().backward()  # networks side by side share no weights: each gets its own gradient
        optimizer.step()
        values.append(loss.detach())
    return torch.stack(values)


def train(
    network: SiameseNetwork,
    data: TrainingSet,
    steps: Iterable[Step],
    *,
    learning_rate: float = 1e-3,
    optimizer_state: Literal["shared", "separate"] = "shared",
    seed: int = 0,
    hooks: Sequence[Hook] = (),
) -> pd.DataFrame:
    """Train a Siamese network in place, an epoch of each step in order.

    Parameters
    ----------
    network : SiameseNetwork
    data : TrainingSet
    steps : iterable of Step
        One for each epoch, for example ``[PairwiseStep(), MetricStep()] * 30``. See `plan`.
    learning_rate : float, default=0.001
        Of Adam (the paper's).
    optimizer_state : {"shared", "separate"}, default="shared"
        One Adam for all steps, which carries momentum from one into the other, or one more for the encoder
        in step 2.
    seed : int, default=0
        Of the order of pairs and of anchors.
    hooks : sequence of callable, default=()
        ``hook(network, row)`` is called after each epoch with its row of the history, and may add to it.

    Returns
    -------
    pandas.DataFrame
        A row per epoch: `epoch` (from 1, of that step), `step`, `loss` (mean over gradient steps), `n_steps`,
        `seconds`, `skipped` (the reason, or empty), and what hooks have added.

    Raises
    ------
    ValueError
        If the loss is no longer finite.

    Notes
    -----
    Where a person waits (in a notebook or an interactive Python), an interrupt ends the training
    with a warning, and the network stays as it is then.
    """
    options: Any = {"learning_rate": learning_rate, "optimizer_state": optimizer_state, "hooks": hooks}
    return train_side_by_side([network], [data], steps, seeds=[seed], **options)[0]


def train_side_by_side(
    networks: Sequence[SiameseNetwork],
    data: Sequence[TrainingSet],
    steps: Iterable[Step],
    *,
    seeds: Sequence[int],
    learning_rate: float = 1e-3,
    optimizer_state: Literal["shared", "separate"] = "shared",
    hooks: Sequence[Hook] = (),
    rng_states: Sequence[Tensor] | None = None,
) -> list[pd.DataFrame]:
    """`train` several networks at once: the same results to rounding, in a fraction of the time.

    Parameters
    ----------
    networks : sequence of SiameseNetwork
        Of one shape.
    data : sequence of TrainingSet
        One for each network, all of as many labeled samples.
    seeds : sequence of int
        One for each network.
    steps, learning_rate, optimizer_state, hooks
        As in `train`; hooks are called for each network.
    rng_states : sequence of Tensor, optional
        Of PyTorch's generator, one for each network, for what draws from it (dropout, random mining); all
        start from the present one if not given.

    Returns
    -------
    list of pandas.DataFrame
        The history of each network. `seconds` are its share.
    """
    steps, orders = list(steps), [Orders.from_seed(seed) for seed in seeds]
    may_stack = all(vars(type(step)).get("stacks") for step in steps)  # a subclass says so for itself
    team = SideBySide(networks, data, orders, rng_states, may_stack)
    adam = make_adam(team.parameters(), learning_rate)
    own = make_adam(team.encoder_parameters(), learning_rate) if optimizer_state == "separate" else adam
    hooks = (refuse_divergence(learning_rate), *hooks)
    histories: list[list[dict[str, Any]]] = [[] for _ in networks]
    with kept_when_interrupted() as begun:
        for step in steps:
            begun.append(step.name)
            start = time.perf_counter()
            skipped = "" if step.name == "pairwise" or team.has_unlabeled else "no unlabeled samples"
            losses = torch.empty(0, len(networks))
            if not skipped:
                team.train()
                losses = descend(team.losses(step), own if step.name == "metric" else adam)
            team.eval()
            seconds = (time.perf_counter() - start) / len(networks)
            means = losses.reshape(-1, len(networks)).mean(dim=0).tolist()  # of no losses: NaN
            for network, history, loss in zip(networks, histories, means, strict=True):
                row = {"epoch": begun.count(step.name), "step": step.name, "loss": loss,
                       "n_steps": len(losses), "seconds": seconds, "skipped": skipped}  # fmt: skip
                history.append(row)
                for hook in hooks:
                    hook(network, row)
    team.eval()
    team.separate()
    return [pd.DataFrame(history) for history in histories]


def plan(
    schedule: Schedule,
    n_epochs: int,
    pairwise: PairwiseStep = PairwiseStep(),
    metric: Step = MetricStep(),
) -> list[Step]:
    """The steps of a schedule, in order. Only a `MetricStep` can be part of joint ones.

    Raises
    ------
    ValueError
        If the schedule gives no steps or unknown ones.
    """
    known: dict[str, Step] = {"pairwise": pairwise, "metric": metric}
    if isinstance(metric, MetricStep):
        known["joint"] = JointStep(pairwise=pairwise, metric=metric)
    given: Any = schedule(n_epochs)
    names = list(given) if isinstance(given, Iterable) else []
    if not names or not all(isinstance(name, str) and name in known for name in names):
        raise ValueError(f"schedule must give one or more of {', '.join(map(repr, known))}, got {given!r}")
    return [known[name] for name in names]


def make_adam(parameters: Iterable[nn.Parameter], learning_rate: float) -> torch.optim.Adam:
    """Adam, all weights in one pass where PyTorch has that."""
    weights = list(parameters)
    fused = all(weight.device.type in ("cpu", "cuda") for weight in weights)
    return torch.optim.Adam(weights, lr=learning_rate, fused=fused)


def draw_batches(n: int, batch_size: int, max_batches: int, rng: np.random.Generator) -> tuple[Tensor, ...]:
    """0 ... n - 1 in random order, cut into batches; only as many as will be used are drawn."""
    batch_size, max_batches = int(batch_size), int(max_batches)  # NumPy's overflow, and PyTorch refuses them
    drawn = rng.choice(n, size=min(n, batch_size * max_batches), replace=False)
    return torch.from_numpy(drawn).split(batch_size)


def all_pairs_loss(network: SiameseNetwork, x: Tensor, y: Tensor) -> Tensor:
    """Eq. 2 over all ordered pairs: in O(N) if the network is separable, else by blocks of pairs.

    Blocks are recomputed in the backward pass, so memory stays bounded by ``network.max_pairs``.

    Parameters
    ----------
    network : SiameseNetwork
    x : Tensor of shape (N, ...)
    y : Tensor of shape (N,) or (N, t)

    Returns
    -------
    Tensor
        A scalar.
    """
    if network.is_separable:
        return network.each(pairwise_similarity_loss_all_pairs)(*network.scores(x), y)
    z, n = network.encoder(x), len(y)

    def block_loss(numbers: Tensor) -> Tensor:
        i, j = pairs_from_numbers(numbers, n)
        return pairwise_similarity_loss(network.head(z[i], z[j]), y[i] - y[j]) * len(numbers)

    blocks = torch.arange(n * (n - 1), device=x.device).split(network.max_pairs)
    total = sum(checkpoint(block_loss, numbers, use_reentrant=False) for numbers in blocks)
    return torch.as_tensor(total) / (n * (n - 1))
