"""The paper's tables with our trials beside them, and how often each of its claims holds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..data.catalog import DATASETS
from .benchmark import AS_PUBLISHED, BENCHMARK_DATASETS, HALF, N_LABELED, PLACEBOS, TRIALS
from .comparing import CELL, HELPED, HURT, RULE, give_verdict
from .trials import RESULTS

CAPTIONS = {  # by number and dataset
    (1, "superconductivity"): "step 1 alone against both steps, Superconductivity",
    (2, "superconductivity"): "Superconductivity",
    (3, "boston"): "Boston Housing",
    (4, AS_PUBLISHED): "Air Quality as published (-200 for a missing value stays in)",
    (4, "air_quality"): (
        "Air Quality without the rows and values that are missing; the paper's are of the other task"
    ),
}
MARKS = {"below": "▼", "within": "●", "above": "▲"}
LEGEND = (
    "Test MAE, mean ± standard deviation over seeds (in brackets how many, where not all have as many). "
    "The paper prints one number of unknown spread: ● it lies within the range of our seeds, "
    "▲ it is higher than all of them, ▼ lower than all. From the median on, models see no unlabeled samples."
)
CONTROLS = {
    "step 1 alone": "step 1",
    "step 1 with half the epochs": HALF,
    **{f"the {name.removeprefix('placebo ')} placebo": name for name in PLACEBOS if name != HALF},
    "joint training": "joint",
    "step 1 first, then step 2": "sequential",
    "step 2 first, then step 1": "sequential (step 2 first)",
}
LITERAL = " (literal)"  # only samples are scaled, and batches hold 8 pairs
BUDGETS = {  # method and reference of the paper's comparison, and of its two parts
    "both against step 1": ("DML-S2R", "step 1"),
    "of it halving": (HALF, "step 1"),
    "step 2 beyond that": ("DML-S2R", HALF),
}
BEATS = (
    f"To beat something means a lower error with {RULE}; cells are those of "
    "{datasets} with {sizes} labels, and with 100 in Table 1, also where fewer are counted. To be below is "
    "to have a lower mean only."
).format(datasets=", ".join(BENCHMARK_DATASETS), sizes=", ".join(map(str, N_LABELED)))


def paper_tables() -> pd.DataFrame:
    """MAE as printed in the paper: `table` (1 to 4), `dataset`, `method`, `n_labeled`, `mae`."""
    return pd.read_csv(RESULTS / "paper_tables.csv")


def reproduce_table(trials: pd.DataFrame, number: int, dataset: str | None = None) -> pd.DataFrame:
    """One of the paper's tables: our mean and spread beside each value, then what it lacks.

    That is the literal reading, in Table 1 also step 1 with half the epochs, and the plain models.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.
    number : int
        1 to 4.
    dataset : str, optional
        Another dataset of the trials to fill the table with.

    Returns
    -------
    pandas.DataFrame
        A row per method and N: `method`, `n_labeled`, `paper` (NaN for plain models), `mean`,
        `standard_deviation`, `n_seeds`, and `position`: whether the paper's value lies "below", "within"
        or "above" the range of our seeds.

    Raises
    ------
    ValueError
        If `number` is not one of the paper's.
    """
    from ..rivals.plain import plain_models

    printed = paper_tables().query("table == @number")
    if printed.empty:
        raise ValueError(f"number must be 1, 2, 3 or 4, got {number!r}")
    dataset = dataset or next(name for of_table, name in CAPTIONS if of_table == number)
    methods, sizes = list(printed["method"].unique()), printed["n_labeled"].unique()
    methods[1:1] = [HALF] if number == 1 else []
    methods += [f"{name}{LITERAL}" for name in methods if name.startswith(("DML-S2R", "step 1"))]
    methods += plain_models()
    rows = pd.MultiIndex.from_product([methods, sizes], names=["method", "n_labeled"])
    ours = trials[trials["dataset"] == dataset].groupby(rows.names)["mae"]
    table = ours.agg(mean="mean", standard_deviation="std", n_seeds="count", low="min", high="max")
    table = table.reindex(rows[rows.isin(table.index)])
    paper = printed.set_index(rows.names)["mae"]
    of_reading = paper.rename(lambda name: f"{name}{LITERAL}", level="method")
    paper = pd.concat([paper, of_reading]).reindex(table.index)
    lies = [paper < table["low"], paper > table["high"], paper.notna()]
    table = table.assign(position=np.select(lies, ["below", "above", "within"], ""))
    table.insert(0, "paper", paper)
    return table.drop(columns=["low", "high"]).reset_index()


def format_table(table: pd.DataFrame) -> pd.DataFrame:
    """Cells as texts, a row per method, two columns per N: ours and the paper's with its mark."""
    ours = table["mean"].map("{:.2f}".format) + " ± " + table["standard_deviation"].map("{:.2f}".format)
    if table["n_seeds"].min() < table["n_seeds"].max():
        ours += table["n_seeds"].map(" ({})".format)
    paper = table["paper"].map("{:.1f} ".format) + table["position"].map(MARKS)
    cells = pd.DataFrame({"N": ours, "paper, N": paper}).set_index([table["method"], table["n_labeled"]])
    wide = pd.DataFrame(cells.unstack("n_labeled")).sort_index(axis=1, level=1, sort_remaining=False)
    wide.columns = wide.columns.map("{0[0]} = {0[1]}".format)
    return wide.reindex(table["method"].unique()).fillna("")


