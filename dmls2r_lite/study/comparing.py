"""What may be concluded from trials."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import bootstrap, wilcoxon


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """Mean MAE over seeds of one dataset with its standard error, a row per method and a column per N.

    Returns
    -------
    pandas.DataFrame
        Index `method` in order of first appearance; columns (`mean` or `standard_error`, N).

    Raises
    ------
    ValueError
        If a method, N and seed occur twice.
    """
    _check_unique(trials)
    by_cell = trials.groupby(["method", "n_labeled"], sort=False)["mae"]
    table = by_cell.agg(mean="mean", standard_error="sem").unstack("n_labeled")
    return table.reindex(trials["method"].unique())


def compare(trials: pd.DataFrame, method: str, reference: str, seed: int = 0) -> pd.DataFrame:
    """Paired differences of MAE, `method` minus `reference`, on the same splits.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `run_trials`; both methods must have run on the same seeds.
    method, reference : str
    seed : int, default=0
        Of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        A row per N: `mean_difference` (below 0: `method` is better), `low` and `high` (95 %
        bootstrap interval of the mean), `p_value` (Wilcoxon signed-rank, two-sided), `n_seeds`,
        `n_better` (seeds in which `method` is better).

    Raises
    ------
    ValueError
        If a method is not in the trials, a method, N and seed occur twice, or the seeds differ or are
        fewer than 2.
    """
    for name in (method, reference):
        if name not in set(trials["method"]):
            raise ValueError(f"no trial of method {name!r}; there are {', '.join(trials['method'].unique())}")
    trials = trials[trials["method"].isin([method, reference])]
    _check_unique(trials)
    wide = trials.pivot(index=["n_labeled", "seed"], columns="method", values="mae")
    differences = wide[method] - wide[reference]
    if differences.isna().any() or differences.groupby("n_labeled").size().min() < 2:
        raise ValueError(f"{method!r} and {reference!r} must have run on the same 2 or more seeds")
    rows = {}
    for n_labeled, values in differences.groupby("n_labeled"):
        if np.ptp(values) == 0:
            low = high = values.iloc[0]
        else:
            low, high = bootstrap((values,), np.mean, rng=seed, method="percentile").confidence_interval
        rows[n_labeled] = {
            "mean_difference": values.mean(),
            "low": low,
            "high": high,
            "p_value": wilcoxon(values).pvalue if values.any() else 1.0,
            "n_seeds": len(values),
            "n_better": int((values < 0).sum()),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("n_labeled")


def compare_cells(trials: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """`compare` on every dataset, with p values corrected for the number of cells.

    A cell is a dataset with one N. Only seeds on which both have run take part, and cells with 2 or more.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `run_trials`, for one or more datasets.
    method, reference : str

    Returns
    -------
    pandas.DataFrame
        Index (`dataset`, `n_labeled`); the columns of `compare` and `p_holm`.
    """
    trials = trials[trials["method"].isin([method, reference])]
    trials = trials[trials.groupby(["dataset", "n_labeled", "seed"])["method"].transform("nunique") == 2]
    trials = trials[trials.groupby(["dataset", "n_labeled"])["seed"].transform("nunique") >= 2]
    if trials.empty:
        raise ValueError(f"{method!r} and {reference!r} have not run on the same 2 or more seeds of any cell")
    parts = {name: compare(part, method, reference) for name, part in trials.groupby("dataset", sort=False)}
    table = pd.concat(parts, names=["dataset"])
    return table.assign(p_holm=holm(table["p_value"]))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct p values for their number, so that *any* false alarm has a probability of alpha at most.

    Parameters
    ----------
    p_values : array-like of shape (n,)

    Returns
    -------
    numpy.ndarray of shape (n,)

    References
    ----------
    Holm (1979): A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6.
    """
    p = np.asarray(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return corrected


def _check_unique(trials: pd.DataFrame) -> None:
    repeated = trials[trials.duplicated(["method", "n_labeled", "seed"])]
    if len(repeated):
        first = repeated.iloc[0]
        raise ValueError(
            "trials must hold each method, N and seed of one dataset once, "
            f"got {first['method']!r} with N = {first['n_labeled']} and seed {first['seed']} twice"
        )
