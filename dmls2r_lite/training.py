"""Alternate learning: one epoch of pairwise similarity modeling, one of triplet-based metric learning.

A step is a small object that owns its options. It cuts an epoch into batches and gives the loss of a batch;
`train` takes gradient steps, epoch by epoch, in the order that a schedule gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from .foundation.descent import Epoch, Hook, check_weights, draw_batches, make_adam, run_epochs
from .foundation.parameters import MAX_EPOCHS, demand, shown
from .foundation.scores import MiningMode, check_mined, pairs_from_numbers, pairwise_similarity_loss_all_pairs
from .foundation.side_by_side import Batches, SideBySide, separate, take
from .losses import MetricBatch, MetricLoss, RankedListLoss, pairwise_similarity_loss
from .miner import Miner, mine
from .model import SiameseNetwork

Schedule = Callable[[int], Iterable[str]]  # the names of the epochs in order


class TrainingSet(NamedTuple):
    """What a network is trained on: scaled features and targets."""

    x_labeled: Tensor  # (N, ...), with N of 2 or more
    y_labeled: Tensor  # (N,) or (N, t)
    x_unlabeled: Tensor  # (M, ...), on any device


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

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> Batches:
        """What each gradient step of an epoch takes: tensors that `loss` is given, a tuple a step.

        The network is in evaluation mode.
        """

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The loss of one gradient step, a scalar."""


@dataclass(frozen=True)
class PairwiseStep:
    """Step 1: all ordered pairs of labeled samples in random order, batch by batch (eq. 1 and 2).

    A gradient step takes `batch_size` pairs, or all with None, which is O(N) if the network is separable. An
    epoch has at most `max_steps` of them: 1000 labels make a million pairs.
    """

    name: ClassVar[str] = "pairwise"
    stacks: ClassVar[bool] = True
    batch_size: int | None = 32
    max_steps: int = 100

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> list[tuple[Tensor, ...]]:
        """Numbers of pairs, see `pairs_from_numbers`; none if all pairs are taken through their scores."""
        n_pairs = len(data.y_labeled) * (len(data.y_labeled) - 1)
        if self.batch_size is None:
            return [() if network.is_separable else (torch.arange(n_pairs),)]
        return [(part,) for part in draw_batches(n_pairs, self.batch_size, self.max_steps, orders.pairs)]

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """Eq. 2 on a batch of pairs, or on all of them."""
        x, y = data.x_labeled, data.y_labeled
        if not batch:
            return network.each(pairwise_similarity_loss_all_pairs, can_map=True)(*network.scores(x), y)
        (numbers,) = batch
        i, j = pairs_from_numbers(numbers.to(x.device), x.shape[numbers.ndim - 1])
        loss = network.each(pairwise_similarity_loss, can_map=True)
        return loss(network.compare(x, i, j), take(y, i) - take(y, j))


@dataclass(frozen=True)
class MetricStep:
    """Step 2: mine once an epoch (Algorithm 1), then the ranked list loss of all anchors (eq. 3).

    The miner is a mode of `mine`, or ``miner(network, x_anchors, x_unlabeled, k)`` that returns what it does:
    sets of k. ``metric_loss(batch)`` of a `MetricBatch` sees codes of length 1, or raw ones. A gradient step
    takes `batch_size` anchors, or all with None; an epoch has at most `max_steps` of them.
    """

    name: ClassVar[str] = "metric"
    stacks: ClassVar[bool] = True
    k: int = 5
    miner: MiningMode | Miner = "absolute"
    metric_loss: MetricLoss = field(default_factory=RankedListLoss)
    embedding: Literal["unit", "raw"] = "unit"
    batch_size: int | None = None
    max_steps: int = 100

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> Batches:
        """Numbers of anchors, and the samples mined for them, an anchor's positives before its negatives."""
        mined = self.mine_sets(network, data)
        n = len(data.x_labeled)
        parts = draw_batches(n, self.batch_size or n, self.max_steps, orders.anchors)
        return (self.look_up(part, mined, data) for part in parts)

    def mine_sets(self, network: SiameseNetwork, data: TrainingSet) -> Tensor:
        """Rows of unlabeled samples (N, 2k) for all anchors: positives, then negatives."""
        miner = self.miner if callable(self.miner) else partial(mine, mode=self.miner)
        mined = miner(network, data.x_labeled, data.x_unlabeled, self.k)
        return check_mined(mined, len(data.x_labeled), len(data.x_unlabeled), self.k)

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
        return network.each(self.metric_loss, can_map=isinstance(self.metric_loss, RankedListLoss))(seen)


