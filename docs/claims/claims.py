"""The texts' numbers that come from the shipped trials: `python docs/claims/claims.py` writes them anew."""

import importlib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dmls2r_lite.study.benchmark import AS_PUBLISHED, HALF, PLACEBOS, shipped_trials
from dmls2r_lite.study.comparing import CELL, HELPED, HURT, VERDICTS, tally_verdicts
from dmls2r_lite.study.reproduction import (
    BEATS,
    BUDGETS,
    LITERAL,
    count_claims,
    judge_benchmark,
    paper_tables,
    split_gain,
)

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", ROOT / "docs" / "results.md", *sorted((ROOT / "notebooks").glob("*.ipynb"))]
MODULES = sorted(path.stem for path in Path(__file__).parent.glob("claims_of_*.py"))  # of single notebooks
BLOCK = re.compile(r"(<!-- rows: (.+?) -->\n)(.*?)(<!-- end -->)", flags=re.S)
NAMES = {
    "boston": "Boston Housing [1000 USD]",
    "superconductivity": "Superconductivity [K]",
    AS_PUBLISHED: "Air Quality as published [µg/m³]",
    "air_quality": "Air Quality [µg/m³]",
}
CLAIMS = {
    "our mean is at or under the paper's: DML-S2R, DML-S2R (literal), COREG, MSSR": [
        f"{method}: at or under the paper's MAE"
        for method in ("DML-S2R", f"DML-S2R{LITERAL}", "COREG", "MSSR")
    ],
    "it is above, by one standard error at most: DML-S2R, DML-S2R (literal)": [
        f"{method}: above it, by one standard error at most" for method in ("DML-S2R", f"DML-S2R{LITERAL}")
    ],
    "DML-S2R has the lowest mean of the three; the order of all three is the paper's": [
        "DML-S2R has the lowest mean of the three",
        "the paper's order of DML-S2R, COREG and MSSR",
    ],
    "DML-S2R beats step 1 alone; step 1 alone beats DML-S2R": [
        "DML-S2R beats step 1 alone",
        "step 1 alone beats DML-S2R",
    ],
    "DML-S2R beats step 1 with half the epochs; that beats DML-S2R": [
        "DML-S2R beats step 1 with half the epochs",
        "step 1 with half the epochs beats DML-S2R",
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


def mean_errors(trials: pd.DataFrame) -> pd.DataFrame:
    """The mean MAE of each cell, a column per method."""
    return trials.pivot_table(index=CELL, columns="method", values="mae")


def change_of(trials: pd.DataFrame, method: str, reference: str) -> float:
    """Change of the error, the geometric mean over cells, in percent."""
    mae = mean_errors(trials)
    return 100 * np.expm1(np.log(mae[method] / mae[reference]).mean())


def count_shown(verdicts: pd.Series) -> tuple[int, int]:
    """In how many cells a lower, and in how many a higher error is shown."""
    return int((verdicts == HELPED).sum()), int((verdicts == HURT).sum())


def expected_errors(trials: pd.DataFrame) -> str:
    """In each cell the MAE of step 1, with half the epochs too, of both steps, the verdict, the paper's."""
    paper = paper_tables().query("method == 'DML-S2R'").replace({"dataset": {"air_quality": AS_PUBLISHED}})
    paper = paper.drop_duplicates(["dataset", "n_labeled"]).set_index(["dataset", "n_labeled"])["mae"]
    mae = mean_errors(trials)
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
    rows = [
        " | ".join(
            [
                f"| {NAMES[name]} | {n}",
                *(f"{mae.loc[(name, n), method]:.2f}" for method in ("step 1", HALF, "DML-S2R")),
                f"{verdict} | {paper.get((name, n), '–')} |",
            ]
        )
        for (name, n), verdict in verdicts["verdict"].items()
    ]
    heading = (
        "| dataset | labels | step 1, 30 epochs | step 1, 15 | both steps, 15 and 15 | did step 2 help? | "
        "the paper's, both steps |"
    )
    return "\n".join([heading, "| --- " * 7 + "|", *rows, "", summary(trials)])


def summary(trials: pd.DataFrame) -> str:
    """How often step 2 helped, and what it does beyond half the epochs."""
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
    lower, higher = count_shown(judge_benchmark(trials, "DML-S2R", HALF, ask_placebos=False)["verdict"])
    beyond = f"lower in {lower}, higher in {higher}"
    return f"Step 2: {tally_verdicts(verdicts, where=False)}; against half the epochs {beyond}."


def _in_percent(changes: pd.Series) -> str:
    *first, last = (f"{100 * change:+.1f}" for change in changes)
    return f"{', '.join(first)} and {last} %"


def gain(trials: pd.DataFrame) -> str:
    """The paper's gain on its Table 1, ours, and its parts."""
    gains = split_gain(trials).loc["superconductivity"]
    both, half, beyond = (gains.xs(question, level="question") for question in BUDGETS)
    *sizes, last = map(str, both.index)
    return (
        f"With {', '.join(sizes)} and {last} labels, 15 epochs of each step change the error of 30 epochs of "
        f"step 1 by {_in_percent(both['change'])} on Superconductivity (the paper: "
        f"{_in_percent(both['paper'])}). Step 1 alone with 15 epochs changes it by "
        f"{_in_percent(half['change'])}; what step 2 adds to that is {_in_percent(beyond['change'])}."
    )


def gain_in_short(trials: pd.DataFrame) -> str:
    """The same in one sentence."""
    both, half, _ = (split_gain(trials)["change"].xs(question, level="question") for question in BUDGETS)
    both, half = (_in_percent(changes.loc["superconductivity"]) for changes in (both, half))
    return (
        f"On Superconductivity 15 epochs of each step change the error of 30 epochs of step 1 by {both} "
        f"(10, 20, 50, 100 labels), and 15 epochs of step 1 alone by {half}."
    )


def tell_shown(trials: pd.DataFrame, method: str, reference: str) -> str:
    """In how many cells a lower and a higher error is shown, and the mean change."""
    verdicts = judge_benchmark(trials, method, reference, ask_placebos=False)["verdict"]
    lower, higher = count_shown(verdicts)
    change = change_of(trials, method, reference)
    return f"lower in {lower} of {len(verdicts)} cells, higher in {higher}, {change:+.1f} %"


def budgets(trials: pd.DataFrame) -> str:
    """In how many cells both steps, half the epochs, and what step 2 adds to that have another error."""
    items = [f"- {question}: {tell_shown(trials, *arms)};" for question, arms in BUDGETS.items()]
    verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
    return "\n".join(
        [
            "Over all cells (shown lower or higher, and the change of the error, a geometric mean):",
            "",
            *items,
            f"- the verdict with placebos: {tally_verdicts(verdicts, where=False)}.",
        ]
    )


def placebos(trials: pd.DataFrame) -> str:
    """How both steps stand against each placebo."""
    return "\n".join(
        f"- both steps against **{name.removeprefix('placebo ')}**: {tell_shown(trials, 'DML-S2R', name)};"
        for name in PLACEBOS
        if name != HALF
    )


def literal(trials: pd.DataFrame) -> str:
    """How the literal reading stands against the paper, and what step 2 does in it."""
    claims, name = count_claims(trials).set_index("claim")["holds"], f"DML-S2R{LITERAL}"
    under, within = (
        [claims[f"{reading}: {place}"] for reading in (name, "DML-S2R")]
        for place in ("at or under the paper's MAE", "above it, by one standard error at most")
    )
    mae = mean_errors(trials)
    table_1 = mae.loc["superconductivity"]
    both, half = (table_1[f"{arm}{LITERAL}"] / table_1[f"step 1{LITERAL}"] - 1 for arm in ("DML-S2R", HALF))
    beyond = tell_shown(trials, name, f"{HALF}{LITERAL}")
    return (
        f"The literal reading is at or under the paper's number in {under[0]} of 9 cells and within one "
        f"standard error of it in {within[0]} more, the default in {under[1]} and {within[1]}. Against step "
        "1 with half the epochs, read in the same way, both steps of the literal reading are "
        f"{beyond}. On Superconductivity they change the error of its step 1 by {_in_percent(both)} (10, 20, "
        f"50, 100 labels), half the epochs alone by {_in_percent(half)}."
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


@cache
def blocks() -> dict[str, str]:
    """Each block of a text between `<!-- rows: NAME -->` and `<!-- end -->`."""
    trials = shipped_trials()
    return {
        "errors": expected_errors(trials),
        "claims": counted_claims(trials),
        "summary": summary(trials),
        "gain": gain(trials),
        "gain in short": gain_in_short(trials),
        "budgets": budgets(trials),
        "placebos": placebos(trials),
        "literal": literal(trials),
        **{
            name: block
            for module in MODULES
            for name, block in importlib.import_module(module).blocks().items()
        },
    }


def texts_of(path: Path) -> list[str]:
    """A text, or each cell of a notebook."""
    if path.suffix != ".ipynb":
        return [path.read_text()]
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]


def renew(path: Path) -> None:
    """Write the blocks of a file anew."""

    def written(text: str) -> str:
        return BLOCK.sub(lambda found: f"{found[1]}{blocks()[found[2]]}\n{found[4]}", text)

    if path.suffix != ".ipynb":
        path.write_text(written(path.read_text()))
        return
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = written("".join(cell["source"])).splitlines(keepends=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for path in FILES:
        renew(path)
    print(f"They say what the shipped trials say: {', '.join(VERDICTS)}")
