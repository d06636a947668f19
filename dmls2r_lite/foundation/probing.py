"""An encoder or a head of one's own is tried out on two samples before any training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .parameters import ParameterError, shown


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
    wanted = (
        f"encoder must map {len(x)} samples of shape {tuple(x.shape[1:])} to a tensor ({len(x)}, n_codes)"
    )
    return _try(wanted, encoder.eval(), x, lambda shape: len(shape) == 2 and shape[0] == len(x))


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
        if not torch.allclose(total, d, rtol=1e-3, atol=1e-4):
            raise ParameterError(f"{wanted}, got {total.tolist()} in place of {d.tolist()}")


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
        return result
    got = f"shape {tuple(result.shape)}, {result.dtype} on {result.device}" if is_tensor else type(result)
    raise ParameterError(f"{wanted}, {x.dtype} on {x.device}, got {got}")


def find_device(name: str) -> torch.device:
    """The device of that name, "auto" for a CUDA device if there is one; ParameterError if it is no use."""
    try:
        if not isinstance(name, str | torch.device):
            raise TypeError("no name")
        device = torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
        torch.zeros(1, device=device).item()  # which the meta device cannot
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ParameterError(
            f"device must be 'auto' or one that PyTorch can use here, got {shown(name)} ({shown(str(error))})"
        ) from error
    return device
