"""Eq. 2 and eq. 3 against hand-computed values and loops; more of those in `teaching/test_hand_built.py`."""

import math

import naive
import pytest
import torch
from torch.testing import assert_close

from dmls2r_lite.foundation.scores import pairwise_similarity_loss_all_pairs
from dmls2r_lite.losses import pairwise_similarity_loss, ranked_list_loss

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def randn(*shape, seed, scale=1.0):
    return (scale * naive.draw(shape, seed=seed)[0]).requires_grad_()


class TestPairwiseSimilarityLoss:
    def test_by_hand(self):
        # errors 1 - 3 = -2, 0 - 0 = 0 and -2 + 1 = -1: (4 + 0 + 1) / 3
        loss = pairwise_similarity_loss(torch.tensor([3.0, 0.0, -1.0]), torch.tensor([1.0, 0.0, -2.0]))
        assert loss.item() == pytest.approx(5 / 3)

    # (3, 1) with (3,) would broadcast to nine pairs without any complaint
    @pytest.mark.parametrize("shapes", [((3,), (4,)), ((3, 1), (3,)), ((0,), (0,))])
    def test_shapes_that_do_not_fit(self, shapes):
        with pytest.raises(ValueError, match="same shape and at least one pair"):
            pairwise_similarity_loss(*(torch.zeros(shape) for shape in shapes))


class TestAllPairs:
    def test_by_hand(self):
        # pair (1, 2): z = 1 - 3 = -2, f = 2 + 1 = 3, error -5
        # pair (2, 1): z = 3 - 1 = 2, f = 0 + 5 = 5, error -3: (25 + 9) / 2
        g, h, y = torch.tensor([2.0, 0.0]), torch.tensor([5.0, 1.0]), torch.tensor([1.0, 3.0])
        assert pairwise_similarity_loss_all_pairs(g, h, y).item() == pytest.approx(17)

    @pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
    def test_large_offset_in_y_changes_nothing(self, dtype, tolerance):
        # Integers and halves, so that y + 1e6 is exact in both dtypes. Only differences of y matter.
        g, h, y = (randn(50, seed=s, scale=8).detach().round().to(dtype) / 2 for s in range(3))
        expected = pairwise_similarity_loss_all_pairs(g.double(), h.double(), y.double())
        loss = pairwise_similarity_loss_all_pairs(g, h, y + 1e6)
        assert_close(loss.double(), expected, rtol=tolerance, atol=0)

    @pytest.mark.parametrize("shapes", [((3,), (3,), (4,)), ((3, 1), (3,), (3,)), ((1,), (1,), (1,))])
    def test_shapes_that_do_not_fit(self, shapes):
        with pytest.raises(ValueError, match="N of 2 or more"):
            pairwise_similarity_loss_all_pairs(*(torch.zeros(shape) for shape in shapes))


