"""What figures share."""

import numpy as np
import pytest

from dmls2r_lite.study.benchmark import shipped_trials
from dmls2r_lite.teaching.plotting import LOOKS, look, main_range


@pytest.mark.parametrize("column", ["method", "dataset"])
def test_every_method_and_dataset_of_the_shipped_trials_has_a_marker_of_its_own(column):
    names = {name.split(" (")[0] for name in shipped_trials()[column]}
    names = {name.removesuffix(" min-max").removesuffix(" standardised") for name in names}
    assert names <= set(LOOKS)
    assert len({look(name)["marker"] for name in names}) == len(names)


def test_a_setting_keeps_its_methods_look():
    assert look("step 1 (literal)") == look("step 1 alone") == look("step 1")
    assert look("ridge min-max", line=True) == look("ridge", line=True)
    assert look("my_flats.csv") == {"color": "0.2", "marker": "."}


def test_one_outlier_does_not_stretch_an_axis():
    values = np.linspace(1, 3, 40)
    assert main_range(values) == (1, 3)
    assert main_range([*values, 1e6, np.nan]) == (1, 3)
    assert main_range([*values, 5.0]) == (1, 5)
    assert main_range([2.0, 2.0]) == (2, 2)
