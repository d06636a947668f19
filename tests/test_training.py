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
from dmls2r_lite.foundation.scores import pairs_from_numbers
from dmls2r_lite.miner import mine
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.rivals.placebos import mine_random, mine_swapped, null_loss
from dmls2r_lite.training import SCHEDULES, MetricStep, Orders, PairwiseStep, TrainingSet, alternate, plan

EXACT = {"rtol": 1e-10, "atol": 1e-10}
N, M = 7, 12


@pytest.fixture
def data():
    """Labeled features, targets and unlabeled features."""
    generator = torch.Generator().manual_seed(0)
    x, y, u = (
        torch.randn(*size, generator=generator, dtype=torch.float64) for size in ((N, 3), (N,), (M, 3))
    )
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
    assert_close(loss, looped, **EXACT)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    naive_gradients = torch.autograd.grad(looped, list(network.parameters()))
    assert any(gradient.abs().max() > 0 for gradient in gradients)
    assert_close(gradients, naive_gradients, **EXACT)


def test_pairs_are_numbered_row_by_row():
    i, j = pairs_from_numbers(torch.arange(6), 3)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


class TestHistory:
    COLUMNS = ("epoch", "step", "loss", "n_steps", "seconds", "skipped")

    @pytest.mark.parametrize(
        ("schedule", "steps", "epochs"),
        [
            (alternate, ["pairwise", "metric"] * 2, [1, 1, 2, 2]),
            (SCHEDULES["alternate_pairwise_last"], ["pairwise", "metric", "pairwise"], [1, 1, 2]),
            (lambda n: ["metric"] * n + ["pairwise"], ["metric", "metric", "pairwise"], [1, 2, 1]),
        ],
    )
    def test_rows_of_each_schedule(self, schedule, steps, epochs, data):
        history = train(make_network(), *data, schedule=schedule, n_epochs=2)
        assert tuple(history.columns) == self.COLUMNS
        assert history["step"].tolist() == steps
        assert history["epoch"].tolist() == epochs
        assert np.isfinite(history["loss"]).all()
        assert (history["seconds"] > 0).all()
        assert (history["skipped"] == "").all()

    @pytest.mark.parametrize(
        ("options", "n_pairwise", "n_metric"),
        [
            ({}, 2, 1),  # 42 pairs by 32, all anchors at once
            ({"pair_batch_size": 4, "anchor_batch_size": 3}, 11, 3),
            ({"pair_batch_size": 4, "anchor_batch_size": 3, "max_steps_per_epoch": 2}, 2, 2),
            ({"pair_batch_size": 1000, "anchor_batch_size": 1000}, 1, 1),
        ],
    )
    def test_number_of_steps(self, options, n_pairwise, n_metric, data):
        history = train(make_network(), *data, n_epochs=1, **options)
        assert history["n_steps"].tolist() == [n_pairwise, n_metric]

    def test_hooks_come_after_each_epoch_and_may_add_to_its_row(self, data):
        network, calls = make_network(), []

        def callback(net, row):
            assert net is network
            assert not net.training
            calls.append((row["step"], row["epoch"]))
            row["seen"] = len(calls)

        history = train(network, *data, n_epochs=2, callback=callback)
        assert calls == [("pairwise", 1), ("metric", 1), ("pairwise", 2), ("metric", 2)]
        assert history["seen"].tolist() == [1, 2, 3, 4]


class PairRecorder(SiameseNetwork):
    """Notes every pair of samples, told apart by their first feature."""

    def compare(self, x, i, j):
        self.seen = [*getattr(self, "seen", []), *zip(x[i, 0].tolist(), x[j, 0].tolist(), strict=True)]
        return super().compare(x, i, j)


@pytest.mark.parametrize(("max_steps", "n_seen"), [(100, N * (N - 1)), (3, 3 * 8)])
def test_each_pair_is_drawn_at_most_once_an_epoch(max_steps, n_seen, data):
    x, y, u = data
    x[:, 0] = torch.arange(N)
    network = PairRecorder(make_encoder(3, (12, 8)), LinearPairHead(8)).double()
    epochs = []
    train(
        network, x, y, u, schedule=SCHEDULES["pairwise_only"], n_epochs=3, pair_batch_size=8,
        max_steps_per_epoch=max_steps, callback=lambda net, _: epochs.append(net.__dict__.pop("seen")),
    )  # fmt: skip
    assert len(epochs) == 3
    for seen in epochs:
        assert len(seen) == len(set(seen)) == n_seen
        assert all(i != j for i, j in seen)
    assert epochs[0] != epochs[1]  # in another order each time


