"""What parameters may be: one table for estimators, rivals, notebooks and the command."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

MAX_COUNT, MAX_NUMBER = 2**31, 1e30  # larger numbers overflow in float32


class ParameterError(ValueError, TypeError):
    """A value that is not allowed. The message names the parameter, what is allowed, and the value."""


class Rule(NamedTuple):
    """What a parameter may be: in words that complete "NAME must be", and as a test."""

    allowed: str
    fits: Callable[[Any], bool]

    def or_else(self, words: str, other: Callable[[Any], bool]) -> Rule:
        """The rule with one more kind of value."""
        return Rule(f"{self.allowed}, or {words}" if words else self.allowed,
                    lambda value: other(value) or self.fits(value))  # fmt: skip

    def or_none(self) -> Rule:
        """The rule for a parameter that may be left open."""
        return self.or_else("None", lambda value: value is None)


def count(low: int = 1, high: int | None = None) -> Rule:
    """Integers from `low` to `high`, which are 2 ** 31 at most: nothing here can be done more often."""

    def fits(value: Any) -> bool:
        is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        return is_integer and low <= int(value) <= (MAX_COUNT if high is None else high)

    return Rule(f"an integer of {low} or more" if high is None else f"an integer from {low} to {high}", fits)


def number(words: str, fits: Callable[[float], bool]) -> Rule:
    """Finite numbers of Python and NumPy for which `fits` is true."""

    def is_number(value: Any) -> bool:
        if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
            return False  # of fractions, which are real too, PyTorch makes nothing
        try:
            return abs(float(value)) <= MAX_NUMBER and fits(float(value))
        except OverflowError:  # an integer such as 10**400
            return False

    return Rule(words, is_number)


def choice(*values: Any) -> Rule:
    """One of some values."""

    def is_one(value: Any) -> bool:
        value = bool(value) if isinstance(value, np.bool_) else value
        return any(isinstance(value, type(known)) and value == known for known in values)

    return Rule(f"one of {', '.join(map(repr, values))}", is_one)


def _is_module(value: Any) -> bool:
    import torch

    return isinstance(value, torch.nn.Module)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


COUNT, ABOVE_ZERO = count(), number("a finite number above 0", lambda value: value > 0)
SHARE = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
MODULE = Rule("a torch.nn.Module or None", lambda value: value is None or _is_module(value))
CALLABLE = Rule("callable or None", lambda value: value is None or callable(value))
JOBS = COUNT.or_else("-1", count(-1, -1).fits)
SCALING = choice("minmax", "standard", "none")
SCHEDULE_NAMES = (
    "alternate", "alternate_pairwise_last", "pairwise_only", "joint", "sequential", "sequential_metric_first",
)  # fmt: skip

# The one table of what parameters may be, wherever they are given: to an estimator, a rival, a notebook or
# the command. Where a rule depends on other values, `check_rules` adds it.
RULES: dict[str, Rule] = {
    # data and studies
    "n_labeled": count(2),
    "n_unlabeled": count(0),
    "seed": count(0, 2**31),  # seeds count up from here, and NumPy's legacy generators end at 2**32
    "random_state": count(0, 2**32 - 1).or_else(
        "a numpy.random.RandomState", lambda value: isinstance(value, np.random.RandomState)
    ).or_none(),
    "n_seeds": count(2),
    "n_repeats": count(2),
    "n_splits": count(2),
    "n_folds": count(2),
    "cv": count(2),
    "n": COUNT,
    "max_pool": COUNT,
    "n_jobs": JOBS.or_none(),
    "--jobs": JOBS,
    "method": choice(
        "average", "DML-S2R", "step 1", "extra trees", "extra trees on pairs", "Gaussian process", "ridge",
        "3-NN", "median",
    ),
    "missing": choice("drop", "as_published"),
    "scale_on": choice("train", "all", "none"),
    # networks and their training
    "hidden_sizes": Rule(
        "a sequence of one or more integers of 1 or more",
        lambda sizes: _is_sequence(sizes) and len(sizes) > 0 and all(map(COUNT.fits, sizes)),
    ),
    "encoder": MODULE,
    "head": MODULE,
    "n_networks": COUNT,
    "metric_space": choice("after_relu", "before_relu"),
    "scaling": SCALING,
    "feature_scaling": SCALING,
    "target_scaling": SCALING,
    "schedule": choice(*SCHEDULE_NAMES).or_else("", callable),
    "n_epochs": COUNT,
    "learning_rate": ABOVE_ZERO,
    "optimizer_state": choice("shared", "separate"),
    "pair_batch_size": COUNT.or_none(),
    "anchor_batch_size": COUNT.or_none(),
    "batch_size": COUNT,
    "max_steps_per_epoch": COUNT,
    "early_stopping": choice(None, "held_out", "cross_validation", "leave_one_out"),
    "warm_start": choice(False, True),
    "progress": choice(False, True),
    "callback": CALLABLE,
    # mining and its loss
    "k": COUNT,
    "miner": choice("absolute", "signed").or_else("", callable),
    "mining_mode": choice("absolute", "signed"),
    "metric_loss": CALLABLE,
    "metric_step": Rule(
        "a step with the name 'metric', batches and loss, or None",
        lambda step: step is None
        or (getattr(step, "name", None) == "metric"
            and not isinstance(step, type)
            and all(callable(getattr(step, part, None)) for part in ("batches", "loss"))),
    ),
    "embedding": choice("unit", "raw"),
    "boundary": ABOVE_ZERO,
    "margin": ABOVE_ZERO,
    "temperature": number("a finite number", lambda value: True),
    "weighting": choice("ranked_list", "literal"),
    "weight_gradient": choice(False, True),
    # newer losses
    "mixed_loss": Rule("callable", callable),
    "weight": ABOVE_ZERO,
    "n_rows": COUNT,
    "n_peers": count(2),
    "noise": number("a finite number of 0 or more", lambda value: value >= 0),
    # verdicts and few labels
    "level": number("a number above 0 and below 1", lambda value: 0 < value < 1),
    "sharpness": number("a finite number of 0 or more", lambda value: value >= 0),
    "coverage": number("a number above 0 and below 1", lambda value: 0 < value < 1),
    "normalizer": choice(None, "spread", "metric"),
    "chosen": choice(False, True),
    "clip": choice(False, True),
    # rivals
    "n_neighbors": COUNT,
    "similar_targets": SHARE,
    "similar_features": SHARE,
    "pool_size": COUNT,
    "max_rounds": count(0),
    "p": Rule(
        "2 exponents of 1 or more",
        lambda p: _is_sequence(p) and len(p) == 2 and all(number("", lambda v: v >= 1).fits(v) for v in p),
    ),
}  # fmt: skip


def check_rules(values: Mapping[str, Any], *, at_least: Mapping[str, int] | None = None) -> None:
    """Hold values against `RULES`.

    Parameters
    ----------
    values : mapping of str to value
        By name; a name that has no rule may have any value. With `boundary` among them, `margin` may
        be 0, but not above it.
    at_least : mapping of str to int, optional
        Integers that must be larger here than the table asks.

    Raises
    ------
    ParameterError
        For the first value that is not allowed. It is a ValueError and a TypeError.
    """
    rules = {**RULES, **{name: count(low) for name, low in (at_least or {}).items()}}
    if "boundary" in values and RULES["boundary"].fits(values["boundary"]):
        boundary = values["boundary"]
        rules["margin"] = number(f"a number from 0 to boundary, {boundary}", lambda v: 0 <= v <= boundary)
    for name, value in values.items():
        if name in rules and not rules[name].fits(value):
            allowed = rules[name].allowed
            raise ParameterError(f"{name} must be {allowed}, got {shown(value)}{_beyond(value, allowed)}")


def _beyond(value: Any, allowed: str) -> str:
    """What a message adds for a number that is right, but for its size."""
    if isinstance(value, int) and value > MAX_COUNT and "integer" in allowed and "or more" in allowed:
        return f"; the largest is {MAX_COUNT}"
    if isinstance(value, float) and MAX_NUMBER < value < np.inf and "integer" not in allowed:
        return f"; the largest is {MAX_NUMBER:g}"
    return ""


def check_not_above(name: str, value: int, limit: int, of_what: str) -> None:
    """Raise ParameterError if a count exceeds how many there are of something."""
    if value > limit:
        raise ParameterError(f"{name} must not exceed {of_what}, {limit}, got {value}")


def shown(value: object) -> str:
    """A value in a message: on one line, and not longer than one."""
    if isinstance(value, int) and abs(value) > 2**63:
        return f"an integer of {len(str(abs(value)))} digits"
    text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """The end of a message on an unknown name: the known one that is most like it, if there is any."""
    names = {str(name).casefold(): str(name) for name in known}
    found = difflib.get_close_matches(str(given).casefold()[:100], names, n=1)
    return f"; did you mean {names[found[0]]}?" if found else ""
