"""`dmls2r read`: how a table is understood, before anything is trained on it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from .options import align, parameters_option, table_argument


@click.command()
@table_argument
@parameters_option(
    "As for dmls2r run: target, drop_columns, column_types or missing_values.",
    ("target", "drop_columns", "column_types", "missing_values"),
)
def read(file: Path, given: dict[str, str]) -> None:
    """Show how the columns of FILE, a table, are understood, and what should be looked at.

    Each column with what it is taken for, its first values as written and as read, and by which rule; ?
    marks a guess that could change numbers. With -p target COLUMN also what a run would do to the columns,
    and what it would warn of.
    """
    import numpy as np
    import pandas as pd

    from ..data import reading as tables
    from ..data.datasets import load_dataset, mark_missing, tell_columns
    from ..data.noticing import find_notices, shorten
    from ..data.preparing import describe_columns

    target = given.get("target", "")
    how: dict[str, Any] = {name: value for name, value in given.items() if name != "target"}
    reading = tables.read(file, **how)
    table = mark_missing(reading, given.get("missing_values", ""), must_occur=True)
    heading = f"{file.name}: {len(table)} rows, {table.shape[1]} columns"
    rows = [("column", "taken for", "", "written", "read", "rule")]
    for name, row in reading.columns.iterrows():
        written, as_read = (shorten(row[key]) for key in ("written", "read"))
        guess = "?" if row["guessed"] else ""
        rows.append((shorten(name), row["taken_for"], guess, written, as_read, row["rule"]))
    y = pd.Series(np.nan, index=table.index, name="")
    too_few = target in table and table[target].notna().sum() < 2
    if target and not too_few:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are told below
            y = load_dataset(file, target=target, **how).target
        heading += f"; {shorten(target)} is known in {int(y.notna().sum())}"
    features = table.drop(columns=target or [])
    described = describe_columns(features, y if y.notna().any() else None)
    notices = [notice.text for notice in find_notices(features, y, described)]
    if too_few:
        notices += [f"{shorten(target)} is known in fewer than 2 rows: dmls2r choose says which to label"]
    click.echo("\n".join([heading, *reading.assumed, "", *align(rows)]))
    told = {"What is done to columns:": tell_columns(described), "Look at this:": notices}
    for about, texts in told.items():
        if texts:
            click.echo("\n".join(["", about, *(f"- {text}" for text in texts)]))
