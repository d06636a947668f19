"""The trials of notebook 08 that come with the package."""

import sys
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import images


def test_each_way_has_run_on_each_draw():
    trials = pd.read_csv(str(resources.files("dmls2r_lite.study") / "results" / "images.csv"))
    assert sorted(trials["seed"].unique()) == list(images.SEEDS)
    assert (trials.groupby(["method", "target"]).size() == 20).all()
    assert trials["method"].nunique() == 5


@pytest.mark.exhaustive
def test_a_draw_can_be_computed_again():
    shipped = pd.read_csv(str(resources.files("dmls2r_lite.study") / "results" / "images.csv"))
    again = pd.DataFrame(images.run_seed(103))
    both = shipped.merge(again, on=["seed", "method", "target", "n_labeled"])
    assert len(both) == 10
    assert both["mae_x"].to_numpy() == pytest.approx(both["mae_y"].to_numpy(), rel=0.02)
