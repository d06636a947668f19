"""The two losses: pairwise similarity modeling (eq. 2) and the ranked list loss (eq. 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .foundation.parameters import check_rules, demand


class MetricBatch(NamedTuple):
    """What a loss of step 2 is given: some anchors, with the samples that were mined for each."""

    anchors: Tensor  # (n, n_codes), of length 1 unless raw codes were asked for
    positives: Tensor  # (n, k, n_codes)
    negatives: Tensor
    y: Tensor  # (n,) or (n, t): targets of the anchors, as they are scaled for the training
    d_positives: Tensor  # (n, k) or (n, k, t): f^d(anchor, sample), without gradient
    d_negatives: Tensor


MetricLoss = Callable[[MetricBatch], Tensor]


def pairwise_similarity_loss(estimated: Tensor, differences: Tensor) -> Tensor:
    """Eq. 2 on a batch of pairs: the mean of (z_ij - f^d(x_i, x_j))^2, in squared units of the target.

    ValueError says that shapes differ, or that there is no pair.

    Parameters
    ----------
    estimated : Tensor of shape (n_pairs,) or (n_pairs, t)
        f^d(x_i, x_j).
    differences : Tensor of the same shape
        z_ij = y_i - y_j.
    """
    wanted = "estimated and differences must have the same shape and at least one pair"
    is_right = estimated.shape == differences.shape and estimated.numel()
    demand(is_right, f"{wanted}, got {tuple(estimated.shape)} and {tuple(differences.shape)}")
    return (differences - estimated).square().mean()


def ranked_list_loss(
    anchors: Tensor,
    positives: Tensor,
    negatives: Tensor,
    boundary: float = 1.2,
    margin: float = 0.4,
    temperature: float = 10.0,
    weighting: Literal["ranked_list", "literal"] = "ranked_list",
    weight_gradient: bool = False,
) -> Tensor:
    """Ranked list loss of anchors with their positive and negative sets (eq. 3), in units of the distance.

    A positive at distance d costs [d - (boundary - margin)]+ and a negative [boundary - d]+.
    Within each set the costs are averaged with weights that grow with the violation; the mean is
    taken over anchors and over the two sets.

    Parameters
    ----------
    anchors : Tensor of shape (N, n_codes)
    positives, negatives : Tensor of shape (N, k, n_codes)
    boundary : float, default=1.2
        alpha: negatives are pushed at least so far from the anchor.
    margin : float, default=0.4
        m: positives are pulled closer than boundary - margin.
    temperature : float, default=10
        tau: 0 weighs all members of a set equally, larger values favour the worst.
    weighting : {"ranked_list", "literal"}, default="ranked_list"
        Weights of negatives: exp(tau (alpha - d)), which favours the near ones, as in the cited
        ranked list loss; or exp(tau (d - (alpha - m))), the same as for positives, as printed in
        the paper. Constant factors cancel, so each set's weights are a softmax over the set.
    weight_gradient : bool, default=False
        Whether gradients flow through the weights.

    ValueError says that shapes do not fit, a set is empty, or a parameter is out of range.
    """
    shape = positives.shape
    fit = len(shape) == 3 and shape == negatives.shape and anchors.shape == (shape[0], shape[2])
    wanted = "anchors must have shape (N, n_codes), positives and negatives both (N, k, n_codes)"
    got = f"{tuple(anchors.shape)}, {tuple(shape)} and {tuple(negatives.shape)}"
    demand(fit and positives.numel(), f"{wanted}, got {got}")
    check_rules({"boundary": boundary, "margin": margin, "temperature": temperature, "weighting": weighting})

    d_positive = torch.linalg.vector_norm(anchors[:, None] - positives, dim=-1)
    d_negative = torch.linalg.vector_norm(anchors[:, None] - negatives, dim=-1)
    cost_positive, cost_negative = (d_positive - (boundary - margin)).relu(), (boundary - d_negative).relu()
    of_negatives = -temperature if weighting == "ranked_list" else temperature
    loss_positive = _weighted_mean(cost_positive, d_positive, temperature, weight_gradient)
    loss_negative = _weighted_mean(cost_negative, d_negative, of_negatives, weight_gradient)
    return (loss_positive + loss_negative).mean() / 2


@dataclass(frozen=True)
class RankedListLoss:
    """`ranked_list_loss` as a loss of step 2, with its parameters."""

    boundary: float = 1.2
    margin: float = 0.4
    temperature: float = 10.0
    weighting: Literal["ranked_list", "literal"] = "ranked_list"
    weight_gradient: bool = False

    def __call__(self, batch: MetricBatch) -> Tensor:
        """The loss of a batch, a scalar."""
        return ranked_list_loss(batch.anchors, batch.positives, batch.negatives, **vars(self))


def _weighted_mean(costs: Tensor, d: Tensor, temperature: float, weight_gradient: bool) -> Tensor:
    """The mean over each set, with weights exp(temperature d) / sum exp(temperature d)."""
    weights = (temperature * d).softmax(dim=1)
    if not weight_gradient:
        weights = weights.detach()
    return (weights * costs).sum(dim=1)
