"""Algorithm 1 against hand-picked sets and against its while loops, with ties everywhere."""

import naive
import numpy as np
import pytest
import torch
from naive import make_network

from dmls2r_lite.foundation.scores import mine_from_scores
from dmls2r_lite.miner import mine, mine_positives_negatives

MODES = ["absolute", "signed"]
N, M = 7, 12


def lists(mined):
    positives, negatives = mined
    assert positives.dtype == negatives.dtype == torch.int64
    return positives.tolist(), negatives.tolist()


def assert_all_agree(g, h, k, mode):
    """Matrix version and sort version choose what Algorithm 1 chooses, in its order."""
    differences = g.double()[:, None] + h.double()[None, :]
    expected = naive.mine(differences, k, mode)
    assert lists(mine_positives_negatives(differences, k, mode)) == expected
    assert lists(mine_from_scores(g, h, k, mode)) == expected


@pytest.mark.parametrize(
    ("mode", "positives", "negatives"),
    [
        # sizes are 3, 1, 2, 1: columns 1 and 3 tie for the smallest, the lower comes first
        ("absolute", [1, 3], [0, 2]),
        # in order of value: -3, -1, 1, 2
        ("signed", [0, 3], [2, 1]),
    ],
)
def test_by_hand(mode, positives, negatives):
    differences = torch.tensor([[-3.0, 1.0, 2.0, -1.0]])
    assert lists(mine_positives_negatives(differences, 2, mode)) == ([positives], [negatives])
    g, h = torch.tensor([1.0]), torch.tensor([-4.0, 0.0, 1.0, -2.0])  # g + h is the same row
    assert lists(mine_from_scores(g, h, 2, mode)) == ([positives], [negatives])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(60))
def test_small_integers_with_ties_everywhere(mode, seed):
    generator = torch.Generator().manual_seed(seed)

    def integers(low, high, size):
        return torch.randint(low, high + 1, (size,), generator=generator)

    n, m = integers(1, 4, 1).item(), integers(1, 14, 1).item()
    spread = integers(0, 4, 1).item()
    g, h = integers(-spread, spread, n).float(), integers(-spread, spread, m).float()
    for k in range(1, m + 1):
        assert_all_agree(g, h, k, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [5, 6, 9, 10, 11, 200])  # k = 5: M == k, M < 2k, M == 2k, M > 2k
def test_random_scores(dtype, m, mode):
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        g, h = (torch.randn(size, generator=generator, dtype=dtype) for size in (7, m))
        assert_all_agree(g, h, 5, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 5, 12])
def test_networks_side_by_side_choose_as_each_alone(k, mode):
    generator = torch.Generator().manual_seed(k)
    for spread in (2, 1000):  # ties everywhere, and few
        g, h = (torch.randint(-spread, spread + 1, (4, n), generator=generator).float() for n in (7, 12))
        alone = [mine_from_scores(*scores, k, mode) for scores in zip(g, h, strict=True)]
        together = mine_from_scores(g, h, k, mode)
        for one, each in zip(together, zip(*alone, strict=True), strict=True):
            assert torch.equal(one, torch.stack(each))


@pytest.mark.parametrize("mode", MODES)
def test_all_anchors_on_one_side_and_all_differences_equal(mode):
    assert_all_agree(torch.zeros(2), torch.full((50,), 7.0), 3, mode)
    h = torch.arange(20.0).flip(0)
    for g in (100.0, -100.0, 0.0, -19.0):
        assert_all_agree(torch.tensor([g]), h, 4, mode)


BOTH = [
    (mine_positives_negatives, (torch.zeros(2, 3),)),
    (mine_from_scores, (torch.zeros(2), torch.zeros(3))),
]
NOT_FINITE = "estimated differences must be finite: has training diverged"
NAN, INF = torch.tensor([0.0, torch.nan]), torch.tensor([0.0, torch.inf])


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        *[
            (f, (*given, k), f"k must be (.* unlabeled samples, 3|an integer of 1 or more), got {k}")
            for f, given in BOTH
            for k in (0, 4)
        ],
        *[(f, (*given, 1, "squared"), "mode must be .* got 'squared'") for f, given in BOTH],
        (mine_positives_negatives, (torch.zeros(2, 3, 2), 1, "signed"), "'absolute' for vector targets"),
        (mine_positives_negatives, (NAN, 1), r"must have shape \(N, M\) or \(N, M, t\), got \(2,\)"),
        *[(mine_positives_negatives, (bad[None], 1), NOT_FINITE) for bad in (NAN, INF, -INF)],
        *[(mine_from_scores, scores, NOT_FINITE) for scores in ((NAN, torch.zeros(2), 1), (INF, INF, 1))],
    ],
)
def test_mistakes(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize("max_pairs", [1, 10, 77, 10**6])  # a row has 12 pairs
@pytest.mark.parametrize(
    ("head", "n_targets", "mode"),
    [("linear", None, "absolute"), ("linear", None, "signed"), ("MLP", None, "absolute"),
     ("MLP", None, "signed"), ("linear", 2, "absolute"), ("MLP", 2, "absolute")],
)  # fmt: skip
def test_mine_equals_loop_in_so_many_pairs(head, n_targets, mode, max_pairs, tmp_path):
    x, u = naive.draw((N, 3), (M, 3))
    network, sizes = make_network(head=head, n_targets=n_targets, max_pairs=max_pairs), []
    expected = naive.mine(naive.difference_matrix(naive.pair_function(network), x, u), 3, mode)
    whole = network.compare_codes

    def spy(z_a, z_b):
        sizes.append(len(z_a) * len(z_b))
        return whole(z_a, z_b)

    network.compare_codes = spy
    assert lists(mine(network, x, u, 3, mode)) == expected
    assert max(sizes, default=0) <= max(max_pairs, N)  # one unlabeled sample with all anchors at the least
    assert sum(sizes) == (0 if head == "linear" and not n_targets else N * M)
    assert all(parameter.grad is None for parameter in network.parameters())
    np.save(tmp_path / "u.npy", u.numpy())
    mapped = torch.from_numpy(np.load(tmp_path / "u.npy", mmap_mode="c"))
    assert lists(mine(network, x, mapped, 3, mode)) == expected
