"""What figures share."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from dmls2r_lite.study.benchmark import shipped_trials
from dmls2r_lite.teaching.plotting import LOOKS, finish, look, main_range


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


@pytest.mark.parametrize("legend", [True, False])
def test_finish_names_each_label_once_below_all_panels(legend, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    figure, axes = plt.subplots(1, 2)
    for ax in axes:
        ax.plot([0, 1], label="step 1")
    axes[1].plot([1, 0], label="step 2")
    finish(figure, "Two panels", legend)
    assert figure.get_suptitle() == "Two panels"
    named = [[text.get_text() for text in one.get_texts()] for one in figure.legends]
    assert named == ([["step 1", "step 2"]] if legend else [])
    plt.close(figure)
