"""The explorer of choices: what it says is what the covariance says."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from dmls2r_lite.practice.choosing import posterior_covariance
from dmls2r_lite.teaching.choosing_explorer import choices_explorer

POINTS = np.random.default_rng(0).normal(size=(12, 2))
K = np.exp(-((POINTS[:, None] - POINTS) ** 2).sum(axis=2))
ORDERS = {"the rule": [3, 7, 1, 0], "random": [11, 10, 9, 8]}
VARIANCES = {
    name: np.array([posterior_covariance(K, order[:n]).diagonal() for n in range(5)])
    for name, order in ORDERS.items()
}


@pytest.fixture(scope="module")
def explorer():
    return choices_explorer(POINTS, VARIANCES, ORDERS)


def test_controls(explorer):
    assert explorer.sliders == {"labels": [0, 1, 2, 3, 4]}
    assert explorer.menus == {"choice": ["the rule", "random"]}
    pictures = [explorer.picture(labels=labels, choice=name) for labels in range(5) for name in ORDERS]
    assert len({png for png, _ in pictures}) == len(pictures)
    assert all(png.startswith(b"\x89PNG") for png, _ in pictures)


@pytest.mark.parametrize("choice", list(ORDERS))
def test_sentence(explorer, choice):
    for labels in range(5):
        text = explorer.picture(labels=labels, choice=choice)[1]
        left = VARIANCES[choice].mean(axis=1)
        assert f"{labels} labels: {left[labels]:.3f} of the variance" in text
        if labels < 4:
            assert f"takes {left[labels] - left[labels + 1]:.3f} away" in text
        else:
            assert "next" not in text


def test_marks(explorer):
    figure = Figure()
    explorer.draw(figure, choice="random", labels=2)
    space = figure.axes[0]
    assert [text.get_text() for text in space.texts] == ["1", "2"]
    np.testing.assert_array_equal([text.xy for text in space.texts], POINTS[[11, 10]])
    np.testing.assert_array_equal(space.collections[-1].get_offsets(), [POINTS[9]])  # the star
    np.testing.assert_array_equal(space.collections[0].get_array(), VARIANCES["random"][2])