class TestOptimizerState:
    """Placebo metric epochs: the loss, and its gradient, is zero."""

    PLACEBO = {"metric_loss": null_loss}  # noqa: RUF012

    def weights_by_epoch(self, data, state):
        network = make_network()
        recorded = [weights(network)]
        history = train(
            network, *data, n_epochs=2, optimizer_state=state, **self.PLACEBO,
            callback=lambda net, _: recorded.append(weights(net)),
        )  # fmt: skip
        assert history["loss"][1::2].tolist() == [0.0, 0.0]
        return recorded

    def test_separate_adam_does_nothing_with_zero_gradient(self, data):
        start, pairwise_1, metric_1, pairwise_2, metric_2 = self.weights_by_epoch(data, "separate")
        assert not same_bits(start, pairwise_1)
        assert same_bits(pairwise_1, metric_1)
        assert not same_bits(metric_1, pairwise_2)
        assert same_bits(pairwise_2, metric_2)

    def test_momentum_of_a_shared_adam_moves_the_encoder_but_not_the_head(self, data):
        _, pairwise_1, metric_1, _, _ = self.weights_by_epoch(data, "shared")
        n_head = len(list(make_network().head.parameters()))
        assert not same_bits(pairwise_1[:-n_head], metric_1[:-n_head])
        assert same_bits(pairwise_1[-n_head:], metric_1[-n_head:])


@pytest.mark.parametrize("state", ["shared", "separate"])
def test_step_1_alone_is_alternate_without_unlabeled_rows(state, data):
    x, y, u = data
    alone, skipping = make_network(), make_network()
    options = {"n_epochs": 3, "pair_batch_size": 8, "optimizer_state": state}
    history_alone = train(alone, x, y, u, schedule=SCHEDULES["pairwise_only"], **options)
    history = train(skipping, x, y, u[:0], **options)
    assert same_bits(weights(alone), weights(skipping))
    assert history_alone["loss"].tolist() == history["loss"].dropna().tolist()
    assert history["skipped"].tolist() == ["", "no unlabeled samples"] * 3
    assert history["n_steps"].tolist() == [6, 0] * 3


def test_dropout_is_off_while_mining_and_on_while_learning(data):
    modes = []

    class Spy(nn.Module):
        def forward(self, x):
            modes.append((self.training, torch.is_grad_enabled()))
            return x

    network = SiameseNetwork(nn.Sequential(make_encoder(3, (12, 8)), Spy()), LinearPairHead(8)).double()
    train(network, *data, n_epochs=1)
    assert set(modes) == {(False, False), (True, True)}  # mining has no gradient, learning has
    assert not network.training


def test_diverging_training_says_so(data):
    options = {"n_epochs": 5, "learning_rate": 1e200, "schedule": SCHEDULES["pairwise_only"]}
    with pytest.raises(ValueError, match=r"training diverged: .* try a learning_rate below 1e\+200"):
        train(make_network(), *data, **options)


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
        network, *data, schedule=schedule, n_epochs=2, optimizer_state=state, **options, **loss_options
    )
    expected = naive_train(looped, *data, steps=steps, state=state, loss_options=loss_options, **options)
    assert history["step"].tolist() == steps
    assert history["loss"].tolist() == pytest.approx(expected, rel=1e-10)
    assert (history["loss"] > 0).all()
    for trained, by_loops, start in zip(weights(network), weights(looped), before, strict=True):
        assert_close(trained, by_loops, rtol=1e-7, atol=1e-9)  # Adam divides tiny gradients by themselves
        assert not torch.equal(trained, start)


@pytest.mark.parametrize(
    ("weighting", "state"), [("literal", "shared"), ("ranked_list", "separate"), ("literal", "separate")]
)
def test_equals_naive_training(weighting, state, data):
    options, steps = LOSS_OPTIONS | {"weighting": weighting}, ["pairwise", "metric"] * 2
    check_against_naive_training(make_network(), data, alternate, steps, state, options)


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        ("joint", ["joint"] * 2),
        ("sequential", ["pairwise", "pairwise", "metric", "metric"]),
        ("sequential_metric_first", ["metric", "metric", "pairwise", "pairwise"]),
        ("alternate_pairwise_last", ["pairwise", "metric", "pairwise"]),
    ],
)
def test_other_schedules_equal_naive_training(schedule, steps, data):
    check_against_naive_training(make_network(), data, SCHEDULES[schedule], steps)


@pytest.mark.parametrize("head", naive.HEADS)
@pytest.mark.parametrize("n_targets", [None, 2])
def test_any_head_and_vector_targets_equal_naive_training(head, n_targets, data):
    x, y, u = data
    if n_targets:
        y = torch.stack([y, y.flip(0) ** 2], dim=1)
    network = make_network(head=head, n_targets=n_targets, max_pairs=7)
    check_against_naive_training(network, (x, y, u), alternate, ["pairwise", "metric"] * 2)
    assert_close(network.predict(u, x, y), naive.predict(naive.pair_function(network), u, x, y))


def test_antisymmetric_head_is_antisymmetric(data):
    x, _, u = data
    network = make_network(head="antisymmetric", n_targets=3)
    forth, back = network.difference_matrix(x, u), network.difference_matrix(u, x)
    assert torch.equal(forth, -back.transpose(0, 1))
    assert not network.difference_matrix(x, x).diagonal().any()


