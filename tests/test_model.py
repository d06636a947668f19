"""The Siamese network: eq. 1 and eq. 4, with a separable head and with one that is not."""

import naive
import pytest
import torch
from naive import make_network
from torch import nn
from torch.testing import assert_close

from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def line_network(weight_g, weight_h, bias):
    """f^d(a, b) = weight_g a + weight_h b + bias on single numbers."""
    head = LinearPairHead(1)
    head.linear.weight.data = torch.tensor([[weight_g, weight_h]])
    head.linear.bias.data = torch.tensor([bias])
    return SiameseNetwork(nn.Identity(), head)


@pytest.fixture
def rows():
    return naive.draw((6, 3), (9, 3))


class TestEncoder:
    def test_is_the_papers(self):
        encoder = make_encoder(13)
        assert [type(layer) for layer in encoder] == [nn.Linear, nn.ReLU] * 2
        assert [(layer.in_features, layer.out_features) for layer in encoder[::2]] == [(13, 100), (100, 100)]
        without = make_encoder(3, (5, 4), final_relu=False)
        assert [type(layer) for layer in without] == [nn.Linear, nn.ReLU, nn.Linear]
        assert without(torch.zeros(7, 3)).shape == (7, 4)

    def test_relu_in_the_head_is_the_same_function(self, rows):
        whole = make_network()
        split = SiameseNetwork(whole.encoder[:-1], LinearPairHead(8, nn.ReLU()).double())
        split.head.linear.load_state_dict(whole.head.linear.state_dict())
        x_i, x_j = rows[0], rows[1][:6]
        assert_close(split(x_i, x_j), whole(x_i, x_j), **EXACT)
        assert_close(split.difference_matrix(*rows), whole.difference_matrix(*rows), **EXACT)
        assert whole.embed(x_i, unit_norm=False).min() >= 0 > split.embed(x_i, unit_norm=False).min()


class TestPairs:
    def test_by_hand(self):
        # 2 a - b + 3 at (1, 0), (1, 5)
        network = line_network(2.0, -1.0, 3.0)
        assert network(torch.tensor([[1.0], [1.0]]), torch.tensor([[0.0], [5.0]])).tolist() == [5.0, 0.0]


class TestEmbed:
    def test_unit_norm(self, rows):
        network = make_network()
        raw, unit = (network.embed(rows[1], unit_norm=u) for u in (False, True))
        assert_close(unit, raw / raw.norm(dim=1, keepdim=True), **EXACT)

    def test_code_of_zeros_stays_finite(self):
        network = SiameseNetwork(nn.Identity(), LinearPairHead(2))
        assert network.embed(torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]


class TestPredict:
    def test_by_hand(self):
        # f(a, b) = 2 a - b + 3, so (f(x, x_i) - f(x_i, x)) / 2 = 1.5 (x - x_i): the bias drops out.
        # At x = 1 with labels (0, 1) and (2, 5): 1.5 + 1 = 2.5 and -1.5 + 5 = 3.5, their mean is 3.
        network = line_network(2.0, -1.0, 3.0)
        x_labeled, y_labeled = torch.tensor([[0.0], [2.0]]), torch.tensor([1.0, 5.0])
        assert network.predict(torch.tensor([[1.0]]), x_labeled, y_labeled).tolist() == [3.0]

    @pytest.mark.parametrize("max_pairs", [1, 4, 6, 9, 10, 13, 1000])  # a row has 6, or 9 of the matrix
    @pytest.mark.parametrize("separable", [True, False])
    def test_equals_loop(self, separable, max_pairs, rows):
        network = make_network(separable, max_pairs, seed=max_pairs)
        looped = naive.difference_matrix(naive.pair_function(network), *rows)
        assert_close(network.difference_matrix(*rows), looped, **EXACT)
        x_labeled, x = rows
        y_labeled = torch.linspace(-40, 50, 6, dtype=torch.float64)
        looped, formed = naive.predict(naive.pair_function(network), x, x_labeled, y_labeled), []
        network.head.register_forward_hook(lambda _, inputs, __: formed.append(len(inputs[0])))
        assert_close(network.predict(x, x_labeled, y_labeled), looped, **EXACT)
        assert max(formed, default=0) <= max_pairs
        assert sum(formed) == (0 if separable else 2 * 6 * 9)  # both directions of every pair, once each
