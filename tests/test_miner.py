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
def test_equal_differences_go_by_column(mode):
    first = [[0, 1, 2]] * 2
    assert lists(mine_positives_negatives(torch.full((2, 50), 7.0), 3, mode)) == (first, first)
    assert lists(mine_from_scores(torch.zeros(2), torch.full((50,), 7.0), 3, mode)) == (first, first)


def test_mirrored_differences_tie_in_size():
    # +1 and -1 are equally small, +2 and -2 equally large: order of columns decides
    h = torch.tensor([2.0, -1.0, 1.0, -2.0, 1.0, -1.0, 2.0])
    expected = ([[1, 2, 4]], [[0, 3, 6]])
    assert lists(mine_positives_negatives(h[None], 3)) == expected
    assert lists(mine_from_scores(torch.zeros(1), h, 3)) == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(200))
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
    for seed in range(10):
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
def test_all_anchors_on_one_side(mode):
    h = torch.arange(20.0).flip(0)
    for g in (100.0, -100.0, 0.0, -19.0):
        assert_all_agree(torch.tensor([g]), h, 4, mode)


def test_signed_mining_by_scores_is_the_same_for_every_anchor():
    # The design's reason for "absolute": with a separable head the anchor only shifts the differences.
    positives, negatives = mine_from_scores(torch.randn(6), torch.randn(30), 4, "signed")
    assert (positives == positives[0]).all()
    assert (negatives == negatives[0]).all()


@pytest.mark.parametrize("k", [-1, 0, 4])
def test_k_out_of_range(k):
    message = f"k must be between 1 and the number of unlabeled samples, 3, got {k}"
    with pytest.raises(ValueError, match=message):
        mine_positives_negatives(torch.zeros(2, 3), k)
    with pytest.raises(ValueError, match=message):
        mine_from_scores(torch.zeros(2), torch.zeros(3), k)


def test_unknown_mode():
    with pytest.raises(ValueError, match="mode must be 'absolute' or 'signed', got 'squared'"):
        mine_positives_negatives(torch.zeros(2, 3), 1, "squared")
    with pytest.raises(ValueError, match="mode must be 'absolute' or 'signed', got 'squared'"):
        mine_from_scores(torch.zeros(2), torch.zeros(3), 1, "squared")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite(bad):
    good, spoilt = torch.zeros(3), torch.tensor([0.0, bad, 0.0])
    with pytest.raises(ValueError, match="finite: has training diverged"):
        mine_positives_negatives(spoilt[None], 1)
    for g, h in ((spoilt, good), (good, spoilt)):
        with pytest.raises(ValueError, match="finite: has training diverged"):
            mine_from_scores(g, h, 1)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"differences must have shape \(N, M\) or \(N, M, t\), got \(3,\)"):
        mine_positives_negatives(torch.zeros(3), 1)
    with pytest.raises(ValueError, match=r"g_anchors and h_unlabeled must have shapes \(N,\) and \(M,\)"):
        mine_from_scores(torch.zeros(2, 1), torch.zeros(3), 1)
    with pytest.raises(ValueError, match=r"or \(R, N\) and \(R, M\), got \(2, 1\) and \(3, 4\)"):
        mine_from_scores(torch.zeros(2, 1), torch.zeros(3, 4), 1)


@pytest.fixture
def samples():
    """Anchors, and unlabeled samples."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (N, M)]


@pytest.mark.parametrize("max_pairs", [1, 10, 77, 10**6])  # a row has 12 pairs
@pytest.mark.parametrize(
    ("head", "n_targets", "mode"),
    [("linear", None, "absolute"), ("linear", None, "signed"), ("MLP", None, "absolute"),
     ("MLP", None, "signed"), ("linear", 2, "absolute"), ("MLP", 2, "absolute")],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_mine_equals_loop_in_so_many_pairs(head, n_targets, mode, max_pairs, seed, samples, tmp_path):
    x, u = samples
    network, sizes = make_network(head=head, n_targets=n_targets, max_pairs=max_pairs, seed=seed), []
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


def test_signed_mining_of_vectors_is_refused(samples):
    with pytest.raises(ValueError, match="mode must be 'absolute' for vector targets, got 'signed'"):
        mine(make_network(n_targets=2), *samples, 3, "signed")
