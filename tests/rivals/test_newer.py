"""Newer losses as steps of a training; `teaching/test_hand_built.py` holds them against their formulas."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
import torch
from naive import assert_same_value_and_gradients, draw, make_network
from newer_losses import PeerStep
from torch.testing import assert_close

from dmls2r_lite.data.datasets import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.rivals.newer import (
    BarycentreStep,
    CodeLoss,
    MixedStep,
    barycentric_weights,
    log_ratio_loss,
    loop_consistency_loss,
)
from dmls2r_lite.rivals.placebos import draw_noise, shuffle_columns
from dmls2r_lite.training import Orders, TrainingSet, train_side_by_side

N, M, D = 5, 12, 3  # D as in `naive`


def make_data(seed=0):
    return TrainingSet(*draw((N, D), (N,), (M, D), seed=seed))


@pytest.mark.parametrize("head", [None, "MLP"])
def test_a_mixed_step_gives_what_it_promises(head):
    network, data, seen = make_network(head=head), make_data(), []

    def look(batch):
        seen.append(batch)
        return batch.codes.sum()

    step = MixedStep(look, weight=3.0, n_unlabeled=4)
    (batch,) = step.batches(network, data, Orders.from_seed(0))
    rows, x_unlabeled = batch
    assert_close(x_unlabeled, data.x_unlabeled[rows])
    assert len(set(rows.tolist())) == 4
    loss = step.loss(network, data, *batch)
    (found,) = seen
    assert_close(loss, 3 * found.codes.sum())
    x = torch.cat([data.x_labeled, x_unlabeled])
    assert_close(found.x, x)
    assert_close(found.codes, network.encoder(x))
    for i, j in itertools.product(range(N + 4), range(N + 4)):
        assert_close(found.differences[i, j], network(x[[i]], x[[j]])[0])
    assert_close(found.estimates, network.predict(x, data.x_labeled, data.y_labeled))
    assert_close(found.targets, torch.cat([data.y_labeled, found.estimates[N:]]))
    assert not found.targets.requires_grad
    assert_close(found.y, data.y_labeled)


def batch_of(network, data, n_unlabeled=M):
    kept = []
    step = MixedStep(lambda batch: kept.append(batch) or batch.codes.sum(), n_unlabeled=n_unlabeled)
    step.loss(network, data, *step.batches(network, data, Orders.from_seed(0))[0])
    return kept[0]


def test_with_the_linear_head_loops_do_not_see_the_estimates():
    """d_ab + d_bc + d_ca = (g + h)(a) + (g + h)(b) + (g + h)(c), while eq. 4 uses g - h."""
    batch = batch_of(make_network(), make_data())
    q = torch.randn(N + M, dtype=torch.float64)
    moved = batch._replace(differences=batch.differences + q[:, None] - q)
    assert_close(loop_consistency_loss(moved), loop_consistency_loss(batch))
    assert not torch.allclose(moved.estimates, batch.estimates)


def test_code_losses_see_labels_or_all_rows():
    batch = batch_of(make_network(), make_data())
    both = [CodeLoss(log_ratio_loss, labeled_only)(batch) for labeled_only in (True, False)]
    assert_close(both[0], log_ratio_loss(batch.codes[:N], batch.y), rtol=1e-10, atol=0)
    assert_close(both[1], log_ratio_loss(batch.codes, batch.targets), rtol=1e-10, atol=0)


def test_log_ratio_is_blind_to_the_scale_of_codes():
    targets = torch.tensor([0.0, 100.0, 300.0], dtype=torch.float64)
    assert log_ratio_loss(7 * targets[:, None], targets) < 1e-10
    # One distance twice as large as it should be: log 4 off for one of two rows, seen from two of three.
    codes = torch.tensor([[0.0, 0.0], [100.0, 0.0], [0.0, 300.0]], dtype=torch.float64)
    assert log_ratio_loss(codes, targets) == pytest.approx((np.log(10e4 / 4e4) ** 2) / 2 * 2 / 3, rel=1e-4)


def test_barycentric_weights_by_hand():
    """Between two neighbours at 0 and 4, the row at 1: weights 3/4 and 1/4, but for the ridge."""
    x, neighbors = torch.tensor([[1.0]]), torch.tensor([[[0.0], [4.0]]])
    assert barycentric_weights(x, neighbors)[0, 0] == pytest.approx(3 / 4, abs=1e-2)
    assert_close(barycentric_weights(x, torch.ones(1, 2, 1)), torch.full((1, 2), 0.5))  # all equal to the row


@pytest.mark.parametrize("head", [None, "MLP"])
def test_barycentre_equals_loops(head):
    network, data = make_network(head=head), make_data()
    step = BarycentreStep(weight=7.0, n_rows=4, n_neighbors=3)
    (batch,) = step.batches(network, data, Orders.from_seed(2))
    loss = step.loss(network, data, *batch)
    pool, total = torch.cat([data.x_labeled, data.x_unlabeled]), 0.0
    estimate = [network.predict(x[None], data.x_labeled, data.y_labeled)[0] for x in pool]
    for a in batch[0].tolist():
        nearest = sorted((j for j in range(N + M) if j != a), key=lambda j: (pool[j] - pool[a]).norm().item())
        (w,) = barycentric_weights(pool[[a]], pool[None, nearest[:3]])
        total = total + (estimate[a] - sum(wj * estimate[j] for wj, j in zip(w, nearest, strict=False))) ** 2
    assert_same_value_and_gradients(loss, 7 * total / 4, list(network.parameters())[:4])


class Watched(PeerStep):
    """Keeps what the step is given, and its loss."""

    stacks = True

    def loss(self, network, data, *batch):
        value = super().loss(network, data, *batch)
        SEEN.append((network, data, batch, value.detach().clone()))
        return value


SEEN = []


def test_peers_equal_loops():
    """Six networks in two teams of three, each with rows of its own; the first step sees initial weights."""
    SEEN.clear()
    sets = [make_data(0)] * 3 + [make_data(1)] * 3
    networks = [make_network(seed=seed) for seed in range(6)]
    first = [make_network(seed=seed) for seed in range(6)]
    train_side_by_side(networks, sets, [Watched(3, 5.0, 4, 0.1)], seeds=range(6))
    ((_, _, (_, x, noisy), losses),) = SEEN
    assert 0.05 < (noisy - x).std() < 0.2
    for r in range(6):
        data, total = sets[r], 0.0
        others = [s for s in range(r - r % 3, r - r % 3 + 3) if s != r]
        for u, u_noisy in zip(x[r], noisy[r], strict=True):
            t = sum(first[s].predict(u[None], data.x_labeled, data.y_labeled)[0] for s in others) / 2
            for x_l, y_l in zip(data.x_labeled, data.y_labeled, strict=True):
                forth, back = first[r](x_l[None], u_noisy[None]), first[r](u_noisy[None], x_l[None])
                total = total + ((forth - y_l + t) ** 2 + (back + y_l - t) ** 2) / 2
        assert_close(losses[r], 5 * total.detach()[0] / (4 * N), rtol=1e-9, atol=0)


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), 10, 60, seed=0)


@pytest.mark.parametrize("n_networks", [1, 3])
def test_peers_must_be_a_team(split, n_networks):
    model = DMLS2RRegressor(metric_step=PeerStep(2), n_networks=n_networks, n_epochs=2)
    with pytest.raises(ValueError, match=rf"n_networks must be n_peers, 2, .* got {n_networks}"):
        model.fit(split.X_train, split.y_train)


def test_a_loss_of_ones_own_through_the_estimator(split):
    """Ten lines that nobody has put into the package: it runs, it matters, and a clone runs alike."""

    def flat(batch):
        return (batch.estimates[len(batch.y) :] - batch.y.mean()).square().mean()

    model = DMLS2RRegressor(metric_step=MixedStep(flat, weight=1e3), n_epochs=5, random_state=0)
    plain = DMLS2RRegressor(schedule="pairwise_only", n_epochs=5, random_state=0)
    spread = [m.fit(split.X_train, split.y_train).predict(split.X_test).std() for m in (model, plain)]
    assert spread[0] < 0.9 * spread[1]
    assert set(model.history_["step"]) == {"pairwise", "metric"}
    models = [DMLS2RRegressor(**{**model.get_params(), "random_state": seed}) for seed in (0, 1)]
    DMLS2RRegressor.fit_side_by_side(models, [(split.X_train, split.y_train)] * 2)
    np.testing.assert_allclose(models[0].predict(split.X_test), model.predict(split.X_test), rtol=1e-4)


def test_vector_targets(split):
    y = np.column_stack([split.y_train, -split.y_train])
    for step in (MixedStep(loop_consistency_loss), BarycentreStep()):
        model = DMLS2RRegressor(metric_step=step, n_epochs=4, random_state=0).fit(split.X_train, y)
        assert model.predict(split.X_test).shape == (len(split.X_test), 2)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(MixedStep, "mixed_loss", "log-ratio"), (MixedStep, "n_unlabeled", 0), (BarycentreStep, "n_rows", 0)],
)
def test_wrong_options_of_a_step(kind, name, value):
    options = {"mixed_loss": loop_consistency_loss} if kind is MixedStep else {}
    with pytest.raises(ValueError, match=rf"{name} must be .*, got {re.escape(repr(value))}"):
        kind(**{**options, name: value})


def test_no_joint_epochs_with_it(split):
    with pytest.raises(ValueError, match="schedule must give one or more of 'pairwise', 'metric', got"):
        DMLS2RRegressor(metric_step=BarycentreStep(), schedule="joint").fit(split.X_train, split.y_train)


def test_rows_without_structure():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    X = pd.DataFrame({"a": a, "b": 2 * a + 1, "c": rng.integers(3, size=500)}, index=range(7, 507))
    shuffled, noise = shuffle_columns(X, 0), draw_noise(X, 0)
    for rows in (shuffled, noise):
        assert rows.index.equals(X.index)
        assert rows.columns.equals(X.columns)
        assert abs(rows.corr().to_numpy()[np.triu_indices(3, 1)]).max() < 0.15
    for column in X:
        assert sorted(shuffled[column]) == sorted(X[column])
        assert noise[column].between(X[column].min(), X[column].max()).all()
    assert noise["c"].nunique() == 500
    pd.testing.assert_frame_equal(shuffle_columns(X, 0), shuffled)
    assert not shuffle_columns(X, 1).equals(shuffled)
