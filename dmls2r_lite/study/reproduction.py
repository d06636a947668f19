"""The paper's tables with our trials beside them, and how often each of its claims holds."""

from __future__ import annotations

from importlib import resources

import pandas as pd

from ..data.catalog import DATASETS
from .benchmark import AS_PUBLISHED, BENCHMARK_DATASETS, N_LABELED
from .comparing import HELPED, HURT, RULE, give_verdict

CAPTIONS = {
    1: "step 1 alone against both steps, Superconductivity",
    2: "Superconductivity",
    3: "Boston Housing",
    4: "Air Quality as published (-200 for a missing value stays in)",
}
CLEANED = "Air Quality without the rows and values that are missing; the paper's are of the other task"
MARKS = {"below": "▼", "within": "●", "above": "▲"}
LEGEND = (
    "Test MAE, mean ± standard deviation over seeds (in brackets how many, where not all have as many). "
    "The paper prints one number of unknown spread: ● it lies within the range of our seeds, "
    "▲ it is higher than all of them, ▼ lower than all. From the median on, models see no unlabeled samples."
)
CONTROLS = {
    "step 1 alone": "step 1",
    "the null placebo": "placebo null",
    "the random placebo": "placebo random",
    "the swapped placebo": "placebo swapped",
    "joint training": "joint",
    "step 1 first, then step 2": "sequential",
    "step 2 first, then step 1": "sequential (step 2 first)",
}
PLACEBOS = ("null", "random", "swapped")
BEATS = (
    f"To beat something means a lower error with {RULE}; cells are those of "
    "{datasets} with {sizes} labels, also where fewer are counted. To be below is to have a lower mean only."
).format(datasets=", ".join(BENCHMARK_DATASETS), sizes=", ".join(map(str, N_LABELED)))


def paper_tables() -> pd.DataFrame:
    """MAE as printed in the paper: `table` (1 to 4), `dataset`, `method`, `n_labeled`, `mae`."""
    with resources.files(__package__).joinpath("results/paper_tables.csv").open() as file:
        return pd.read_csv(file)


def reproduce_table(trials: pd.DataFrame, number: int, dataset: str | None = None) -> pd.DataFrame:
    """One of the paper's tables: our mean and spread beside each value, then the plain models.

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
    printed = paper_tables().query("table == @number")
    if printed.empty:
        raise ValueError(f"number must be 1, 2, 3 or 4, got {number!r}")
    from ..rivals.plain import plain_models

    of_paper = printed["dataset"].iloc[0]
    dataset = dataset or (AS_PUBLISHED if of_paper == "air_quality" else of_paper)
    of_dataset = trials[trials["dataset"] == dataset].groupby(["method", "n_labeled"])["mae"]
    methods = list(printed["method"].unique())
    values = printed.set_index(["method", "n_labeled"])["mae"]
    rows = []
    for method in [*methods, *plain_models()]:
        for n in printed["n_labeled"].unique():
            if (method, n) in of_dataset.groups:
                mae = of_dataset.get_group((method, n))
                paper = values.get((method, n), float("nan"))
                position = "below" if paper < mae.min() else "above" if paper > mae.max() else "within"
                rows.append(
                    {
                        "method": method,
                        "n_labeled": n,
                        "paper": paper,
                        "mean": mae.mean(),
                        "standard_deviation": mae.std(),
                        "n_seeds": len(mae),
                        "position": "" if pd.isna(paper) else position,
                    }
                )
    columns = ["method", "n_labeled", "paper", "mean", "standard_deviation", "n_seeds", "position"]
    return pd.DataFrame(rows, columns=columns)


def format_table(table: pd.DataFrame) -> pd.DataFrame:
    """Cells as texts, a row per method, two columns per N: ours and the paper's with its mark."""
    same = table["n_seeds"].min() == table["n_seeds"].max()
    wide = {}
    for n, part in table.groupby("n_labeled"):
        part = part.set_index("method")
        ours = part["mean"].map("{:.2f}".format) + " ± " + part["standard_deviation"].map("{:.2f}".format)
        wide[f"N = {n}"] = ours if same else ours + part["n_seeds"].map(" ({})".format)
        marked = part["paper"].map("{:.1f} ".format) + part["position"].map(MARKS)
        wide[f"paper, N = {n}"] = marked.where(part["paper"].notna())
    formatted = pd.DataFrame(wide).reindex(table["method"].unique())
    return formatted.fillna("").rename_axis("method")


