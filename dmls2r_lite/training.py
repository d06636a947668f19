"""Alternate learning: one epoch of pairwise similarity modeling, one of triplet-based metric learning."""

from __future__ import annotations

import builtins
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .losses import MetricLoss, all_pairs_loss, pairs_from_numbers, pairwise_similarity_loss, ranked_list_loss
from .miner import Miner, mine
from .model import SiameseNetwork
from .schedules import Schedule, alternate

Callback = Callable[[SiameseNetwork, dict[str, Any]], None]


def train(
    network: SiameseNetwork,
    x_labeled: Tensor,
    y_labeled: Tensor,
    x_unlabeled: Tensor,
    *,
    schedule: Schedule = alternate,
    n_epochs: int = 30,
    learning_rate: float = 1e-3,
    optimizer_state: Literal["shared", "separate"] = "shared",
    pair_batch_size: int | None = 32,
    anchor_batch_size: int | None = None,
    max_steps_per_epoch: int = 100,
    k: int = 5,
    miner: Miner = mine,
    metric_loss: MetricLoss | None = None,
    embedding: Literal["unit", "raw"] = "unit",
    boundary: float = 1.2,
    margin: float = 0.4,
    temperature: float = 10.0,
    weighting: Literal["ranked_list", "literal"] = "ranked_list",
    weight_gradient: bool = False,
    seed: int = 0,
    validate: Callable[[SiameseNetwork], float] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Train a Siamese network in place by the two steps of DML-S2R.

    Parameters
    ----------
    network : SiameseNetwork
    x_labeled : Tensor of shape (N, ...)
        Scaled features of the labeled samples: pairs and anchors. N is 2 or more.
    y_labeled : Tensor of shape (N,) or (N, t)
        Their (scaled) targets.
    x_unlabeled : Tensor of shape (M, ...)
        Scaled features of the unlabeled samples, on any device. With M = 0 metric and joint epochs
        are skipped.
    schedule : callable, default=alternate
        Gives the steps in order, each "pairwise", "metric" or "joint", for `n_epochs`.
    n_epochs : int, default=30
        Epochs of each step (the paper's 30).
    learning_rate : float, default=0.001
        Of Adam (the paper's).
    optimizer_state : {"shared", "separate"}, default="shared"
        One Adam for both steps, which carries momentum from one into the other, or one each.
    pair_batch_size : int or None, default=32
        Pairs in a gradient step of step 1; None takes all pairs at once.
    anchor_batch_size : int or None, default=None
        Anchors in a gradient step of step 2; None takes all anchors at once.
    max_steps_per_epoch : int, default=100
        Gradient steps in one epoch at the most: 1000 labels make a million pairs.
    k : int, default=5
        Size of each set, see `mine_positives_negatives`.
    miner : callable, default=mine
        ``miner(network, x_anchors, x_unlabeled, k)`` returns what `mine` does. Called once an epoch.
    metric_loss : callable, optional
        ``metric_loss(z_anchors, z_positives, z_negatives)``, of the shapes that `ranked_list_loss`
        takes, in place of `ranked_list_loss` with the parameters below.
    embedding : {"unit", "raw"}, default="unit"
        Whether the ranked list loss sees codes scaled to length 1.
    boundary, margin, temperature, weighting, weight_gradient
        See `ranked_list_loss`.
    seed : int, default=0
        Of the order of pairs and of anchors.
    validate : callable, optional
        ``validate(network)`` is stored after each epoch as `validation_mae`.
    callback : callable, optional
        ``callback(network, row)`` is called after each epoch with its row of the history.
    progress : bool, default=False
        Whether to show a progress bar.

    Returns
    -------
    pandas.DataFrame
        A row per epoch and step: `epoch` (from 1), `step`, `loss` (mean over gradient steps),
        `n_steps`, `seconds`, `skipped` (the reason, or empty) and perhaps `validation_mae`.

    Raises
    ------
    ValueError
        If the schedule gives no steps or unknown ones, or the loss is no longer finite.

    Notes
    -----
    Where a person waits (in a notebook or an interactive Python), an interrupt ends the training
    with a warning, and the network stays as it is then.
    """
    pair_rng, anchor_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    pairwise_optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    if optimizer_state == "shared":
        metric_optimizer = pairwise_optimizer
    else:
        metric_optimizer = torch.optim.Adam(network.encoder.parameters(), lr=learning_rate)

    def pairwise_losses() -> Iterable[Tensor]:
        n = len(y_labeled)
        if pair_batch_size is None:
            yield all_pairs_loss(network, x_labeled, y_labeled)
            return
        for numbers in _batches(n * (n - 1), pair_batch_size, max_steps_per_epoch, pair_rng):
            i, j = pairs_from_numbers(numbers.to(x_labeled.device), n)
            estimated = network(x_labeled[i], x_labeled[j])
            yield pairwise_similarity_loss(estimated, y_labeled[i] - y_labeled[j])

    def mine_for_an_epoch() -> tuple[Tensor, Tensor]:
        network.eval()
        mined = miner(network, x_labeled, x_unlabeled, k)
        network.train()
        return mined

    def loss_of_anchors(batch: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        anchors = batch.to(x_labeled.device)
        mined = torch.cat([positives[anchors], negatives[anchors]], dim=1)
        z_anchors = network.embed(x_labeled[anchors], unit_norm=embedding == "unit")
        x_mined = x_unlabeled[mined.flatten().to(x_unlabeled.device)].to(anchors.device)
        z_mined = network.embed(x_mined, unit_norm=embedding == "unit")
        z_positives, z_negatives = z_mined.view(*mined.shape, -1).split(int(k), dim=1)
        if metric_loss is not None:
            return metric_loss(z_anchors, z_positives, z_negatives)
        return ranked_list_loss(
            z_anchors, z_positives, z_negatives, boundary, margin, temperature, weighting, weight_gradient
        )

    def anchor_batches(max_batches: int) -> Iterable[Tensor]:
        n = len(x_labeled)
        return _batches(n, anchor_batch_size or n, max_batches, anchor_rng)

    def metric_losses() -> Iterable[Tensor]:
        mined = mine_for_an_epoch()
        for batch in anchor_batches(max_steps_per_epoch):
            yield loss_of_anchors(batch, *mined)

    def joint_losses() -> Iterable[Tensor]:
        mined = mine_for_an_epoch()
        for loss in pairwise_losses():
            (batch,) = anchor_batches(max_batches=1)
            yield loss + loss_of_anchors(batch, *mined)

    steps = {
        "pairwise": (pairwise_losses, pairwise_optimizer),
        "metric": (metric_losses, metric_optimizer),
        "joint": (joint_losses, pairwise_optimizer),
    }
    planned = list(schedule(n_epochs))
    if not planned or not set(planned) <= set(steps):
        raise ValueError(f"schedule must give one or more of {', '.join(map(repr, steps))}, got {planned}")
    epochs: Counter[str] = Counter()
    history: list[dict[str, Any]] = []
    order: Iterable[str] = planned
    if progress:
        from tqdm.auto import tqdm  # at import it warns where ipywidgets is missing

        order = tqdm(order, desc="training", unit="epoch")

    def run_epoch(step: str) -> dict[str, Any]:
        start = time.perf_counter()
        skipped = "no unlabeled samples" if step != "pairwise" and len(x_unlabeled) == 0 else ""
        losses = []
        network.train()
        if not skipped:
            epoch_losses, optimizer = steps[step]
            for loss in epoch_losses():
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        network.eval()
        row: dict[str, Any] = {
            "epoch": epochs[step],
            "step": step,
            "loss": torch.stack(losses).mean().item() if losses else float("nan"),
            "n_steps": len(losses),
            "seconds": time.perf_counter() - start,
            "skipped": skipped,
        }
        if losses and not np.isfinite(row["loss"]):
            raise ValueError(
                f"training diverged: the loss of {step} epoch {epochs[step]} is {row['loss']}; "
                f"try a learning_rate below {learning_rate}"
            )
        if validate is not None:
            row["validation_mae"] = validate(network)
        return row

    try:
        for step in order:
            epochs[step] += 1
            history.append(run_epoch(step))
            if callback is not None:
                callback(network, history[-1])
    except KeyboardInterrupt:
        if not (history and _is_interactive()):
            raise
        warnings.warn(
            f"interrupted in {step} epoch {epochs[step]}: the network stays as it is now", stacklevel=2
        )
    network.eval()
    return pd.DataFrame(history)


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")


def _batches(n: int, batch_size: int, max_batches: int, rng: np.random.Generator) -> Iterable[Tensor]:
    """0 ... n - 1 in random order, cut into batches; only as many as will be used are drawn."""
    batch_size, max_batches = int(batch_size), int(max_batches)  # NumPy's overflow, and PyTorch refuses them
    drawn = rng.choice(n, size=min(n, batch_size * max_batches), replace=False)
    return torch.from_numpy(drawn).split(batch_size)
