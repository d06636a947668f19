"""The numbers of notebook 11 that come from the shipped trials."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pandas as pd
from claims import change_of, count_shown
from claims_of_09 import CHOSEN, RANDOM, cells_of, percent

from dmls2r_lite.study.benchmark import HALF
from dmls2r_lite.study.comparing import HELPED, VERDICTS, give_verdict
from dmls2r_lite.study.trials import read_shipped

PEERS = "peers x 7"
LOSSES = ("ranked list", "Rank-N-Contrast", "log-ratio", "loop consistency", "barycentre", PEERS)
STOPPED_STEP_1 = "step 1 stopped"


@cache
def trials() -> pd.DataFrame:
    """The shipped ones, with the kind of rows in a method's name if they are not real ones."""
    shipped = read_shipped("newer_losses")
    arms = shipped["method"] + " (" + shipped["rows"] + ")"
    return shipped.assign(method=arms.str.removesuffix(" (real)"))


@cache
def found(method: str, reference: str) -> tuple[str, int, int]:
    """The mean change, and in how many cells a lower and a higher error is shown."""
    lower, higher = count_shown(give_verdict(trials(), method, reference)["verdict"])
    return f"{change_of(trials(), method, reference):+.1f}", lower, higher


def shown(method: str, reference: str) -> str:
    """The same for a cell of a table."""
    return "{}, {}/{}".format(*found(method, reference))


def told(method: str, reference: str) -> str:
    """The same in words."""
    return "{} %, lower in {}, higher in {}".format(*found(method, reference))


def of_peers(loss: str, step_1: str) -> str:
    """Step 1 of as many networks as the loss has."""
    return f"{step_1} x 7" if loss == PEERS else step_1


def each_loss() -> str:
    """Each loss against step 1, against half the epochs, and against itself on shuffled rows."""
    lines = []
    for loss in LOSSES:
        shuffled, noise = (f"{loss} ({rows})" for rows in ("shuffled", "noise"))
        half = of_peers(loss, HALF)
        against = [shown(loss, other) for other in (of_peers(loss, "step 1"), half, shuffled)]
        on_other = [f"{change_of(trials(), arm, half):+.1f}" for arm in (shuffled, noise)]
        lines.append(f"| {' | '.join([loss, *against, *on_other])} |")
    n_cells = trials().groupby(["dataset", "n_labeled"]).ngroups
    return "\n".join(
        [
            f"Change of the error in %, and in how many of {n_cells} cells a lower/a higher one is shown:",
            "",
            "| loss | against step 1 | against half | against itself, shuffled rows | "
            "on shuffled rows against half | on noise |",
            "| --- " * 6 + "|",
            *lines,
        ]
    )


def verdicts() -> str:
    """The verdicts of all cells, with half the epochs and shuffled rows as placebos."""
    total: Counter[str] = Counter()
    beyond = []
    for loss in LOSSES:
        half, shuffled = of_peers(loss, HALF), f"{loss} (shuffled)"
        total.update(give_verdict(trials(), loss, of_peers(loss, "step 1"), [half, shuffled])["verdict"])
        n_helped = (give_verdict(trials(), loss, half, [shuffled])["verdict"] == HELPED).sum()
        beyond += [f"{loss} in {n_helped}"] if n_helped else []
    counts = ", ".join(f"*{verdict}* in {total[verdict]}" for verdict in VERDICTS)
    return (
        f"The verdict against step 1, with half the epochs and shuffled rows as placebos, over all "
        f"{total.total()} cells, those of each loss judged together: {counts}. Against half the epochs, with "
        f"shuffled rows as the placebo, "
        f"*helped*: {', '.join(beyond) or 'nowhere'} of {total.total() // len(LOSSES)}. Rank-N-Contrast on "
        f"the labels alone, against half the epochs: {told('Rank-N-Contrast on labels', HALF)}."
    )


def stopping() -> str:
    """Step 1 stopped early, and the barycentre beside it."""
    return "\n".join(
        [
            "In these 15 cells:",
            "",
            f"- half the epochs, against step 1: {told(HALF, 'step 1')}",
            f"- stopped by cross-validation, against step 1: {told(STOPPED_STEP_1, 'step 1')}",
            f"- barycentre, against step 1 stopped: {told('barycentre', STOPPED_STEP_1)}",
            f"- barycentre stopped, against step 1 stopped: {told('barycentre stopped', STOPPED_STEP_1)}",
            f"- seven networks of step 1, against one: {told('step 1 x 7', 'step 1')}",
        ]
    )


def choosing() -> str:
    """What choosing the rows to label changes for DML-S2R."""
    change = percent(cells_of(CHOSEN, RANDOM).xs("DML-S2R", level="method")["change"])
    return f"To choose the rows to label changes the error of DML-S2R by {change} in the same cells."


def blocks() -> dict[str, str]:
    """Each block of the notebook, by name."""
    return {
        "newer losses": each_loss(),
        "newer losses, verdicts": verdicts(),
        "stopping early": stopping(),
        "choosing for DML-S2R": choosing(),
    }
