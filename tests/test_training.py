"""Alternate learning: what an epoch does, and the same two epochs written as loops."""

import copy

import naive
import numpy as np
import pytest
import torch
from naive import make_network
from naive import train_by_parameters as train
from torch import nn
from torch.testing import assert_close

from dmls2r_lite.foundation import descent
from dmls2r_lite.miner import mine
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.rivals.placebos import mine_random, mine_swapped, null_loss
from dmls2r_lite.training import SCHEDULES, Orders, PairwiseStep, TrainingSet, alternate

EXACT = {"rtol": 1e-10, "atol": 1e-10}
N, M = 7, 12


@pytest.fixture
def data():
    """Labeled features, targets and unlabeled features."""
    x, y, u = naive.draw((N, 3), (N,), (M, 3))
    return x, 3 * y, u


def weights(network):
    return [parameter.detach().clone() for parameter in network.parameters()]


def same_bits(weights_a, weights_b):
    return all(torch.equal(a, b) for a, b in zip(weights_a, weights_b, strict=True))


@pytest.mark.parametrize("head", naive.HEADS)
@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("max_pairs", [2**16, 5])
def test_all_pairs_at_once_equal_loop(head, n_targets, max_pairs, data):
    x, y, u = data
    if n_targets:
        y = torch.stack([y, y.flip(0) ** 2], dim=1)
    network, step, formed = make_network(True, max_pairs, 1, head, n_targets), PairwiseStep(None), []
    network.head.register_forward_hook(lambda _, inputs, __: formed.append(len(inputs[0])))
    (batch,) = step.batches(network, TrainingSet(x, y, u), Orders.from_seed(0))
    loss = step.loss(network, TrainingSet(x, y, u), *batch)
    assert max(formed, default=0) <= max_pairs
    looped = naive.all_pairs_loss(naive.pair_function(network), x, y)
    naive.assert_same_value_and_gradients(loss, looped, list(network.parameters()))


@pytest.mark.parametrize(
    ("options", "n_pairwise", "n_metric"),
    [
        ({}, 2, 1),  # 42 pairs by 32, all anchors at once
        ({"pair_batch_size": 4, "anchor_batch_size": 3}, 11, 3),
        ({"pair_batch_size": 4, "anchor_batch_size": 3, "max_steps_per_epoch": 2}, 2, 2),
        ({"pair_batch_size": 1000, "anchor_batch_size": 1000}, 1, 1),
    ],
)
def test_number_of_steps(options, n_pairwise, n_metric, data):
    history = train(make_network(), *data, n_epochs=2, **options)
    assert history["n_steps"].tolist() == [n_pairwise, n_metric]


@pytest.mark.parametrize(("max_steps", "n_seen"), [(100, N * (N - 1)), (3, 3 * 8)])
def test_each_pair_is_drawn_at_most_once_an_epoch(max_steps, n_seen, data):
    step, orders = PairwiseStep(8, max_steps), Orders.from_seed(0)
    epochs = [step.batches(make_network(), TrainingSet(*data), orders) for _ in range(3)]
    drawn = [torch.cat([numbers for (numbers,) in batches]).tolist() for batches in epochs]
    for numbers in drawn:
        assert len(numbers) == len(set(numbers)) == n_seen
        assert set(numbers) <= set(range(N * (N - 1)))
    assert drawn[0] != drawn[1]  # in another order each time


@pytest.mark.parametrize("state", ["shared", "separate"])
def test_momentum_of_a_shared_adam_moves_the_encoder_but_not_the_head(state, data):
    """Placebo metric epochs: the loss, and its gradient, is zero."""
    network, by_epoch = make_network(), [weights(make_network())]
    train(
        network, *data, n_epochs=4, optimizer_state=state, metric_loss=null_loss,
        callback=lambda net, _: by_epoch.append(weights(net)),
    )  # fmt: skip
    start, pairwise_1, metric_1, pairwise_2, metric_2 = by_epoch
    assert not same_bits(start, pairwise_1)
    assert not same_bits(metric_1, pairwise_2)
    for before, after in ((pairwise_1, metric_1), (pairwise_2, metric_2)):
        n_head = len(list(network.head.parameters()))
        assert same_bits(before[:-n_head], after[:-n_head]) == (state == "separate")
        assert same_bits(before[-n_head:], after[-n_head:])


def test_dropout_is_off_while_mining_and_on_while_learning(data):
    modes = []

    class Spy(nn.Module):
        def forward(self, x):
            modes.append((self.training, torch.is_grad_enabled()))
            return x

    network = SiameseNetwork(nn.Sequential(make_encoder(3, (12, 8)), Spy()), LinearPairHead(8)).double()
    train(network, *data, n_epochs=2)
    assert set(modes) == {(False, False), (True, True)}  # mining has no gradient, learning has
    assert not network.training


