"""Every figure that the notebooks share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..study.comparing import CANNOT_TELL, HELPED, HURT, PLACEBO_TOO

VERDICT_LOOKS = {HELPED: ("C0", "o"), PLACEBO_TOO: ("C4", "^"), HURT: ("C1", "s"), CANNOT_TELL: ("0.35", "D")}

LOOKS = {  # color, marker and line: one who sees no colors goes by the other two
    "DML-S2R": ("C0", "o", "-"), "step 1": ("C1", "s", "--"), "step 2": ("C2", "^", "-."),
    "step 1, half the epochs": ("C1", "$½$", ":"),
    "joint": ("C0", "8", ":"), "sequential": ("C0", "H", ":"), "average": ("C6", "*", "-"),
    "COREG": ("C4", "d", "-."), "MSSR": ("C2", "D", ":"), "placebo null": ("0.35", "P", ":"),
    "placebo random": ("0.35", "X", ":"), "placebo swapped": ("0.35", "+", ":"),
    "real": ("C0", "o", "-"), "shuffled": ("0.35", "X", ":"), "noise": ("0.6", "P", ":"),  # unlabeled rows
    "median": ("0.55", "_", ":"), "3-NN": ("C5", "v", ":"), "ridge": ("C9", "<", "-."),
    "SVR": ("C7", "1", ":"), "Gaussian process": ("C8", "h", "-."), "MLP": ("C7", "4", ":"),
    "random forest": ("C3", "2", ":"), "extra trees": ("C3", ">", "--"),
    "extra trees on pairs": ("C3", "p", "-"),
    "positives": ("C0", "^", "-"), "negatives": ("C1", "v", "--"),
    "labeled": ("C0", "s", "-"), "unlabeled": ("0.6", ".", ":"), "test": ("C1", "x", "--"),
    "boston": ("C9", "<", "-"), "superconductivity": ("C5", ">", "--"), "air_quality": ("C4", "p", "-."),
    "air_quality_as_published": ("C6", "h", ":"),
    "diabetes": ("0.35", "P", ":"), "friedman": ("C3", "X", ":"), "toy": ("0.2", "*", ":"),
    "random": ("0.35", "o", "-"), "chosen": ("C0", "s", "--"), "the rule": ("C0", "s", "--"),
    "k-means": ("C2", "^", ":"),
    "80 % asked": ("C0", "o", "--"), "90 % asked": ("C1", "s", "--"), "true target": ("C3", "*", ""),
    "plain CV+": ("0.35", "o", "-"), "by difficulty": ("C2", "^", "--"),
}  # fmt: skip


def look(name: str, line: bool = False) -> dict[str, str]:
    """Color and marker of a method, a dataset, a kind of sample or a way to choose: the same in each figure.

    Parameters
    ----------
    name : str
        A setting after it does not count: "ridge min-max" and "DML-S2R (literal)" look like
        "ridge" and "DML-S2R". A name that is not known, such as a table of one's own, is a dark dot.
    line : bool, default=False
        With a line style too, for curves.

    Returns
    -------
    dict of str to str
        For ``ax.plot`` and, without a line, ``ax.scatter``.
    """
    known = re.sub(r" (\(.*\)|min-max|standardised|alone)$", "", name)
    color, marker, style = LOOKS.get(known, ("0.2", ".", "-"))
    return {"color": color, "marker": marker} | ({"linestyle": style} if line else {})


def set_style() -> None:
    """One look for all figures: seaborn's colour-blind palette, light grid, readable sizes."""
    sns.set_theme(
        style="whitegrid",
        palette="colorblind",
        rc={"figure.figsize": (7, 4), "figure.dpi": 100, "axes.titlesize": 12, "axes.titleweight": "bold",
            "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True},
    )  # fmt: skip


def finish(figure: Figure, title: str = "", legend: bool = True) -> None:
    """Put a title above all panels and one legend below them, and show the figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    title : str, default=""
        A number or a verdict that the figure shows.
    legend : bool, default=True
        Of what has a label, each label once.
    """
    labeled: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            labeled.setdefault(label, handle)
    if legend and labeled:
        n_columns = min(len(labeled), 4)
        figure.legend(labeled.values(), labeled.keys(), loc="outside lower center", ncols=n_columns)
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold")
    plt.show()


def main_range(values: ArrayLike) -> tuple[float, float]:
    """Lowest and highest value, leaving out those so far off that they would flatten all others.

    Parameters
    ----------
    values : array-like of shape (n,)
        NaN is left out.

    Returns
    -------
    low, high : float
        Of the values that lie within two lengths of the middle 90 % from it.
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    low, high = np.quantile(known, [0.05, 0.95])
    near = known[(known >= low - 2 * (high - low)) & (known <= high + 2 * (high - low))]
    return float(near.min()), float(near.max())


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
    y = np.asarray(targets)
    norm = norm or Normalize(y.min(), y.max())
    looks: dict[str, dict[str, Any]] = {
        "unlabeled": {"marker": "o", "s": 22, "edgecolors": "none", "alpha": 0.8},
        "labeled": {"marker": "s", "s": 42, "edgecolors": "black", "linewidths": 1.0},
    }
    for name, style in looks.items():
        rows = np.asarray(labeled) == (name == "labeled")
        x1, x2 = points[rows].T
        drawn = ax.scatter(x1, x2, c=y[rows], cmap="viridis", norm=norm, label=name, **style)
    return drawn


def plot_verdicts(
    ax: Axes,
    verdicts: pd.DataFrame,
    labels: Sequence[str],
    on_splits: Sequence[ArrayLike] = (),
    say: bool = True,
) -> None:
    """A row per cell: mean difference with its 95 % interval, in the look of its verdict.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        It knows each verdict's look: `ax.legend()` shows them.
    verdicts : pandas.DataFrame
        From `give_verdict`.
    labels : sequence of str
        Of the rows.
    on_splits : sequence of array-like, default=()
        Differences on each split, to be drawn above each row as ticks.
    say : bool, default=True
        Write verdict and corrected p value to the right of each row.
    """
    places = np.arange(len(verdicts))
    ax.axvline(0, color="black", linewidth=1)
    for place, values in zip(places, on_splits, strict=False):
        ax.scatter(values, np.full(len(np.asarray(values)), place - 0.2), marker="|", s=60, color="0.5")
    for verdict, (color, marker) in VERDICT_LOOKS.items():
        chosen = (verdicts["verdict"] == verdict).to_numpy()
        rows = verdicts[chosen]
        ax.hlines(places[chosen], rows["low"], rows["high"], color=color, linewidth=2.5)
        ax.plot(rows["mean_difference"], places[chosen], marker, color=color, markersize=9, label=verdict)
    farthest = 1.05 * np.abs(ax.get_xlim()).max()
    ax.set(xlim=(-farthest, farthest), ylim=(len(verdicts) - 0.5, -0.6))  # zero in the middle
    ax.set_yticks(places, labels)
    ax.grid(axis="y", visible=False)
    if say:
        right = ax.secondary_yaxis("right")
        told = zip(verdicts["verdict"].str.replace(", ", ",\n"), verdicts["p_holm"], strict=True)
        texts = [f"{verdict}\ncorrected p = {p:.2g}" for verdict, p in told]
        right.set_yticks(places, texts)
        right.tick_params(length=0)
