"""What may be called after each epoch of a training, and what an interrupt does to it."""

from __future__ import annotations

import builtins
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import nn

from .model import SiameseNetwork

Hook = Callable[[SiameseNetwork, dict[str, Any]], None]  # is given the network and its row of the history


def watch(validate: Callable[[SiameseNetwork], float]) -> Hook:
    """A hook that stores ``validate(network)`` after each epoch as `validation_mae`."""

    def hook(network: SiameseNetwork, row: dict[str, Any]) -> None:
        row["validation_mae"] = validate(network)

    return hook


def show_progress(n_epochs: int) -> Hook:
    """A hook that moves a bar of so many epochs."""
    from tqdm.auto import tqdm  # at import it warns where ipywidgets is missing

    bar = tqdm(total=n_epochs, desc="training", unit="epoch")

    def hook(network: SiameseNetwork, row: dict[str, Any]) -> None:
        bar.update()
        if bar.n == n_epochs:
            bar.close()

    return hook


def refuse_divergence(learning_rate: float) -> Hook:
    """A hook that raises ValueError when a loss is no longer finite."""

    def hook(network: SiameseNetwork, row: dict[str, Any]) -> None:
        if row["n_steps"] and not np.isfinite(row["loss"]):
            raise ValueError(
                f"training diverged: the loss of {row['step']} epoch {row['epoch']} is {row['loss']}; "
                f"try a learning_rate below {learning_rate}"
            )

    return hook


def check_weights(network: nn.Module, learning_rate: float) -> None:
    """Raise ValueError if the last gradient step, after which no loss is computed, went to infinity."""
    if not all(weight.isfinite().all() for weight in network.parameters()):
        raise ValueError(
            "training diverged: there are weights that are not finite; "
            f"try a learning_rate below {learning_rate}"
        )


@contextmanager
def kept_when_interrupted() -> Iterator[list[str]]:
    """Where a person waits, let an interrupt end the training, after a first epoch, with a warning.

    It gives a list, to which the name of each step is to be added when its epoch begins.
    """
    begun: list[str] = []
    try:
        yield begun
    except KeyboardInterrupt:
        if not (len(begun) > 1 and _is_interactive()):
            raise
        epoch = f"{begun[-1]} epoch {begun.count(begun[-1])}"
        warnings.warn(f"interrupted in {epoch}: the network stays as it is now", stacklevel=5)


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or hasattr(builtins, "__IPYTHON__")
