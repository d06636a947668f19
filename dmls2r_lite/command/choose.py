"""`dmls2r choose`: from a table to the rows to label next, as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import merge_given

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from ..data.reading import Reading

MAX_POINTS = 5000  # other rows in the picture
MAX_NUMBERS = 50  # chosen rows that have their rank written beside them


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-n", "n", required=True, type=int, help="How many rows to choose.")
@click.option(
    "-p",
    "given",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="-p target COLUMN: rows with a value there are labeled. -p drop_columns A: it does not count, nor "
    "does -p groups COLUMN. -p column_types A=category and -p missing_values -999 say how to read it.",
)
@click.option("--targets", type=click.Path(path_type=Path), help="A table of the rows to estimate, if known.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="A CSV file that does not exist yet.  [default: FILE_chosen.csv, in the current folder]",
)
def choose(
    file: Path, n: int, given: tuple[tuple[str, str], ...], targets: Path | None, output: Path | None
) -> None:
    """Choose the rows of FILE, a CSV, Excel or Parquet table, to label next, and write them down in order.

    No row needs a label. Those are chosen that say most about all others, or about the rows of --targets.
    A picture of them is written beside the table.
    """
    parameters = merge_given(given, ("target", "drop_columns", "groups", "column_types", "missing_values"))
    left_out = [parameters[name] for name in ("drop_columns", "groups") if name in parameters]
    parameters["drop_columns"] = ", ".join(left_out)
    parameters.pop("groups", None)
    try:
        written, picture, notices = write_choice(file, n, targets=targets, output=output, **parameters)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(f"{written}: {n} rows of {file.name} to label, the first first; {picture} shows them")


def write_choice(
    path: Path,
    n: int,
    target: str | None = None,
    drop_columns: str | Sequence[str] = (),
    targets: Path | None = None,
    output: Path | None = None,
    column_types: str | None = None,
    missing_values: str = "",
) -> tuple[Path, Path, list[str]]:
    """Choose rows of a file to label and write them into another one, with a picture beside it.

    Parameters
    ----------
    path : Path
        Of a table that `read_table` can read.
    n : int
        How many rows to choose.
    target : str, optional
        Column of labels: rows with a value are labeled already, and never chosen.
    drop_columns : str or sequence of str, default=()
        Columns that do not count.
    targets : Path, optional
        Of a table with the rows to estimate, see `choose_rows`.
    output : Path, optional
        Of a CSV file, which must not exist. Default: ``NAME_chosen.csv`` in the current folder.
    column_types, missing_values : str, optional
        How to read the files, see `load_dataset`.

    Returns
    -------
    output, picture : Path
    notices : list of str
        What a user should know of.

    Raises
    ------
    OSError
        If a file is missing or may not be read or written, or the output exists.
    ValueError
        If a file does not hold such a table, or there are not so many rows to choose.
    """
    from ..data.datasets import mark_missing, same_types, tell_columns, tell_reading
    from ..data.noticing import enumerate_names, find_notices
    from ..data.preparing import describe_columns
    from ..data.reading import read, table_name
    from ..foundation.files import replacing
    from ..practice.choosing import choose_rows

    output = output or Path(f"{table_name(path)}_chosen.csv")
    picture = output.with_suffix(".png")
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end in .csv, got {output}")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent}")
    for existing in filter(Path.exists, (output, picture)):
        raise FileExistsError(f"{existing} exists: move it, or name another file with --output")
    reading = read(path, drop_columns, column_types=column_types, missing_values=missing_values)
    table = mark_missing(reading, missing_values, must_occur=True)
    y = _pop_labels(path.name, table, target, reading.cells.columns)
    is_labeled = y.notna().to_numpy()
    others = None
    if targets:
        kinds = same_types(reading, _names_in(targets, table))
        there = read(targets, column_types=kinds, missing_values=missing_values, min_rows=1)
        others = mark_missing(there, missing_values)
        if missing := [column for column in table.columns if column not in others]:
            raise ValueError(
                f"{targets} must have the columns of {path.name}, but lacks {enumerate_names(missing)}"
            )
    described = describe_columns(table)
    table = table.drop(columns=described.index[described["treatment"].str.startswith("left out")])
    if table.shape[1] == 0:
        raise ValueError(f"{path.name} must have a column that can be used, and not be the same in all rows")
    chosen = choose_rows(table, n, is_labeled, others, random_state=0)
    written = _chosen_cells(path, reading, table.index[chosen])
    figure = _draw(table, is_labeled, chosen, path.name)
    with replacing(output) as unfinished, replacing(picture) as unfinished_picture:
        written.to_csv(unfinished, sep=reading.separator, index=False)
        figure.savefig(unfinished_picture, format="png", dpi=150)
    kept = described.loc[table.columns]
    distinct = kept.query("kind == 'category'")["distinct"]
    many = [name for name, n_values in distinct.items() if n_values >= max(n, 5)]
    notices = [*tell_reading(reading), *tell_columns(described)]
    notices += [text for topic, text in find_notices(table, y, kept) if topic in ("codes", "total")]
    if many:
        notices.append(
            f"{enumerate_names(many)}: as many values as rows to choose, which then differ in little else: "
            "name what says which rows belong together by -p groups"
        )
    return output, picture, notices


def _pop_labels(name: str, table: pd.DataFrame, target: str | None, all_columns: pd.Index) -> pd.Series:
    """Take the column of labels out of a table; all missing if there is none."""
    import numpy as np
    import pandas as pd
    from pandas.api import types

    from ..data.datasets import check_column
    from ..data.noticing import shorten

    if target is None:
        return pd.Series(np.nan, index=table.index, name="")
    if target in all_columns and target not in table:
        raise ValueError(f"drop_columns must not name the target, got {target}")
    check_column("target", target, name, table)
    y = table.pop(target)
    if not types.is_float_dtype(y):
        values = ", ".join(map(shorten, y.dropna().unique()[:3]))
        raise ValueError(f"target must name a column of numbers, but {target} of {name} holds {values}")
    if y.notna().all():
        raise ValueError(f"{name} must have a row to choose, but {target} has a value in all {len(y)}")
    return y


def _names_in(path: Path, table: pd.DataFrame) -> list[str]:
    """Which columns of a table another file has."""
    from ..data.reading import read_cells

    cells = read_cells(path)
    return [str(name) for name in table if name in cells]


def _chosen_cells(path: Path, reading: Reading, rows: pd.Index) -> pd.DataFrame:
    """The rows as they stand in the file, with their lines in it and their ranks in front."""
    import numpy as np

    cells = reading.cells
    written = cells.loc[rows]
    columns = {"line": reading.lines_of(rows), "rank": np.arange(1, len(rows) + 1)}
    for place, (name, values) in enumerate(columns.items()):
        written.insert(place, name if name not in cells else f"{name} in {path.name}", values)
    return written


def _draw(table: pd.DataFrame, is_labeled: np.ndarray, chosen: np.ndarray, name: str) -> Figure:
    """The chosen rows among all others, along the two directions in which these vary the most."""
    import numpy as np
    from matplotlib.figure import Figure
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    from ..data.preparing import make_preprocessor

    others = np.setdiff1d(np.flatnonzero(~is_labeled), chosen)
    others = np.random.default_rng(0).permutation(others)[:MAX_POINTS]
    shown = np.concatenate([others, np.flatnonzero(is_labeled), chosen])
    rows = table.iloc[shown]
    near = FunctionTransformer(np.clip, kw_args={"a_min": -5, "a_max": 5})  # as for the choice
    steps = make_pipeline(make_preprocessor(rows), StandardScaler(), near)
    Z = np.asarray(steps.fit_transform(rows))
    if Z.shape[1] == 1:
        Z = np.column_stack([Z, np.zeros(len(Z))])
    points = PCA(2).fit_transform(Z)
    figure = Figure(figsize=(8, 6), layout="constrained")
    ax = figure.subplots()
    ends = np.cumsum([len(others), is_labeled.sum()])
    looks: list[tuple[np.ndarray, str, dict[str, Any]]] = [
        (points[: ends[0]], "not chosen", {"color": "0.75", "s": 12}),
        (points[ends[0] : ends[1]], "labeled already", {"color": "black", "marker": "s", "s": 36}),
        (points[ends[1] :], "chosen", {"color": "#d55e00", "edgecolor": "white", "s": 60}),
    ]
    for where, label, look in looks:
        if len(where):
            ax.scatter(where[:, 0], where[:, 1], label=f"{label} ({len(where)})", **look)
    for rank, (x, y) in enumerate(points[ends[1] :][:MAX_NUMBERS], start=1):
        ax.annotate(str(rank), (x, y), xytext=(5, 3), textcoords="offset points", fontsize=9)
    ax.set(
        title=f"Rows of {name} to label, by rank".replace("$", r"\$"),
        xlabel="first principal component (standardised columns)",
        ylabel="second principal component",
    )
    figure.legend(loc="outside lower center", ncols=3)
    return figure
