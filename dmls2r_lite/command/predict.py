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
@click.option("--clip", is_flag=True, help="Move estimates beyond the range of the labels to its ends.")
def predict(model: Path, file: Path, output: Path | None, clip: bool) -> None:
    """Add the estimates of MODEL to the rows of FILE, a CSV, Excel or Parquet table.

    MODEL is a file of `save_model`. FILE must have the columns that it was trained with, in any order. All
    rows and columns are written, with the estimate as `prediction`, and as `low` and `high` the ends of an
    interval if the model has any.
    """
    try:
        written, card, notices = predict_file(model, file, output, clip)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(card)
    click.echo(written)


def predict_file(
    model: Path, path: Path, output: Path | None = None, clip: bool = False
) -> tuple[str, str, list[str]]:
    """Write the rows of a file with estimates.

    Parameters
    ----------
    model, path : Path
    output : Path, optional
        Of a CSV file, which must not exist. Default: ``NAME_predictions.csv`` in the current folder.
    clip : bool, default=False
        Whether to move estimates beyond the range of the labels to its ends. Not by default: few labels
        seldom include the lowest and highest target, so an estimate beyond them may be right.

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
    from ..data.datasets import tell_reading
    from ..data.reading import table_name
    from ..foundation.files import replacing
    from ..practice.storing import load_model

    output = output or Path(f"{table_name(path)}_predictions.csv")
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end in .csv, got {output}")
    if output.exists():
        raise FileExistsError(f"{output} exists: move it, or name another file with --output")
    stored = load_model(model)
    reading, features = _read(path, stored)
    cells = reading.cells
    estimates = _estimate(stored, features)
    n_beyond = _clip(estimates, stored, clip)
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
        [*tell_reading(reading), *_notices(stored, cells, features), *_tell_beyond(n_beyond, stored, clip)],
    )


def _read(path: Path, stored: StoredModel) -> tuple[Reading, pd.DataFrame]:
    """What is in a file, and what the model needs of it, with a row for each of its rows."""
    from ..data.datasets import mark_missing
    from ..data.noticing import enumerate_names
    from ..data.reading import read, read_cells

    if not stored.columns:
        raise ValueError("the model was fitted on an array, so it knows no columns by name: use it in Python")
    cells = read_cells(path)
    missing = [name for name in stored.columns if name not in cells]
    if missing:
        raise ValueError(
            f"{path} must have the columns that the model was trained with; missing: "
            f"{enumerate_names(missing)}"
        )
    if len(cells) == 0:
        raise ValueError(f"{path} must hold a row below the line of names, got none")
    others = [name for name in map(str, cells) if name not in stored.columns]
    kinds = {name: stored.column_types.get(name, kind) for name, kind in stored.columns.items()}
    try:
        reading = read(path, others, column_types=kinds, missing_values=stored.missing_values, min_rows=0)
    except ValueError as error:
        raise ValueError(str(error).replace("as column_types says", "as in training")) from error
    table = mark_missing(reading, stored.missing_values).reindex(cells.index)
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


def _clip(estimates: pd.DataFrame, stored: StoredModel, clip: bool) -> int:
    """How many estimates lie beyond the range of the labels; with `clip` they are moved to its ends."""
    lowest, highest = stored.card.lowest, stored.card.highest
    if lowest is None or highest is None:
        if clip:
            raise ValueError("the model does not know the range of its labels: leave --clip out")
        return 0
    prediction = estimates["prediction"]
    if clip:
        estimates["prediction"] = prediction.clip(lowest, highest)
        if "low" in estimates:  # an interval holds its estimate
            estimates["low"] = estimates[["low", "prediction"]].min(axis=1)
            estimates["high"] = estimates[["high", "prediction"]].max(axis=1)
    return int((~prediction.between(lowest, highest)).sum())


def _tell_beyond(n_beyond: int, stored: StoredModel, clip: bool) -> Iterator[str]:
    if n_beyond:
        moved = "moved to its ends" if clip else "--clip would move them to its ends"
        yield (
            f"estimates beyond the range of the labels, {stored.card.lowest:.6g} to "
            f"{stored.card.highest:.6g}: {n_beyond} ({moved})"
        )


def _notices(stored: StoredModel, cells: pd.DataFrame, features: pd.DataFrame) -> Iterator[str]:
    from ..data.noticing import enumerate_names, shorten

    unused = [str(name) for name in cells if name not in features]
    if unused:
        yield f"kept, but not used by the model: {enumerate_names(unused)}"
    known = features[features.notna().any(axis=1)]
    if n_empty := len(features) - len(known):
        yield f"rows without a value in any column that the model needs, which have no estimate: {n_empty}"
    for name in stored.columns:
        if n_missing := int(known[name].isna().sum()):
            yield f"{shorten(name)}: {n_missing} without a value, filled as in training"
    for column, rows in stored.unseen_categories(known).groupby("column", sort=False):
        n, values = rows["rows"].sum(), [repr(shorten(value)) for value in rows["value"]]
        examples = ", ".join([*values[:3], *(["..."] if len(values) > 3 else [])])
        unseen = f"{n} with what the training did not have ({examples}), taken for something rare"
        yield f"{shorten(column)}: {unseen}"
