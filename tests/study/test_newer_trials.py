"""Trials of newer losses: which rows an arm is given, and a loss of one's own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.newer import CodeLoss, MixedStep, rank_n_contrast_loss
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.study.benchmark import HALF
from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.newer import NEWER_LOSSES, name_arms, run_beside_placebos


def test_a_trial_on_each_kind_of_rows_by_hand(tmp_path):
    quick = {"ranked list": DMLS2RRegressor(n_epochs=4)}
    list(replace(NEWER_LOSSES, methods=lambda: quick).run(tmp_path, ["toy"], None, [5], [3, 4], n_jobs=1))
    trials = name_arms(NEWER_LOSSES.read(tmp_path)).query("seed == 3").set_index("method")
    toy = load_dataset("toy")
    split = split_dataset(toy, 5, toy.n_unlabeled, 3)
    for rows, make in (("real", lambda X, seed: X), ("shuffled", shuffle_columns), ("noise", draw_noise)):
        X = pd.concat([split.X_labeled, make(split.X_unlabeled, 3)])
        model = DMLS2RRegressor(n_epochs=4, random_state=3).fit(X, split.y_train)
        error = np.abs(model.predict(split.X_test) - split.y_test).mean()
        assert trials.loc[f"ranked list ({rows})", "mae"] == pytest.approx(error, rel=1e-3)
    assert trials["mae"].nunique() == 3


def test_a_loss_of_ones_own_beside_its_placebos():
    toy, step = load_dataset("toy"), MixedStep(CodeLoss(rank_n_contrast_loss), weight=0.1, n_unlabeled=8)
    trials = run_beside_placebos([toy], step, 5, range(2))
    placebos = [HALF, "own loss", "own loss (shuffled)", "own loss (noise)"]
    assert trials["method"].unique().tolist() == ["step 1", *placebos]
    placebos.remove("own loss")
    assert trials.groupby("method")["mae"].mean().nunique() == 5
    verdicts = give_verdict(trials, "own loss", "step 1", placebos)
    assert verdicts["verdict"].tolist() == ["cannot tell"]  # two splits say nothing
    assert_frame_equal(run_beside_placebos([toy], step, 5, range(2)), trials)