class TestRankedListLoss:
    # An anchor at 0 on a line; boundary 2 and margin 0.5, so positives should come within 1.5.
    ANCHORS = torch.zeros(1, 1)
    POSITIVES = torch.tensor([[[1.0], [3.0]]])  # cost 0 and 1.5
    NEGATIVES = torch.tensor([[[0.5], [-1.0]]])  # cost 1.5 and 1

    @staticmethod
    def codes(n, k, n_codes, seed):
        """Small enough for some negatives to be within the boundary, whatever their number."""
        shapes, scales = [(n, n_codes), (n, k, n_codes), (n, k, n_codes)], (0.3, 1, 0.3)
        return [randn(*shapes[i], seed=3 * seed + i, scale=scales[i]) for i in range(3)]

    @pytest.mark.parametrize(
        ("temperature", "weighting", "expected"),
        [
            # equal weights: ((0 + 1.5) / 2 + (1.5 + 1) / 2) / 2
            (0.0, "ranked_list", (0.75 + 1.25) / 2),
            (0.0, "literal", (0.75 + 1.25) / 2),
            # weights 2^d, positives: 2 and 8, so 1.5 * 8 / 10 = 1.2;
            # negatives by 2^-d: 2^-0.5 to 2^-1 is sqrt(2) to 1: (1.5 sqrt(2) + 1) / (sqrt(2) + 1)
            (math.log(2), "ranked_list", (1.2 + (1.5 * math.sqrt(2) + 1) / (math.sqrt(2) + 1)) / 2),
            # negatives by 2^d: 2^0.5 to 2^1 is 1 to sqrt(2): the farther one weighs more
            (math.log(2), "literal", (1.2 + (1.5 + math.sqrt(2)) / (1 + math.sqrt(2))) / 2),
        ],
    )
    def test_by_hand(self, temperature, weighting, expected):
        loss = ranked_list_loss(
            self.ANCHORS, self.POSITIVES, self.NEGATIVES, 2.0, 0.5, temperature, weighting
        )
        assert loss.item() == pytest.approx(expected)

    @pytest.mark.parametrize("weight_gradient", [False, True])
    @pytest.mark.parametrize("weighting", ["ranked_list", "literal"])
    @pytest.mark.parametrize(("n", "k", "n_codes", "seed"), [(1, 1, 1, 0), (4, 5, 3, 1), (3, 2, 8, 2)])
    @pytest.mark.parametrize("temperature", [0.0, 3.0])
    def test_equals_loop(self, n, k, n_codes, seed, temperature, weighting, weight_gradient):
        inputs = self.codes(n, k, n_codes, seed)
        options = (1.2, 0.4, temperature, weighting, weight_gradient)
        loss = ranked_list_loss(*inputs, *options)
        looped = naive.ranked_list_loss(*inputs, *options)
        naive.assert_same_value_and_gradients(loss, looped, inputs)

    @pytest.mark.parametrize("weight_gradient", [False, True])
    def test_gradient_is_finite_at_distance_zero(self, weight_gradient):
        anchors = torch.ones(2, 3, requires_grad=True)
        same = torch.ones(2, 2, 3, requires_grad=True)
        ranked_list_loss(anchors, same, same, weight_gradient=weight_gradient).backward()
        assert anchors.grad.isfinite().all()
        assert same.grad.isfinite().all()

    @pytest.mark.parametrize("temperature", [1e4, 1e30])
    def test_huge_temperature_is_finite_and_leaves_the_worst_of_each_set(self, temperature):
        anchors, positives, negatives = inputs = self.codes(3, 4, 2, seed=0)
        farthest = (anchors[:, None] - positives).norm(dim=2).max(dim=1).values
        nearest = (anchors[:, None] - negatives).norm(dim=2).min(dim=1).values
        expected = ((farthest - 0.8).relu() + (1.2 - nearest).relu()).mean() / 2
        for weight_gradient in (False, True):
            loss = ranked_list_loss(*inputs, temperature=temperature, weight_gradient=weight_gradient)
            assert_close(loss, expected)
            assert all(g.isfinite().all() for g in torch.autograd.grad(loss, inputs))

    @pytest.mark.parametrize(
        "shapes",
        [
            ((2, 3), (2, 4, 3), (2, 5, 3)),  # sets of different sizes
            ((2, 3), (1, 4, 3), (1, 4, 3)),  # another number of anchors: would broadcast
            ((2, 3), (2, 4, 1), (2, 4, 1)),  # another length of codes: would broadcast
            ((2, 3), (2, 0, 3), (2, 0, 3)),  # nothing in the sets
            ((2, 3), (2, 3), (2, 3)),
        ],
    )
    def test_shapes_that_do_not_fit(self, shapes):
        with pytest.raises(ValueError, match="positives and negatives both"):
            ranked_list_loss(*(torch.zeros(shape) for shape in shapes))

    @pytest.mark.parametrize(
        ("name", "value"),
        [("margin", -0.1), ("margin", 1.3), ("boundary", 0.0), ("temperature", 3e38), ("weighting", "equal")],
    )
    def test_parameters_out_of_range(self, name, value):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            ranked_list_loss(self.ANCHORS, self.POSITIVES, self.NEGATIVES, **{name: value})
