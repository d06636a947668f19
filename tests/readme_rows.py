"""The texts' numbers that come from the shipped trials: `python tests/readme_rows.py` writes them anew."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dmls2r_lite.study.benchmark import AS_PUBLISHED, shipped_trials
from dmls2r_lite.study.comparing import VERDICTS, give_verdict, tally_verdicts
from dmls2r_lite.study.few_labels import CHOSEN, RANDOM, shipped_few_labels
from dmls2r_lite.study.reproduction import BEATS, count_claims, judge_benchmark, paper_tables

ROOT = Path(__file__).parents[1]
FILES = {  # where each block stands
    "errors": ROOT / "docs" / "results.md",
    "claims": ROOT / "docs" / "results.md",
    "few labels": ROOT / "README.md",
    "summary": ROOT / "README.md",
}
NAMES = {
    "boston": "Boston Housing [1000 USD]",
    "superconductivity": "Superconductivity [K]",
    AS_PUBLISHED: "Air Quality as published [µg/m³]",
    "air_quality": "Air Quality [µg/m³]",
}
LEARNERS = ("DML-S2R", "extra trees", "extra trees on pairs", "Gaussian process", "ridge", "average")
CLAIMS = {
    "our mean is at or under the paper's: DML-S2R, COREG, MSSR": [
        f"{method}: at or under the paper's MAE" for method in ("DML-S2R", "COREG", "MSSR")
    ],
    "DML-S2R has the lowest mean of the three; the order of all three is the paper's": [
        "DML-S2R has the lowest mean of the three",
        "the paper's order of DML-S2R, COREG and MSSR",
    ],
    "DML-S2R beats step 1 alone; step 1 alone beats DML-S2R": [
        "DML-S2R beats step 1 alone",
        "step 1 alone beats DML-S2R",
    ],
    "DML-S2R beats the placebo without a loss, with random triplets, with swapped sets": [
        f"DML-S2R beats the {name} placebo" for name in ("null", "random", "swapped")
    ],
    "the placebo without a loss, with random triplets, with swapped sets beats DML-S2R": [
        f"the {name} placebo beats DML-S2R" for name in ("null", "random", "swapped")
    ],
    "DML-S2R beats joint training; all of step 1 and then all of step 2; the reverse": [
        f"DML-S2R beats {other}"
        for other in ("joint training", "step 1 first, then step 2", "step 2 first, then step 1")
    ],
    "DML-S2R has a lower mean than the best of thirteen plain models": [
        "DML-S2R is below the best plain model"
    ],
    "some plain model has a lower mean than the paper prints for DML-S2R": [
        "a plain model is below the paper's DML-S2R"
    ],
}


def expected_errors(trials: pd.DataFrame) -> str:
    """MAE of step 1 and of both steps in each cell of the grid, the paper's, and the verdict."""
    paper = paper_tables().query("method == 'DML-S2R'").replace({"dataset": {"air_quality": AS_PUBLISHED}})
    paper = paper.drop_duplicates(["dataset", "n_labeled"]).set_index(["dataset", "n_labeled"])["mae"]
    mae = trials.pivot_table(index=["dataset", "n_labeled"], columns="method", values="mae")
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
    rows = [
        f"| {NAMES[name]} | {n} | {mae.loc[(name, n), 'step 1']:.2f} | {mae.loc[(name, n), 'DML-S2R']:.2f} | "
        f"{verdict} | {paper.get((name, n), '–')} |"
        for (name, n), verdict in verdicts["verdict"].items()
    ]
    heading = "| dataset | labels | step 1 alone | both steps | did step 2 help? | the paper's, both steps |"
    return "\n".join([heading, "| --- " * 6 + "|", *rows, "", summary(trials)])


def summary(trials: pd.DataFrame) -> str:
    """How often step 2 helped, and our means are above the paper's."""
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
    named = verdicts.rename(index={name: text.split(" [")[0] for name, text in NAMES.items()})
    claims = count_claims(trials).set_index("claim")
    at_or_under = claims.loc["DML-S2R: at or under the paper's MAE"]
    return (
        f"Step 2: {tally_verdicts(named)}. Our mean is above the paper's in "
        f"{at_or_under['of'] - at_or_under['holds']} of {at_or_under['of']} cells."
    )


def counted_claims(trials: pd.DataFrame) -> str:
    """In how many of the nine cells of Tables 2 to 4 each claim holds, and what it means to beat."""
    counts = count_claims(trials).set_index("claim")
    rows = [
        f"| {text} | {', '.join(str(counts.loc[claim, 'holds']) for claim in claims)} of "
        f"{counts.loc[claims[0], 'of']} |"
        for text, claims in CLAIMS.items()
    ]
    return "\n".join(["| claim | cells |", "| --- | --- |", *rows, "", BEATS])


def few_labels(trials: pd.DataFrame) -> str:
    """What choosing rows changes for each learner, by number of labels."""
    # The question of notebook 09: the cells of all learners are judged together.
    trials = trials[trials["method"].isin(LEARNERS) & trials["choice"].isin([RANDOM, CHOSEN])]
    cell = ["dataset", "method", "n_labeled"]
    both = trials.pivot(index=[*cell, "seed"], columns="choice", values="mae")
    change = np.log(both[CHOSEN] / both[RANDOM]).dropna().groupby(cell).mean()
    names = trials["dataset"] + ", " + trials["method"]
    verdicts = give_verdict(trials.assign(dataset=names, method=trials["choice"]), CHOSEN, RANDOM)
    rows = []
    for learner in LEARNERS:
        means = change.xs(learner, level="method").groupby("n_labeled").mean()
        own = verdicts[[name.endswith(f", {learner}") for name in verdicts.index.get_level_values(0)]]
        counts = own["verdict"].value_counts()
        shown = f"{counts.get('helped', 0)} helped, {counts.get('hurt', 0)} hurt of {len(own)}"
        rows.append(f"| {learner} | {' | '.join(f'{100 * np.expm1(v):+.0f} %' for v in means)} | {shown} |")
    n_datasets = change.index.get_level_values("dataset").nunique()
    sizes = sorted(trials["n_labeled"].unique())
    return "\n".join(
        [
            f"Change of the error where the rule chooses the rows to label in place of chance ({n_datasets} "
            f"datasets, {trials['seed'].nunique()} splits each, geometric mean), and verdicts of the cells:",
            "",
            f"| learner | {' | '.join(f'N = {n}' for n in sizes)} | cells |",
            "| --- " * (len(sizes) + 2) + "|",
            *rows,
        ]
    )


@cache
def blocks() -> dict[str, str]:
    """Each block of a text between `<!-- rows: NAME -->` and `<!-- end -->`."""
    trials = shipped_trials()
    return {
        "errors": expected_errors(trials),
        "claims": counted_claims(trials),
        "few labels": few_labels(shipped_few_labels()),
        "summary": summary(trials),
    }


if __name__ == "__main__":
    for name, block in blocks().items():
        before, start, rest = FILES[name].read_text().partition(f"<!-- rows: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert end, name
        FILES[name].write_text(f"{before}{start}{block}\n{end}{after}")
    print(f"They say what the shipped trials say: {', '.join(VERDICTS)}")
