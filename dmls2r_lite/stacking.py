"""Networks side by side: a leading axis on every weight, so that many cost little more than one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from . import losses
from .foundation import scores
from .foundation.parameters import shown
from .miner import mine
from .model import LinearPairHead, SiameseNetwork

if TYPE_CHECKING:
    from .training import Orders, Step, TrainingSet

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
        """Each network's own layer on its own rows."""
        return torch.baddbmm(self.bias[:, None], x, self.weight)


class StackedPairHead(nn.Module):
    """Several of `LinearPairHead`, side by side."""

    def __init__(self, heads: Sequence[LinearPairHead]) -> None:
        super().__init__()
        self.activation, self.n_targets = heads[0].activation, heads[0].n_targets
        self.linear = StackedLinear([head.linear for head in heads])

    def forward(self, z_i: Tensor, z_j: Tensor) -> Tensor:
        """Estimated differences, shape (R, n) or (R, n, t), of two batches of codes (R, n, n_codes)."""
        return self.scores(z_i)[0] + self.scores(z_j)[1]

    def scores(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """g and h, each of shape (R, n) or (R, n, t)."""
        weight = self.linear.weight.unflatten(1, (2, -1)).transpose(1, 2)  # (R, n_codes, 2, t)
        g, h = torch.bmm(self.activation(z), weight.flatten(2)).unflatten(-1, (2, -1)).unbind(-2)
        g = g + self.linear.bias[:, None]
        return (g, h) if self.n_targets else (g.squeeze(-1), h.squeeze(-1))


class StackedNetwork(SiameseNetwork):
    """Siamese networks side by side: everything has one axis more in front."""

    def __init__(self, encoder: nn.Module, head: nn.Module, generators: GeneratorStates) -> None:
        super().__init__(encoder, head)
        self.generators = generators

    def each(self, loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """A loss of each network, shape (R,), from what belongs to it."""
        if loss is losses.pairwise_similarity_loss:  # vmap would give the same in half as much time again
            return lambda estimated, differences: (differences - estimated).square().flatten(1).mean(dim=1)
        if getattr(loss, "__module__", None) in (losses.__name__, scores.__name__):
            return torch.func.vmap(loss)

        def one_by_one(*arguments: Any) -> Tensor:  # another's code may do what vmap cannot, or draw numbers
            values = []
            for r in range(len(self.generators.states)):
                with self.generators.of(r):
                    values.append(check_loss(loss(*(part_of(argument, r) for argument in arguments))))
            return torch.stack(values)

        return one_by_one

    @torch.no_grad()
    def mine(
        self, x_anchors: Tensor, x_unlabeled: Sequence[Tensor], k: int, **options: Any
    ) -> list[tuple[Tensor, Tensor]]:
        """What `dmls2r_lite.miner.mine` finds for each network, all at once; targets are numbers."""
        g = self.scores(x_anchors)[0]
        h, size = (
            g.new_empty(len(x_unlabeled), len(x_unlabeled[0])),
            max(1, self.max_pairs // len(x_unlabeled)),
        )
        for start in range(0, h.shape[1], size):
            rows = slice(start, start + size)
            h[:, rows] = self.scores(torch.stack([x[rows].to(g.device) for x in x_unlabeled]))[1]
        return list(zip(*scores.mine_from_scores(g, h, k, **options), strict=True))


def check_loss(loss: object) -> Tensor:
    """The loss of one network as it is, or ValueError if it is not a scalar tensor."""
    if not isinstance(loss, Tensor) or loss.ndim > 0 or not loss.requires_grad:
        got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) and loss.ndim else shown(loss)
        raise ValueError(
            f"metric_loss must give a scalar tensor that depends on the network's weights, got {got}"
        )
    return loss


def part_of(argument: Any, r: int) -> Any:
    """What belongs to network number r, of a tensor or a named tuple of tensors."""
    if isinstance(argument, Tensor):
        return argument[r]
    return type(argument)(*(field[r] for field in argument))


class GeneratorStates:
    """A state of PyTorch's generator for each of several networks, as if each was alone."""

    def __init__(self, states: Sequence[Tensor]) -> None:
        self.states = list(states)

    @contextmanager
    def of(self, r: int) -> Iterator[None]:
        """In here, draws are those of network number r."""
        rest = torch.get_rng_state()
        torch.set_rng_state(self.states[r])
        try:
            yield
        finally:
            self.states[r] = torch.get_rng_state()
            torch.set_rng_state(rest)


def stack_modules(modules: Sequence[Any]) -> nn.Module | None:
    """One module in place of several of one shape, or None if it does not know how."""
    first: Any = modules[0]
    if len({repr(module) for module in modules}) > 1 or not all(map(_is_plain, modules)):
        return None
    if type(first) is nn.Linear and all(module.bias is not None for module in modules):
        return StackedLinear(modules)
    if type(first) is LinearPairHead and type(first.activation) in ELEMENTWISE:
        return StackedPairHead(modules)
    if type(first) is nn.Sequential:
        layers = [stack_modules(layer) for layer in zip(*modules, strict=True)]
        known = [layer for layer in layers if layer is not None]
        return nn.Sequential(*known) if len(known) == len(layers) else None
    return first if type(first) in ELEMENTWISE else None


def _is_plain(module: nn.Module) -> bool:
    """Whether a module has no hooks, no frozen weights and none that it uses twice."""
    weights = [weight for _, weight in module.named_parameters(remove_duplicate=False)]
    hooks = [
        *(part._forward_hooks or part._forward_pre_hooks for part in module.modules()),
        *(part._backward_hooks or part._backward_pre_hooks for part in module.modules()),
        *(weight._backward_hooks for weight in weights),
    ]
    return not any(hooks) and all(w.requires_grad for w in weights) and len(set(weights)) == len(weights)


class SideBySide:
    """Networks in training: one, or several that are stacked if possible, else trained in turns.

    Parameters
    ----------
    networks, data, rng_states
        See `dmls2r_lite.training.train_side_by_side`.
    orders : sequence of Orders
        One for each network.
    may_stack : bool, default=True
        Whether all steps know what to do with stacked networks; else these are trained in turns.

    Raises
    ------
    ValueError
        If they are not as many, or differ in the number of labels.
    """

    def __init__(
        self,
        networks: Sequence[SiameseNetwork],
        data: Sequence[TrainingSet],
        orders: Sequence[Orders],
        rng_states: Sequence[Tensor] | None = None,
        may_stack: bool = True,
    ) -> None:
        if not len(networks) == len(data) == len(orders) > 0:
            raise ValueError(
                "networks, data and seeds must be as many, 1 or more, "
                f"got {len(networks)}, {len(data)} and {len(orders)}"
            )
        if len(sizes := {len(one.y_labeled) for one in data}) > 1:
            raise ValueError(f"data must have the same number of labels for all networks, got {sizes}")
        if len({len(one.x_unlabeled) > 0 for one in data}) > 1:
            raise ValueError("data must have unlabeled samples for all networks or for none")
        if len(set(map(id, networks))) < len(networks):
            raise ValueError("networks must be different ones, got one of them twice")
        self.networks, self.data, self.orders = networks, data, orders
        self.has_unlabeled = len(data[0].x_unlabeled) > 0
        self.generators = GeneratorStates(rng_states or [torch.get_rng_state()] * len(networks))
        for network in networks:
            network.eval()  # where they are stacked, each mines for itself
        may_stack = may_stack and len(networks) > 1
        self.stack, self.stacked_data = self._stack() if may_stack else (None, data[0])

    def _stack(self) -> tuple[StackedNetwork | None, TrainingSet]:
        if len({one.x_labeled.shape for one in self.data}) > 1:
            return None, self.data[0]
        encoder = stack_modules([network.encoder for network in self.networks])
        head = stack_modules([network.head for network in self.networks])
        if encoder is None or head is None:
            return None, self.data[0]
        x, y = (torch.stack([one[part] for one in self.data]) for part in (0, 1))
        return StackedNetwork(encoder, head, self.generators), self.data[0]._replace(x_labeled=x, y_labeled=y)

    def losses(self, step: Step) -> Iterator[Tensor]:
        """The losses of an epoch: a scalar for one network, else shape (R,)."""
        if len(self.networks) == 1:
            network, data = self.networks[0], self.data[0]
            for batch in step.batches(network, data, self.orders[0]):
                yield check_loss(step.loss(network, data, *batch))
            return
        epochs = []
        everyone = zip(self._steps(step), self.networks, self.data, self.orders, strict=True)
        for r, (own, network, data, orders) in enumerate(everyone):
            with self.generators.of(r):
                epochs.append(own.batches(network, data, orders))
        for batches in zip(*epochs, strict=True):
            if self.stack is not None:
                yield step.loss(self.stack, self.stacked_data, *map(torch.stack, zip(*batches, strict=True)))
                continue
            losses = []
            for r, batch in enumerate(batches):
                with self.generators.of(r):
                    losses.append(check_loss(step.loss(self.networks[r], self.data[r], *batch)))
            yield torch.stack(losses)

    def _steps(self, step: Any) -> list[Step]:
        """The step of each network: with its sets, where those of all networks can be mined at once."""
        alike, metric = (
            [step] * len(self.networks),
            getattr(step, "metric", step),
        )  # the second of a joint step
        miner, x_unlabeled = getattr(metric, "mine", None), [one.x_unlabeled for one in self.data]
        options = miner.keywords if isinstance(miner, partial) and miner.func is mine else {}
        known = miner is mine or options.keys() == {"mode"}
        if (
            self.stack is None
            or not known
            or self.stack.head.n_targets
            or len({x.shape for x in x_unlabeled}) > 1
        ):
            return alike
        mined = self.stack.mine(self.stacked_data.x_labeled, x_unlabeled, metric.k, **options)
        own = [replace(metric, mine=lambda *_, sets=sets: sets) for sets in mined]
        return own if metric is step else [replace(step, metric=one) for one in own]

    def _modules(self) -> Sequence[SiameseNetwork]:
        return self.networks if self.stack is None else [self.stack]

    def parameters(self) -> Iterable[nn.Parameter]:
        """Of all networks."""
        return (weight for module in self._modules() for weight in module.parameters())

    def encoder_parameters(self) -> Iterable[nn.Parameter]:
        """Of their encoders."""
        return (weight for module in self._modules() for weight in module.encoder.parameters())

    def train(self, mode: bool = True) -> None:
        """Training mode, or evaluation mode."""
        for module in self._modules():
            module.train(mode)

    def eval(self) -> None:
        """Evaluation mode."""
        self.train(False)

    def separate(self) -> None:
        """Give each network its weights for itself."""
        if len(self.networks) > 1:
            separate(self.networks)


def separate(modules: Sequence[nn.Module]) -> None:
    """Give modules that were stacked their weights for themselves: views would keep all of them in memory."""
    for module in modules:
        for weight in module.parameters():
            weight.data = weight.data.clone(memory_format=torch.contiguous_format)
