"""Where mined sets and fitted networks meet the tools of other libraries."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.base import TransformerMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .foundation.parameters import ParameterError
from .losses import MetricBatch, MetricLoss
from .model import LinearPairHead, SiameseNetwork

if TYPE_CHECKING:
    from .estimators import DMLS2RRegressor


def to_indices_tuple(positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mined sets as pytorch-metric-learning's `indices_tuple`: pairs of an anchor and a sample.

    Parameters
    ----------
    positives, negatives : Tensor of int64, shape (N, k)
        From `mine` or `mine_positives_negatives`.

    Returns
    -------
    anchors, positives, anchors, negatives : Tensor of int64, shape (N k,)
        Give the anchors' codes as `embeddings` and those of the unlabeled samples as `ref_emb`.
    """
    anchors = torch.arange(len(positives), device=positives.device)[:, None]
    return (
        anchors.expand_as(positives).flatten(),
        positives.flatten(),
        anchors.expand_as(negatives).flatten(),
        negatives.flatten(),
    )


def metric_loss_from(loss: Callable[..., Tensor]) -> MetricLoss:
    """Let a loss of pytorch-metric-learning drive step 2: `DMLS2RRegressor(metric_loss=...)`.

    Parameters
    ----------
    loss : callable
        ``loss(embeddings, indices_tuple=..., ref_emb=...)``, such as an instance of one of that
        library's pair or triplet losses.
    """

    def metric_loss(batch: MetricBatch) -> Tensor:
        n, k, _ = batch.positives.shape
        numbers = torch.arange(2 * n * k, device=batch.anchors.device).view(2, n, k)
        samples = torch.cat([batch.positives, batch.negatives]).flatten(0, 1)
        return loss(batch.anchors, indices_tuple=to_indices_tuple(*numbers), ref_emb=samples)

    return metric_loss


class FoldedRegressor(nn.Module):
    """A fitted `DMLS2RRegressor` without labeled rows: from raw features to estimates in the target's unit.

    With the paper's head eq. 4 is (g(x) - h(x)) / 2 plus a constant, so one linear layer on the encoder
    does the work of head, antisymmetrisation and all anchors. `to_torch` makes it.

    Parameters
    ----------
    networks : list of torch.nn.Module
        Each maps scaled rows to scaled estimates (n, t).
    x_scaling, y_scaling : Tensor of shape (2, n_features) and (2, t)
        What is 0 for the networks, and what is one unit more.
    is_vector : bool
        Whether estimates are vectors (n, t); else they are numbers (n,).
    """

    def __init__(
        self, networks: list[nn.Module], x_scaling: Tensor, y_scaling: Tensor, is_vector: bool
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.x_scaling = nn.Parameter(x_scaling, requires_grad=False)  # so that float() turns it too
        self.y_scaling = nn.Parameter(y_scaling, requires_grad=False)
        self.is_vector = is_vector

    def forward(self, x: Tensor) -> Tensor:
        """Estimates, shape (n,) or (n, t), of rows in the precision of the weights."""
        x = (x - self.x_scaling[0]) / self.x_scaling[1]
        total = torch.zeros_like(self.y_scaling[0])
        for network in self.networks:
            total = total + network(x)
        y = total / len(self.networks) * self.y_scaling[1] + self.y_scaling[0]
        return y if self.is_vector else y.squeeze(-1)


def to_torch(model: DMLS2RRegressor) -> FoldedRegressor:
    """A module that estimates what a fitted model does, for PyTorch without this package.

    `torch.export` and TorchScript take it, as far as they take the encoder.

    Parameters
    ----------
    model : DMLS2RRegressor
        With the paper's head, `LinearPairHead`. It stays as it is.

    Returns
    -------
    torch.nn.Module
        Maps raw features, (n, n_features) in float64, to estimates; `module.float()` makes it take float32.
        On the device of the model.

    Raises
    ------
    ParameterError
        If the head is of one's own: it may need all pairs.
    """
    if not hasattr(model, "n_networks"):
        raise ParameterError(f"model must be a DMLS2RRegressor, got {model!r}")
    check_is_fitted(model)
    for network in model.networks_:
        if type(network.head) is not LinearPairHead:
            raise ParameterError(
                f"head must be a LinearPairHead, got {type(network.head).__name__}, which may need all pairs"
            )
    with torch.no_grad():
        networks = [_fold(network, model._x_labeled, model._y_labeled) for network in model.networks_]
    x_scaling, y_scaling = map(_zero_and_unit, (model.feature_scaler_, model.target_scaler_))
    is_vector = model._y_labeled.ndim == 2
    return FoldedRegressor(networks, model._tensor(x_scaling), model._tensor(y_scaling), is_vector).eval()


def _fold(network: SiameseNetwork, x_labeled: Tensor, y_labeled: Tensor) -> nn.Module:
    """The encoder, and a layer that gives (g - h) / 2 + c."""
    head = network.head
    weight_g, weight_h = head.linear.weight.chunk(2, dim=1)
    layer = nn.utils.skip_init(nn.Linear, weight_g.shape[1], len(weight_g)).to(head.linear.weight)
    layer.weight.copy_((weight_g - weight_h) / 2)
    code = head.activation(network.encoder(x_labeled.to(layer.weight.dtype)))
    y = y_labeled.reshape(len(y_labeled), -1)
    layer.bias.copy_((y - code @ layer.weight.mT).mean(dim=0))  # the head's own bias cancels
    return copy.deepcopy(nn.Sequential(network.encoder, head.activation, layer)).requires_grad_(False)


def _zero_and_unit(scaler: TransformerMixin) -> np.ndarray:
    """What a scaler makes 0, and the difference that it makes 1."""
    if isinstance(scaler, MinMaxScaler):
        return np.stack([scaler.data_min_, 1 / scaler.scale_])
    if isinstance(scaler, StandardScaler):
        return np.stack([scaler.mean_, scaler.scale_])
    return np.array([[0.0], [1.0]])  # there is none
