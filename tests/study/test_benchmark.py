"""The benchmark: what it runs, and that the shipped trials are its own."""

import numpy as np
import pandas as pd

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.practice.folds import fit_with_seed
from dmls2r_lite.study import benchmark
from dmls2r_lite.study.benchmark import (
    TRIALS,
    all_methods,
    control_arms,
    read_trials,
    run_benchmark,
)
from dmls2r_lite.study.trials import run_trials

KEY = list(TRIALS.key)
ERRORS = [*KEY, "mae", "rmse", "n_unlabeled", "n_test"]


def run(folder, *arguments):
    list(run_benchmark(folder, *arguments, n_jobs=1))
    return read_trials(folder).sort_values(KEY, ignore_index=True)


def test_rows_are_those_of_run_trials(tmp_path):
    methods = {name: all_methods()[name] for name in ("step 1", "median", "COREG")}
    trials = run(tmp_path, ["toy"], list(methods), [5, 10], range(2))
    expected = run_trials(load_dataset("toy"), methods, [5, 10], 200, range(2))
    by_key = expected[ERRORS].sort_values(KEY, ignore_index=True)
    pd.testing.assert_frame_equal(trials[ERRORS], by_key, rtol=1e-5)  # six digits are written


def test_weights_at_the_start_are_the_same_for_all_arms():
    split = split_dataset(load_dataset("toy"), 10, 50, 7)
    starts = []
    for arm in control_arms().values():
        seen = []
        learned = arm.set_params(
            learning_rate=1e-12, n_epochs=1, callback=lambda net, _, s=seen: s.append(net)
        )
        fit_with_seed(learned, split.X_train, split.y_train, 7)
        starts.append([weight.detach().numpy() for weight in seen[0].parameters()])
    for weights in starts[1:]:
        for a, b in zip(weights, starts[0], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-8)


def test_slow_method_is_measured_on_fewer_rows(tmp_path, monkeypatch):
    monkeypatch.setitem(benchmark.MAX_TEST_ROWS, "median", 50)
    trials = run(tmp_path, ["toy"], ["median", "3-NN"], [5], [0])
    assert trials.set_index("method")["n_test"].to_dict() == {"median": 50, "3-NN": 195}
    assert benchmark.MAX_TEST_ROWS["extra trees on pairs"] == 2000


def test_null_placebo_with_an_adam_of_its_own_is_step_1_with_half_the_epochs():
    """So it is no arm; the claim is in the docstring of control_arms."""
    toy = split_dataset(load_dataset("toy"), 10, 50, 0)
    nothing = all_methods()["placebo null"].set_params(optimizer_state="separate")
    alone = all_methods()["step 1, half the epochs"]
    assert (nothing.n_epochs, alone.n_epochs, all_methods()["step 1"].n_epochs) == (30, 15, 30)
    a, b = (fit_with_seed(m, toy.X_train, toy.y_train, 0).predict(toy.X_test) for m in (nothing, alone))
    np.testing.assert_array_equal(a, b)
