"""`dmls2r predict`: a table in, the same table with a model's estimates out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import new_csv, output_option, read_alike, table_argument

if TYPE_CHECKING:
    import pandas as pd

    from ..practice.storing import StoredModel


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@table_argument
@output_option
@click.option("--clip", is_flag=True, help="Move estimates beyond the range of the labels to its ends.")
def predict(model: Path, file: Path, output: Path | None, clip: bool) -> None:
    """Add the estimates of MODEL to the rows of FILE, a CSV, Excel or Parquet table.

    MODEL is a file of `save_model`. FILE must have the columns that it was trained with, in any order. All
    rows and columns are written, with the estimate as `prediction`, and as `low` and `high` the ends of an
    interval if the model has any.
    """
    from ..data.datasets import tell_reading
    from ..foundation.files import replacing
    from ..practice.storing import load_model

    output = new_csv(output, file, "predictions")
    stored = load_model(model)
    if not stored.columns:
        raise ValueError("the model was fitted on an array, so it knows no columns by name: use it in Python")
    kinds = {name: stored.column_types.get(name, kind) for name, kind in stored.columns.items()}
    reading, table = read_alike(file, kinds, stored.missing_values, "the training")
    cells = reading.cells
    features = table.reindex(cells.index)[list(kinds)]
    estimates = _estimate(stored, features)
    notices = [*tell_reading(reading), *_notices(stored, cells, features), *_clip(estimates, stored, clip)]
    if clash := [name for name in estimates if name in cells]:
        raise ValueError(f"{file} has a column named {clash[0]} already: rename it")
    has_commas = reading.columns["rule"].str.contains("decimal comma").any()
    sep, decimal = (";", ",") if has_commas else (",", ".")
    with replacing(output) as unfinished:
        cells.join(estimates).to_csv(unfinished, index=False, sep=sep, decimal=decimal)
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(stored.card)
    click.echo(f"{output}: {len(cells)} row{'s' * (len(cells) != 1)} of {file.name} with estimates")


def _estimate(stored: StoredModel, features: pd.DataFrame) -> pd.DataFrame:
    """A column of estimates, and two of intervals; empty where a row has no value at all."""
    import pandas as pd

    known = features.dropna(how="all")
    estimates = stored.predict(known)
    if estimates.ndim != 1:
        raise ValueError(f"the model estimates {estimates.shape[1]} numbers for each row: use it in Python")
    result = pd.DataFrame({"prediction": estimates}, index=known.index)
    if (intervals := stored.predict_interval(known)) is not None:
        result[["low", "high"]] = intervals
    return result


def _clip(estimates: pd.DataFrame, stored: StoredModel, clip: bool) -> Iterator[str]:
    """Say how many estimates lie beyond the range of the labels; with `clip` move them to its ends.

    Not by default: few labels seldom include the lowest and highest target, so an estimate beyond them may
    be right.
    """
    lowest, highest = stored.card.lowest, stored.card.highest
    if lowest is None or highest is None:
        if clip:
            raise ValueError("the model does not know the range of its labels: leave --clip out")
        return
    inside = estimates["prediction"].clip(lowest, highest)
    if not (n_beyond := int((inside != estimates["prediction"]).sum())):
        return
    if clip:
        estimates["prediction"] = inside
        if "low" in estimates:  # an interval holds its estimate
            estimates["low"] = estimates["low"].clip(upper=inside)
            estimates["high"] = estimates["high"].clip(lower=inside)
    moved = "moved to its ends" if clip else "--clip would move them to its ends"
    yield f"estimates beyond the range of the labels, {lowest:.6g} to {highest:.6g}: {n_beyond} ({moved})"


def _notices(stored: StoredModel, cells: pd.DataFrame, features: pd.DataFrame) -> Iterator[str]:
    from ..data.noticing import enumerate_names, shorten

    if unused := [str(name) for name in cells if name not in features]:
        yield f"kept, but not used by the model: {enumerate_names(unused)}"
    known = features.dropna(how="all")
    if n_empty := len(features) - len(known):
        yield f"rows without a value in any column that the model needs, which have no estimate: {n_empty}"
    for name, n_missing in known.isna().sum().items():
        if n_missing:
            yield f"{shorten(name)}: {n_missing} without a value, filled as in training"
    for column, rows in stored.unseen_categories(known).groupby("column", sort=False):
        n, values = rows["rows"].sum(), [repr(shorten(value)) for value in rows["value"]]
        examples = ", ".join([*values[:3], *(["..."] if len(values) > 3 else [])])
        unseen = f"{n} with what the training did not have ({examples}), taken for something rare"
        yield f"{shorten(column)}: {unseen}"
