"""Figures to play with: sliders and menus that redraw a picture, in a live notebook only."""

from __future__ import annotations

import base64
import functools
import gc
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from scipy.special import softmax
from sklearn.decomposition import PCA

from ..foundation.scores import MiningMode
from ..miner import mine_positives_negatives
from ..study.benchmark import N_LABELED
from ..study.comparing import CANNOT_TELL, HURT
from ..study.reproduction import judge_benchmark
from .plotting import look, plot_space, plot_verdicts

INSTEAD = "In JupyterLab, with anywidget, there are sliders for this figure here when you run this cell."


class Explorer:
    """A picture with controls.

    Parameters
    ----------
    draw : callable
        Takes an empty figure and a value for each control by name, draws, and returns a sentence that
        says what is to be seen.
    sliders, menus : mapping of str to sequence, default={}
        The values of each control, in order. They are worked with the mouse or with the arrow keys,
        menus also with the first letters of a value.
    start : mapping of str to value, default={}
        Where a control does not start with its first value.
    size : tuple of float, default=(9, 3.6)
        Of the figure in inches.
    """

    def __init__(
        self,
        draw: Callable[..., str],
        sliders: Mapping[str, Sequence[Any]] | None = None,
        menus: Mapping[str, Sequence[Any]] | None = None,
        start: Mapping[str, Any] | None = None,
        size: tuple[float, float] = (9, 3.6),
    ) -> None:
        self.draw = draw
        self.sliders, self.menus = dict(sliders or {}), dict(menus or {})
        first = {name: values[0] for name, values in {**self.menus, **self.sliders}.items()}
        self.start = {**first, **(start or {})}
        self.size = size
        self._places: list[Bbox] = []  # of the axes: to find them takes longer than to draw

    def picture(self, **values: Any) -> tuple[bytes, str]:
        """The figure as PNG, and what it shows in a sentence, for some values of the controls.

        Parameters
        ----------
        **values
            By name; a control that is not named stands where it starts.

        Returns
        -------
        tuple of bytes and str
        """
        figure = Figure(figsize=self.size, dpi=80, layout=None if self._places else "constrained")
        text = self.draw(figure, **{**self.start, **values})
        for ax, place in zip(figure.axes, self._places, strict=False):
            ax.set_position(place)
        buffer = io.BytesIO()
        FigureCanvasAgg(figure).print_png(buffer, pil_kwargs={"compress_level": 1})
        self._places = self._places or [ax.get_position(original=True) for ax in figure.axes]
        return buffer.getvalue(), text

    def plot(self) -> None:
        """Draw the picture at the start as a figure of pyplot, for those who read without a kernel."""
        self.draw(plt.figure(figsize=self.size, layout="constrained"), **self.start)

    def show(self) -> None:
        """Display picture and controls if somebody is there to use them, else a line of text."""
        if not _has_reader() or find_spec("anywidget") is None:
            print(INSTEAD)
            return
        from .controls import Controls

        kinds = {"menu": self.menus, "slider": self.sliders}
        values = {**self.menus, **self.sliders}
        form = Controls(
            controls=[
                {"name": name, "kind": kind, "values": list(map(str, values[name]))}
                for kind, named in kinds.items()
                for name in named
            ],
            places={name: list(values[name]).index(self.start[name]) for name in values},
        )

        def redraw(_: Any = None) -> None:
            png, text = self.picture(**{name: values[name][place] for name, place in form.places.items()})
            with form.hold_sync():
                form.picture = f"data:image/png;base64,{base64.b64encode(png).decode()}"
                form.sentence = text

        form.observe(redraw, names="places")
        redraw()
        gc.freeze()  # else collecting garbage takes half a second every now and then, with PyTorch in memory
        display(form)


def _has_reader() -> bool:
    """Whether this runs in JupyterLab, Colab or VS Code, not in nbconvert, papermill or a test."""
    shell = get_ipython()
    in_code = shell is not None and "__vsc_ipynb_file__" in shell.user_ns
    return "JPY_SESSION_NAME" in os.environ or "google.colab" in sys.modules or in_code


