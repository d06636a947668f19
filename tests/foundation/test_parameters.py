"""The one table of parameters: what it allows, what it refuses, and that everybody asks it."""

import inspect
import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest
from torch import nn

import dmls2r_lite
from dmls2r_lite.foundation.parameters import RULES, SCHEDULE_NAMES, ParameterError, check_rules, checked
from dmls2r_lite.training import SCHEDULES

GOOD = {
    "n_labeled": [2, 10**6, np.int8(3)],
    "seed": [0, 2**31],
    "n_jobs": [None, -1, 1, 8],
    "hidden_sizes": [(1,), [100, 100], (np.int64(5),)],
    "encoder": [None, nn.Linear(1, 1)],
    "schedule": [*SCHEDULE_NAMES, lambda n_epochs: ["pairwise"]],
    "learning_rate": [1e-9, 1, np.float32(0.5)],
    "pair_batch_size": [None, 1, 10**9],
    "warm_start": [True, False, np.True_],
    "early_stopping": [None, "held_out"],
    "similar_targets": [0, 1, 0.3],
    "max_rounds": [0, 3],
    "temperature": [-0.5, 0, 1e6],
    "p": [(1, 2), [2.0, 5.5]],
    "target": ["", "y"],
    "output_dir": ["", "results", "/nowhere/yet"],
}
BAD = {
    "n_labeled": [1, 0, -1, 2.0, "2", None, True, np.nan],
    "seed": [-1, 2**31 + 1, 1.0, "0"],
    "n_jobs": [0, -2, 1.5, "2"],
    "hidden_sizes": [(), 0, 100, "100", (1.5,), (100, 0), None, [True], np.array([3])],
    "encoder": ["mlp", nn.Linear, 3],
    "schedule": ["alternating", None, 3, np.array(["alternate"]), np.arange(3)],
    "learning_rate": [0, -1, np.inf, np.nan, "fast", None, np.array([0.1])],
    "pair_batch_size": [0, 1.5, "32", np.inf],
    "warm_start": [1, 0, "yes", None],
    "early_stopping": [False, "yes", 3],
    "similar_targets": [-0.1, 1.1, np.nan, "0.3"],
    "max_rounds": [-1, 1.0],
    "temperature": [np.inf, np.nan, "10", None],
    "margin": [0, -1, np.nan, np.inf, "1"],
    "p": [(2,), (0.5, 2), 2, "25", (1, np.nan)],
    "target": [None, 3, ["y"]],
    "output_dir": [None, __file__],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in GOOD for value in GOOD[name]])
def test_allowed(name, value):
    check_rules({name: value})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_refused(name, value):
    message = f"{name} must be {RULES[name].allowed}, got {value!r}"
    for kind in (ValueError, TypeError, ParameterError):
        with pytest.raises(kind, match=f"^{re.escape(message)}$"):
            check_rules({name: value})


OF_SEVERAL = [
    *(
        ({"margin": one, "boundary": 1.2}, f"margin must be a number from 0 to boundary, 1.2, got {one!r}")
        for one in (-0.1, 1.3, np.nan, "0.4", None)
    ),
    ({"boundary": 0, "margin": 0.4}, "boundary must be a finite number above 0, got 0"),
    ({"n_labeled": 2}, "n_labeled must be an integer of 3 or more, got 2"),
]


@pytest.mark.parametrize(("values", "message"), OF_SEVERAL, ids=[message for _, message in OF_SEVERAL])
def test_limits_that_depend_on_others(values, message):
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        check_rules(values, at_least={"n_labeled": 3})


def test_names_without_a_rule_are_left_alone():
    check_rules({"no_parameter": object(), "k": 1}, at_least={"n_labeled": 3})


def test_names_of_schedules_are_those_there_are():
    assert tuple(SCHEDULES) == SCHEDULE_NAMES


def checked_calls():
    """All functions and classes that check their arguments, by their full names."""
    for found in pkgutil.walk_packages(dmls2r_lite.__path__, "dmls2r_lite."):
        members = vars(import_module(found.name)) if "command" not in found.name else {}
        for name, made in members.items() if "check_calls" in members else ():
            call = made.__init__ if isinstance(made, type) and "get_params" not in dir(made) else made
            is_own = name[0] != "_" and getattr(made, "__module__", "") == found.name
            if is_own and hasattr(call, "__wrapped__") and name not in ("Step", "holm"):  # nothing to check
                yield pytest.param(made, id=f"{found.name}.{name}")


@pytest.mark.parametrize("call", [*checked_calls()])
def test_a_call_with_what_is_nothing_names_it(call):
    names = inspect.signature(call).parameters
    with pytest.raises(ParameterError, match=f"^({'|'.join(names)}) must be an? .*, got <object"):
        call(**dict.fromkeys(names, object()))


def test_annotations_and_rules_say_what_an_argument_may_be():
    @checked
    def call(rows: "np.ndarray | list", k: "int | None" = None, *, margin: float = 1.0, is_on: bool = True):
        return rows

    assert call([1], 3, margin=0.5, is_on=np.True_) == [1]
    bad = {"k": 0, "margin": -1, "is_on": 1}
    for name, value in bad.items():
        with pytest.raises(ParameterError, match=f"^{name} must be .*, got {value}$"):
            call([1], **{name: value})
    with pytest.raises(ParameterError, match=r"^rows must be a ndarray, or a list, got \(1,\)$"):
        call((1,))
