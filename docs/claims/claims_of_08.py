"""The numbers of notebook 08 that come from the shipped trials."""

from __future__ import annotations

import pandas as pd

from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.trials import RESULTS

UNITS = {"angle": "°", "ink growth": " pixels"}
QUESTIONS = {
    "step 2 (both steps against step 1, beside half the epochs and the placebo)": (
        "both steps",
        "step 1 alone",
        ["half the epochs", "placebo"],
    ),
    "half the epochs against step 1": ("half the epochs", "step 1 alone", []),
    "placebo against step 1": ("placebo", "step 1 alone", []),
    "pairs (step 1 against the same, unpaired)": ("step 1 alone", "step 1, unpaired", []),
    "two regressions (unpaired against the plain CNN)": ("step 1, unpaired", "plain CNN", []),
    "step 1 against the plain CNN": ("step 1 alone", "plain CNN", []),
}


def errors(trials: pd.DataFrame) -> str:
    """The mean error of each way to train, the lowest angle first."""
    mae = trials.pivot_table(index="method", columns="target", values="mae").sort_values("angle")
    return "\n".join(
        f"- {method}: {row['angle']:.2f}° and {row['ink growth']:.4f} pixels"
        for method, row in mae.iterrows()
    )


def verdicts(trials: pd.DataFrame) -> str:
    """What each question's verdicts are, for both targets."""
    by_target = trials.assign(dataset=trials["target"])  # two cells of one question
    lines = []
    for question, (method, reference, placebos) in QUESTIONS.items():
        table = give_verdict(by_target, method, reference, placebos).droplevel("n_labeled")
        parts = [
            f"{target} {row['mean_difference']:+.3g}{UNITS[str(target)]}, *{row['verdict']}*"
            for target, row in table.iterrows()
        ]
        lines.append(f"- **{question}**: {'; '.join(parts)}")
    return "\n".join(lines)


def blocks() -> dict[str, str]:
    """Each block of the notebook, by name."""
    trials = pd.read_csv(RESULTS / "images.csv")
    by_target = trials.assign(dataset=trials["target"])
    asked = {
        "Pairs (step 1 against unpaired)": ("step 1 alone", "step 1, unpaired", []),
        "unlabeled images (both steps against step 1, with its controls)": next(iter(QUESTIONS.values())),
    }
    found = [
        f"{what}: {' and '.join(f'*{verdict}*' for verdict in give_verdict(by_target, *question)['verdict'])}"
        for what, question in asked.items()
    ]
    return {
        "images, errors": errors(trials),
        "images, verdicts": verdicts(trials),
        "images, in short": f"- What is each part worth, for angle and ink growth? {'; '.join(found)}.",
    }
