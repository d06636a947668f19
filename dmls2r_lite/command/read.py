"""`dmls2r read`: how a table is understood, before anything is trained on it."""

from __future__ import annotations

from pathlib import Path

import click

from .options import align, parameters_option, read_given, table_argument


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
    from ..data.datasets import tell_columns
    from ..data.noticing import find_notices, shorten
    from ..data.preparing import describe_columns

    reading, features, y = read_given(file, given)
    rows = [("column", "taken for", "", "written", "read", "rule")]
    for name, row in reading.columns.iterrows():
        written, as_read = (shorten(row[key]) for key in ("written", "read"))
        guess = "?" if row["guessed"] else ""
        rows.append((shorten(name), row["taken_for"], guess, written, as_read, row["rule"]))
    heading, n_known = f"{file.name}: {len(y)} rows, {len(rows) - 1} columns", int(y.notna().sum())
    described = describe_columns(features, y if n_known else None)
    notices = [notice.text for notice in find_notices(features, y, described)]
    if "target" in given:
        heading += f"; {shorten(y.name)} is known in {n_known}"
        if n_known < 2:
            few = "is known in fewer than 2 rows: dmls2r choose says which to label"
            notices.append(f"{shorten(y.name)} {few}")
    click.echo("\n".join([heading, *reading.assumed, "", *align(rows)]))
    for about, texts in {
        "What is done to columns:": tell_columns(described),
        "Look at this:": notices,
    }.items():
        if texts:
            click.echo("\n".join(["", about, *(f"- {text}" for text in texts)]))
