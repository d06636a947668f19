"""Commands about a table of one's own: how it is understood, which rows to label, what a model says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..data.unpacking import table_name
from ..foundation.parameters import demand, did_you_mean
from .options import align, parameters_option

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from ..data.reading import Reading
    from ..practice.storing import StoredModel

MAX_POINTS = 5000  # other rows in the picture
MAX_NUMBERS = 50  # chosen rows that have their rank written beside them

table_argument = click.argument("file", type=click.Path(path_type=Path))
output_option = click.option(
    "--output", type=click.Path(path_type=Path), help="A new CSV file.  [default: here, named after FILE]"
)


@click.command()
@table_argument
@parameters_option(
    "As for dmls2r run: target, drop_columns, column_types or missing_values.",
    ("target", "drop_columns", "column_types", "missing_values"),
)
def read(file: Path, given: dict[str, str]) -> None:
    """Show how the columns of FILE, a table, are understood, and what should be looked at.

    Each column with what it is taken for, its first values as written and as read, and by which rule; ?
    marks a guess that could change numbers. Then what a run would do to the columns, and what it would warn
    of: more of both with -p target COLUMN.
    """
    from ..data import datasets, noticing, preparing

    reading, features, y = read_given(file, given)
    rows = [("column", "taken for", "", "written", "read", "rule")]
    for name, row in reading.columns.iterrows():
        written, as_read = (noticing.shorten(row[key]) for key in ("written", "read"))
        guess = "?" if row["guessed"] else ""
        rows.append((noticing.shorten(name), row["taken_for"], guess, written, as_read, row["rule"]))
    heading, n_known = f"{file.name}: {len(y)} rows, {len(rows) - 1} columns", int(y.notna().sum())
    described = preparing.describe_columns(features, y)
    notices = [notice.text for notice in noticing.find_notices(features, y, described)]
    if "target" in given:
        known = f"{noticing.shorten(y.name)} is known in {n_known}"
        heading += f"; {known}"
        notices += [f"{known}: dmls2r choose says which to label"] * (n_known < 2)
    click.echo("\n".join([heading, *reading.assumed, "", *align(rows)]))
    done = datasets.tell_columns(described)
    for about, texts in {"What is done to columns:": done, "Look at this:": notices}.items():
        if texts:
            click.echo("\n".join(["", about, *(f"- {text}" for text in texts)]))


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
    from ..data import datasets, noticing, preparing
    from ..foundation.files import replacing
    from ..practice.choosing import choose_rows

    output = new_csv(output, file, "chosen", beside=".png")
    picture = output.with_suffix(".png")
    reading, table, y = read_given(file, given)
    is_labeled = y.notna().to_numpy()
    missing = given.get("missing_values", "")
    others = read_alike(targets, datasets.same_types(reading, table), missing).table if targets else None
    described = preparing.describe_columns(table, y)
    kept = described[~described["treatment"].str.startswith("left out")]
    demand(len(kept), f"{file.name} must have a column that can be used, and not be the same in all rows")
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
    notices = [*datasets.tell_reading(reading), *datasets.tell_columns(described)]
    notices += [text for topic, text in noticing.find_notices(table, y, kept) if topic in ("codes", "total")]
    if many := list(kept.query("kind == 'category' and distinct >= @n and distinct >= 5").index):
        notices.append(
            f"{noticing.enumerate_names(many)}: as many values as rows to choose, which then differ in "
            "little else: name what says which rows belong together by -p groups"
        )
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(f"{output}: {n} rows of {file.name} to label, the first first; {picture} shows them")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@table_argument
@output_option
@click.option("--clip", is_flag=True, help="Move estimates beyond the range of the labels to its ends.")
def predict(model: Path, file: Path, output: Path | None, clip: bool) -> None:
    """Add the estimates of MODEL to the rows of FILE, a CSV, Excel or Parquet table.

    MODEL is a file of `save_model`. FILE must have the columns that it was trained with, in any order. All
    rows and columns are written, with the estimate as `prediction`, and as `low` and `high` the ends of an
    interval if the model has any; names that FILE has too get a _ behind.
    """
    import pandas as pd

    from ..data.datasets import tell_reading
    from ..data.reading import read as read_all
    from ..foundation.files import replacing
    from ..practice.storing import load_model

    output = new_csv(output, file, "predictions")
    stored = load_model(model)
    demand(stored.columns, "the model was fitted on an array and knows no columns by name: use it in Python")
    kinds = {name: stored.column_types.get(name, kind) for name, kind in stored.columns.items()}
    reading = read_alike(file, kinds, stored.missing_values)
    cells = reading.cells
    known = reading.table[list(kinds)].dropna(how="all")
    predicted = stored.predict(known)
    demand(predicted.ndim == 1, f"the model estimates {predicted.shape[-1]} numbers a row: use it in Python")
    estimates = pd.DataFrame({"prediction": predicted}, index=known.index)
    if (intervals := stored.predict_interval(known)) is not None:
        estimates[["low", "high"]] = intervals
    notices = [*tell_reading(reading), *_notices(stored, cells, known), *_clip(estimates, stored, clip)]
    while taken := [name for name in estimates if name in cells]:
        estimates = estimates.rename(columns={name: f"{name}_" for name in taken})
    every = reading
    with suppress(ValueError):  # of all columns, so that what is written can be read if FILE can be
        every = read_all(file, column_types=kinds, missing_values=stored.missing_values, min_rows=1)
    has_commas = every.columns["rule"].str.contains("decimal comma").any()
    sep, decimal = (";", ",") if has_commas else (",", ".")
    with replacing(output) as unfinished:
        cells.join(estimates).to_csv(unfinished, index=False, sep=sep, decimal=decimal)
    for notice in notices:
        click.echo(notice, err=True)
    click.echo(stored.card)
    click.echo(f"{output}: {len(cells)} row{'s' * (len(cells) != 1)} of {file.name} with estimates")


def _clip(estimates: pd.DataFrame, stored: StoredModel, clip: bool) -> Iterator[str]:
    """Say how many estimates lie beyond the range of the labels; with `clip` move them to its ends.

    Not by default: few labels seldom include the lowest and highest target, so an estimate beyond them may
    be right.
    """
    lowest, highest = stored.card.lowest, stored.card.highest
    if lowest is None or highest is None:
        demand(not clip, "the model does not know the range of its labels: leave --clip out")
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


def _notices(stored: StoredModel, cells: pd.DataFrame, known: pd.DataFrame) -> Iterator[str]:
    from ..data.noticing import enumerate_names, shorten

    if unused := [str(name) for name in cells if name not in known]:
        yield f"kept, but not used by the model: {enumerate_names(unused)}"
    if n_empty := len(cells) - len(known):
        yield f"rows without a value in any column that the model needs, which have no estimate: {n_empty}"
    measured = [name for name, kind in stored.columns.items() if kind != "category"]
    if measured and (n_bare := int(known[measured].isna().all(axis=1).sum())):
        yield f"rows without any number, date or time, whose estimates are rough guesses: {n_bare}"
    if far := stored.far_values(known):
        where = enumerate_names([f"{shorten(name)} ({n} row{'s' * (n > 1)})" for name, n in far.items()])
        yield (
            f"farther from all values of the training than those are apart: {where}. Mistyped, or in another "
            "unit? If not, the model knows nothing of such rows, and their intervals are too narrow"
        )
    for name, n_missing in known.isna().sum()[lambda counts: counts > 0].items():
        yield f"{shorten(name)}: {n_missing} without a value, filled as in training"
    for column, rows in stored.unseen_categories(known).groupby("column", sort=False):
        n, pairs = rows["rows"].sum(), zip(rows["value"], rows["alike"], strict=True)
        values = [repr(shorten(value)) + f" for {shorten(known)!r}" * (known != "") for value, known in pairs]
        examples = ", ".join([*values[:3], *(["..."] if len(values) > 3 else [])])
        unseen = f"{n} with what the training did not have ({examples}), taken for something rare"
        yield f"{shorten(column)}: {unseen}"


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


def read_given(file: Path, given: Mapping[str, str]) -> tuple[Reading, pd.DataFrame, pd.Series]:
    """Read a table by the parameters that are `given`, see `read_table`; that of groups is left out, too."""
    from ..data.reading import check_column, read_source, read_table

    if groups := given.get("groups"):
        columns = read_source(file).cells.columns.drop(given.get("target", ""), errors="ignore")
        check_column("groups", groups, file.name, columns)
    left_out = ", ".join(given[name] for name in ("drop_columns", "groups") if name in given)
    others = {name: value for name, value in given.items() if name not in ("drop_columns", "groups")}
    return read_table(file, left_out, **others)


def read_alike(path: Path, kinds: Mapping[str, str], missing_values: str) -> Reading:
    """Read a table that must have the columns of another one, each as in that one.

    Parameters
    ----------
    path : Path
    kinds : mapping of str to str
        What each column holds, see `read`. Further columns of the file are left out.
    missing_values : str

    Returns
    -------
    Reading
    """
    from ..data import noticing, reading

    names = list(map(str, reading.read_source(path).cells))
    further = [name for name in names if name not in kinds]
    if missing := [name for name in kinds if name not in names]:
        likely = "".join(did_you_mean(name, further) for name in missing[: noticing.MAX_NAMES])
        raise ValueError(f"{path} lacks columns that are needed: {noticing.enumerate_names(missing)}{likely}")
    # A number is no answer to what its mark means: that the file must show.
    types = {name: "number of any mark" if kind == "number" else kind for name, kind in kinds.items()}
    return reading.read(path, further, column_types=types, missing_values=missing_values, min_rows=1)


def new_csv(output: Path | None, source: Path, ending: str, beside: str = ".csv") -> Path:
    """Check the file to write, by default named after the table that it is made of, and one beside it."""
    output = output or Path(f"{table_name(source)}_{ending}.csv")
    demand(output.suffix.lower() == ".csv", f"--output must end in .csv, got {output}")
    demand(output.parent.is_dir(), f"there is no folder {output.parent}")
    for path in (output, output.with_suffix(beside)):
        demand(not path.exists(), f"{path} exists: move it, or name another file with --output")
    return output
