"""Figures to play with, each a picture with controls."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from scipy.special import softmax
from sklearn.decomposition import PCA

from ..foundation.scores import MiningMode
from ..miner import mine_positives_negatives
from ..study.benchmark import N_LABELED, PLACEBOS
from ..study.comparing import CANNOT_TELL, HURT
from ..study.reproduction import judge_benchmark
from .controls import Explorer
from .plotting import look, plot_space, plot_verdicts

Pair = tuple[np.ndarray, np.ndarray]  # of labeled samples, and of others


def pairs_explorer(
    fits: Mapping[int, Pair], y_labeled: np.ndarray, y_test: np.ndarray, unit: str
) -> Explorer:
    """How pairs, fit and error change with the number of labels.

    Parameters
    ----------
    fits : mapping of int to pair of numpy.ndarray
        By the number of labels N: estimates for the first N labeled samples, and for all test samples.
    y_labeled, y_test : numpy.ndarray of shape (n_labeled,) and (n_test,)
        Their targets.
    unit : str
        Of the target.

    Returns
    -------
    Explorer
        With a slider ``N``.
    """
    sizes = list(fits)
    truth = {n: (y_labeled[:n], y_test) for n in sizes}
    errors = {n: [np.abs(a - b).mean() for a, b in zip(fits[n], truth[n], strict=True)] for n in sizes}
    targets = np.concatenate([y_labeled, y_test])
    everything = np.concatenate([targets, *(estimates for pair in fits.values() for estimates in pair)])
    limits = everything.min(), everything.max()

    def draw(figure: Figure, N: int) -> str:
        pairs, fit, error = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
        y = np.sort(y_labeled[:N])
        image = pairs.imshow(y[:, None] - y, "RdBu_r", vmin=-np.ptp(targets), vmax=np.ptp(targets))
        figure.colorbar(image, ax=pairs, label=f"difference [{unit}]")
        pairs.set(title=f"{N} labels, {N * (N - 1)} pairs", xticks=[], yticks=[])
        pairs.set(xlabel="second sample j", ylabel="first sample i")
        pairs.grid(visible=False)
        on_labeled, on_test = fits[N]
        fit.scatter(y_test[:500], on_test[:500], s=14, linewidths=0.8, label="test", **look("test"))
        fit.scatter(y_labeled[:N], on_labeled, s=28, label="labeled", **look("labeled"))
        fit.axline((limits[0], limits[0]), slope=1, color="black", linestyle="--", linewidth=1)
        fit.set(xlim=limits, ylim=limits, xlabel=f"target [{unit}]", ylabel=f"estimate [{unit}]", title="Fit")
        fit.legend(loc="upper left", fontsize=9)
        for name, values in zip(("labeled", "test"), np.transpose(list(errors.values())), strict=True):
            error.plot(sizes, values, label=name, **look(name, line=True))
        error.plot([N, N], errors[N], "o", markersize=14, fillstyle="none", color="black")
        error.set(xlabel="labels N", ylabel=f"MAE [{unit}]", ylim=(0, None), title="Error")
        error.legend(fontsize=9)
        return (
            f"With {N} labels, which make {N * (N - 1)} ordered pairs, the mean absolute error is "
            f"{errors[N][0]:.3g} on them, {errors[N][1]:.3g} on test samples ({unit})."
        )

    return Explorer(draw, {"N": sizes}, {"N": sizes[-1]})


def mining_explorer(
    differences: torch.Tensor, codes: Pair, features: Pair, targets: Pair, unit: str, start: Mapping[str, Any]
) -> Explorer:
    """Who is mined for an anchor, and what it costs.

    Parameters
    ----------
    differences : torch.Tensor of shape (N, M)
        f^d(anchor, unlabeled sample), estimated.
    codes : pair of numpy.ndarray of shape (N, n_codes) and (M, n_codes)
        Of labeled and of unlabeled samples.
    features : pair of numpy.ndarray of shape (N, 2) and (M, 2)
        Two features to show.
    targets : pair of numpy.ndarray of shape (N,) and (M,)
        True ones; those of unlabeled samples are only shown.
    unit : str
        Of the target.
    start : mapping
        Of ``k``, ``mode``, ``boundary``, ``margin``, ``temperature``.

    Returns
    -------
    Explorer
        With sliders ``anchor`` (1 is the lowest target), ``k``, ``boundary``, ``margin``, ``temperature``
        and a menu ``mode``.
    """
    y, y_unlabeled = targets
    n, m = differences.shape
    by_target, everybody = np.argsort(y), np.concatenate(targets)
    norm = Normalize(everybody.min(), everybody.max())
    projected = PCA(2).fit_transform(np.concatenate(codes))
    spaces = {"Input space": np.concatenate(features), "Metric space": projected}

    def draw(figure: Figure, anchor: int, mode: MiningMode, k: int, **loss: float) -> str:
        boundary, temperature = loss["boundary"], loss["temperature"]
        margin = min(loss["margin"], boundary)
        chosen = by_target[anchor - 1]
        mined = [rows[0].numpy() for rows in mine_positives_negatives(differences[[chosen]], k, mode)]
        distances = np.linalg.norm(codes[1] - codes[0][chosen], axis=1)
        d = np.linspace(0, max(2.0, 1.1 * boundary, distances[np.concatenate(mined)].max()), 200)
        sides = (("positives", 1, boundary - margin), ("negatives", -1, boundary))
        maps, (axis, costs) = figure.subplots(2, 2, height_ratios=(1.5, 1))
        axis.plot(y_unlabeled, np.zeros(m), "|", color="0.7")
        gaps, losses = [], []
        for rows, (name, sign, limit) in zip(mined, sides, strict=True):
            color, marker = look(name).values()
            axis.plot(y_unlabeled[rows], np.full(k, sign / 2), marker, color=color, label=name)
            cost = np.maximum(sign * (distances[rows] - limit), 0)
            weight = softmax(temperature * sign * distances[rows])
            costs.plot(d, np.maximum(sign * (d - limit), 0), **look(name, line=True) | {"marker": ""})
            costs.scatter(distances[rows], cost, s=25 + 200 * weight, alpha=0.7, **look(name))
            costs.axvline(limit, color="0.4", linestyle=":" if sign < 0 else "-.", linewidth=1)
            gaps.append(np.abs(y_unlabeled[rows] - y[chosen]).mean())
            losses.append(weight @ cost)
        axis.plot(y[chosen], 0, "*", color="white", markersize=16, markeredgecolor="black", label="anchor")
        axis.set(ylim=(-1, 1), yticks=[], xlabel=f"true target [{unit}]", title="Target axis")
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.45), ncols=3, frameon=False)
        costs.set(xlabel="distance of codes", ylabel="cost")
        costs.set_title(f"Loss of this anchor: {sum(losses) / 2:.3f}")
        for ax, (title, points) in zip(maps, spaces.items(), strict=True):
            drawn = plot_space(ax, points, everybody, np.arange(n + m) < n, norm)
            for rows, (name, *_) in zip(mined, sides, strict=True):
                color, marker = look(name).values()
                style = {"marker": marker, "s": 90, "edgecolors": color, "linewidths": 2.5}
                ax.scatter(*points[n + rows].T, c=y_unlabeled[rows], cmap=drawn.cmap, norm=norm, **style)
            ax.scatter(*points[chosen], marker="*", s=300, color="white", edgecolors="black")
            ax.set(title=title, xticks=[], yticks=[])
        figure.colorbar(drawn, ax=ax, label=f"target [{unit}]")
        return (
            f"Anchor with the target {y[chosen]:.4g}: its {k} positives are off by {gaps[0]:.3g} on average, "
            f"its {k} negatives by {gaps[1]:.3g} ({unit}). Loss of the positives {losses[0]:.3f}, of the "
            f"negatives {losses[1]:.3f}."
        )

    start = {"anchor": n // 2 + 1, **start}
    steps = np.round(np.arange(0, 2.05, 0.1), 2).tolist()
    controls = {
        "mode": ["absolute", "signed"],
        "anchor": range(1, n + 1),
        "k": range(1, min(20, m) + 1),
        "boundary": steps[1:],
        "margin": steps,
        "temperature": (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
    }
    with_start = {name: sorted({*values, start[name]}) for name, values in controls.items()}
    return Explorer(draw, with_start, start, ["mode"], size=(9, 6))


def epochs_explorer(
    codes: Sequence[np.ndarray], errors: Sequence[float], y: np.ndarray, is_labeled: np.ndarray, unit: str
) -> Explorer:
    """The metric space after each epoch.

    Parameters
    ----------
    codes : sequence of numpy.ndarray of shape (n, n_codes)
        At the start, then after epochs of step 1 and step 2 in turn.
    errors : sequence of float
        Test MAE at the same moments.
    y : numpy.ndarray of shape (n,)
        Targets.
    is_labeled : numpy.ndarray of bool, shape (n,)
    unit : str
        Of the target.

    Returns
    -------
    Explorer
        With a slider ``moment``.
    """
    plane = PCA(2).fit(np.concatenate([codes[0], codes[len(codes) // 2], codes[-1]]))
    points = [plane.transform(one) for one in codes]
    moments = ["start"] + [f"epoch {1 + i} (step {1 + i % 2})" for i in range(len(codes) - 1)]

    def draw(figure: Figure, moment: str) -> str:
        place = moments.index(moment)
        space, curve = figure.subplots(1, 2, width_ratios=(1.2, 1))
        space.scatter(*np.concatenate(points).T, alpha=0)  # the same room at every moment
        drawn = plot_space(space, points[place], y, is_labeled)
        figure.colorbar(drawn, ax=space, label=f"target [{unit}]")
        space.set(title=f"Metric space, {moment}", xticks=[], yticks=[])
        space.legend(loc="best", fontsize=8)
        curve.plot(errors, color="0.6")
        curve.plot(place, errors[place], "D", color="C1", markersize=9)
        curve.set(xlabel="epoch", ylabel=f"test MAE [{unit}]", title=f"MAE {errors[place]:.3g}")
        before = f" Before this epoch it was {errors[place - 1]:.4g}." if place else ""
        return f"{moment.capitalize()}: the test MAE is {errors[place]:.4g} ({unit}).{before}"

    return Explorer(draw, {"moment": moments}, {"moment": moments[-1]})


REFERENCES = ("step 1", *PLACEBOS, "COREG", "MSSR", "ridge", "extra trees")


def trials_explorer(trials: pd.DataFrame, units: Mapping[str, str], start: Mapping[str, Any]) -> Explorer:
    """A method against others, from trials on the same splits, with verdicts of `judge_benchmark`.

    Parameters
    ----------
    trials : pandas.DataFrame
        As of `shipped_trials`; every method must have run in every cell of the benchmark's grid.
    units : mapping of str to str
        Unit of the target of each dataset.
    start : mapping
        Of ``dataset`` and ``N``, where known.

    Returns
    -------
    Explorer
        With menus ``dataset`` and ``method`` and a slider ``N``.
    """
    means = trials.groupby(["dataset", "n_labeled", "method"])["mae"].mean()

    @functools.cache
    def against(method: str) -> dict[str, pd.DataFrame]:
        return {name: judge_benchmark(trials, method, name) for name in REFERENCES if name != method}

    def draw(figure: Figure, dataset: str, method: str, N: int) -> str:
        rows = pd.DataFrame({name: table.loc[(dataset, N)] for name, table in against(method).items()}).T
        ax = figure.subplots()
        plot_verdicts(ax, rows, list(rows.index), say=False)
        ax.set_xlabel(f"MAE of {method} minus MAE of the other [{units[dataset]}], 95 % interval")
        ax.set_title(f"{method} on {dataset}, N = {N}, {rows['n_seeds'].iloc[0]} splits")
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        told = rows[rows["verdict"] != CANNOT_TELL]
        worse = (told["verdict"] == HURT).sum()
        return (
            f"{method} has a mean MAE of {means[dataset, N, method]:.3g} ({units[dataset]}): shown better "
            f"than {len(told) - worse}, worse than {worse} of {len(rows)} others, with p values corrected "
            "for all cells of each question. An interval is not corrected."
        )

    menus = {name: trials[name].unique().tolist() for name in ("dataset", "method")}
    return Explorer(draw, {**menus, "N": list(N_LABELED)}, start, list(menus), size=(9, 3.8))


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
    n = min(map(len, orders.values()))
    means = {name: values.mean(axis=1)[: n + 1] for name, values in variances.items()}

    def draw(figure: Figure, choice: str, labels: int) -> str:
        order, left = orders[choice], means[choice]
        space, curve = figure.subplots(1, 2, width_ratios=(1.25, 1))
        drawn = space.scatter(*points.T, c=variances[choice][labels], cmap="magma_r", vmin=0, vmax=1, s=22)
        figure.colorbar(drawn, ax=space, label="variance that is left (1: nothing known)")
        for rank, row in enumerate(order[:labels], start=1):
            space.scatter(*points[row], marker="s", s=150, color="white", edgecolors="black", zorder=3)
            space.annotate(str(rank), points[row], ha="center", va="center", fontsize=8, zorder=4)
        space.set(title=f"{labels} labeled, star: the next", xlabel="x1 (scaled)", ylabel="x2 (scaled)")
        for name, values in means.items():
            curve.plot(values, **look(name, line=True), markersize=4, label=name)
        curve.plot(labels, left[labels], "o", markersize=14, fillstyle="none", color="black")
        curve.set(xlabel="labels", ylabel="mean variance", ylim=(0, None))
        curve.set_title(f"{left[labels]:.2f} is left")
        curve.legend(fontsize=9)
        told = f"Chosen by {choice}, {labels} labels: {left[labels]:.3f} of the variance is left on average."
        if labels == n:
            return told
        space.scatter(*points[order[labels]], marker="*", s=260, color="C9", edgecolors="black", zorder=5)
        return f"{told} The next label takes {left[labels] - left[labels + 1]:.3f} away."

    controls: dict[str, list[Any]] = {"choice": list(orders), "labels": list(range(n + 1))}
    return Explorer(draw, controls, {"labels": min(3, n)}, ["choice"], size=(9, 4))
