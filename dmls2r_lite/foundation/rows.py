"""Rows that go through networks, scaled and block by block, as arrays in and arrays out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from .checks import SemiSupervisedRegressor

ROWS_PER_BLOCK = 2**16


class RowsThroughNetworks(SemiSupervisedRegressor):
    """Base of regressors that are networks, with scalers of features and targets."""

    networks_: Sequence[Any]
    _any_shape = True

    def _by_blocks(
        self,
        X: np.ndarray,
        function: Callable[[Any, Tensor], Tensor],
        networks: Sequence[Any] = (),
        join: Callable[[list[Tensor]], Tensor] = lambda of_each: torch.stack(of_each).mean(0),
    ) -> np.ndarray:
        """What a function of a network and scaled rows gives for X; of several networks the mean."""
        results = np.empty((len(X), *self._y_labeled.shape[1:]))
        for start in range(0, len(X), ROWS_PER_BLOCK):
            part = slice(start, start + ROWS_PER_BLOCK)
            x = self._tensor(self._scale_features(X[part]))
            with torch.no_grad():
                of_each = [function(net, in_precision_of(net, x)) for net in networks or self.networks_]
                block = join(of_each).cpu().double().numpy()
            if start == 0:  # one array from the start: a list of blocks would fragment the memory
                results = np.empty((len(X), *block.shape[1:]))
            results[part] = block
        return results

    def _tensor(self, values: np.ndarray, dtype: torch.dtype = torch.float64) -> Tensor:
        writable = np.require(values, requirements=["C", "W"])  # else PyTorch refuses or warns
        return torch.as_tensor(writable, dtype=dtype, device=self._device)

    def _scale_features(self, X: np.ndarray) -> np.ndarray:
        return self.feature_scaler_.transform(as_columns(X)).reshape(X.shape)

    def _unscaled(self, y: np.ndarray) -> np.ndarray:
        columns = y.reshape(-1, self.target_scaler_.n_features_in_)
        return self.target_scaler_.inverse_transform(columns).reshape(y.shape) if y.size else y

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def in_precision_of(network: nn.Module, x: Tensor) -> Tensor:
    """Samples in float32 while a network is trained, then in float64."""
    return x.to(next(network.parameters()).dtype)


def as_columns(X: np.ndarray) -> np.ndarray:
    """What a scaler of features is given: columns, or one of all values where samples are no rows."""
    return X if X.ndim == 2 else X.reshape(-1, 1)
