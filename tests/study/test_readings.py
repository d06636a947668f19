"""The script that compares readings of the paper."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from readings import ARMS, run, summarize
from scipy.stats import wilcoxon

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor


def test_a_trial_is_four_fits_on_one_split():
    data = load_dataset("toy")
    split = split_dataset(data, 10, data.n_unlabeled, seed=3)
    changes = {"n_epochs": 4, "target_scaling": "none"}
    arms = {**ARMS, "half": {**ARMS["half"], "n_epochs": 2}}
    predicted = {
        name: DMLS2RRegressor(**{**changes, **arm}, random_state=3)
        .fit(split.X_train, split.y_train)
        .predict(split.X_test)
        for name, arm in arms.items()
    }
    mae = {name: np.abs(values - split.y_test).mean() for name, values in predicted.items()}
    acts = np.abs(predicted["both"] - predicted["placebo"]).mean() / mae["step_1"]
    trials = run(data, 10, [3], changes)
    assert {trial["method"]: trial["mae"] for trial in trials} == pytest.approx(mae)
    assert [trial["acts"] for trial in trials] == pytest.approx([acts] * 4)
    assert acts > 0


def test_summary_by_hand():
    maes = {"step_1": [3.0, 4.0, 5.0, 7.0], "half": [3.0, 3.5, 5.0, 6.5], "both": [2.0, 4.5, 3.5, 7.25]}
    maes["placebo"] = [3.0, 3.0, 4.0, 4.0]
    trials = pd.DataFrame(maes).rename_axis("seed").reset_index().melt("seed", None, "method", "mae")
    trials = trials.assign(reading="r", dataset="d", n_labeled=20, acts=trials["seed"])
    (row,) = summarize(trials).to_dict("records")
    differences = np.subtract(maes["both"], maes["step_1"])
    assert (row["reading"], row["dataset"], row["n_labeled"]) == ("r", "d", 20)
    assert_allclose([row[name] for name in maes], [4.75, 4.5, 4.3125, 3.5])
    assert_allclose([row["acts"], row["difference"]], [1.5, -0.4375])
    assert row["standard_error"] == pytest.approx(differences.std(ddof=1) / 2, abs=1e-4)
    assert row["p_value"] == pytest.approx(wilcoxon(differences).pvalue, abs=1e-5)