def test_diverging_training_says_so(data):
    options = {"n_epochs": 5, "learning_rate": 1e30, "schedule": SCHEDULES["pairwise_only"]}
    with pytest.raises(ValueError, match=r"training diverged: .* try a learning_rate below 1e\+30"):
        train(make_network().float(), *(part.float() for part in data), **options)


def naive_train(network, x, y, u, *, steps, seed, k, pair_batch_size, anchor_batch_size, state, loss_options):
    """Training by loops; only the order of pairs and anchors is drawn as the package does."""
    pair_rng, anchor_rng = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    pairwise_adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    metric_adam = pairwise_adam if state == "shared" else torch.optim.Adam(network.parameters(), lr=1e-3)
    f = naive.pair_function(network)
    n = len(y)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    history = []

    def descend(adam, losses):
        values = []
        for loss in losses:  # each is computed with the weights that the one before left behind
            adam.zero_grad()
            loss.backward()
            adam.step()
            values.append(loss.item())
        history.append(sum(values) / len(values))

    def pairwise_losses():
        order = pair_rng.choice(len(pairs), size=len(pairs), replace=False)
        for start in range(0, len(pairs), pair_batch_size):
            batch = [pairs[number] for number in order[start : start + pair_batch_size]]
            estimated = [f(x[i], x[j]) for i, j in batch]
            yield naive.pairwise_similarity_loss(estimated, [y[i] - y[j] for i, j in batch])

    def codes(samples):
        z = network.encoder(samples)
        return torch.stack([row / (row**2).sum().sqrt() for row in z])

    def loss_of_anchors(batch, positives, negatives):
        z_positives = torch.stack([codes(u[positives[a]]) for a in batch])
        z_negatives = torch.stack([codes(u[negatives[a]]) for a in batch])
        return naive.ranked_list_loss(codes(x[batch]), z_positives, z_negatives, **loss_options)

    def metric_losses():
        mined = naive.mine(naive.difference_matrix(f, x, u), k)
        order = anchor_rng.choice(n, size=n, replace=False)
        for start in range(0, n, anchor_batch_size):
            yield loss_of_anchors(order[start : start + anchor_batch_size], *mined)

    def joint_losses():
        mined = naive.mine(naive.difference_matrix(f, x, u), k)
        for loss in pairwise_losses():
            batch = anchor_rng.choice(n, size=min(n, anchor_batch_size), replace=False)
            yield loss + loss_of_anchors(batch, *mined)

    for step in steps:
        if step == "pairwise":
            descend(pairwise_adam, pairwise_losses())
        elif step == "metric":
            descend(metric_adam, metric_losses())
        else:
            descend(pairwise_adam, joint_losses())
    return history


LOSS_OPTIONS = {
    "boundary": 1.2, "margin": 0.4, "temperature": 10.0, "weighting": "ranked_list", "weight_gradient": False
}  # fmt: skip


def check_against_naive_training(network, data, schedule, steps, state="shared", loss_options=LOSS_OPTIONS):
    looped = copy.deepcopy(network)
    before = weights(network)
    options = {"seed": 5, "k": 3, "pair_batch_size": 10, "anchor_batch_size": 4}
    history = train(
        network,
        *data,
        schedule=schedule,
        n_epochs=len(steps),
        optimizer_state=state,
        **options,
        **loss_options,
    )
    expected = naive_train(looped, *data, steps=steps, state=state, loss_options=loss_options, **options)
    assert tuple(history.columns) == ("epoch", "step", "loss", "n_steps", "seconds", "skipped")
    assert history["step"].tolist() == steps
    assert history["epoch"].tolist() == [place + 1 for place in range(len(steps))]
    assert (history["seconds"] > 0).all()
    assert (history["skipped"] == "").all()
    assert history["loss"].tolist() == pytest.approx(expected, rel=1e-10)
    assert (history["loss"] > 0).all()
    for trained, by_loops, start in zip(weights(network), weights(looped), before, strict=True):
        assert_close(trained, by_loops, rtol=1e-7, atol=1e-9)  # Adam divides tiny gradients by themselves
        assert not torch.equal(trained, start)