class TestInterrupt:
    def interrupted(self, data, monkeypatch, *, after, interactive):
        monkeypatch.setattr(descent, "_is_interactive", lambda: interactive)
        network, losses = make_network(), []

        def loss(batch):
            losses.append(1)
            if len(losses) > after:
                raise KeyboardInterrupt
            return null_loss(batch)

        return network, train(network, *data, n_epochs=5, metric_loss=loss)

    def test_keeps_what_was_trained_where_a_person_waits(self, data, monkeypatch):
        with pytest.warns(UserWarning, match="interrupted in metric epoch 3: the network stays as it is now"):
            network, history = self.interrupted(data, monkeypatch, after=2, interactive=True)
        assert history["step"].tolist() == ["pairwise", "metric"] * 2 + ["pairwise"]
        assert not network.training
        assert not same_bits(weights(network), weights(make_network()))

    @pytest.mark.parametrize("after", [0, 2])
    def test_goes_on_elsewhere(self, after, data, monkeypatch):
        with pytest.raises(KeyboardInterrupt):
            self.interrupted(data, monkeypatch, after=after, interactive=False)


class TestPlacebos:
    def test_null_loss_moves_nothing_by_itself(self, data):
        network, alone = make_network(), make_network()
        train(network, *data, n_epochs=3, metric_loss=null_loss, optimizer_state="separate")
        train(alone, *data, n_epochs=3, schedule=SCHEDULES["pairwise_only"])
        assert same_bits(weights(network), weights(alone))

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

    def test_miner_is_called_once_an_epoch_and_its_sets_are_used(self, data):
        calls = []

        def first_rows(network, x_anchors, x_unlabeled, k):
            calls.append((network.training, len(x_anchors), len(x_unlabeled), k))
            rows = torch.arange(k).expand(len(x_anchors), k)
            return rows, rows + k

        seen = []

        def spy(batch):
            seen.append((batch.positives.detach(), batch.negatives.detach()))
            return null_loss(batch)

        network = make_network()
        x, y, u = data
        train(network, x, y, u, n_epochs=2, k=2, miner=first_rows, metric_loss=spy, anchor_batch_size=4,
              optimizer_state="separate", schedule=SCHEDULES["sequential_metric_first"])  # fmt: skip
        assert calls == [(False, len(x), len(u), 2)] * 2
        start = make_network().embed(u[:4]).detach()
        assert_close(seen[0][0][0], start[:2])
        assert_close(seen[0][1][0], start[2:4])


class TestLossOfOnesOwn:
    """A loss with continuous labels: the log-ratio loss (Kim et al. 2019) on what a batch holds."""

    @staticmethod
    def log_ratio(batch):
        d = torch.cat([batch.d_positives, batch.d_negatives], dim=1).abs()
        z = (batch.anchors[:, None] - torch.cat([batch.positives, batch.negatives], dim=1)).square().sum(-1)
        logs = z.log() - d.log()
        return (logs[:, :, None] - logs[:, None, :]).square().mean()

    @staticmethod
    def log_ratio_by_loops(z_anchors, z_samples, differences):
        terms = []
        for anchor, samples, d in zip(z_anchors, z_samples, differences, strict=True):
            for z_i, d_i in zip(samples, d, strict=True):
                for z_j, d_j in zip(samples, d, strict=True):
                    ratio = ((anchor - z_i) ** 2).sum() / ((anchor - z_j) ** 2).sum()
                    terms.append((ratio.log() - (d_i.abs() / d_j.abs()).log()) ** 2)
        return sum(terms) / len(terms)

    def test_equals_loops_on_the_networks_codes_and_estimates(self, data):
        x, y, u = data
        network = make_network()
        step = MetricStep(k=2, metric_loss=self.log_ratio, embedding="raw")
        training_set = TrainingSet(x, y, u)
        ((anchors, x_mined),) = step.batches(network, training_set, Orders.from_seed(0))
        loss = step.loss(network, training_set, anchors, x_mined)
        positives, negatives = mine(network, x, u, 2)
        mined = torch.cat([positives, negatives], dim=1)[anchors]
        f = naive.pair_function(network)
        differences = [[f(x[a], u[row]).detach() for row in mined[at]] for at, a in enumerate(anchors)]
        z = network.encoder(u[mined.flatten()]).unflatten(0, mined.shape)
        looped = self.log_ratio_by_loops(network.encoder(x[anchors]), z, differences)
        assert_close(loss, looped, **EXACT)
        encoder = list(network.encoder.parameters())
        gradients = [torch.autograd.grad(value, encoder) for value in (loss, looped)]
        assert_close(*gradients, **EXACT)


@pytest.mark.parametrize("names", [[], ["pairwise", "triplet"]])
def test_plan_refuses_unknown_steps(names):
    with pytest.raises(ValueError, match=r"schedule must give one or more of 'pairwise', 'metric'"):
        plan(lambda n_epochs: names, 3)
