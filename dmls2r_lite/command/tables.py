"""The paper's tables for a terminal, and as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import partial

import pandas as pd

from ..study.reproduction import BEATS, LEGEND, format_tables
from .pages import ENVIRONMENT, align
from .rendering import table_to_html

TITLE = "The tables of the DML-S2R paper"


def tables_to_text(trials: pd.DataFrame, width: int = 120) -> str:
    """Tables 1 to 4 and the counts of claims, aligned, at most `width` characters wide where that is enough.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.
    width : int, default=120
        Wider tables are cut into blocks of columns.

    Returns
    -------
    str
    """
    fill = partial(textwrap.fill, width=width, break_on_hyphens=False)
    parts = [fill(LEGEND)]
    for title, table in format_tables(trials):
        parts += [fill(title), *("\n".join(block) for block in _blocks(table, width))]
    return "\n\n".join([*parts, fill(BEATS)])


def _blocks(table: pd.DataFrame, width: int) -> Iterator[list[str]]:
    """Lines of as many columns as there is room for; ours and the paper's stay together."""
    pairs: list[list[str]] = []
    for column in table:
        if str(column).startswith("paper, "):
            pairs[-1].append(str(column))
        else:
            pairs.append([str(column)])
    while pairs:
        lines: list[str] = []
        for n in range(len(pairs), 0, -1):  # the first n pairs, if they fit
            columns = [column for pair in pairs[:n] for column in pair]
            heading = [str(table.index.name), *(column.split(", ")[0] for column in columns)]
            rows = [
                (str(name), *row) for name, row in zip(table.index, table[columns].to_numpy(), strict=True)
            ]
            lines = align([heading, *rows])
            if max(map(len, lines)) <= width:
                break
        yield lines
        pairs = pairs[n:]


def tables_to_html(trials: pd.DataFrame) -> str:
    """Tables 1 to 4 and the counts of claims, as a page.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.

    Returns
    -------
    str
    """
    parts = []
    for title, table in format_tables(trials):
        html = (
            table.rename_axis(columns=str(table.index.name)).rename_axis(None).to_html() if table.size else ""
        )
        parts.append((title, table_to_html(html, title)))
    return ENVIRONMENT.get_template("tables.html.jinja").render(
        title=TITLE, legend=LEGEND, parts=parts, beats=BEATS
    )
