"""Modules side by side: a leading axis on every weight, so that many cost little more than one.

What the modules are for is not known here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .scores import check_loss

Batches = Iterable[tuple[Tensor, ...]]  # what a loss is given in each gradient step of an epoch
ELEMENTWISE = (nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Softplus, nn.Tanh)


class StackedLinear(nn.Module):
    """Linear layers side by side: (R, n, n_in) to (R, n, n_out).

    Weights are (R, n_in, n_out), so that no product needs to be turned around and copied. The single
    layers stay usable: from now on their weights are views of the stacked ones.
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().mT for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach() for layer in layers]))
        for layer, weight, bias in zip(layers, self.weight.detach(), self.bias.detach(), strict=True):
            layer.weight.data, layer.bias.data = weight.mT, bias

    def forward(self, x: Tensor) -> Tensor:
        """Each layer on its own rows."""
        return torch.baddbmm(self.bias[:, None], x, self.weight)


def stack_modules(modules: Sequence[Any]) -> Any:
    """One module in place of several of one shape, or None if it is not known how.

    Known are linear layers, functions of each number, and what is made of known parts: sequences, and classes
    that say ``stacks = True``, whose code takes one axis more in front.
    """
    first = modules[0]
    if len({repr(module) for module in modules}) > 1 or not all(map(_is_plain, modules)):
        return None
    if type(first) is nn.Linear and first.bias is not None:
        return StackedLinear(modules)
    if type(first) is not nn.Sequential and not vars(type(first)).get("stacks"):
        return first if type(first) in ELEMENTWISE else None
    whole, names = copy.deepcopy(first), [name for name, _ in first.named_children()]
    parts = [stack_modules([getattr(module, name) for module in modules]) for name in names]
    for name, part in zip(names, parts, strict=True):
        setattr(whole, name, part)
    return None if None in parts else whole


def _is_plain(module: nn.Module) -> bool:
    """Whether a module has no hooks, no frozen weights and none that it uses twice."""
    weights = [weight for _, weight in module.named_parameters(remove_duplicate=False)]
    kinds = ("forward", "forward_pre", "backward", "backward_pre")
    has_hooks = any(getattr(part, f"_{kind}_hooks") for part in module.modules() for kind in kinds)
    return not has_hooks and all(w.requires_grad for w in weights) and len(set(weights)) == len(weights)


def separate(modules: Sequence[nn.Module]) -> None:
    """Give modules that were stacked their weights for themselves: views would keep all of them in memory."""
    for module in modules:
        for weight in module.parameters():
            weight.data = weight.data.clone(memory_format=torch.contiguous_format)


class SideBySide:
    """Modules in training: stacked if it is known how, else in turns, each with draws of its own.

    Parameters
    ----------
    modules : sequence of Module
    rng_states : sequence of Tensor, optional
        Of PyTorch's generator, one for each; all start from the present one if not given.
    may_stack : bool, default=True

    Attributes
    ----------
    stack : Module or None
        All in one, if it is known how.
    trained : list of Module
        That, or all of them: what an optimizer is given.
    """

    def __init__(
        self, modules: Sequence[Any], rng_states: Sequence[Tensor] | None = None, may_stack: bool = True
    ) -> None:
        self.rng_states = list(rng_states or [torch.get_rng_state()] * len(modules))
        self.modules = modules
        self.stack: Any = stack_modules(modules) if may_stack and len(modules) > 1 else None
        self.trained = list(modules) if self.stack is None else [self.stack]
        if self.stack is not None:
            self.stack.each = self.each

    @contextmanager
    def drawing_as(self, r: int) -> Iterator[None]:
        """In here, draws of PyTorch's generator are those of module number r, as if it was alone."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.rng_states[r])
            yield
            self.rng_states[r] = torch.get_rng_state()

    def for_each(self, function: Callable[[int], Any]) -> list[Any]:
        """What a function gives for each number, with that module's draws; one alone draws as outside."""
        if len(self.modules) == 1:
            return [function(0)]
        results = []
        for r in range(len(self.modules)):
            with self.drawing_as(r):
                results.append(function(r))
        return results

    def train(self, mode: bool = True) -> None:
        """Training mode, or evaluation mode."""
        for module in self.trained:
            module.train(mode)

    def losses(
        self, loss: Callable[..., Tensor], epochs: Sequence[Batches], data: Sequence[Any], together: Any
    ) -> Iterator[Tensor]:
        """The losses of gradient steps, each of shape (R,), from the data and the batches of each module.

        `loss` is given a module, its data and its batch; or the stack, all data together and stacked batches.
        """
        for batches in zip(*epochs, strict=True):
            if self.stack is not None:
                yield loss(self.stack, together, *map(torch.stack, zip(*batches, strict=True)))
            else:
                everyone = self.modules, data, batches
                yield self.in_turn(lambda module, own, batch: loss(module, own, *batch), *everyone)

    def in_turn(self, loss: Callable[..., Tensor], *given: Sequence[Any]) -> Tensor:
        """A loss of each module alone, together of shape (R,), from what is given for each."""
        values = self.for_each(lambda r: loss(*(of_all[r] for of_all in given)))
        return torch.stack(list(map(check_loss, values)))

    def each(self, loss: Callable[..., Tensor], can_map: bool = False) -> Callable[..., Tensor]:
        """A loss of each module, shape (R,), from what belongs to it.

        Another's code may do what `torch.func.vmap` cannot, or draw numbers: it is called for each.
        """
        if can_map:
            return torch.func.vmap(loss)
        numbers = range(len(self.modules))
        return lambda *seen: self.in_turn(loss, *([part_of(value, r) for r in numbers] for value in seen))


def part_of(argument: Any, r: int) -> Any:
    """What belongs to module number r, of a tensor or a named tuple of tensors."""
    return argument[r] if isinstance(argument, Tensor) else type(argument)(*(field[r] for field in argument))


def take(values: Tensor, rows: Tensor) -> Tensor:
    """Rows of `values` by number; of modules side by side (an axis in front of both) each one's own."""
    if rows.ndim == 1:
        return values[rows]
    if values.ndim == 2:
        return values.gather(1, rows)
    return values[torch.arange(len(rows), device=rows.device)[:, None], rows]
