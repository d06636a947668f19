"""Tables for a terminal, and those of the paper as a page, too."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from functools import partial

import pandas as pd

from ..study.reproduction import BEATS, LEGEND, format_tables

TITLE = "The tables of the DML-S2R paper"


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: each column as wide as its widest entry, numbers to the right."""
    columns = []
    for entries in zip(*rows, strict=True):
        is_number = all(entry.replace(".", "").isdigit() for entry in entries[1:])
        justify = str.rjust if is_number else str.ljust
        columns.append([justify(entry, max(map(len, entries))) for entry in entries])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


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
            text = (
                table.rename_axis(None).rename_axis(columns=str(table.index.name)).to_string(line_width=width)
            )
            parts.append(re.sub(r"[ \\]+$", "", text, flags=re.MULTILINE))
    return "\n\n".join([*parts, fill(BEATS)])


def tables_to_html(trials: pd.DataFrame) -> str:
    """Tables 1 to 4 and the counts of claims, as a page.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.
    """
    from .pages import ENVIRONMENT  # takes a second, which a terminal need not wait for

    template = ENVIRONMENT.get_template("tables.html.jinja")
    return template.render(title=TITLE, legend=LEGEND, tables=format_tables(trials), beats=BEATS)
