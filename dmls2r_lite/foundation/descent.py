"""Gradient descent: batches in random order, a step for each loss, and whether it has stayed finite."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn


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
    """Raise ValueError if the last gradient step, after which no loss is computed, went to infinity."""
    if not all(weight.isfinite().all() for weight in network.parameters()):
        raise ValueError(
            "training diverged: there are weights that are not finite; "
            f"try a learning_rate below {learning_rate}"
        )
