"""Gradient descent, epoch by epoch: what is drawn, what is stepped down, and what is written down."""

from __future__ import annotations

import builtins
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from .parameters import demand

Hook = Callable[[Any, dict[str, Any]], object]  # is given a network and its row of the history


# One epoch of R networks: its name, its losses of shape (R,) when they are asked for, what takes the gradient
# steps, and the reason if it is skipped.
Epoch = tuple[str, Iterable[Tensor], torch.optim.Optimizer, str]


def make_adam(modules: Iterable[nn.Module], learning_rate: float) -> torch.optim.Adam:
    """Adam, all weights in one pass where PyTorch has that."""
    weights = [weight for module in modules for weight in module.parameters()]
    fused = all(weight.device.type in ("cpu", "cuda") for weight in weights)
    return torch.optim.Adam(weights, lr=learning_rate, fused=fused)


def draw_batches(n: int, batch_size: int, max_batches: int, rng: np.random.Generator) -> tuple[Tensor, ...]:
    """0 ... n - 1 in random order, cut into batches; only as many as will be used are drawn."""
    batch_size, max_batches = int(batch_size), int(max_batches)  # NumPy's overflow, and PyTorch refuses them
    drawn = rng.choice(n, size=min(n, batch_size * max_batches), replace=False)
    return torch.from_numpy(drawn).split(batch_size)


def descend(losses: Iterable[Tensor], optimizer: torch.optim.Optimizer) -> Tensor:
    """Take a gradient step for each loss, and return all losses in order, without gradient.

    Each is computed when it is asked for, with the weights that the step before has left: a scalar, or a
    number for each of several networks, which share no weights, so that each gets its own gradient.
    """
    values = []
    for loss in losses:
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        values.append(loss.detach())
    return torch.stack(values)


def check_weights(network: nn.Module, learning_rate: float) -> None:
    """Raise ParameterError if the last gradient step, after which no loss is computed, went to infinity."""
    are_finite = all(weight.isfinite().all() for weight in network.parameters())
    diverged = "training diverged: weights are not finite"
    demand(are_finite, f"{diverged}; try a learning_rate below {learning_rate}")


def run_epochs(
    epochs: Iterable[Epoch], networks: Sequence[nn.Module], hooks: Sequence[Hook], learning_rate: float
) -> list[pd.DataFrame]:
    """Run epochs, call hooks after each, and return the history of each network.

    Where a person waits, an interrupt ends it after a first epoch, with a warning.

    Raises
    ------
    ParameterError
        If a loss is no longer finite.
    """
    histories: list[list[dict[str, Any]]] = [[] for _ in networks]
    number, name = 0, ""
    try:
        for number, (name, losses, optimizer, skipped) in enumerate(epochs, start=1):
            start, n = time.perf_counter(), len(networks)
            values = torch.empty(0, n) if skipped else descend(losses, optimizer)
            seconds = (time.perf_counter() - start) / n
            means = values.mean(dim=0).tolist()  # of no losses: NaN
            for network, history, mean in zip(networks, histories, means, strict=True):
                row = {
                    "epoch": number,
                    "step": name,
                    "loss": mean,
                    "n_steps": len(values),
                    "seconds": seconds,
                    "skipped": skipped,
                }
                history.append(row)
                diverged = f"training diverged: the loss of epoch {number} ({name}) is {mean}"
                is_well = skipped or np.isfinite(mean)
                demand(is_well, f"{diverged}; try a learning_rate below {learning_rate}")
                for hook in hooks:
                    hook(network, row)
    except KeyboardInterrupt:
        if number < 2 or not _is_interactive():
            raise
        where = f"epoch {number} ({name})"
        warnings.warn(f"interrupted in {where}: the network stays as it is now", stacklevel=4)
    return [pd.DataFrame(history) for history in histories]


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")
