"""Labeled, unlabeled and test samples of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api import types

from ..foundation.checks import make_scaler
from ..foundation.parameters import check_rules
from .datasets import Dataset
from .preparing import make_preprocessor


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
    n_rows, n_known = len(dataset.target), int(dataset.target.notna().sum())
    n_labeled, n_unlabeled = int(n_labeled), int(n_unlabeled)  # NumPy's narrow ones overflow
    rows, aim = f"the number of rows of {dataset.name}", "so that a test set is left; got"
    n_empty = n_rows - n_known
    if not n_empty and n_labeled + n_unlabeled >= n_rows:
        sizes = f"{n_labeled} + {n_unlabeled}"
        raise ValueError(f"n_labeled + n_unlabeled must be below {n_rows}, {rows}, {aim} {sizes}")
    if n_labeled >= n_known:
        raise ValueError(f"n_labeled must be below {n_known}, {rows} with a target, {aim} {n_labeled}")
    if 0 < n_empty < n_unlabeled:
        what = f"{n_empty}, {rows} without a target, got {n_unlabeled}"
        raise ValueError(f"n_unlabeled must not exceed {what}")


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
