"""A figure to play with: rows are labeled one by one, and the uncertainty about all others falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .explorers import Explorer
from .plotting import look


def choices_explorer(
    points: np.ndarray, variances: Mapping[str, np.ndarray], orders: Mapping[str, Sequence[int]]
) -> Explorer:
    """What is still unknown after each label, for several ways to choose what to label.

    Parameters
    ----------
    points : numpy.ndarray of shape (n_rows, 2)
        Where to draw the rows.
    variances : mapping of str to numpy.ndarray of shape (n + 1, n_rows)
        By the way to choose: the variance at each row before the first label and after each.
    orders : mapping of str to sequence of int
        By the way to choose: which rows are labeled, in order.

    Returns
    -------
    Explorer
        With a menu ``choice`` and a slider ``labels``.
    """
    means = {name: values.mean(axis=1) for name, values in variances.items()}
    n = min(map(len, orders.values()))

    def draw(figure: Figure, choice: str, labels: int) -> str:
        order, rest = orders[choice], means[choice]
        space, curve = figure.subplots(1, 2, width_ratios=(1.25, 1))
        drawn = space.scatter(*points.T, c=variances[choice][labels], cmap="magma_r", vmin=0, vmax=1, s=22)
        figure.colorbar(drawn, ax=space, label="variance that is left (1: nothing known)")
        for rank, row in enumerate(order[:labels], start=1):
            space.scatter(*points[row], marker="s", s=150, color="white", edgecolors="black", zorder=3)
            space.annotate(str(rank), points[row], ha="center", va="center", fontsize=8, zorder=4)
        if labels < n:
            space.scatter(*points[order[labels]], marker="*", s=260, color="C9", edgecolors="black", zorder=5)
        space.set(title=f"{labels} labeled, star: the next", xlabel="x1 (scaled)", ylabel="x2 (scaled)")
        for name, values in means.items():
            curve.plot(values[: n + 1], **look(name, line=True), markersize=4, label=name)
        curve.plot(labels, rest[labels], "o", markersize=14, fillstyle="none", color="black")
        curve.set(
            xlabel="labels", ylabel="mean variance", ylim=(0, None), title=f"{rest[labels]:.2f} is left"
        )
        curve.legend(fontsize=9)
        told = f"Chosen by {choice}, {labels} labels: {rest[labels]:.3f} of the variance is left on average."
        if labels < n:
            told += f" The next label takes {rest[labels] - rest[labels + 1]:.3f} away."
        return told

    return Explorer(
        draw, {"labels": list(range(n + 1))}, {"choice": list(orders)}, {"labels": min(3, n)}, size=(9, 4)
    )