def pairs_explorer(
    fits: Mapping[int, tuple[np.ndarray, np.ndarray]], y_labeled: np.ndarray, y_test: np.ndarray, unit: str
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
    errors = {
        "labeled": [np.abs(fits[n][0] - y_labeled[:n]).mean() for n in sizes],
        "test": [np.abs(fits[n][1] - y_test).mean() for n in sizes],
    }
    reach = np.ptp(np.concatenate([y_labeled, y_test]))
    drawn = [y_labeled, y_test, *(estimates for pair in fits.values() for estimates in pair)]
    limits = np.quantile(np.concatenate(drawn), [0, 1])

    def draw(figure: Figure, N: int) -> str:
        pairs, fit, error = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
        y = np.sort(y_labeled[:N])
        image = pairs.imshow(y[:, None] - y, cmap="RdBu_r", vmin=-reach, vmax=reach)
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
        place = sizes.index(N)
        for name, values in errors.items():
            error.plot(sizes, values, label=name, **look(name, line=True))
            error.plot(N, values[place], "o", markersize=14, fillstyle="none", color="black")
        error.set(xlabel="labels N", ylabel=f"MAE [{unit}]", ylim=(0, None), title="Error")
        error.legend(fontsize=9)
        return (
            f"With {N} labels, which make {N * (N - 1)} ordered pairs, the mean absolute error is "
            f"{errors['labeled'][place]:.3g} on them, {errors['test'][place]:.3g} on test samples ({unit})."
        )

    return Explorer(draw, sliders={"N": sizes}, start={"N": sizes[-1]})


def mining_explorer(
    differences: torch.Tensor,
    codes: tuple[np.ndarray, np.ndarray],
    features: tuple[np.ndarray, np.ndarray],
    targets: tuple[np.ndarray, np.ndarray],
    unit: str,
    start: Mapping[str, Any],
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
    by_target = np.argsort(y)
    projected = PCA(2).fit_transform(np.concatenate(codes))
    spaces = {"Input space": np.concatenate(features), "Metric space": projected}
    is_labeled = np.arange(n + m) < n
    norm = Normalize(min(y.min(), y_unlabeled.min()), max(y.max(), y_unlabeled.max()))

    def draw(
        figure: Figure,
        anchor: int,
        mode: MiningMode,
        k: int,
        boundary: float,
        margin: float,
        temperature: float,
    ) -> str:
        margin = min(margin, boundary)
        chosen = by_target[anchor - 1]
        mined = [rows[0].numpy() for rows in mine_positives_negatives(differences[[chosen]], k, mode)]
        (space_1, space_2), (axis, costs) = figure.subplots(2, 2, height_ratios=(1.5, 1))
        looks = (("positives", "^", "C0"), ("negatives", "v", "C1"))
        for ax, (name, points) in zip((space_1, space_2), spaces.items(), strict=True):
            drawn = plot_space(ax, points, np.concatenate(targets), is_labeled, norm)
            for rows, (label, marker, color) in zip(mined, looks, strict=True):
                ax.scatter(
                    *points[n + rows].T, c=y_unlabeled[rows], cmap=drawn.cmap, norm=norm, marker=marker,
                    s=90, edgecolors=color, linewidths=2.5, label=label,
                )  # fmt: skip
            ax.scatter(*points[chosen], marker="*", s=300, color="white", edgecolors="black", label="anchor")
            ax.set(title=name, xticks=[], yticks=[])
        figure.colorbar(drawn, ax=space_2, label=f"target [{unit}]")

        axis.plot(y_unlabeled, np.zeros(m), "|", color="0.7")
        for rows, height, (label, marker, color) in zip(mined, (0.5, -0.5), looks, strict=True):
            axis.plot(y_unlabeled[rows], np.full(k, height), marker, color=color, label=label)
        axis.plot(y[chosen], 0, "*", color="white", markersize=16, markeredgecolor="black", label="anchor")
        axis.set(ylim=(-1, 1), yticks=[], xlabel=f"true target [{unit}]", title="Target axis")
        axis.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.45), ncols=3, frameon=False)

        distances = [np.linalg.norm(codes[1][rows] - codes[0][chosen], axis=1) for rows in mined]
        losses = _draw_costs(costs, distances, boundary, margin, temperature)
        gaps = [np.abs(y_unlabeled[rows] - y[chosen]).mean() for rows in mined]
        return (
            f"Anchor with the target {y[chosen]:.4g}: its {k} positives are off by {gaps[0]:.3g} on average, "
            f"its {k} negatives by {gaps[1]:.3g} ({unit}). Loss of the positives {losses[0]:.3f}, of the "
            f"negatives {losses[1]:.3f}."
        )

    steps = np.round(np.arange(0.1, 2.05, 0.1), 2).tolist()
    sliders = {
        "anchor": list(range(1, n + 1)),
        "k": sorted({*range(1, min(20, m) + 1), start["k"]}),
        "boundary": sorted({*steps, start["boundary"]}),
        "margin": sorted({0.0, *steps, start["margin"]}),
        "temperature": sorted({0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, start["temperature"]}),
    }
    return Explorer(
        draw, sliders, {"mode": ["absolute", "signed"]}, {"anchor": n // 2 + 1, **start}, size=(9, 6)
    )


def _draw_costs(
    ax: Axes, distances: Sequence[np.ndarray], boundary: float, margin: float, temperature: float
) -> list[float]:
    """Cost against distance with one anchor's sets on it, as large as they weigh; return both losses."""
    d = np.linspace(0, max(2.0, 1.1 * boundary, *(part.max() for part in distances)), 200)
    losses = []
    looks = (("^", "C0", "-", 1, boundary - margin), ("v", "C1", "--", -1, boundary))
    for part, (marker, color, line, sign, limit) in zip(distances, looks, strict=True):
        cost = np.maximum(sign * (part - limit), 0)
        weight = softmax(temperature * sign * part)
        ax.plot(d, np.maximum(sign * (d - limit), 0), line, color=color)
        ax.scatter(part, cost, s=25 + 200 * weight, marker=marker, color=color, alpha=0.7)
        losses.append(float(weight @ cost))
    ax.axvline(boundary, color="0.4", linestyle=":", linewidth=1)
    ax.axvline(boundary - margin, color="0.4", linestyle="-.", linewidth=1)
    ax.set(xlabel="distance of codes", ylabel="cost", title=f"Loss of this anchor: {sum(losses) / 2:.3f}")
    return losses


def epochs_explorer(
    codes: Sequence[np.ndarray],
    errors: Sequence[float],
    y: np.ndarray,
    is_labeled: np.ndarray,
    unit: str,
) -> Explorer:
    """The metric space after each epoch of each step.

    Parameters
    ----------
    codes : sequence of numpy.ndarray of shape (n, n_codes)
        At the start, then after step 1 and step 2 in turn.
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
    low, high = np.min([p.min(axis=0) for p in points], 0), np.max([p.max(axis=0) for p in points], 0)
    pad = 0.05 * (high - low)
    moments = ["start"] + [f"epoch {1 + i // 2}, step {1 + i % 2}" for i in range(len(codes) - 1)]
    epochs = np.arange(len(codes)) / 2

    def draw(figure: Figure, moment: str) -> str:
        place = moments.index(moment)
        space, curve = figure.subplots(1, 2, width_ratios=(1.2, 1))
        drawn = plot_space(space, points[place], y, is_labeled)
        figure.colorbar(drawn, ax=space, label=f"target [{unit}]")
        space.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
        space.set(title=f"Metric space, {moment}", xticks=[], yticks=[])
        space.legend(loc="best", fontsize=8)
        curve.plot(epochs, errors, color="0.6")
        curve.plot(epochs[place], errors[place], "D", color="C1", markersize=9)
        curve.set(xlabel="epoch", ylabel=f"test MAE [{unit}]", title=f"MAE {errors[place]:.3g}")
        before = f" Before this step it was {errors[place - 1]:.4g}." if place else ""
        return f"{moment.capitalize()}: the test MAE is {errors[place]:.4g} ({unit}).{before}"

    return Explorer(draw, sliders={"moment": moments}, start={"moment": moments[-1]})


REFERENCES = (
    "step 1", "COREG", "MSSR", "placebo null", "placebo random", "placebo swapped", "ridge", "extra trees",
)  # fmt: skip


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
    sizes = list(N_LABELED)
    methods = list(dict.fromkeys(trials["method"]))
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

    menus = {"dataset": list(dict.fromkeys(trials["dataset"])), "method": methods}
    known = {
        name: value for name, value in start.items() if value in (sizes if name == "N" else menus["dataset"])
    }
    return Explorer(draw, {"N": sizes}, menus, known, size=(9, 3.8))
