"""What parameters may be: one table for estimators, rivals, notebooks and the command."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from os.path import isfile
from typing import Any, NamedTuple

# Neither NumPy nor PyTorch is imported here: this file is read before every command.

MAX_COUNT, MAX_NUMBER = 2**31, 1e30  # larger numbers overflow in float32
MAX_EPOCHS = 10**6  # of a schedule of one's own


class ParameterError(ValueError, TypeError):
    """A value that is not allowed. The message names the parameter, what is allowed, and the value."""


class Rule(NamedTuple):
    """What a parameter may be: in words that complete "NAME must be", and as a test."""

    allowed: str
    fits: Callable[[Any], bool]

    def or_else(self, words: str, other: Callable[[Any], bool]) -> Rule:
        """The rule with one more kind of value."""
        allowed = f"{self.allowed}, or {words}" if words else self.allowed
        return Rule(allowed, lambda value: self.fits(value) or other(value))

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
        if not isinstance(value, numbers.Real) or isinstance(value, bool | Fraction):
            return False  # of fractions PyTorch makes nothing
        try:  # PyTorch takes integers of 64 bits
            most = 2**63 - 1 if isinstance(value, numbers.Integral) else MAX_NUMBER
            return abs(float(value)) <= most and fits(float(value))
        except OverflowError:  # an integer such as 10**400
            return False

    return Rule(words, is_number)


def choice(*values: Any) -> Rule:
    """One of some values."""

    def is_one(value: Any) -> bool:
        if str(getattr(value, "dtype", "")) == "bool" and value.shape == ():
            value = bool(value)  # NumPy's
        return any(isinstance(value, type(known)) and value == known for known in values)

    return Rule(f"one of {', '.join(map(repr, values))}", is_one)


def _is_a(name: str) -> Callable[[Any], bool]:
    """A test for instances of a class, for which its library need not be imported."""
    return lambda value: any(str(kind).endswith(f"{name}'>") for kind in type(value).__mro__)


def _is_step(value: Any) -> bool:
    has_parts = all(callable(getattr(value, part, None)) for part in ("batches", "loss"))
    is_one = has_parts and not isinstance(value, type) and getattr(value, "name", None) == "metric"
    return value is None or is_one


def _each(rule: Rule, sizes: Callable[[int], bool]) -> Callable[[Any], bool]:
    """A test for sequences of so many values that a rule allows."""
    return lambda values: (
        isinstance(values, Sequence)
        and not isinstance(values, str | bytes | bytearray)
        and sizes(len(values))
        and all(map(rule.fits, values))
    )


COUNT, ABOVE_ZERO = count(), number("a finite number above 0", lambda value: value > 0)
TEXT = Rule("a string", lambda value: isinstance(value, str))
JOBS = COUNT.or_else("-1", count(-1, -1).fits)
SCHEDULE_NAMES = ("alternate", "pairwise_only", "joint", "sequential", "sequential_metric_first")

# The one table of what parameters may be, wherever they are given: to an estimator, a rival, a notebook or
# the command. Where a rule depends on other values, `check_rules` adds it.
_BY_RULE: list[tuple[Rule, str]] = [
    (COUNT, "n k n_rows n_networks n_neighbors n_epochs max_steps_per_epoch batch_size max_pool pool_size"),
    (COUNT.or_none(), "pair_batch_size anchor_batch_size"),
    (count(2), "n_labeled n_seeds n_repeats n_splits n_folds cv"),
    (count(0), "n_unlabeled max_rounds"),
    (count(0, 2**31), "seed"),  # seeds count up from here, and NumPy's legacy generators end at 2**32
    (count(0, 2**32 - 1).or_else("a RandomState", _is_a("mtrand.RandomState")).or_none(), "random_state"),
    (JOBS, "--jobs"),
    (JOBS.or_none(), "n_jobs"),
    (ABOVE_ZERO, "learning_rate boundary margin weight"),
    (number("a finite number of 0 or more", lambda value: value >= 0), "sharpness"),
    (number("a number above 0 and below 1", lambda value: 0 < value < 1), "level coverage"),
    (number("a finite number", lambda value: True), "temperature"),
    (number("a number from 0 to 1", lambda value: 0 <= value <= 1), "similar_targets similar_features"),
    (Rule("2 exponents of 1 or more", _each(number("", lambda value: value >= 1), lambda n: n == 2)), "p"),
    (Rule("a sequence of one or more integers of 1 or more", _each(COUNT, lambda n: n > 0)), "hidden_sizes"),
    (choice(False, True), "warm_start weight_gradient chosen clip"),
    (choice("minmax", "standard", "none"), "scaling feature_scaling target_scaling"),
    (choice("train", "all", "none"), "scale_on"),
    (choice("drop", "as_published"), "missing"),
    (
        choice("recommended", "average", "DML-S2R", "step 1", "extra trees", "extra trees on pairs",
               "Gaussian process", "ridge", "3-NN", "median"),
        "method",
    ),
    (choice("after_relu", "before_relu"), "metric_space"),
    (choice(*SCHEDULE_NAMES).or_else("", callable), "schedule"),
    (choice("shared", "separate"), "optimizer_state"),
    (choice(None, "held_out", "cross_validation", "leave_one_out"), "early_stopping"),
    (choice("absolute", "signed"), "mining_mode mode"),
    (choice("absolute", "signed").or_else("", callable), "miner"),
    (choice("unit", "raw"), "embedding"),
    (choice("ranked_list", "literal"), "weighting"),
    (choice(None, "spread", "metric"), "normalizer"),
    (Rule("a torch.nn.Module", _is_a("torch.nn.modules.module.Module")).or_none(), "encoder head"),
    (Rule("callable or None", lambda value: value is None or callable(value)), "callback metric_loss"),
    (Rule("callable", callable), "mixed_loss"),
    (TEXT, "dataset target drop_columns column_types missing_values groups"),
    (Rule("a path, a string for example", lambda value: isinstance(value, str | PathLike)), "path"),
    (Rule("the name of a folder", lambda value: TEXT.fits(value) and not isfile(value)), "output_dir"),
    (Rule("a step with the name 'metric', batches and loss, or None", _is_step), "metric_step"),
]  # fmt: skip
RULES = {name: rule for rule, names in _BY_RULE for name in names.split()}


def check_rules(
    values: Mapping[str, Any], *, at_least: Mapping[str, int] | None = None, rules: Mapping[str, Rule] = RULES
) -> None:
    """Hold values against `RULES`, or others.

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
    rules = {**rules, **{name: count(low) for name, low in (at_least or {}).items()}}
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
    if isinstance(value, float) and MAX_NUMBER < value < math.inf and "integer" not in allowed:
        return f"; the largest is {MAX_NUMBER:g}"
    return ""


def demand(holds: object, otherwise: str) -> None:
    """Raise ParameterError with a message unless something holds: the first line of whoever takes a value."""
    if not holds:
        raise ParameterError(otherwise)


def check_not_above(name: str, value: int, limit: int, of_what: str) -> None:
    """Raise ParameterError if a count exceeds how many there are of something."""
    demand(value <= limit, f"{name} must not exceed {of_what}, {limit}, got {value}")


def one_line(text: object) -> str:
    """A text, such as an error's, without line breaks."""
    return " ".join(str(text).split())


def shown(value: object) -> str:
    """A value in a message: on one line, and not longer than one."""
    if isinstance(value, int) and abs(value) > 2**63:
        return f"an integer of {len(str(abs(value)))} digits"
    text = one_line(repr(value))
    return text if len(text) <= 200 else f"{text[:200]}..."


def did_you_mean(given: object, known: Iterable[object]) -> str:
    """The end of a message on an unknown name: the known one that is most like it, if there is any."""
    names = {str(name).casefold(): str(name) for name in known}
    found = difflib.get_close_matches(str(given).casefold()[:100], names, n=1)
    return f"; did you mean {names[found[0]]}?" if found else ""
