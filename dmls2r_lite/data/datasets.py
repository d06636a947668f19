"""Datasets by name and tables by path, and their labeled, unlabeled and test samples."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.datasets import load_diabetes, make_friedman1

from ..foundation.checks import make_scaler
from ..foundation.parameters import check_not_above, check_rules, demand, did_you_mean, shown
from .catalog import DATASETS, FILES, fetch, find, read_content
from .noticing import Notice, enumerate_names, find_notices, shorten
from .preparing import describe_columns, make_preprocessor
from .reading import Reading, check_column, expand_columns, read_table
from .recognising import WITH_NA
from .unpacking import is_path, table_name

MIN_LABELS = 5  # below, there is nothing to estimate an error from


@dataclass(frozen=True)
class Dataset:
    """A table with a numeric target.

    Attributes
    ----------
    name : str
    features : pandas.DataFrame of shape (n_samples, n_features)
        Numbers, or whatever `make_preprocessor` can turn into numbers.
    target : pandas.Series of shape (n_samples,)
        NaN where it is not known.
    unit : str
        Of the target.
    source : str
    note : str
        What a user should know before using it.
    n_unlabeled : int
        How many unlabeled samples the paper has, or what else is usual with this dataset.
    columns : pandas.DataFrame, optional
        What the columns hold and what is done with them, see `describe_columns`.
    notices : tuple of Notice, default=()
        What may be wrong with the table, see `find_notices`.
    reading : Reading, optional
        How a file was understood.
    missing_values : str, default=""
        What was taken for missing besides what `read` takes.
    groups : pandas.Series of shape (n_samples,), optional
        Which rows belong together.
    """

    name: str
    features: pd.DataFrame
    target: pd.Series
    unit: str
    source: str
    note: str
    n_unlabeled: int = 200
    columns: pd.DataFrame | None = None
    notices: tuple[Notice, ...] = ()
    reading: Reading | None = None
    missing_values: str = ""
    groups: pd.Series | None = None

    @property
    def target_label(self) -> str:
        """The target with its unit, for axes and tables."""
        name = str(self.target.name)
        return name if self.unit == _own_unit(name) else f"{name} [{self.unit}]"

    @property
    def doubts(self) -> list[str]:
        """What was guessed of a file, and what may be wrong with it, in sentences."""
        guessed = [] if self.reading is None else tell_reading(self.reading)
        return guessed + [notice.text for notice in self.notices]

    @property
    def column_types(self) -> dict[str, str]:
        """How another file is to be read for the same features; empty for what was not read from one."""
        return {} if self.reading is None else same_types(self.reading, self.features)

    def with_known_targets(self) -> Dataset:
        """The samples whose target is known."""
        known = self.target.notna()
        if known.all():
            return self
        target, groups = self.target[known], None if self.groups is None else self.groups[known]
        features, n_unlabeled = self.features[known], _usual_n_unlabeled(target)
        return replace(self, features=features, target=target, n_unlabeled=n_unlabeled, groups=groups)


def load_dataset(
    name: str | Path,
    drop_columns: str | Sequence[str] = (),
    *,
    target: str | None = None,
    column_types: str | Mapping[str, str] | None = None,
    missing_values: str = "",
    missing: Literal["drop", "as_published"] = "drop",
) -> Dataset:
    """Load a dataset by name, or a table from a file.

    The files of superconductivity and air_quality, as zip files from UCI or unpacked, are looked for in the
    folder that the environment variable DMLS2R_DATA names, then in the user's cache, and else downloaded.

    Parameters
    ----------
    name : str or Path
        One of `DATASETS`, or the path of a file that `read` can read.
    drop_columns : str or sequence of str, default=()
        Features to leave out, see `read`.
    target : str, optional
        Column to estimate: needed for a file; of a dataset another one than its own. It may be empty in
        some rows: these are the unlabeled ones.
    column_types : str or mapping, optional
        Of a file, what columns hold, see `read`.
    missing_values : str, default=""
        Of a file, numbers, dates and texts that stand for a missing value, see `read`.
    missing : {"drop", "as_published"}, default="drop"
        Of air_quality: read -200 as missing, or keep it as the number that it is, in features and target,
        as the paper's Table 4 seems to.

    Returns
    -------
    Dataset

    Warns
    -----
    UserWarning
        If columns of a file are left out, filled in or look like identifiers; if something was guessed
        that could change numbers; and what `find_notices` finds.

    Raises
    ------
    ValueError
        If there is no such dataset or column, or a file does not hold such a table.
    OSError
        If a file is missing, may not be read or cannot be downloaded.
    """
    demand(isinstance(name, str | Path), f"name must be a dataset's or the path of a file, got {shown(name)}")
    target = "" if target is None else target
    check_rules({"missing": missing, "missing_values": missing_values, "target": target})
    if str(name) not in DATASETS:
        if is_path(name):
            path = Path(name)
            options = {"column_types": column_types, "missing_values": missing_values}
            return _of_file(path, *read_table(path, drop_columns, target, **options), missing_values)
        wanted = f"dataset must be one of {', '.join(DATASETS)} or the path of a file"
        raise ValueError(f"{wanted}, got {shorten(name)!r}{did_you_mean(name, DATASETS)}")
    known, name = DATASETS[str(name)], str(name)
    are_for_files = "column_types and missing_values are for files"
    demand(not (column_types or missing_values), f"{are_for_files}: leave them out for {name}")
    table, note = _load_known(name), known.note
    target = target or known.target
    check_column("target", target, name, table)
    if known.missing:
        table = table.mask(table == -200) if missing == "drop" else table
        note += f" {known.missing[missing]}"
    unit = known.unit if target == known.target else known.units.get(target, _own_unit(target))
    y = table.pop(target)
    table = table.drop(columns=expand_columns(name, drop_columns, list(map(str, table))))
    demand(not table.empty, "drop_columns must leave at least one column, got all of them")
    described = describe_columns(table)
    return Dataset(name, table, y, unit, known.source, note, known.n_unlabeled, described)


def _load_known(name: str) -> pd.DataFrame:
    """The whole table of a dataset, target included; from UCI as published.

    Of Air Quality without its blank rows and columns; `Date` becomes days since the first day, `Time` the
    hour of the day.
    """
    if name == "boston":
        return pd.read_csv(io.BytesIO(FILES.joinpath("boston.csv").read_bytes()), dtype=float)
    if name == "diabetes":
        bunch = load_diabetes(as_frame=True, scaled=False)
        return bunch.data.assign(progression=bunch.target)
    if name == "friedman":
        X, y = make_friedman1(n_samples=1500, n_features=10, noise=1.0, random_state=0)
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(1, 11)]).assign(y=y)
    if name == "toy":
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.uniform(-1, 1, size=(400, 2)), columns=["x1", "x2"])
        noise = rng.normal(scale=0.1, size=400)
        return table.assign(y=3 * table["x1"] ** 2 + 2 * table["x2"] + noise)
    content = io.BytesIO(read_content(name, find(name) or fetch(name)))
    if name == "superconductivity":
        return pd.read_csv(content, dtype=float)
    table = pd.read_csv(content, sep=";", decimal=",")
    table = table.dropna(how="all").dropna(axis=1, how="all").reset_index(drop=True)
    days = pd.to_datetime(table["Date"], format="%d/%m/%Y")
    table["Date"] = (days - days.min()).dt.days
    table["Time"] = pd.to_datetime(table["Time"], format="%H.%M.%S").dt.hour
    return table.astype(float)


def _of_file(path: Path, reading: Reading, table: pd.DataFrame, y: pd.Series, missing_values: str) -> Dataset:
    """The dataset of a table that has been read."""
    target = str(y.name)
    wanted, n_different = f"target must have different values, in {MIN_LABELS} rows or more", y.nunique()
    got = f"{shorten(target)} has {n_different}, in {y.count()}; dmls2r choose says which rows to label"
    demand(n_different > 1, f"{wanted}, but {got}")
    described = describe_columns(table, y)
    left_out = described.index[described["treatment"].str.startswith("left out")]
    told = tell_columns(described)
    wanted = f"{path.name} must have a column that can be used besides the target"
    demand(len(left_out) < table.shape[1], f"{wanted}, got {'; '.join(told) or 'none'}")
    guessed, notices = tell_reading(reading), tuple(find_notices(table, y, described))
    if doubts := [*guessed, *told, *(notice.text for notice in notices)]:
        warnings.warn(f"{path.name}: " + "; ".join(doubts), stacklevel=3)
    note = f"{len(y)} rows, {int(y.isna().sum())} of them without a target."
    note += f" How the file was read: {'; '.join(guessed)}." if guessed else ""
    note += f" What was done to columns: {'; '.join(told)}." if told else ""
    name, unit, n_unlabeled = table_name(path), _own_unit(target), _usual_n_unlabeled(y)
    features = table.drop(columns=left_out)
    return Dataset(
        name, features, y, unit, path.name, note, n_unlabeled, described, notices, reading, missing_values
    )


def tell_reading(reading: Reading) -> list[str]:
    """What was guessed of a file and could change numbers, in sentences."""
    guessed = reading.columns.loc[reading.columns["guessed"].astype(bool), "rule"]
    return [*reading.assumed, *_gather(guessed)]


def same_types(reading: Reading, columns: Iterable[object]) -> dict[str, str]:
    """The `column_types` by which another file is read as this one was."""
    told = reading.columns.loc[list(map(str, columns))]
    orders = told["rule"].str.extract("^dates, ((?:day|month) first)")[0]
    kinds = orders.fillna(told["taken_for"].replace("truth", "category"))
    kinds = kinds.mask(told["rule"].str.contains("; NA is one of them"), WITH_NA)
    has_decimals = (reading.table[kinds.index[kinds == "number"]] % 1 > 0).any()
    marks = "decimal " + told["rule"].str.contains("decimal comma").map({True: "comma", False: "point"})
    kinds = kinds.mask(has_decimals.reindex(kinds.index, fill_value=False), marks)
    return dict(zip(map(str, kinds.index), kinds, strict=True))


def tell_columns(described: pd.DataFrame) -> list[str]:
    """What is done to columns that are not just kept, in sentences."""
    treatments = described["treatment"]
    told = treatments.where(treatments.str.contains("left out|missing"), "") + ", " + described["warning"]
    told = told.str.strip(", ")
    return _gather(told[told != ""])


def _gather(told: pd.Series) -> list[str]:
    """The same sentence on many columns as one."""
    return [f"{enumerate_names(same.index)}: {text}" for text, same in told.groupby(told, sort=False)]


def _own_unit(target: str) -> str:
    """What to call the unit of a column that nobody has told us."""
    # matplotlib takes what stands between two $ for mathematics
    return "units of the target" if len(target) > 12 or "$" in target else f"units of {target}"


def _usual_n_unlabeled(target: pd.Series) -> int:
    """All without a target, but not more than the paper has at most; else two fifths, as for Boston."""
    return min(int(target.isna().sum()) or max(1, 2 * len(target) // 5), 1000)


@dataclass(frozen=True)
class Split:
    """Labeled, unlabeled and test samples of a dataset, disjoint.

    `y_unlabeled` is what a user would not have: it serves pictures and checks, never training.
    """

    X_labeled: pd.DataFrame
    y_labeled: pd.Series
    X_unlabeled: pd.DataFrame
    y_unlabeled: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series

    @property
    def X_train(self) -> pd.DataFrame:
        """Labeled rows, then unlabeled ones."""
        return pd.concat([self.X_labeled, self.X_unlabeled])

    @property
    def y_train(self) -> pd.Series:
        """Targets of `X_train`: NaN marks an unlabeled row."""
        return pd.concat([self.y_labeled, self.y_unlabeled * np.nan])


def check_split_sizes(dataset: Dataset, n_labeled: int, n_unlabeled: int) -> None:
    """Raise ValueError if a dataset has too few rows for a split with a test set."""
    n_known, rows = int(dataset.target.notna().sum()), f"the number of rows of {dataset.name}"
    n = {"n_labeled": int(n_labeled), "n_unlabeled": int(n_unlabeled)}  # NumPy's narrow ones overflow
    if n_empty := len(dataset.target) - n_known:
        check_not_above("n_unlabeled", n.pop("n_unlabeled"), n_empty, f"{rows} without a target")
    wanted = f"{' + '.join(n)} must be below {n_known}, {rows} with a target, so that a test set is left"
    advice = "give a smaller n_labeled, or run --only 05, which needs none"
    demand(sum(n.values()) < n_known, f"{wanted} ({advice}); got {' + '.join(map(str, n.values()))}")


def split_dataset(
    dataset: Dataset,
    n_labeled: int,
    n_unlabeled: int,
    seed: int,
    scale_on: Literal["train", "all", "none"] = "train",
) -> Split:
    """Draw labeled and unlabeled samples at random; the rest is the test set (as in the paper).

    If some rows have no target, the unlabeled samples are drawn from these, and labeled and test
    samples from the others. Columns that are not numbers, or have gaps, go through
    `make_preprocessor`, fitted on the same samples as the scaling.

    Parameters
    ----------
    dataset : Dataset
    n_labeled : int
        N, 2 or more.
    n_unlabeled : int
        M, 0 or more; at least one row with a target must be left for the test set.
    seed : int
        Of the draw. For one seed the labeled samples of a smaller N are among those of a larger.
    scale_on : {"train", "all", "none"}, default="train"
        Min-max scale the features to [0, 1] over labeled and unlabeled samples; over all samples,
        the test set's features included, as the paper does; or not at all. Gaps are filled in by
        the medians of the same samples, without scaling by those of labeled and unlabeled ones.

    Returns
    -------
    Split

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    """
    demand(isinstance(dataset, Dataset), f"dataset must be a Dataset, got {shown(dataset)}")
    check_rules({"n_labeled": n_labeled, "n_unlabeled": n_unlabeled, "seed": seed, "scale_on": scale_on})
    check_split_sizes(dataset, n_labeled, n_unlabeled)
    order = np.random.default_rng(int(seed)).permutation(len(dataset.target))
    is_known = dataset.target.notna().to_numpy()[order]
    if is_known.all():
        labeled, unlabeled, test = np.split(order, np.cumsum([n_labeled, n_unlabeled], dtype=int))
    else:
        labeled, test = np.split(order[is_known], [n_labeled])
        unlabeled = order[~is_known][:n_unlabeled]
    X = dataset.features
    fitted_on = X if scale_on == "all" else X.iloc[np.concatenate([labeled, unlabeled])]
    if not all(map(types.is_float_dtype, X.dtypes)) or X.isna().any(axis=None):
        preprocessor = make_preprocessor(X).fit(fitted_on)
        X, fitted_on = preprocessor.transform(X), preprocessor.transform(fitted_on)
    if scale_on != "none":
        X = make_scaler("minmax").set_output(transform="pandas").fit(fitted_on).transform(X)
    y = dataset.target
    return Split(
        X.iloc[labeled], y.iloc[labeled], X.iloc[unlabeled], y.iloc[unlabeled], X.iloc[test], y.iloc[test]
    )
