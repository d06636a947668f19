"""`dmls2r predict`: a table in, the same table with a model's estimates out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd

    from ..data.reading import Reading
    from ..practice.storing import StoredModel


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="A CSV file that does not exist yet.  [default: FILE_predictions.csv, in the current folder]",
)
def predict(model: Path, file: Path, output: Path | None) -> None:
    """Add the estimates of MODEL to the rows of FILE, a CSV, Excel or Parquet table.

    MODEL is a file of `save_model`. FILE must have the columns that it was trained with, in any order. All
    rows and columns are written, with the estimate as `prediction`, and as `low` and `high` the ends of an
    interval if the model has any.
    """
    try:
        written, card, notices = predict_file(model, file, output)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(card)
    click.echo(written)


def predict_file(model: Path, path: Path, output: Path | None = None) -> tuple[str, str, list[str]]:
    """Write the rows of a file with estimates.

    Returns
    -------
    written, card : str
        What was written, and what is known of the model.
    notices : list of str
        What a user should know of.

    Raises
    ------
    OSError
        If a file is missing or may not be read or written, or the output exists.
    ValueError
        If a file is not what it should be.
    """
    from ..data.reading import table_name
    from ..practice.storing import load_model
    from ..system import replacing

    output = output or Path(f"{table_name(path)}_predictions.csv")
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end in .csv, got {output}")
    if output.exists():
        raise FileExistsError(f"{output} exists: move it, or name another file with --output")
    stored = load_model(model)
    reading, features = _read(path, stored)
    cells = reading.cells
    estimates = _estimate(stored, features)
    clash = [name for name in estimates if name in cells]
    if clash:
        raise ValueError(f"{path} has a column named {clash[0]} already: rename it")
    has_commas = reading.columns["rule"].str.contains("decimal comma").any()
    with replacing(output) as unfinished:
        cells.join(estimates).to_csv(
            unfinished, index=False, sep=";" if has_commas else ",", decimal="," if has_commas else "."
        )
    n_rows = f"{len(cells)} row{'' if len(cells) == 1 else 's'}"
    return (
        f"{output}: {n_rows} of {path.name} with estimates",
        str(stored.card),
        [*_notices(stored, reading, features)],
    )


def _read(path: Path, stored: StoredModel) -> tuple[Reading, pd.DataFrame]:
    """What is in a file, and what the model needs of it, with a row for each of its rows."""
    from ..data.reading import read, read_cells

    if not stored.columns:
        raise ValueError("the model was fitted on an array, so it knows no columns by name: use it in Python")
    cells = read_cells(path)
    missing = [name for name in stored.columns if name not in cells]
    if missing:
        raise ValueError(
            f"{path} must have the columns that the model was trained with; missing: {', '.join(missing)}"
        )
    if len(cells) == 0:
        raise ValueError(f"{path} must hold a row below the line of names, got none")
    unused = [name for name in map(str, cells) if name not in stored.columns]
    # A column of texts may look like one of numbers in a file of few rows: so texts are read as such.
    texts = {name: "text" for name, kind in stored.columns.items() if kind == "category"}
    reading = read(path, unused, column_types=texts, min_rows=0)
    table = reading.table
    table = table.astype({name: float for name in table if table[name].dtype == bool}).reindex(cells.index)
    return reading, table[list(stored.columns)]


def _estimate(stored: StoredModel, features: pd.DataFrame) -> pd.DataFrame:
    """A column of estimates, and two of intervals; empty where a row has no value at all."""
    import pandas as pd

    known = features[features.notna().any(axis=1)]
    if known.empty:
        raise ValueError("no row has a value in any column that the model needs")
    estimates = stored.predict(known)
    if estimates.ndim != 1:
        raise ValueError(f"the model estimates {estimates.shape[1]} numbers for each row: use it in Python")
    result = pd.DataFrame({"prediction": estimates}, index=known.index)
    if (intervals := stored.predict_interval(known)) is not None:
        result[["low", "high"]] = intervals
    return result


def _notices(stored: StoredModel, reading: Reading, features: pd.DataFrame) -> Iterator[str]:
    unused = [name for name in map(str, reading.cells) if name not in features]
    yield from reading.assumed
    for name, rule in reading.columns.loc[reading.columns["guessed"], "rule"].items():
        yield f"{name}: {rule}"
    if unused:
        yield f"kept, but not used by the model: {', '.join(unused)}"
    known = features[features.notna().any(axis=1)]
    if n_empty := len(features) - len(known):
        yield f"rows without a value in any column that the model needs, which have no estimate: {n_empty}"
    for name in stored.columns:
        if n_missing := int(known[name].isna().sum()):
            yield f"{name}: {n_missing} without a value, filled as in training"
    for column, rows in stored.unseen_categories(known).groupby("column", sort=False):
        n, values = rows["rows"].sum(), [repr(value) for value in rows["value"]]
        examples = ", ".join([*values[:3], *(["..."] if len(values) > 3 else [])])
        yield f"{column}: {n} with what the training did not have ({examples}), taken for something rare"
