"""What any network is asked: whether it fits two samples, before any training, and what it says of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags, check_random_state
from torch import Tensor, nn

from .checks import SemiSupervisedRegressor
from .parameters import ParameterError, demand, shown

ROWS_PER_BLOCK = 2**16


def probe_encoder(encoder: nn.Module, x: Tensor) -> Tensor:
    """Codes of two samples, or an error that says what is wrong with an encoder of one's own.

    Raises
    ------
    ParameterError
        If it fails, or gives anything but a row of floating point numbers for each sample.
    """
    n, of_each = len(x), tuple(x.shape[1:])
    wanted = f"encoder must map {n} samples of shape {of_each} to a tensor ({n}, n_codes)"
    return _try(wanted, encoder.eval(), x, lambda shape: len(shape) == 2 and shape[0] == n)


def probe_head(head: Any, z: Tensor, target_shape: tuple[int, ...]) -> None:
    """Do the same for a head, with those codes: it must give a difference of targets for each pair.

    Raises
    ------
    ParameterError
        If it does not, or if its `scores` do not add up to what it gives.
    """
    shape = (len(z), *target_shape)
    wanted = f"head must map two batches of codes {tuple(z.shape)} to a tensor {shape}"
    d = _try(wanted, lambda codes: head.eval()(codes, codes.flip(0)), z, lambda found: found == shape)
    if hasattr(head, "scores"):
        wanted = "head must have a method scores with head(z_i, z_j) == g_i + h_j, or none"
        g, h = (lambda codes: head.scores(codes)[0]), (lambda codes: head.scores(codes)[1].flip(0))
        total = _try(wanted, lambda codes: g(codes) + h(codes), z, lambda found: found == shape)
        is_same = torch.allclose(total, d, rtol=1e-3, atol=1e-4)
        demand(is_same, f"{wanted}, got {total.tolist()} in place of {d.tolist()}")


def _try(
    wanted: str, function: Callable[[Tensor], Any], x: Tensor, fits: Callable[[tuple[int, ...]], bool]
) -> Tensor:
    """What a function gives; ParameterError unless it is a tensor of a shape that fits, like x."""
    try:
        with torch.no_grad():
            result = function(x)
    except Exception as error:  # another's code may raise anything
        raise ParameterError(f"{wanted}, got {type(error).__name__}: {error}") from error
    is_tensor = isinstance(result, Tensor)
    if is_tensor and fits(result.shape) and (result.dtype, result.device) == (x.dtype, x.device):
        is_finite = result.isfinite().all() or not x.isfinite().all()
        demand(is_finite, f"{wanted} of finite numbers, got {shown(result.tolist())}")
        return result
    got = f"shape {tuple(result.shape)}, {result.dtype} on {result.device}" if is_tensor else type(result)
    raise ParameterError(f"{wanted}, {x.dtype} on {x.device}, got {got}")


def find_device(name: str) -> torch.device:
    """The device of that name, "auto" for a CUDA device if there is one; ParameterError if it is no use."""
    try:
        demand(isinstance(name, str | torch.device), "no name")
        device = torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        torch.zeros(1, device=device).item()  # which the meta device cannot
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        wanted = "device must be 'auto' or one that PyTorch can use here"
        raise ParameterError(f"{wanted}, got {shown(name)} ({shown(str(error))})") from error
    return device


@contextmanager
def seeded_torch(
    random_state: int | np.random.RandomState | None, device: torch.device | None = None
) -> Iterator[int]:
    """All of PyTorch's draws (weights, dropout) come from a seed in here, and the user's generator rests."""
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield seed


@contextmanager
def usual_torch() -> Iterator[None]:
    """PyTorch follows gradients here and makes weights of 32 bits, whatever whoever calls has set."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(before)


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
