"""What an explorer shows in a live notebook: sliders and menus in two columns, and a picture."""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

HERE = Path(__file__).parent


class Controls(anywidget.AnyWidget):
    """A form and a picture below it.

    ipywidgets has menus too, but JupyterLab takes their arrow keys, and its sliders have no name for those
    who hear a page.
    """

    _esm = (HERE / "controls.js").read_text(encoding="utf-8")
    _css = (HERE / "controls.css").read_text(encoding="utf-8")
    controls = traitlets.List(traitlets.Dict()).tag(sync=True)  # of each its name, its kind, its values
    places = traitlets.Dict().tag(sync=True)  # by name: which of its values is chosen
    picture = traitlets.Unicode().tag(sync=True)  # as address
    sentence = traitlets.Unicode().tag(sync=True)
