"""What may be concluded from trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import bootstrap, rankdata, wilcoxon

from ..foundation.parameters import demand

CELL = ["dataset", "n_labeled"]
LEVEL = 0.05
HELPED, PLACEBO_TOO, HURT, CANNOT_TELL = VERDICTS = (
    "helped",
    "helped, but so does a placebo",
    "hurt",
    "cannot tell",
)
RULE = (
    f"p < {LEVEL} (Wilcoxon's signed-rank test on paired differences, two-sided, Holm-corrected over the "
    "cells of the question), with mean and ranks on the same side of zero"
)


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
    _check_unique(trials.assign(dataset=""))
    by_cell = trials.groupby(["method", "n_labeled"], sort=False)["mae"]
    table = by_cell.agg(mean="mean", standard_error="sem").unstack("n_labeled")
    return table.reindex(trials["method"].unique())


def _test(trials: pd.DataFrame, method: str, reference: str, intervals: bool = False) -> pd.DataFrame:
    """A row for each cell, as of `give_verdict`; intervals take most of its time."""
    wide = trials.pivot(index=[*CELL, "seed"], columns="method", values="mae")
    rows = {}
    for cell, differences in (wide[method] - wide[reference]).groupby(CELL):
        low = high = differences.iloc[0]
        if intervals and np.ptp(differences) > 0:
            low, high = bootstrap((differences,), np.mean, rng=0, method="percentile").confidence_interval
        # Without those that are equal: with them SciPy takes the normal distribution, however few are left.
        changed = differences[differences != 0].to_numpy()
        ranks = rankdata(np.abs(changed))
        rows[cell] = {
            "mean_difference": differences.mean(),
            "low": low,
            "high": high,
            "p_value": wilcoxon(changed).pvalue if len(changed) else 1.0,
            "n_seeds": len(differences),
            "n_better": int((changed < 0).sum()),
            "rank_balance": float(np.sign(changed) @ ranks / ranks.sum()) if len(changed) else 0.0,
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(CELL)
    table = table.reindex(trials["dataset"].unique(), level="dataset")
    return table.assign(p_holm=holm(table["p_value"]))


def give_verdict(
    trials: pd.DataFrame, method: str, reference: str, placebos: Sequence[str] = ()
) -> pd.DataFrame:
    """Did it help? The one rule by which this project answers, for every cell of a question.

    A question is a method and a reference; its cells (a dataset with one N) are all cells of `trials` in
    which these and all placebos have run on the same splits, and they are judged together. So whoever asks
    with the same trials gets the same answer; part of the trials is another, smaller question.

    1. *Shown*: the differences of MAE on the same splits have p < 0.05 by Wilcoxon's signed-rank test,
       two-sided and Holm-corrected over the cells, and their mean is on the same side of zero as their ranks.
       (The test knows ranks only: a few splits with a huge error may pull the mean to the other side. Then
       neither is shown.) The interval takes no part: with few splits it is too narrow, and it is not
       corrected for the number of cells.
    2. *helped*: shown lower than the reference, and by the same rule than each placebo.
       *helped, but so does a placebo*: shown lower than the reference, and so is a placebo that the method
       is not shown to be lower than; what this placebo lacks need not be the cause.
       *hurt*: shown higher than the reference.
    3. *cannot tell*: all else. That may be lower than the reference, without a placebo that is shown to
       help, nor a difference to each that is shown. It never means that there is no effect.

    If nothing differs from the reference, the chance that any cell gets another verdict than *cannot tell* is
    0.05 at most. Placebos need no correction for their number, since *all* must be passed.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `run_trials`, for one or more datasets.
    method, reference : str
    placebos : sequence of str, default=()
        Methods like `method`, but without what is said to help.

    Returns
    -------
    pandas.DataFrame
        Index (`dataset`, `n_labeled`); `mean_difference` of MAE, `method` minus `reference` (below 0:
        `method` is better), `low` and `high` (95 % bootstrap interval of the mean), `p_value` (Wilcoxon's),
        `n_seeds`, `n_better` (seeds in which `method` is better), `rank_balance` (what the test sees: ranks
        with their signs, as a share; -1: `method` is better on all seeds, 1: worse on all), `p_holm` (the p
        value corrected for the number of cells), `verdict` (one of `VERDICTS`), and `sentence`, which has all
        numbers that it follows from.

    Raises
    ------
    ValueError
        If they have not run on the same 2 or more splits of any cell, a method, N and seed of a dataset occur
        twice, or an error is not finite.
    """
    trials = _common(trials, [method, reference, *placebos])
    table = _test(trials, method, reference, intervals=True)
    against = {name: _test(trials, method, name).to_dict("index") for name in placebos}
    of_placebo = {name: _test(trials, name, reference).to_dict("index") for name in placebos}
    base = trials[trials["method"] == reference].groupby(CELL)["mae"].mean().to_dict()
    # The smallest p value of so many splits is low enough.
    n_needed = int(np.log2(2 * len(table) / LEVEL)) + 1
    verdicts, sentences = [], []
    for cell, row in table.to_dict("index").items():
        verdict = {-1: HELPED, 0: CANNOT_TELL, 1: HURT}[_shown(row)]
        tied = [name for name in placebos if _shown(against[name][cell]) >= 0]
        if verdict == HELPED and tied:
            does_too = any(_shown(of_placebo[name][cell]) < 0 for name in tied)
            verdict = PLACEBO_TOO if does_too else CANNOT_TELL
        of_each = [
            f"{method} against {name}: {_numbers(against[name][cell])}; {name} against {reference}: "
            f"{_numbers(of_placebo[name][cell])}."
            for name in placebos
        ]
        verdicts.append(verdict)
        sentences.append(" ".join([_describe(row, reference, base[cell], len(table), n_needed), *of_each]))
    return table.assign(verdict=verdicts, sentence=sentences)


def tally_verdicts(verdicts: pd.DataFrame, where: bool = True) -> str:
    """How many cells have which verdict, and where there is one.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        From `give_verdict`.
    where : bool, default=True
        Name the cells.

    Returns
    -------
    str
        For example "helped in 1 of 3 cells (toy, N = 10), cannot tell in 2".
    """
    parts: list[str] = []
    for verdict in VERDICTS:
        cells = verdicts.index[verdicts["verdict"] == verdict]
        if len(cells):
            total = "" if parts else f" of {len(verdicts)} cells"
            named = [f"{dataset}, N = {n}" for dataset, n in cells]
            listed = f" ({'; '.join(named)})" if where and verdict != CANNOT_TELL else ""
            parts.append(f"{verdict} in {len(cells)}{total}{listed}")
    return ", ".join(parts)


def _shown(row: Mapping[Any, Any]) -> int:
    """-1 if the error is shown to be lower, 1 if higher, else 0."""
    sides = np.sign([row["mean_difference"], row["rank_balance"]])
    return int(sides[0]) if row["p_holm"] < LEVEL and sides[0] == sides[1] else 0


def _common(trials: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Trials of these methods in cells in which all have run on the same 2 or more seeds."""
    names = " and ".join(map(repr, methods))
    there = ", ".join(trials["method"].unique())
    trials = trials[trials["method"].isin(methods)]
    _check_unique(trials)
    trials = trials[trials.groupby([*CELL, "seed"])["method"].transform("size") == len(methods)]
    trials = trials[trials.groupby(CELL)["seed"].transform("nunique") >= 2]
    demand(len(trials), f"{names} have not run on the same 2 or more seeds of any cell; there are {there}")
    _refuse(trials[~np.isfinite(trials["mae"])], "finite errors, got {mae} for {}")
    return trials


def _check_unique(trials: pd.DataFrame) -> None:
    repeated = trials[trials.duplicated([*CELL, "method", "seed"])]
    _refuse(repeated, "each method, N and seed of one dataset once, got {} twice")


def _refuse(wrong: pd.DataFrame, text: str) -> None:
    """Raise ValueError about the first of some trials, if there are any."""
    for _, row in wrong.iterrows():
        name = f"{row['method']!r} with N = {row['n_labeled']} and seed {row['seed']}"
        raise ValueError(f"trials must hold {text.format(name, mae=row['mae'])}")


def _numbers(row: Mapping[Any, Any]) -> str:
    return f"{row['mean_difference']:+.3g}, corrected p = {row['p_holm']:.2g}"


def _describe(row: Mapping[Any, Any], reference: str, base: float, n_cells: int, n_needed: int) -> str:
    share = f" ({row['mean_difference'] / base:+.1%})" if base else ""
    return (
        f"Against {reference} the MAE changes by {row['mean_difference']:+.3g} on average{share}, 95 % "
        f"interval {row['low']:+.3g} to {row['high']:+.3g}; it is lower on {row['n_better']} of "
        f"{row['n_seeds']} splits ({n_needed} or more can show something); p = {row['p_value']:.2g}, "
        f"{row['p_holm']:.2g} corrected for {n_cells} cell{'s' * (n_cells > 1)}."
    )


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
