"""`dmls2r choose`: from a table to the rows to label next, as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    help="-p target COLUMN: rows with a value there are labeled. -p drop_columns A,B: these do not count, "
    "nor does -p groups COLUMN.",
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
    from ..parameters import did_you_mean

    parameters = dict(given)
    unknown = parameters.keys() - {"target", "drop_columns", "groups"}
    if unknown:
        raise click.ClickException(
            f"unknown parameter {', '.join(sorted(unknown))}; known are target, drop_columns, groups"
            f"{did_you_mean(min(unknown), ['target', 'drop_columns', 'groups'])}"
        )
    if len(parameters) < len(given):
        raise click.ClickException("give each parameter once; drop_columns takes several names: A,B")
    left_out = ", ".join(parameters[name] for name in ("drop_columns", "groups") if parameters.get(name))
    try:
        written, picture, notices = write_choice(file, n, parameters.get("target"), left_out, targets, output)
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
        Columns that do not count, see `read`.
    targets : Path, optional
        Of a table with the rows to estimate, see `choose_rows`.
    output : Path, optional
        Of a CSV file, which must not exist. Default: ``NAME_chosen.csv`` in the current folder.

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
    from ..data.preparing import describe_columns
    from ..data.reading import table_name
    from ..practice.choosing import choose_rows
    from ..system import replacing

    output = output or Path(f"{table_name(path)}_chosen.csv")
    picture = output.with_suffix(".png")
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end in .csv, got {output}")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent}")
    for existing in filter(Path.exists, (output, picture)):
        raise FileExistsError(f"{existing} exists: move it, or name another file with --output")
    reading, table, is_labeled = _read_features(path, target, drop_columns)
    others = _read_targets(targets, table) if targets else None
    missing = [column for column in table.columns if others is not None and column not in others]
    if missing:
        raise ValueError(f"{targets} must have the columns of {path.name}, but lacks {', '.join(missing)}")
    described = describe_columns(table)
    table = table.drop(columns=described.index[described["treatment"].str.startswith("left out")])
    if table.shape[1] == 0:
        raise ValueError(f"{path.name} must have a column that can be used, and not be the same in all rows")
    chosen = choose_rows(table, n, is_labeled.to_numpy(), others, random_state=0)
    written = _chosen_cells(path, reading, table.index[chosen])
    figure = _draw(table, is_labeled.to_numpy(), chosen, path.name)
    with replacing(picture) as unfinished_picture, replacing(output) as unfinished:
        written.to_csv(unfinished, sep=reading.separator, index=False)
        figure.savefig(unfinished_picture, format="png", dpi=150)
    notices = [
        f"{column}: {', '.join(filter(None, row[['treatment', 'warning']]))}"
        for column, row in described.iterrows()
        if row["warning"] or "missing" in row["treatment"] or row["treatment"].startswith("left out")
    ]
    return output, picture, notices


def _read_features(
    path: Path, target: str | None, drop_columns: str | Sequence[str]
) -> tuple[Reading, pd.DataFrame, pd.Series]:
    """What is in the file, the columns that count, and whether a row has a label."""
    import pandas as pd
    from pandas.api import types

    from ..data.reading import read

    reading = read(path, drop_columns)
    table = reading.table.copy()
    if target is None:
        return reading, table, pd.Series(False, index=table.index)
    if target not in table:
        if target in reading.cells:
            raise ValueError(f"drop_columns must not name the target, got {target}")
        names = ", ".join(table.columns)
        raise ValueError(f"target must name a column of {path.name} ({names}), got {target!r}")
    y = table.pop(target)
    if not types.is_float_dtype(y):
        values = ", ".join(map(str, y.dropna().unique()[:3]))
        raise ValueError(f"target must name a column of numbers, but {target} of {path.name} holds {values}")
    if y.notna().all():
        raise ValueError(f"{path.name} must have a row to choose, but {target} has a value in all {len(y)}")
    return reading, table, y.notna()


def _read_targets(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """The rows to estimate. What is text in the table is text here, though it may look like numbers."""
    from ..data.reading import read, read_cells

    names = read_cells(path).columns
    texts = {name: "text" for name in map(str, table) if name in names and table[name].dtype == object}
    return read(path, column_types=texts, min_rows=1).table


def _chosen_cells(path: Path, reading: Reading, rows: pd.Index) -> pd.DataFrame:
    """The rows as they stand in the file, with their lines in it and their ranks in front."""
    import numpy as np

    cells = reading.cells
    written = cells.loc[rows]
    columns = {
        "line": np.array(reading.lines)[cells.index.get_indexer(rows)],
        "rank": np.arange(1, len(rows) + 1),
    }
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
