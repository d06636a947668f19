"""The Siamese network: an encoder, and a head that compares two codes (eq. 1 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .foundation.side_by_side import take


def make_encoder(
    n_features: int, hidden_sizes: Sequence[int] = (100, 100), final_relu: bool = True
) -> nn.Sequential:
    """Fully connected layers, each followed by a ReLU: the paper's sub-network.

    It maps (n, n_features) to codes (n, hidden_sizes[-1]); the paper has two layers of 100. Without
    `final_relu` the metric space lies before the last ReLU, which the head should then apply.
    """
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise([n_features, *hidden_sizes]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers if final_relu else layers[:-1])


class LinearPairHead(nn.Module):
    """The paper's head: one fully connected layer on two codes of length `n_codes`, side by side.

    A linear layer on a concatenation is a sum, f^d(x_i, x_j) = g(x_i) + h(x_j), so the head is
    *separable*: `scores` returns g and h, and whatever needs all pairs can work on them instead.

    An `activation` is applied to each code first, for an encoder made without `final_relu`. Targets are
    vectors of length t with `n_targets`, else numbers.
    """

    stacks = True  # see `stack_modules`

    def __init__(
        self, n_codes: int, activation: nn.Module | None = None, n_targets: int | None = None
    ) -> None:
        super().__init__()
        self.activation = nn.Identity() if activation is None else activation
        self.n_targets = n_targets
        self.linear = nn.Linear(2 * n_codes, n_targets or 1)

    def forward(self, z_i: Tensor, z_j: Tensor) -> Tensor:
        """Estimated differences, shape (n,) or (n, t), of two batches of codes (n, n_codes)."""
        estimated = self.linear(torch.cat([self.activation(z_i), self.activation(z_j)], dim=-1))
        return estimated if self.n_targets else estimated.squeeze(-1)

    def scores(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The two parts of the sum, each of shape (n,) or (n, t): g (first place) and h (second place)."""
        code, weight, bias = self.activation(z), self.linear.weight, self.linear.bias
        if weight.ndim == 3:  # heads side by side, (R, 2 n_codes, t)
            side_by_side = weight.unflatten(1, (2, -1)).transpose(1, 2).flatten(2)  # (R, n_codes, 2 t)
            g, h = torch.bmm(code, side_by_side).chunk(2, dim=2)
            g = g + bias[:, None]
            return (g, h) if self.n_targets else (g.squeeze(2), h.squeeze(2))
        weight_g, weight_h = (weight.mT if self.n_targets else weight.squeeze(0)).chunk(2)
        return code @ weight_g + bias, code @ weight_h