@pytest.mark.parametrize(
    ("schedule", "steps", "weighting", "state"),
    [
        ("alternate", ["pairwise", "metric"] * 2, "literal", "shared"),
        ("alternate", ["pairwise", "metric"] * 2, "ranked_list", "separate"),
        ("alternate", ["pairwise", "metric"] * 2, "literal", "separate"),
        ("alternate", ["pairwise", "metric", "pairwise"], "ranked_list", "shared"),  # step 1 has one more
        ("joint", ["joint"] * 2, "ranked_list", "shared"),
        ("sequential", ["pairwise"] * 3 + ["metric"] * 2, "ranked_list", "shared"),
        ("sequential_metric_first", ["metric"] * 2 + ["pairwise"] * 3, "ranked_list", "shared"),
    ],
)
def test_equals_naive_training(schedule, steps, weighting, state, data):
    options = LOSS_OPTIONS | {"weighting": weighting}
    check_against_naive_training(make_network(), data, SCHEDULES[schedule], steps, state, options)


@pytest.mark.parametrize("head", naive.HEADS)
@pytest.mark.parametrize("n_targets", [None, 2])
def test_any_head_and_vector_targets_equal_naive_training(head, n_targets, data):
    x, y, u = data
    if n_targets:
        y = torch.stack([y, y.flip(0) ** 2], dim=1)
    network = make_network(head=head, n_targets=n_targets, max_pairs=7)
    check_against_naive_training(network, (x, y, u), alternate, ["pairwise", "metric"] * 2)
    assert_close(network.predict(u, x, y), naive.predict(naive.pair_function(network), u, x, y))


@pytest.mark.parametrize(("is_interactive", "epoch"), [(True, 3), (False, 3), (True, 1), (False, 1)])
def test_an_interrupt_keeps_what_was_trained_where_a_person_waits(is_interactive, epoch, data, monkeypatch):
    monkeypatch.setattr(descent, "_is_interactive", lambda: is_interactive)
    network, losses = make_network(), []

    def loss(batch):
        losses.append(1)
        if len(losses) == epoch:
            raise KeyboardInterrupt
        return null_loss(batch)

    if not is_interactive:
        with pytest.raises(KeyboardInterrupt):
            train(network, *data, n_epochs=10, metric_loss=loss)
        return
    words = rf"interrupted in epoch {2 * epoch} \(metric\): the network stays as it is"
    with pytest.warns(UserWarning, match=words):
        history = train(network, *data, n_epochs=10, metric_loss=loss)
    assert history["step"].tolist() == ["pairwise", "metric"] * (epoch - 1) + ["pairwise"]
    assert not network.training
    assert not same_bits(weights(network), weights(make_network()))


class TestPlacebos:
    def test_swapped(self, data):
        network, (x, _, u) = make_network(), data
        positives, negatives = mine(network, x, u, 3)
        swapped = mine_swapped(network, x, u, 3)
        assert torch.equal(swapped[0], negatives)
        assert torch.equal(swapped[1], positives)

    def test_random(self, data):
        network, (x, _, u) = make_network(), data
        torch.manual_seed(3)
        first = mine_random(network, x, u, 4)
        assert [mined.shape for mined in first] == [(len(x), 4)] * 2
        torch.manual_seed(3)
        assert all(map(torch.equal, first, mine_random(network, x, u, 4)))
        drawn = torch.cat([torch.cat(mine_random(network, x, u, 4)).flatten() for _ in range(200)])
        counts = drawn.bincount(minlength=len(u)).double()
        assert len(counts) == len(u)
        expected = counts.mean()
        assert ((counts - expected).abs() < 5 * expected.sqrt()).all()  # uniform, to five standard deviations


def test_a_miner_is_called_once_an_epoch_and_a_loss_is_given_its_sets(data):
    (x, y, u), calls, seen = data, [], []

    def first_rows(network, x_anchors, x_unlabeled, k):
        calls.append((network.training, len(x_anchors), len(x_unlabeled), k))
        rows = torch.arange(k).expand(len(x_anchors), k)
        return rows, rows + k

    def spy(batch):
        seen.append(batch)
        return null_loss(batch)

    network, start = make_network(), make_network()
    train(network, x, y, u, n_epochs=4, k=2, miner=first_rows, metric_loss=spy, embedding="raw",
          schedule=SCHEDULES["sequential_metric_first"])  # fmt: skip
    assert calls == [(False, len(x), len(u), 2)] * 2
    order = [y.tolist().index(target) for target in seen[0].y.tolist()]
    assert sorted(order) == list(range(N))
    assert_close(seen[0].anchors, start.encoder(x[order]), **EXACT)
    differences = naive.difference_matrix(naive.pair_function(start), x[order], u[:4]).detach()
    for rows, codes, d in (
        (slice(0, 2), seen[0].positives, seen[0].d_positives),
        (slice(2, 4), seen[0].negatives, seen[0].d_negatives),
    ):
        assert_close(codes, start.encoder(u[rows]).expand(N, 2, -1), **EXACT)
        assert_close(d, differences[:, rows], **EXACT)
