"""Rivals that are one network, trained batch by batch: a model alone, or several side by side."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ..foundation.checks import SemiSupervisedRegressor
from ..foundation.descent import check_weights, descend, make_adam
from ..foundation.parameters import check_rules
from ..foundation.side_by_side import GeneratorStates, separate, stack_modules


class Training(NamedTuple):
    """What one model trains.

    Attributes
    ----------
    network : Module
    batches : iterator of tuple of Tensor
        What each gradient step takes: samples, once or more, and what the loss is told beside their outputs.
    loss : callable
        ``loss(outputs, ..., told)``, a scalar.
    sizes : hashable
        Models can be trained side by side if theirs are equal.
    rng_state : Tensor
        Of PyTorch's generator, for what draws from it (dropout).
    """

    network: nn.Module
    batches: Iterator[tuple[Tensor, ...]]
    loss: Callable[..., Tensor]
    sizes: Hashable
    rng_state: Tensor


class BatchTrainedRegressor(SemiSupervisedRegressor):
    """Base of these rivals. A subclass has `_begin`, and `_end` if something is left to do."""

    learning_rate: float

    def _begin(self, X: np.ndarray, y: np.ndarray) -> Training:
        raise NotImplementedError

    def _end(self, X: np.ndarray, y: np.ndarray, losses: Tensor) -> None:
        """Make use of what was trained; `losses` are those of all steps."""

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        _fit_all([self], [(X, y)])

    @staticmethod
    def fit_side_by_side(
        models: Sequence[BatchTrainedRegressor], training_sets: Sequence[tuple[ArrayLike, ArrayLike]]
    ) -> list[BatchTrainedRegressor]:
        """Fit several models at once: each is what `fit` alone would have made of it, to rounding.

        Parameters
        ----------
        models : sequence of estimators
            Of one class, with the same parameters, except `random_state`.
        training_sets : sequence of (X, y)
            One for each.

        Returns
        -------
        list of estimators
            The models.
        """
        checked = []
        for model, (X, y) in zip(models, training_sets, strict=True):
            checked.append(model._validate_training_set(X, y))
            check_rules(model.get_params(deep=False), at_least=model._at_least)
        _fit_all(models, checked)
        return list(models)


def _fit_all(
    models: Sequence[BatchTrainedRegressor], training_sets: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    begun = [model._begin(X, y) for model, (X, y) in zip(models, training_sets, strict=True)]
    networks, first = [training.network for training in begun], models[0]
    may_stack = len(models) > 1 and len({training.sizes for training in begun}) == 1
    stack = stack_modules(networks) if may_stack else None
    if stack is None:
        generators = GeneratorStates([training.rng_state for training in begun])
        losses = []
        for r, training in enumerate(begun):
            with generators.of(r):
                adam = make_adam([training.network.train()], first.learning_rate)
                values = (
                    training.loss(*map(training.network, batch[:-1]), batch[-1]) for batch in training.batches
                )
                losses.append(descend(values, adam))
    else:
        each = torch.func.vmap(begun[0].loss)
        together = (
            list(map(torch.stack, zip(*batches, strict=True)))
            for batches in zip(*(training.batches for training in begun), strict=True)
        )
        values = (each(*map(stack, batch[:-1]), batch[-1]) for batch in together)
        losses = list(descend(values, make_adam([stack.train()], first.learning_rate)).T)
    if len(models) > 1:
        separate(networks)
    for model, (X, y), own, network in zip(models, training_sets, losses, networks, strict=True):
        if not own.isfinite().all():
            raise ValueError(
                "training diverged: the loss is no longer finite; "
                f"scale the features, or try a learning_rate below {model.learning_rate}"
            )
        check_weights(network, model.learning_rate)
        network.eval().double()  # so that a prediction does not depend on the rows predicted beside it
        model._end(X, y, own)
