"""Trials of newer losses: which rows an arm is given, and a loss of one's own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from newer_losses import NEWER_LOSSES

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.study.trials import run_trials


def test_a_trial_on_each_kind_of_rows_by_hand(tmp_path):
    quick = {"ranked list": DMLS2RRegressor(n_epochs=4)}
    list(replace(NEWER_LOSSES, methods=lambda: quick).run(tmp_path, ["toy"], None, [5], [3, 4], n_jobs=1))
    trials = NEWER_LOSSES.read(tmp_path).query("seed == 3").set_index("rows")
    toy = load_dataset("toy")
    split = split_dataset(toy, 5, toy.n_unlabeled, 3)
    for rows, make in (("real", lambda X, seed: X), ("shuffled", shuffle_columns), ("noise", draw_noise)):
        X = pd.concat([split.X_labeled, make(split.X_unlabeled, 3)])
        model = DMLS2RRegressor(n_epochs=4, random_state=3).fit(X, split.y_train)
        error = np.abs(model.predict(split.X_test) - split.y_test).mean()
        assert trials.loc[rows, "mae"] == pytest.approx(error, rel=1e-3)
    assert trials["mae"].nunique() == 3


@pytest.mark.parametrize("change", [shuffle_columns, draw_noise])
def test_others_in_the_place_of_unlabeled_rows(change):
    toy, arms = load_dataset("toy"), {"both": DMLS2RRegressor(n_epochs=4, k=2)}
    both = (run_trials(toy, arms, [5], 20, [3], unlabeled=rows)["mae"] for rows in (change, None))
    (found,), (real,) = both
    split = split_dataset(toy, 5, 20, 3)
    X = pd.concat([split.X_labeled, change(split.X_unlabeled, 3)])
    model = DMLS2RRegressor(n_epochs=4, k=2, random_state=3).fit(X, split.y_train)
    assert found == pytest.approx(np.abs(model.predict(split.X_test) - split.y_test).mean())
    assert found != real
