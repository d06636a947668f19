"""The tables of the paper for a terminal."""

from __future__ import annotations

import re
import textwrap
from functools import partial

import pandas as pd

from ..study.reproduction import BEATS, LEGEND, format_tables


def tables_to_text(trials: pd.DataFrame, width: int = 120) -> str:
    """Tables 1 to 4 and the counts of claims; wider ones are cut into blocks of columns.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.
    width : int, default=120
        In characters.
    """
    fill = partial(textwrap.fill, width=width, break_on_hyphens=False)
    parts = [fill(LEGEND)]
    for title, table in format_tables(trials):
        parts.append(fill(title))
        for paper in [name for name in map(str, table.columns) if name.startswith("paper, ")]:  # beside ours
            ours = paper.removeprefix("paper, ")
            table[ours] += "  " + table.pop(paper).str.rjust(6)
            table = table.rename(columns={ours: f"{ours}   paper"})
        if table.size:
            named = table.rename_axis(None).rename_axis(columns=str(table.index.name))
            text = named.to_string(line_width=width)
            parts.append(re.sub(r"[ \\]+$", "", text, flags=re.MULTILINE))
    return "\n\n".join([*parts, fill(BEATS)])
