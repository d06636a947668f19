"""Every figure that the notebooks share."""

from __future__ import annotations

import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from numpy.typing import ArrayLike


def set_style() -> None:
    """One look for all figures: seaborn's colour-blind palette, light grid, readable sizes."""
    sns.set_theme(
        style="whitegrid",
        palette="colorblind",
        rc={"figure.figsize": (7, 4), "figure.dpi": 100, "axes.titlesize": 12, "axes.titleweight": "bold",
            "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True},
    )  # fmt: skip


def plot_space(
    ax: Axes, points: np.ndarray, targets: ArrayLike, labeled: ArrayLike, norm: Normalize | None = None
) -> PathCollection:
    """Draw samples in two dimensions: colour is the target, squares are labeled, dots unlabeled.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    points : numpy.ndarray of shape (n, 2)
    targets : array-like of shape (n,)
    labeled : array-like of bool, shape (n,)
    norm : matplotlib.colors.Normalize, optional
        Of the colours; give the same one to panels that share a colour bar.

    Returns
    -------
    matplotlib.collections.PathCollection
        For ``figure.colorbar``.
    """
    y, is_labeled = np.asarray(targets), np.asarray(labeled)
    norm = norm or Normalize(y.min(), y.max())
    for rows, marker, size, edge, name in (
        (~is_labeled, "o", 22, "none", "unlabeled"),
        (is_labeled, "s", 42, "black", "labeled"),
    ):
        drawn = ax.scatter(
            points[rows, 0], points[rows, 1], c=y[rows], cmap="viridis", norm=norm, marker=marker, s=size,
            edgecolors=edge, linewidths=1.0, alpha=0.8 if marker == "o" else 1.0, label=name,
        )  # fmt: skip
    return drawn