def format_tables(trials: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Tables 1 to 4, Table 4 also with Air Quality cleaned, and the counts of `count_claims`.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `read_trials` or `shipped_trials`.

    Returns
    -------
    list of (str, pandas.DataFrame)
        Title with its unit, and a table of texts, empty where there are no trials.
    """
    wanted: list[tuple[int, str | None, str]] = [(number, None, text) for number, text in CAPTIONS.items()]
    wanted.append((4, "air_quality", CLEANED))
    parts: list[tuple[str, pd.DataFrame]] = []
    for number, dataset, text in wanted:
        unit = DATASETS[dataset or paper_tables().query("table == @number")["dataset"].iloc[0]].unit
        table = reproduce_table(trials, number, dataset)
        if len(table):
            if dataset:
                table = table.assign(paper=float("nan"), position="")
            formatted = format_table(table)
            parts.append((f"Table {number}: {text} [{unit}]", formatted.loc[:, (formatted != "").any()]))
        else:
            parts.append((f"Table {number}: {text}: no trials", pd.DataFrame()))
    claims = count_claims(trials)
    counts = claims.assign(cells=claims["holds"].astype(str) + " of " + claims["of"].astype(str))
    return [*parts, ("How often it holds", counts.set_index("claim")[["cells"]])]


def judge_benchmark(
    trials: pd.DataFrame, method: str, reference: str, ask_placebos: bool = True
) -> pd.DataFrame:
    """`give_verdict` on the benchmark's grid, whose cells are always judged together.

    The grid is every dataset of the benchmark with 10, 20 and 50 labels. Where the question is what step 2
    adds (DML-S2R against step 1, in any setting), the placebos of that setting must be passed too.

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
    grid = trials[trials["dataset"].isin(BENCHMARK_DATASETS) & trials["n_labeled"].isin(N_LABELED)]
    placebos: list[str] = []
    if ask_placebos and method.startswith("DML-S2R") and reference.startswith("step 1"):
        setting = method.removeprefix("DML-S2R")
        arms = set(grid["method"])
        placebos = [name for kind in PLACEBOS if (name := f"placebo {kind}{setting}") in arms]
    verdicts = give_verdict(grid, method, reference, placebos)
    order = [(name, n) for name in BENCHMARK_DATASETS for n in N_LABELED]
    return verdicts.reindex([cell for cell in order if cell in verdicts.index])


def relate_to_benchmark(verdicts: pd.DataFrame, benchmark: pd.DataFrame, dataset: str) -> str:
    """How the verdicts of a run of one's own stand beside those of the benchmark's trials.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        From `give_verdict`, of one dataset.
    benchmark : pandas.DataFrame
        From `judge_benchmark`, for the same question.
    dataset : str
        The benchmark's name of that dataset.

    Returns
    -------
    str
        Sentences in Markdown, one per N that both have; or that there is none.
    """
    own = verdicts.droplevel("dataset").to_dict("index")
    of_dataset = benchmark[benchmark.index.get_level_values("dataset") == dataset]
    lines = []
    for n, row in of_dataset.droplevel("dataset").to_dict("index").items():
        if n in own:
            if own[n]["verdict"] == row["verdict"]:
                beside = f"and by the {own[n]['n_seeds']} of this run"
            else:
                beside = (
                    f"{own[n]['verdict']} by the {own[n]['n_seeds']} of this run (keep the former: more "
                    "splits, and all cells judged together)"
                )
            lines.append(
                f"- **N = {n}: {row['verdict']}** by the {row['n_seeds']} splits that come with the package, "
                f"{beside}. {row['sentence']}"
            )
    return "\n".join(lines) or "The trials that come with the package have no such cell."


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
    cells = printed.pivot(index=["dataset", "n_labeled"], columns="method", values="mae")
    means = trials.pivot_table(index=["dataset", "n_labeled"], columns="method", values="mae")
    means = means.reindex(cells.index.intersection(means.index))
    paper = cells.loc[means.index]
    rows: list[tuple[str, int, int]] = []

    def count(claim: str, holds: pd.Series, judged: pd.Series) -> None:
        if judged.any():
            rows.append((claim, int((holds & judged).sum()), int(judged.sum())))

    for method in ("DML-S2R", "COREG", "MSSR"):
        if method in means:
            count(
                f"{method}: at or under the paper's MAE",
                means[method] <= paper[method],
                means[method].notna(),
            )
    if set(paper) <= set(means):
        ours = means[list(paper)]
        same_order = (ours.rank(axis=1) == paper.rank(axis=1)).all(axis=1)
        count("the paper's order of DML-S2R, COREG and MSSR", same_order, ours.notna().all(axis=1))
        count(
            "DML-S2R has the lowest mean of the three",
            ours.idxmin(axis=1) == "DML-S2R",
            ours.notna().all(axis=1),
        )
    for text, reference in CONTROLS.items():
        if {"DML-S2R", reference} <= set(means):
            verdicts = judge_benchmark(trials, "DML-S2R", reference, ask_placebos=False)["verdict"]
            verdicts = verdicts[verdicts.index.isin(cells.index)]
            everywhere = pd.Series(True, index=verdicts.index)
            count(f"DML-S2R beats {text}", verdicts == HELPED, everywhere)
            count(f"{text} beats DML-S2R", verdicts == HURT, everywhere)
    plain = [name for name in plain_models() if name in means]
    if plain and "DML-S2R" in means:
        count("DML-S2R is below the best plain model",
              means["DML-S2R"] < means[plain].min(axis=1), means["DML-S2R"].notna())  # fmt: skip
        count("a plain model is below the paper's DML-S2R",
              means[plain].min(axis=1) < paper["DML-S2R"], means[plain].notna().all(axis=1))  # fmt: skip
    return pd.DataFrame(rows, columns=["claim", "holds", "of"])
