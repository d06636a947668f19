"""Blocks of notebook 01: what pairs change in the trials that come with the package."""

import pandas as pd
from claims import change_of, tell_shown

from dmls2r_lite.study.benchmark import shipped_trials


def _compared(trials: pd.DataFrame, method: str, reference: str) -> str:
    return f"{method} against {reference}: {tell_shown(trials, method, reference)}."


def blocks() -> dict[str, str]:
    """Each by its name."""
    trials = shipped_trials()
    by_dataset = ", ".join(
        f"{name} {change_of(part, 'extra trees on pairs', 'extra trees'):+.1f} %"
        for name, part in trials.groupby("dataset", sort=False)
    )
    of_trees = _compared(trials, "extra trees on pairs", "extra trees")
    return {
        "pairs or labels": f"- {_compared(trials, 'step 1', 'MLP')}",
        "pairs of trees": f"- {of_trees} By dataset: {by_dataset}.",
    }
