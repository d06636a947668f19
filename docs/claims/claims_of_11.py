"""The numbers of notebook 11 that come from the shipped trials."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pandas as pd
from claims import change_of, count_shown

from dmls2r_lite.study.benchmark import HALF
from dmls2r_lite.study.comparing import HELPED, VERDICTS, give_verdict
from dmls2r_lite.study.few_labels import CHOSEN, RANDOM, shipped_few_labels
from dmls2r_lite.study.newer import N_PEERS, STOPPED, name_arms, shipped_newer_losses

PEERS = f"peers x {N_PEERS}"
LOSSES = ("ranked list", "Rank-N-Contrast", "log-ratio", "loop consistency", "barycentre", PEERS)
STOPPED_STEP_1 = f"step 1 {STOPPED}"


@cache
def trials() -> pd.DataFrame:
    """The shipped ones, with the kind of rows in a method's name."""
    return name_arms(shipped_newer_losses())


@cache
def shown(method: str, reference: str) -> str:
    """In how many cells a lower and a higher error is shown, and the mean change."""
    lower, higher = count_shown(give_verdict(trials(), method, reference)["verdict"])
    return f"{change_of(trials(), method, reference):+.1f} %, lower in {lower}, higher in {higher}"


def of_peers(loss: str, step_1: str) -> str:
    """Step 1 of as many networks as the loss has."""
    return f"{step_1} x {N_PEERS}" if loss == PEERS else step_1


def each_loss() -> str:
    """Each loss against step 1, against half the epochs, and against itself on shuffled rows."""
    lines = []
    for loss in LOSSES:
        real, shuffled, noise = (f"{loss} ({rows})" for rows in ("real", "shuffled", "noise"))
        half = of_peers(loss, HALF)
        on_other = [f"{change_of(trials(), arm, half):+.1f}" for arm in (shuffled, noise)]
        lines.append(
            f"- **{loss}**: against step 1 {shown(real, of_peers(loss, 'step 1'))}; against half "
            f"{shown(real, half)} (on shuffled rows {on_other[0]}, on noise {on_other[1]} %); against itself "
            f"on shuffled rows {shown(real, shuffled)}"
        )
    n_cells = trials().groupby(["dataset", "n_labeled"]).ngroups
    heading = f"Change of the error, and in how many of {n_cells} cells a lower or a higher one is shown:"
    return "\n".join([heading, "", *lines])


def verdicts() -> str:
    """The verdicts of all cells, with half the epochs and shuffled rows as placebos."""
    total: Counter[str] = Counter()
    beyond = []
    for loss in LOSSES:
        real, half, shuffled = f"{loss} (real)", of_peers(loss, HALF), f"{loss} (shuffled)"
        total.update(give_verdict(trials(), real, of_peers(loss, "step 1"), [half, shuffled])["verdict"])
        n_helped = (give_verdict(trials(), real, half, [shuffled])["verdict"] == HELPED).sum()
        beyond += [f"{loss} in {n_helped}"] if n_helped else []
    counts = ", ".join(f"*{verdict}* in {total[verdict]}" for verdict in VERDICTS)
    return (
        f"The verdict against step 1, with half the epochs and shuffled rows as placebos, over all "
        f"{total.total()} cells: {counts}. Against half the epochs, with shuffled rows as the placebo, "
        f"*helped*: {', '.join(beyond) or 'nowhere'} of {total.total() // len(LOSSES)}. Rank-N-Contrast on "
        f"the labels alone, against half the epochs: {shown('Rank-N-Contrast on labels', HALF)}."
    )


def stopping() -> str:
    """Step 1 stopped early, and the barycentre beside it."""
    real, both = "barycentre (real)", f"barycentre {STOPPED} (real)"
    return "\n".join(
        [
            f"- half the epochs, against step 1: {shown(HALF, 'step 1')}",
            f"- stopped by cross-validation, against step 1: {shown(STOPPED_STEP_1, 'step 1')}",
            f"- barycentre, against step 1 stopped: {shown(real, STOPPED_STEP_1)}",
            f"- barycentre stopped, against step 1 stopped: {shown(both, STOPPED_STEP_1)}",
            f"- seven networks of step 1, against one: {shown(f'step 1 x {N_PEERS}', 'step 1')}",
        ]
    )


def choosing() -> str:
    """What choosing the rows to label changes for DML-S2R."""
    few = shipped_few_labels()
    few = few[few["method"].eq("DML-S2R") & few["choice"].isin([RANDOM, CHOSEN])]
    few = few.assign(method=few["choice"])
    change = change_of(few, CHOSEN, RANDOM)
    return f"To choose the rows to label changes the error of DML-S2R by {change:+.1f} % in the same cells."


def blocks() -> dict[str, str]:
    """Each block of the notebook, by name."""
    return {
        "newer losses": each_loss(),
        "newer losses, verdicts": verdicts(),
        "stopping early": stopping(),
        "choosing for DML-S2R": choosing(),
    }
