"""An encoder or a head of one's own is tried out on two samples before any training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from .foundation.parameters import ParameterError
from .model import SiameseNetwork


def has_batch_norm(module: nn.Module) -> bool:
    """Whether a module cannot take a batch of one in training."""
    return any(isinstance(part, _BatchNorm) for part in module.modules())


def check_encoder_given(encoder: nn.Module | None, X: np.ndarray) -> None:
    """Raise ParameterError if samples are no rows, which only an encoder of one's own can take."""
    if X.ndim > 2 and encoder is None:
        raise ParameterError(f"encoder must be given for samples of shape {X.shape[1:]}, got None")


def probe_encoder(encoder: nn.Module, x: Tensor) -> Tensor:
    """Codes of two samples, or an error that says what is wrong with an encoder of one's own.

    Raises
    ------
    ParameterError
        If it fails, or gives anything but a row of floating point numbers for each sample.
    """
    if any(weight.is_meta for weight in encoder.parameters()):
        raise ParameterError("encoder must hold its weights, got one whose weights are on the meta device")
    wanted = (
        f"encoder must map {len(x)} samples of shape {tuple(x.shape[1:])} to a tensor ({len(x)}, n_codes)"
    )
    try:
        with torch.no_grad():
            z = encoder.eval()(x)
    except Exception as error:  # another's code may raise anything
        raise ParameterError(f"{wanted}, got {type(error).__name__}: {error}") from error
    _check_kind(wanted, z, x, lambda shape: len(shape) == 2 and shape[0] == len(x))
    return z


def probe_head(network: SiameseNetwork, z: Tensor, target_shape: tuple[int, ...]) -> None:
    """Do the same for a head, with those codes: it must give a difference of targets for each pair.

    Raises
    ------
    ParameterError
        If it does not, or if its `scores` do not add up to what it gives.
    """
    shape = (len(z), *target_shape)
    wanted = f"head must map two batches of codes {tuple(z.shape)} to a tensor {shape}"
    try:
        with torch.no_grad():
            d = network.head.eval()(z, z.flip(0))
            _check_kind(wanted, d, z, lambda found: found == shape)
            if not network.is_separable:
                return
            wanted = "head must have a method scores with head(z_i, z_j) == g_i + h_j, or none"
            g, h = network.head.scores(z)
            total = g + h.flip(0)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError(f"{wanted}, got {type(error).__name__}: {error}") from error
    if total.shape != d.shape or not torch.allclose(total, d, rtol=1e-3, atol=1e-4):
        raise ParameterError(f"{wanted}, got {total.tolist()} in place of {d.tolist()}")


def _check_kind(wanted: str, result: object, x: Tensor, fits: Callable[[tuple[int, ...]], bool]) -> None:
    """Raise ParameterError unless a result is a tensor of a shape that fits, like x."""
    if not isinstance(result, Tensor):
        raise ParameterError(f"{wanted}, got {type(result).__name__}")
    if not fits(tuple(result.shape)):
        raise ParameterError(f"{wanted}, got shape {tuple(result.shape)}")
    if result.dtype != x.dtype or result.device != x.device:
        raise ParameterError(
            f"{wanted}, like its input {x.dtype} on {x.device}, got {result.dtype} on {result.device}"
        )
