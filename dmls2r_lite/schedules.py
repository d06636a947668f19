"""Which step comes when: the names of the epochs of a training, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Schedule = Callable[[int], Iterable[str]]


def alternate(n_epochs: int) -> list[str]:
    """The paper's schedule: one epoch of each step in turn, `n_epochs` of each."""
    return ["pairwise", "metric"] * n_epochs


def alternate_pairwise_last(n_epochs: int) -> list[str]:
    """Like `alternate`, without the last metric epoch: the head has the last word."""
    return alternate(n_epochs)[:-1]


def pairwise_only(n_epochs: int) -> list[str]:
    """The paper's ablation: the first step alone."""
    return ["pairwise"] * n_epochs


def joint(n_epochs: int) -> list[str]:
    """The sum of both losses in every gradient step, which the paper argues against."""
    return ["joint"] * n_epochs


def sequential(n_epochs: int) -> list[str]:
    """All epochs of the first step, then all of the second."""
    return ["pairwise"] * n_epochs + ["metric"] * n_epochs


def sequential_metric_first(n_epochs: int) -> list[str]:
    """All epochs of the second step, mined by a network that has learned nothing, then all of the first."""
    return ["metric"] * n_epochs + ["pairwise"] * n_epochs


SCHEDULES: dict[str, Schedule] = {
    schedule.__name__: schedule
    for schedule in (
        alternate,
        alternate_pairwise_last,
        pairwise_only,
        joint,
        sequential,
        sequential_metric_first,
    )
}
