"""The one table of parameters: what it allows, what it refuses, and that everybody asks it."""

import inspect
import pkgutil
import re

import numpy as np
import pytest
from torch import nn

from dmls2r_lite.foundation.parameters import RULES, SCHEDULE_NAMES, ParameterError, check_rules
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


CHECKED = """
    losses.pairwise_similarity_loss losses.ranked_list_loss miner.mine miner.mine_positives_negatives
    model.make_encoder model.SiameseNetwork training.plan training.train training.MetricStep
    rivals.placebos.shuffle_columns practice.choosing.choose_rows practice.folds.LabeledKFold
    practice.intervals.held_out_coverage study.comparing.give_verdict study.trials.Study.run
"""


@pytest.mark.parametrize("name", CHECKED.split())
def test_a_call_with_nothing_that_it_takes_names_it(name):
    call = pkgutil.resolve_name(f"dmls2r_lite.{name}")
    names = inspect.signature(call).parameters
    with pytest.raises(ParameterError, match=rf"^({'|'.join(names)}) must be (an? |one of|call).*, got <obj"):
        call(**dict.fromkeys(names, object()))
