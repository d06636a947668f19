"""A picture with sliders and menus that redraw it, in a live notebook only."""

from __future__ import annotations

import base64
import gc
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from ..foundation.parameters import demand

INSTEAD = "In JupyterLab, with anywidget, there are sliders for this figure here when you run this cell."


@dataclass
class Explorer:
    """A picture with controls.

    Parameters
    ----------
    draw : callable
        Takes an empty figure and a value for each control by name, draws, and returns a sentence that
        says what is to be seen.
    controls : mapping of str to list
        The values of each control, in order. They are worked with the mouse or with the arrow keys,
        menus also with the first letters of a value.
    start : mapping of str to value
        Where a control does not start with its first value. What it does not have does not count.
    menus : sequence of str, default=()
        Names of the controls that are menus; the others are sliders.
    size : tuple of float, default=(9, 3.6)
        Of the figure in inches.

    Raises
    ------
    ParameterError
        If `start` names no control, or a control has no values.
    """

    draw: Callable[..., str]
    controls: Mapping[str, list[Any]]
    start: Mapping[str, Any]
    menus: Sequence[str] = ()
    size: tuple[float, float] = (9, 3.6)

    def __post_init__(self) -> None:
        """Start each control somewhere."""
        wrong = [name for name in (*self.start, *self.controls) if not len(self.controls.get(name, ()))]
        demand(not wrong, f"start must name controls, and each of these have a value, got {wrong}")
        known = {name: value for name, value in self.start.items() if value in self.controls[name]}
        self.start = {name: values[0] for name, values in self.controls.items()} | known
        self._places: list[Any] = []  # of the axes: to find them takes half as long as to draw

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
        figure.savefig(buffer, format="png", pil_kwargs={"compress_level": 1})
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
        import anywidget
        import traitlets

        # ipywidgets has menus too, but JupyterLab takes their arrow keys, and its sliders have no name for
        # those who hear a page.
        class Form(anywidget.AnyWidget):
            _esm, _css = Path(__file__).with_suffix(".js"), Path(__file__).with_suffix(".css")
            controls = traitlets.List(traitlets.Dict()).tag(sync=True)  # name, whether a menu, values
            places = traitlets.Dict().tag(sync=True)  # by name: which of its values is chosen
            picture = traitlets.Unicode().tag(sync=True)  # as address
            sentence = traitlets.Unicode().tag(sync=True)

        texts = {name: list(map(str, values)) for name, values in self.controls.items()}
        kinds = [{"name": name, "menu": name in self.menus, "values": texts[name]} for name in texts]
        places = {name: values.index(self.start[name]) for name, values in self.controls.items()}
        form = Form(controls=kinds, places=places)

        def redraw(_: Any = None) -> None:
            chosen = {name: self.controls[name][place] for name, place in form.places.items()}
            png, text = self.picture(**chosen)
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