def format_tables(trials: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Tables 1 to 4, Table 4 also with Air Quality cleaned, `split_gain` and the counts of `count_claims`.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.

    Returns
    -------
    list of (str, pandas.DataFrame)
        Title with its unit, and a table of texts, empty where there are no trials.
    """
    parts: list[tuple[str, pd.DataFrame]] = []
    for (number, dataset), text in CAPTIONS.items():
        table = reproduce_table(trials, number, dataset)
        if table.empty:
            parts.append((f"Table {number}: {text}: no trials", pd.DataFrame()))
            continue
        if dataset == "air_quality":  # not what the paper's are of
            table = table.assign(paper=float("nan"), position="")
        formatted = format_table(table)
        unit = DATASETS[dataset.removesuffix("_as_published")].unit
        parts.append((f"Table {number}: {text} [{unit}]", formatted.loc[:, (formatted != "").any()]))
    gains = format_gain(trials)
    if len(gains):
        gains.index = gains.index.map("{0[0]}, N = {0[1]}".format).rename("cell")
        parts.insert(1, ("Table 1 at equal budgets: change of the MAE, and the verdict with placebos", gains))
    claims = count_claims(trials)
    counts = claims.assign(cells=claims["holds"].astype(str) + " of " + claims["of"].astype(str))
    return [*parts, ("How often it holds", counts.set_index("claim")[["cells"]])]


def judge_benchmark(
    trials: pd.DataFrame, method: str, reference: str, ask_placebos: bool = True
) -> pd.DataFrame:
    """`give_verdict` on the benchmark's grid, whose cells are always judged together.

    The grid is every dataset of the benchmark with 10, 20 and 50 labels, and for the methods of Table 1
    Superconductivity with 100. Where the question is what step 2 adds (DML-S2R against step 1, in any
    setting), the placebos of that setting must be passed too: step 1 with half the epochs is one of them.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.
    method, reference : str
    ask_placebos : bool, default=True
        Whether they take part in the verdict.

    Returns
    -------
    pandas.DataFrame
        As from `give_verdict`, in the order of the grid.
    """
    named = trials[trials["dataset"].isin(BENCHMARK_DATASETS)]
    cells = named[["dataset", "method", "n_labeled"]].itertuples(index=False)
    grid = named[[n in TRIALS.sizes(dataset, name) for dataset, name, n in cells]]
    placebos: list[str] = []
    if ask_placebos and method.startswith("DML-S2R") and reference.startswith("step 1"):
        of_setting = [f"{name}{method.removeprefix('DML-S2R')}" for name in PLACEBOS]
        placebos = [name for name in of_setting if name in set(grid["method"]) - {reference}]
    return give_verdict(grid, method, reference, placebos).reindex(BENCHMARK_DATASETS, level="dataset")


def split_gain(trials: pd.DataFrame) -> pd.DataFrame:
    """What the paper's Table 1 compares, at equal budgets: of its gain the part that halving has.

    Both steps share their epochs, so that step 1 has half of them. The paper compares that with step 1 that
    has all; halving alone, and what step 2 adds to it, are the two parts.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.

    Returns
    -------
    pandas.DataFrame
        Index (`dataset`, `n_labeled`, `question`, one of `BUDGETS`); `change` of the mean MAE as a share of
        the reference's, `p_holm` and `verdict` of `judge_benchmark` without placebos, and where it is
        printed the `paper`'s change. Empty without trials of the three methods.
    """
    means = trials.pivot_table(index=CELL, columns="method", values="mae")
    if not {"DML-S2R", "step 1", HALF} <= set(means):
        return pd.DataFrame()
    parts = {}
    for question, (method, reference) in BUDGETS.items():
        judged = judge_benchmark(trials, method, reference, ask_placebos=False)
        change = (means[method] / means[reference] - 1).reindex(judged.index)
        parts[question] = judged[["p_holm", "verdict"]].assign(change=change)
    printed = paper_tables().query("table == 1").pivot(index=CELL, columns="method", values="mae")
    first = next(iter(BUDGETS))
    parts[first]["paper"] = (printed["DML-S2R"] / printed["step 1"] - 1).reindex(parts[first].index)
    return pd.concat(parts, names=["question"]).reorder_levels([*CELL, "question"])


def format_gain(trials: pd.DataFrame) -> pd.DataFrame:
    """`split_gain` as texts, a row per cell, with the paper's change and the verdict of `judge_benchmark`."""
    gains = split_gain(trials)
    if gains.empty:
        return gains
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")["verdict"]
    cells = gains["change"].map("{:+.1%}".format) + gains["p_holm"].map(" (p {:.2g})".format)
    table = cells.unstack("question").loc[verdicts.index, list(BUDGETS)].assign(verdict=verdicts)
    printed = gains["paper"].unstack("question")[next(iter(BUDGETS))].reindex(table.index)
    table.insert(0, "the paper", printed.map("{:+.1%}".format, na_action="ignore").fillna(""))
    return table


def count_claims(trials: pd.DataFrame) -> pd.DataFrame:
    """In how many cells of Tables 2 to 4 each claim holds for our trials, whatever the counts are.

    A cell is a dataset (Air Quality as published) with one N. To beat something means to be shown lower by
    `judge_benchmark`, without placebos; to be below, a lower mean only.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.

    Returns
    -------
    pandas.DataFrame
        `claim`, `holds` (cells), `of` (cells in which there are trials to judge it by).
    """
    from ..rivals.plain import plain_models

    printed = paper_tables().query("table > 1").replace({"dataset": {"air_quality": AS_PUBLISHED}})
    paper = printed.pivot(index=CELL, columns="method", values="mae")
    means = trials.pivot_table(index=CELL, columns="method", values="mae")
    paper, means = paper.align(means, join="inner", axis=0)
    three = means.reindex(columns=paper.columns)
    plain = means[[name for name in plain_models() if name in means]]
    ours, all_three, best = three["DML-S2R"], three.dropna(), plain.min(axis=1)
    # Of each claim whether it holds, for the cells in which there are trials to judge it by.
    claims = {}
    errors = trials.pivot_table(index=CELL, columns="method", values="mae", aggfunc="sem")
    for method in means.columns.intersection(["DML-S2R", f"DML-S2R{LITERAL}", "COREG", "MSSR"], sort=False):
        above = (means[method] - paper[method.removesuffix(LITERAL)]).dropna()
        claims[f"{method}: at or under the paper's MAE"] = above <= 0
        if method.startswith("DML-S2R"):
            within = (above > 0) & (above <= errors[method].reindex(above.index))
            claims[f"{method}: above it, by one standard error at most"] = within
    same_order = (all_three.rank(axis=1) == paper.rank(axis=1).loc[all_three.index]).all(axis=1)
    claims["the paper's order of DML-S2R, COREG and MSSR"] = same_order
    claims["DML-S2R has the lowest mean of the three"] = all_three["DML-S2R"] == all_three.min(axis=1)
    for text, reference in CONTROLS.items():
        if {"DML-S2R", reference} <= set(trials["method"]):
            verdicts = judge_benchmark(trials, "DML-S2R", reference, ask_placebos=False)["verdict"]
            verdicts = verdicts[verdicts.index.isin(paper.index)]
            claims[f"DML-S2R beats {text}"] = verdicts == HELPED
            claims[f"{text} beats DML-S2R"] = verdicts == HURT
    claims["DML-S2R is below the best plain model"] = (ours < best)[ours.notna() & best.notna()]
    complete = best[plain.notna().all(axis=1)].dropna()
    claims["a plain model is below the paper's DML-S2R"] = complete < paper["DML-S2R"].loc[complete.index]
    rows = [(claim, int(holds.sum()), len(holds)) for claim, holds in claims.items() if len(holds)]
    return pd.DataFrame(rows, columns=["claim", "holds", "of"])
