"""`dmls2r choose`: from a table to the rows to label next, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import new_csv, output_option, parameters_option, read_alike, read_given, table_argument

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

MAX_POINTS = 5000  # other rows in the picture
MAX_NUMBERS = 50  # chosen rows that have their rank written beside them


@click.command()
@table_argument
@click.option("-n", "n", required=True, type=int, help="How many rows to choose.")
@parameters_option(
    "-p target COLUMN: rows with a value there are labeled. -p drop_columns A: it does not count, nor "
    "does -p groups COLUMN. -p column_types A=category and -p missing_values -999 say how to read it.",
    ("target", "drop_columns", "groups", "column_types", "missing_values"),
)
@click.option("--targets", type=click.Path(path_type=Path), help="A table of the rows to estimate, if known.")
@output_option
def choose(file: Path, n: int, given: dict[str, str], targets: Path | None, output: Path | None) -> None:
    """Choose the rows of FILE, a CSV, Excel or Parquet table, to label next, and write them down in order.

    No row needs a label. Those are chosen that say most about all others, or about the rows of --targets.
    A picture of them is written beside the table.
    """
    from ..data.datasets import same_types, tell_columns, tell_reading
    from ..data.noticing import enumerate_names, find_notices
    from ..data.preparing import describe_columns
    from ..foundation.files import replacing
    from ..practice.choosing import choose_rows

    output = new_csv(output, file, "chosen", beside=".png")
    picture = output.with_suffix(".png")
    reading, table, y = read_given(file, given)
    is_labeled = y.notna().to_numpy()
    if is_labeled.all():
        raise ValueError(f"{file.name} must have a row to choose, but {y.name} has a value in all {len(y)}")
    others = None
    if targets:
        types, missing_values = same_types(reading, table), given.get("missing_values", "")
        _, others = read_alike(targets, types, missing_values, file.name)
    described = describe_columns(table)
    kept = described[~described["treatment"].str.startswith("left out")]
    if kept.empty:
        raise ValueError(f"{file.name} must have a column that can be used, and not be the same in all rows")
    table = table[kept.index]
    chosen = choose_rows(table, n, is_labeled, others, random_state=0)
    rows = table.index[chosen]
    written = reading.cells.loc[rows]
    line, rank = (name if name not in written else f"{name} in {file.name}" for name in ("line", "rank"))
    written.insert(0, line, reading.lines_of(rows))
    written.insert(1, rank, range(1, n + 1))
    figure = _draw(table, is_labeled, chosen, file.name)
    with replacing(output) as unfinished, replacing(picture) as unfinished_picture:
        written.to_csv(unfinished, sep=reading.separator, index=False)
        figure.savefig(unfinished_picture, format="png", dpi=150)
    notices = [*tell_reading(reading), *tell_columns(described)]
    notices += [text for topic, text in find_notices(table, y, kept) if topic in ("codes", "total")]
    if many := list(kept.query("kind == 'category' and distinct >= @n and distinct >= 5").index):
        notices.append(
            f"{enumerate_names(many)}: as many values as rows to choose, which then differ in little else: "
            "name what says which rows belong together by -p groups"
        )
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(f"{output}: {n} rows of {file.name} to label, the first first; {picture} shows them")


def _draw(table: pd.DataFrame, is_labeled: np.ndarray, chosen: np.ndarray, name: str) -> Figure:
    """The chosen rows among all others, along the two directions in which these vary the most."""
    import numpy as np
    from matplotlib.figure import Figure
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    from ..data.preparing import make_preprocessor

    others = np.random.default_rng(0).permutation(np.setdiff1d(np.flatnonzero(~is_labeled), chosen))
    kinds = (others[:MAX_POINTS], np.flatnonzero(is_labeled), chosen)
    rows = table.iloc[np.concatenate(kinds)]
    Z = StandardScaler().fit_transform(make_preprocessor(rows).fit_transform(rows)).clip(-5, 5)
    points = PCA(2).fit_transform(np.column_stack([Z, np.zeros(len(Z))]))  # of one column there are none else
    figure = Figure(figsize=(8, 6), layout="constrained")
    ax = figure.subplots()
    ends = np.cumsum([len(rows) for rows in kinds[:2]])
    looks: dict[str, dict[str, Any]] = {
        "not chosen": {"color": "0.75", "s": 12},
        "labeled already": {"color": "black", "marker": "s", "s": 36},
        "chosen": {"color": "#d55e00", "edgecolor": "white", "s": 60},
    }
    for where, (label, look) in zip(np.split(points, ends), looks.items(), strict=True):
        ax.scatter(where[:, 0], where[:, 1], label=f"{label} ({len(where)})", **look)
    for rank, place in enumerate(points[ends[1] :][:MAX_NUMBERS], start=1):
        ax.annotate(str(rank), place, xytext=(5, 3), textcoords="offset points", fontsize=9)
    ax.set(
        title=f"Rows of {name} to label, by rank".replace("$", r"\$"),
        xlabel="first principal component (standardised columns)",
        ylabel="second principal component",
    )
    figure.legend(loc="outside lower center", ncols=3)
    return figure
