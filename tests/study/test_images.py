"""The trials of notebook 08 that come with the package."""

import images
import pandas as pd
import pytest

from dmls2r_lite.study.trials import RESULTS

TRIALS = pd.read_csv(RESULTS / "images.csv")


def test_each_way_has_run_on_each_draw():
    assert sorted(TRIALS["seed"].unique()) == list(images.SEEDS)
    assert (TRIALS.groupby(["method", "target"]).size() == 20).all()
    assert TRIALS["method"].nunique() == 7


@pytest.mark.exhaustive
def test_a_draw_can_be_computed_again():
    again = pd.DataFrame(images.run_seed(103))
    both = TRIALS.merge(again, on=["seed", "method", "target", "n_labeled"])
    assert len(both) == 14
    assert both["mae_x"].to_numpy() == pytest.approx(both["mae_y"].to_numpy(), rel=0.02)