@dataclass(frozen=True)
class JointStep:
    """The sum of both losses in every gradient step; mined once an epoch."""

    name: ClassVar[str] = "joint"
    stacks: ClassVar[bool] = True
    pairwise: PairwiseStep = PairwiseStep()
    metric: MetricStep = field(default_factory=MetricStep)

    def batches(self, network: SiameseNetwork, data: TrainingSet, orders: Orders) -> Batches:
        """Each batch of pairs with a batch of anchors drawn for it."""
        mined, n = self.metric.mine_sets(network, data), len(data.x_labeled)
        pairs = self.pairwise.batches(network, data, orders)
        anchors = (draw_batches(n, self.metric.batch_size or n, 1, orders.anchors)[0] for _ in pairs)
        return (
            (*self.metric.look_up(part, mined, data), *numbers)
            for part, numbers in zip(anchors, pairs, strict=True)
        )

    def loss(self, network: SiameseNetwork, data: TrainingSet, *batch: Tensor) -> Tensor:
        """The sum."""
        anchors, x_mined, *numbers = batch
        return self.pairwise.loss(network, data, *numbers) + self.metric.loss(network, data, anchors, x_mined)


def alternate(n_epochs: int) -> list[str]:
    """The paper's schedule: an epoch of step 1, then one of step 2, and so on, `n_epochs` in all."""
    return ["pairwise" if number % 2 == 0 else "metric" for number in range(n_epochs)]


