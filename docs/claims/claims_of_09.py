"""The numbers of notebook 09 that come from the shipped trials."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from claims import count_shown

from dmls2r_lite.study.comparing import HELPED, give_verdict
from dmls2r_lite.study.trials import AS_PUBLISHED, read_shipped

RANDOM, CHOSEN = "random", "chosen"
LEARNERS = ("DML-S2R", "extra trees", "extra trees on pairs", "Gaussian process", "ridge", "average")


@cache
def trials_of_six() -> pd.DataFrame:
    """Trials of the six learners, where the datasets are those with chosen rows."""
    trials = read_shipped("few_labels")
    return trials[trials["method"].isin(LEARNERS) & (trials["dataset"] != AS_PUBLISHED)]


@cache
def cells_of(way: str, reference: str) -> pd.DataFrame:
    """Of each dataset, learner and N the verdict and the mean log ratio of errors; judged together."""
    trials = trials_of_six()
    trials = trials[trials["choice"].isin([way, reference])]
    cell = ["dataset", "method", "n_labeled"]
    wide = trials.pivot(index=[*cell, "seed"], columns="choice", values="mae")
    change = np.log(wide[way] / wide[reference]).dropna().groupby(cell).mean()
    names = trials["dataset"] + "; " + trials["method"]
    verdicts = give_verdict(trials.assign(dataset=names, method=trials["choice"]), way, reference)["verdict"]
    found = [verdicts[f"{dataset}; {method}", n] for dataset, method, n in change.index]
    return pd.DataFrame({"change": change, "verdict": found})


def percent(logs: pd.Series) -> str:
    """The geometric mean of ratios, as a change."""
    return f"{100 * np.expm1(logs.mean()):+.1f} %"


def shown(cells: pd.DataFrame) -> str:
    """The mean change, and in how many cells a lower and a higher error is shown."""
    lower, higher = count_shown(cells["verdict"])
    return f"{percent(cells['change'])}, shown lower in {lower} and higher in {higher} of {len(cells)}"


def by_learner() -> str:
    """What choosing rows changes for each learner, by number of labels: README's table."""
    cells = cells_of(CHOSEN, RANDOM)
    sizes = cells.index.unique("n_labeled")
    rows = []
    for learner in LEARNERS:
        own = cells.xs(learner, level="method")
        changes = [f"{100 * np.expm1(part.mean()):+.0f} %" for _, part in own["change"].groupby("n_labeled")]
        lower, higher = count_shown(own["verdict"])
        rows.append(f"| {learner} | {' | '.join(changes)} | {lower} helped, {higher} hurt of {len(own)} |")
    n_datasets, n_splits = cells.index.unique("dataset").size, trials_of_six()["seed"].nunique()
    return "\n".join(
        [
            f"Change of the error where the rule chooses the rows to label in place of chance ({n_datasets} "
            f"datasets, {n_splits} splits each, geometric mean), and verdicts of the cells:",
            "",
            f"| learner | {' | '.join(f'N = {n}' for n in sizes)} | cells |",
            "| --- " * (len(sizes) + 2) + "|",
            *rows,
        ]
    )


def worth() -> str:
    """How many random labels have the error of so many chosen ones."""
    trials = trials_of_six()
    mae = np.log(trials.groupby(["choice", "n_labeled", "method", "dataset"])["mae"].mean())
    mean = mae.groupby(["choice", "n_labeled"]).mean()
    sizes, of_random = np.log(mean[RANDOM].index), mean[RANDOM].to_numpy()
    parts = []
    for n, error in mean[CHOSEN].items():
        place = min(max(np.sum(of_random > error) - 1, 0), len(sizes) - 2)
        slope = (of_random[place + 1] - of_random[place]) / (sizes[place + 1] - sizes[place])
        as_many = np.exp(sizes[place] + (error - of_random[place]) / slope)
        parts.append(f"{n} chosen labels are worth {as_many:.3g} random ones ({1 - n / as_many:.0%} saved)")
    return f"{', '.join(parts)}. (Beyond {n} labels the last line is drawn on.)"


def where_it_pays() -> str:
    """The change by dataset and over all, and the worst cell."""
    cells = cells_of(CHOSEN, RANDOM)
    parts = [
        f"- {name}: {percent(part['change'])}, shown in {(part['verdict'] == HELPED).sum()}, higher on "
        f"average in {(part['change'] > 0).sum()} of {len(part)}"
        for name, part in cells.groupby("dataset")
    ]
    dataset, learner, n = cells["change"].idxmax()
    both = pd.concat({way: cells_of(way, RANDOM)["change"] for way in (CHOSEN, "k-means")}, axis=1).dropna()
    return "\n".join(
        [
            f"Change of the error by choosing, in {len(cells)} cells: {shown(cells)}.",
            "",
            *parts,
            "",
            f"The worst is {dataset} with {learner} and N = {n}, "
            f"{100 * np.expm1(cells['change'].max()):+.0f} %. $k$-means: {percent(both['k-means'])} in "
            f"{len(both)} cells, where the rule has {percent(both[CHOSEN])}.",
        ]
    )


def spaces() -> str:
    """Networks' spaces against the features, and against each other."""
    questions = {
        "metric space against features": ("metric space", "input space"),
        "untrained network against features": ("untrained space", "input space"),
        "metric space against untrained network": ("metric space", "untrained space"),
    }
    return "\n".join(f"- {name}: {shown(cells_of(*ways))}" for name, ways in questions.items())


def held_out_errors() -> str:
    """Mean error on labels left out, relative to the one on test rows."""
    trials = read_shipped("few_labels").dropna(subset=["expected"])
    trials = trials[trials["choice"].isin([RANDOM, CHOSEN]) & (trials["dataset"] != AS_PUBLISHED)]
    ratios = np.log(trials["expected"] / trials["mae"])
    means = np.exp(ratios.groupby([trials["method"], trials["choice"]]).mean()).unstack("choice")
    return "\n".join(
        f"- {name}: on random rows {row[RANDOM]:.2f}, on chosen ones {row[CHOSEN]:.2f}"
        for name, row in means.iterrows()
    )


def blocks() -> dict[str, str]:
    """Each block of the notebook, by name."""
    return {
        "few labels": by_learner(),
        "worth": worth(),
        "where choosing pays": where_it_pays(),
        "spaces": spaces(),
        "held-out errors": held_out_errors(),
    }
