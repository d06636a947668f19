"""Trials of newer losses: which rows an arm is given, resuming, and a loss of one's own."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from dmls2r_lite.data import uci
from dmls2r_lite.data.datasets import load_dataset
from dmls2r_lite.data.splits import split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.newer import CodeLoss, MixedStep, rank_n_contrast_loss
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.newer import (
    DATASETS,
    NEWER_LOSSES,
    ROWS,
    name_arms,
    newer_methods,
    rows_of,
    run_beside_placebos,
    run_newer_losses,
    shipped_newer_losses,
)
from dmls2r_lite.study.trials import run_trial


def test_runs_what_is_missing_and_nothing_twice(tmp_path):
    def run(methods):
        return list(run_newer_losses(tmp_path, ["toy"], methods, [5], range(2)))

    assert run(["step 1", "ranked list"]) == [8, 6, 4, 2, 0]
    assert run(["step 1", "ranked list", "times zero"]) == [2, 0]
    trials = NEWER_LOSSES.read(tmp_path)
    assert len(trials) == 10
    toy = load_dataset("toy")
    for name, method in (("step 1", "step 1"), ("ranked list (real)", "ranked list")):
        expected = run_trial(toy, name, newer_methods()[method], 5, toy.n_unlabeled, 1)["mae"]
        found = name_arms(trials).query("method == @name and seed == 1")["mae"]
        assert found.tolist() == [pytest.approx(expected, rel=1e-4)]


def test_a_trial_on_rows_without_structure_by_hand(tmp_path):
    list(run_newer_losses(tmp_path, ["toy"], ["ranked list"], [5], [3]))
    trials = NEWER_LOSSES.read(tmp_path).set_index("rows")
    toy = load_dataset("toy")
    split = split_dataset(toy, 5, toy.n_unlabeled, 3)
    for rows, make in (("shuffled", shuffle_columns), ("noise", draw_noise)):
        X = pd.concat([split.X_labeled, make(split.X_unlabeled, 3)])
        model = DMLS2RRegressor(random_state=3).fit(X, split.y_train)
        error = np.abs(model.predict(split.X_test) - split.y_test).mean()
        assert trials.loc[rows, "mae"] == pytest.approx(error, rel=1e-4)
    assert trials["mae"].nunique() == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["ranked lists"]}, "methods must be among .*, got 'ranked lists'"),
        ({"datasets": ["bostn"]}, "datasets must be among .*, got 'bostn'"),
        ({"n_labeled": [2]}, "n_labeled must be an integer of 3 or more, got 2"),
        ({"n_labeled": [400]}, "n_labeled"),
        ({"seeds": [-1]}, "seed must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_bad_requests(tmp_path, given, message):
    with pytest.raises(ValueError, match=message):
        run_newer_losses(tmp_path / "new", **{"datasets": ["toy"], **given})
    assert not (tmp_path / "new").exists()


def test_names_fit_into_a_table():
    """Its cells have no quotes."""
    for name in newer_methods():
        assert not set(name) & set(',"\n')
    assert sum(len(rows_of(name)) for name in newer_methods()) == 29


def test_a_loss_of_ones_own_beside_its_placebos():
    toy, step = load_dataset("toy"), MixedStep(CodeLoss(rank_n_contrast_loss), weight=0.1, n_unlabeled=8)
    trials = run_beside_placebos([toy], step, 5, range(2))
    assert trials["method"].unique().tolist() == [
        "step 1",
        "own loss",
        "own loss (shuffled)",
        "own loss (noise)",
    ]
    assert trials.groupby("method")["mae"].mean().nunique() == 4
    verdicts = give_verdict(trials, "own loss", "step 1", ["own loss (shuffled)", "own loss (noise)"])
    assert verdicts["verdict"].tolist() == ["cannot tell"]  # two splits say nothing
    assert_frame_equal(run_beside_placebos([toy], step, 5, range(2)), trials)


def test_shipped_trials_are_complete():
    trials = shipped_newer_losses()
    n_cells = 3 * sum(len(rows_of(method)) for method in newer_methods())
    assert len(trials) == n_cells * len(DATASETS) * 20
    assert not trials.duplicated(list(NEWER_LOSSES.key)).any()
    assert set(trials["seed"]) == set(range(100, 120))
    assert set(trials["rows"]) == set(ROWS)
    assert np.isfinite(trials["mae"]).all()
    assert set(trials.attrs) >= {"command", "versions", "date", "machine", "minutes"}


@pytest.mark.parametrize(("method", "rows"), [("barycentre", "shuffled"), ("log-ratio", "noise")])
def test_shipped_trials_can_be_computed_anew(tmp_path, method, rows):
    """To rounding, which training amplifies: another processor gives other last digits."""
    list(run_newer_losses(tmp_path, ["boston"], [method], [10], range(100, 120)))
    key = list(NEWER_LOSSES.key)
    anew, shipped = (
        t[
            (t["rows"] == rows)
            & (t["method"] == method)
            & (t["dataset"] == "boston")
            & (t["n_labeled"] == 10)
        ].set_index(key)
        for t in (NEWER_LOSSES.read(tmp_path), shipped_newer_losses())
    )
    assert len(anew) == 20
    ratio = anew["mae"] / shipped["mae"].reindex(anew.index)
    assert abs(np.log(ratio)).median() < 0.01


@pytest.mark.skipif(uci.find("air_quality", None) is None, reason="needs the file from UCI")
def test_rows_without_a_target_take_no_part(tmp_path):
    list(run_newer_losses(tmp_path, ["air_quality"], ["step 1"], [10], range(100, 120)))
    shipped = shipped_newer_losses().query(
        "dataset == 'air_quality' and method == 'step 1' and n_labeled == 10"
    )
    anew = NEWER_LOSSES.read(tmp_path)
    assert abs(np.log(anew["mae"].to_numpy() / shipped["mae"].to_numpy())).mean() < 0.01