class SiameseNetwork(nn.Module):
    """f^d of eq. 1: two copies of one encoder and a head that estimates y_i - y_j.

    Parameters
    ----------
    encoder : torch.nn.Module
        Maps a batch of n samples to codes of shape (n, n_codes). Any module will do.
    head : torch.nn.Module
        Maps two batches of codes to differences of shape (n,), or (n, t) for target vectors of
        length t. If it also has a method ``scores(z) -> (g, h)`` with
        ``head(z_i, z_j) == g_i + h_j``, the network is separable and nothing here forms pairs.
    max_pairs : int, default=65536
        With a head that is not separable, at most so many pairs are formed at a time.
    """

    stacks = True

    def __init__(self, encoder: nn.Module, head: nn.Module, max_pairs: int = 2**16) -> None:
        super().__init__()
        self.encoder = encoder
        self.head: Any = head  # a module; its method `scores` is optional
        self.max_pairs = max_pairs

    @property
    def is_separable(self) -> bool:
        """Whether f^d(x_i, x_j) = g(x_i) + h(x_j)."""
        return hasattr(self.head, "scores")

    def forward(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        """Estimate y_i - y_j, shape (n,) or (n, t), for n pairs of samples (eq. 1)."""
        return self.head(self.encoder(x_i), self.encoder(x_j))

    def compare(self, x: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """Estimate y_i - y_j, shape (n,) or (n, t), for n pairs of rows of x, given by their numbers.

        All rows are encoded once, or only the members of the pairs where these are fewer.
        """
        if 2 * i.shape[-1] < x.shape[i.ndim - 1]:  # fewer members of pairs than rows
            members = torch.cat([i, j], dim=-1)
            x, members = take(x, members), torch.arange(members.shape[-1], device=x.device).expand_as(members)
            i, j = members.chunk(2, dim=-1)
        if self.is_separable:
            g, h = self.scores(x)
            return take(g, i) + take(h, j)
        z = self.encoder(x)

        def of_pairs(i: Tensor, j: Tensor) -> Tensor:
            return self.head(take(z, i), take(z, j))

        if i.shape[-1] <= self.max_pairs:
            return of_pairs(i, j)
        # What the head makes of a block of pairs is made again for the gradient, not kept for all of them.
        blocks = zip(i.split(self.max_pairs), j.split(self.max_pairs), strict=True)
        return torch.cat([checkpoint(of_pairs, *block, use_reentrant=False) for block in blocks])

    def embed(self, x: Tensor, unit_norm: bool = True) -> Tensor:
        """Place samples in the metric space: their codes, scaled to length 1 if `unit_norm`."""
        z = self.encoder(x)
        return nn.functional.normalize(z, dim=-1) if unit_norm else z

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """g and h, each of shape (n,) or (n, t), of a separable network."""
        return self.head.scores(self.encoder(x))

    def each(self, loss: Callable[..., Tensor], can_map: bool = False) -> Callable[..., Tensor]:
        """The loss as it is; `SideBySide` puts one in its place that sees each network's part alone."""
        return loss

    def difference_matrix(self, x_a: Tensor, x_b: Tensor) -> Tensor:
        """Estimate y_a - y_b, shape (n_a, n_b) or (n_a, n_b, t), for rows of `x_a` with rows of `x_b`."""
        return self.compare_codes(self.encoder(x_a), self.encoder(x_b))

    def compare_codes(self, z_a: Tensor, z_b: Tensor) -> Tensor:
        """`difference_matrix` of samples that are encoded already."""
        if self.is_separable:
            g, h = self.head.scores(z_a)
            h = h if z_b is z_a else self.head.scores(z_b)[1]
            return g.unsqueeze(z_a.ndim - 1) + h.unsqueeze(z_a.ndim - 2)  # also of networks side by side
        # Pairs are numbered row by row, so that a block may be smaller than one row.
        blocks = torch.arange(len(z_a) * len(z_b), device=z_a.device).split(self.max_pairs)
        flat = [self.head(z_a[block // len(z_b)], z_b[block % len(z_b)]) for block in blocks]
        return torch.cat(flat).unflatten(0, (len(z_a), len(z_b)))

    def predict(self, x: Tensor, x_labeled: Tensor, y_labeled: Tensor) -> Tensor:
        """Estimate targets, shape (n,) or (n, t), from all N labeled samples (eq. 4).

        y* is the mean over i of (f^d(x, x_i) - f^d(x_i, x)) / 2 + y_i. With a separable network that is
        (g(x) - h(x)) / 2 plus one constant, the mean of y_i - (g(x_i) - h(x_i)) / 2.
        """
        if self.is_separable:
            g, h = self.scores(x)
            g_labeled, h_labeled = self.scores(x_labeled)
            return (g - h) / 2 + (y_labeled - (g_labeled - h_labeled) / 2).mean(dim=0)
        z_labeled = self.encoder(x_labeled)
        estimates = []
        for rows in x.split(max(1, self.max_pairs // len(x_labeled))):
            z = self.encoder(rows)
            forth, back = self.compare_codes(z, z_labeled), self.compare_codes(z_labeled, z).transpose(0, 1)
            estimates.append(((forth - back) / 2 + y_labeled).mean(dim=1))
        return torch.cat(estimates)