SCHEDULES: dict[str, Schedule] = {  # each gives `n_epochs` in all
    "alternate": alternate,
    "pairwise_only": lambda n_epochs: ["pairwise"] * n_epochs,  # the paper's ablation
    "joint": lambda n_epochs: ["joint"] * n_epochs,  # which the paper argues against
    "sequential": lambda n_epochs: ["pairwise"] * (n_epochs - n_epochs // 2) + ["metric"] * (n_epochs // 2),
    "sequential_metric_first": lambda n_epochs: (
        ["metric"] * (n_epochs // 2) + ["pairwise"] * (n_epochs - n_epochs // 2)
    ),
}


def plan(
    schedule: Schedule, n_epochs: int, pairwise: PairwiseStep = PairwiseStep(), metric: Step = MetricStep()
) -> list[Step]:
    """The steps of a schedule, in order; ValueError if it gives none, or unknown ones."""
    known: dict[str, Step] = {"pairwise": pairwise, "metric": metric}
    if isinstance(metric, MetricStep):
        known["joint"] = JointStep(pairwise, metric)  # which no other step can be part of
    given: Any = schedule(n_epochs)
    numbered = zip(range(MAX_EPOCHS + 1), given if isinstance(given, Iterable) else (), strict=False)
    names = [name for _, name in numbered]  # not of more: it may never end
    is_known = all(isinstance(name, str) and name in known for name in names)
    wanted = f"schedule must give one or more of {', '.join(map(repr, known))}, got {shown(given)}"
    demand(0 < len(names) <= MAX_EPOCHS and is_known, f"{wanted}; the most are {MAX_EPOCHS}")
    return [known[name] for name in names]


def train(
    network: SiameseNetwork, data: TrainingSet, steps: Iterable[Step], *, seed: int = 0, **options: Any
) -> pd.DataFrame:
    """Train a Siamese network in place, an epoch of each step in order.

    Parameters
    ----------
    data : TrainingSet
        Without unlabeled samples epochs of step 2, and joint ones, are skipped.
    steps : iterable of Step
        One for each epoch, for example ``[PairwiseStep(), MetricStep()] * 15``. See `plan`.
    seed, learning_rate, optimizer_state, hooks
        Of the order of pairs and of anchors; the others see `train_side_by_side`.

    Returns
    -------
    pandas.DataFrame
        A row per epoch: `epoch` (from 1), `step`, `loss` (the mean), `n_steps` (of gradient),
        `seconds`, `skipped` (the reason, or empty), and what hooks have added.
    """
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
    """`train` several networks at once: the same histories to rounding, in a fraction of the time.

    Where a person waits (in a notebook or an interactive Python), an interrupt ends the training with a
    warning, and the networks stay as they are then. ValueError says that a loss is no longer finite, or that
    networks and data do not fit together.

    Parameters
    ----------
    networks, data, seeds : sequence
        As many of each; the networks of one shape, and all data of as many labeled samples.
    learning_rate : float, default=0.001
        Of Adam (the paper's).
    optimizer_state : {"shared", "separate"}, default="shared"
        One Adam for all steps, which carries momentum from one into the other, or one more for the encoder
        in step 2.
    hooks : sequence of callable, default=()
        ``hook(network, row)`` is called after each epoch with its row of the history, and may add to it.
    rng_states : sequence of Tensor, optional
        See `SideBySide`: for what draws from PyTorch's generator (dropout, random mining).
    """
    alike = {(len(one.y_labeled), len(one.x_unlabeled) > 0) for one in data}
    demand(len(alike) == 1, f"all data must hold as many labels, and unlabeled samples or none, got {alike}")
    steps, orders = list(steps), [Orders.from_seed(seed) for seed in seeds]
    for network in networks:
        network.eval()  # where they are stacked, each mines for itself
    may_stack = all(vars(type(step)).get("stacks") for step in steps)  # a subclass says so for itself
    team = SideBySide(networks, rng_states, may_stack and len({one.x_labeled.shape for one in data}) == 1)
    together = data[0]
    if team.stack is not None:
        x, y = (torch.stack([one[part] for one in data]) for part in (0, 1))
        together = TrainingSet(x, y, data[0].x_unlabeled)
    adam, encoders = make_adam(team.trained, learning_rate), [network.encoder for network in team.trained]
    own = adam if optimizer_state == "shared" else make_adam(encoders, learning_rate)

    def losses(step: Step) -> Iterator[Tensor]:
        batches = _batches(step, team, data, together, orders)
        team.train()
        yield from team.losses(step.loss, batches, data, together)
        team.train(False)

    def epochs() -> Iterator[Epoch]:
        for step in steps:
            is_skipped = step.name != "pairwise" and len(data[0].x_unlabeled) == 0
            optimizer = own if step.name == "metric" else adam
            yield step.name, losses(step), optimizer, "no unlabeled samples" if is_skipped else ""

    histories = run_epochs(epochs(), networks, hooks, learning_rate)
    team.train(False)
    separate(networks)
    for network in networks:
        check_weights(network, learning_rate)
    return histories


def _batches(
    step: Any, team: SideBySide, data: Sequence[TrainingSet], together: TrainingSet, orders: Sequence[Orders]
) -> list[Batches]:
    """The batches of an epoch for each network; stacked ones are mined at once where their sets can be."""
    own, pools = [step] * len(data), [one.x_unlabeled for one in data]
    metric = getattr(step, "metric", step)  # of a joint step
    can_mine = team.stack is not None and isinstance(metric, MetricStep) and not callable(metric.miner)
    if can_mine and not team.stack.head.n_targets and len({pool.shape for pool in pools}) == 1:
        mined = mine(team.stack, together.x_labeled, pools, metric.k, metric.miner)
        own = [replace(metric, miner=lambda *_, sets=sets: sets) for sets in zip(*mined, strict=True)]
        own = own if metric is step else [replace(step, metric=one) for one in own]
    return team.for_each(lambda r: own[r].batches(team.modules[r], data[r], orders[r]))
