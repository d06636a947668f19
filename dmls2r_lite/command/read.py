"""`dmls2r read`: how a table is understood, before anything is trained on it."""

from __future__ import annotations

from pathlib import Path

import click

from .options import merge_given

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-p",
    "given",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="As for dmls2r run: target, drop_columns, column_types or missing_values.",
)
def read(file: Path, given: tuple[tuple[str, str], ...]) -> None:
    """Show how the columns of FILE, a table, are understood, and what should be looked at.

    Each column with what it is taken for, its first values as written and as read, and by which rule; ?
    marks a guess that could change numbers. With -p target COLUMN also what a run would do to the columns,
    and what it would warn of.
    """
    parameters = merge_given(given, ("target", "drop_columns", "column_types", "missing_values"))
    try:
        for line in report(file, **parameters):
            click.echo(line)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def report(
    path: Path,
    target: str = "",
    drop_columns: str = "",
    column_types: str = "",
    missing_values: str = "",
) -> list[str]:
    """The lines of a report on a file.

    Parameters
    ----------
    path : Path
    target, drop_columns, column_types, missing_values : str, default=""
        See `load_dataset`. Without a target there is less to be said.

    Raises
    ------
    OSError, ValueError
        As `load_dataset`.
    """
    import warnings

    import numpy as np
    import pandas as pd

    from ..data.datasets import load_dataset, mark_missing, tell_columns
    from ..data.noticing import find_notices, shorten
    from ..data.preparing import describe_columns
    from ..data.reading import read
    from .tables import align

    reading = read(path, drop_columns, column_types=column_types or None, missing_values=missing_values)
    table = mark_missing(reading, missing_values, must_occur=True)
    rows = [("column", "taken for", "", "written", "read", "rule")]
    for name, row in reading.columns.iterrows():
        guess = "?" if row["guessed"] else ""
        written, as_read = (shorten(row[key]) for key in ("written", "read"))
        rows.append((shorten(name), row["taken_for"], guess, written, as_read, row["rule"]))
    lines = [f"{path.name}: {len(table)} rows, {table.shape[1]} columns", *reading.assumed, "", *align(rows)]
    if target in table and table[target].notna().sum() < 2:
        described = describe_columns(table.drop(columns=target))
        notices = [f"{shorten(target)} is known in fewer than 2 rows: dmls2r choose says which to label"]
    elif target:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # they are told below
            data = load_dataset(
                path,
                drop_columns,
                target=target,
                column_types=column_types or None,
                missing_values=missing_values,
            )
        described = describe_columns(table.drop(columns=target), data.target)
        notices = [notice.text for notice in data.notices]
        lines[0] += f"; {shorten(target)} is known in {int(data.target.notna().sum())}"
    else:
        described = describe_columns(table)
        nothing = pd.Series(np.nan, index=table.index, name="")
        notices = [text for topic, text in find_notices(table, nothing, described)]
    for heading, texts in {
        "What is done to columns:": tell_columns(described),
        "Look at this:": notices,
    }.items():
        lines += ["", heading, *(f"- {text}" for text in texts)] if texts else []
    return lines
