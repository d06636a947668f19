"""From a frame to numbers without gaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from pandas.api import types
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from .forms import as_texts, read_dates, seem_unread, without_zone
from .noticing import count_distinct, one_sided

MAX_CATEGORIES = 20  # 0/1 columns made of one column; rarer categories share the last of them
MIN_TEXTS = 5  # that are all different are no categories


def describe_columns(features: pd.DataFrame, target: pd.Series | None = None) -> pd.DataFrame:
    """What each column holds, what `make_preprocessor` does with it, and what to look out for.

    Parameters
    ----------
    features : pandas.DataFrame
    target : pandas.Series, optional
        NaN where it is not known. With it, what is known on one side only is left out: an estimate for a
        row without a target cannot rest on it. See `one_sided`.

    Returns
    -------
    pandas.DataFrame
        A row per column: `kind` (number, category, date or time), `missing` (rows without a value),
        `distinct` (different values), `treatment`, `warning`. A treatment that starts with "left
        out" means that the column does not take part.
    """
    # Numbers may come as objects: of a list of mixed rows, for example.
    features = features.infer_objects()
    is_labeled = None if target is None else target.notna().to_numpy()
    counted = zip(features.items(), features.notna().sum(), count_distinct(features), strict=True)
    rows = [_describe(column, n_known, n, is_labeled) for (_, column), n_known, n in counted]
    columns = ["kind", "missing", "distinct", "treatment", "warning"]
    return pd.DataFrame(rows, index=features.columns.rename("column"), columns=columns)


def _describe(
    column: pd.Series, n_known: int, n_distinct: int, is_labeled: np.ndarray | None
) -> tuple[str, int, int, str, str]:
    n_missing, kind, treatment, gaps, warning = len(column) - n_known, "number", "kept", "the median", ""
    if types.is_datetime64_any_dtype(column):
        kind, treatment = "date", "days since 1970"
    elif types.is_timedelta64_dtype(column):
        kind, treatment = "time", "hours"
    elif types.is_bool_dtype(column) or not types.is_numeric_dtype(column):
        n_levels = n_distinct + (n_missing > 0)
        kind, gaps = "category", "a category of its own"
        treatment = f"{min(n_levels, MAX_CATEGORIES)} columns of 0 and 1"
        if n_levels > MAX_CATEGORIES:
            treatment += f", one of them for the {n_levels - MAX_CATEGORIES + 1} rarest"
    elif n_distinct == len(column) > MAX_CATEGORIES and (column.to_numpy(dtype=float) % 1 == 0).all():
        warning = (
            "whole numbers, different in every row: kept, though perhaps an identifier (then drop_columns)"
        )
    left_out = ""
    if n_distinct == 0:
        left_out = "no value in any row"
    elif n_distinct == 1 and n_missing == 0:
        left_out = "the same in every row"
    elif kind == "category" and (
        n_distinct > max(MAX_CATEGORIES, n_known / 2) or MIN_TEXTS <= n_distinct == n_known
    ):
        left_out = "text that hardly repeats"
        warning = f"{n_distinct} different texts in {n_known} rows"
        if not seem_unread(list(map(str, column.dropna().unique()))):
            warning += ", perhaps an identifier"
    elif n_missing and is_labeled is not None:
        sides, is_of_no_use = one_sided(column, is_labeled)
        left_out, warning = (sides, warning) if is_of_no_use else ("", sides or warning)
    if left_out:
        treatment = f"left out: {left_out}"
    elif n_missing:
        treatment += f", missing: {gaps}"
    return kind, n_missing, n_distinct, treatment, warning


def make_preprocessor(features: pd.DataFrame) -> ColumnTransformer:
    """Turn a table's columns into numbers without gaps, as `describe_columns` says; not fitted.

    Fitted on training rows it can be used for any others: a category that these did not have counts
    as a rare one or as none, a missing value gets the median of the training rows.

    Parameters
    ----------
    features : pandas.DataFrame
        Decides what kind each column is of.

    Returns
    -------
    sklearn.compose.ColumnTransformer
        Gives data frames. A category makes a column ``name=value``.
    """
    described = describe_columns(features)
    kept = described[~described["treatment"].str.startswith("left out")]

    median = SimpleImputer(strategy="median", keep_empty_features=True)
    one_hot = OneHotEncoder(
        max_categories=MAX_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
        feature_name_combiner=_name_of_category,
    )
    transformers = []
    functions = {"number": _to_numbers, "date": _to_days, "time": _to_hours, "category": _to_texts}
    for kind, function in functions.items():
        then = one_hot if kind == "category" else median
        steps = make_pipeline(FunctionTransformer(function, feature_names_out="one-to-one"), then)
        transformers.append((kind, steps, kept.index[kept["kind"] == kind].tolist()))
    may_clash = any(mark in str(column) for mark in ("=", ": missing") for column in features)
    return ColumnTransformer(transformers, verbose_feature_names_out=may_clash).set_output(transform="pandas")


def _to_numbers(X: pd.DataFrame) -> pd.DataFrame:
    return _convert(X, "numbers", lambda column: pd.to_numeric(column).astype(float))


def _to_days(X: pd.DataFrame) -> pd.DataFrame:
    def convert(column: pd.Series) -> pd.Series:
        if not types.is_datetime64_any_dtype(column):
            first, *others = read_dates(as_texts(column).reset_index(drop=True).dropna()).values()
            if not all(map(first.equals, others)):
                raise ValueError("day or month may come first: make dates by pd.to_datetime with a format")
            column = first.reindex(range(len(column))).set_axis(column.index)
        return (pd.to_datetime(without_zone(column)) - pd.Timestamp(1970, 1, 1)) / pd.Timedelta("1D")

    return _convert(X, "dates", convert)


def _to_hours(X: pd.DataFrame) -> pd.DataFrame:
    def convert(column: pd.Series) -> pd.Series:
        if not types.is_timedelta64_dtype(column):  # 0 days 5 is refused, where 5 would be of nanoseconds
            column = as_texts(column).replace(r"^(?=-?[\d.]+$)", "0 days ", regex=True)
        return pd.to_timedelta(column) / pd.Timedelta("1h")

    return _convert(X, "times", convert)


def _to_texts(X: pd.DataFrame) -> pd.DataFrame:
    same = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}
    return _convert(X, "texts", as_texts).replace(same).replace(r"^(-?\d+)\.0$", r"\1", regex=True)


def _convert(X: pd.DataFrame, kind: str, convert: Callable[[pd.Series], pd.Series]) -> pd.DataFrame:
    converted = {}
    for name, column in X.items():
        try:
            if kind in ("dates", "times") and types.is_numeric_dtype(column) and column.notna().any():
                raise TypeError("got numbers")
            if column.dtype.kind in "mM" and kind == "numbers":
                raise TypeError("got dates or times")
            converted[name] = convert(column)
        except (ValueError, TypeError) as error:
            raise ValueError(f"column {name!r} must hold {kind}, as in training: {error}") from error
    return pd.DataFrame(converted, index=X.index)


def _name_of_category(column: str, category: str | float) -> str:
    return f"{column}: missing" if pd.isna(category) else f"{column}={category}"
