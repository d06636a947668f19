"""Networks side by side end where each would have ended alone."""

import copy

import naive
import numpy as np
import pytest
import torch
from naive import make_plan
from torch import nn
from torch.testing import assert_close

from dmls2r_lite.foundation.side_by_side import stack_modules
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.rivals import newer
from dmls2r_lite.rivals.placebos import mine_random, mine_swapped, null_loss
from dmls2r_lite.training import SCHEDULES, PairwiseStep, TrainingSet, train, train_side_by_side

N, M, D = 9, 30, 4
SEEDS = (3, 4, 5)


def log_ratio_loss(batch):
    """A loss of one's own with continuous labels, such as the log-ratio loss (Kim et al. 2019)."""
    d = torch.cat([batch.d_positives, batch.d_negatives], dim=1).abs() + 0.1
    d = d if d.ndim == 2 else d.sum(dim=-1)
    z = (batch.anchors[:, None] - torch.cat([batch.positives, batch.negatives], dim=1)).square().sum(-1) + 0.1
    if len(z) < 1:  # what cannot be mapped over networks
        raise AssertionError
    return (z.log() - d.log()).var(dim=1).mean()


ARMS = {
    **{f"schedule {name}": {"schedule": schedule} for name, schedule in SCHEDULES.items()},
    "placebo null": {"metric_loss": null_loss},
    "placebo random": {"miner": mine_random},
    "placebo swapped": {"miner": mine_swapped},
    "own Adam": {"optimizer_state": "separate"},
    "own Adam, placebo random": {"optimizer_state": "separate", "miner": mine_random},
    "one batch": {"pair_batch_size": None},
    "one batch, joint": {"pair_batch_size": None, "schedule": SCHEDULES["joint"]},
    "few pairs at a time": {"pair_batch_size": 2, "max_steps_per_epoch": 7},
    "few anchors at a time": {"anchor_batch_size": 4},
    "raw codes": {"embedding": "raw", "boundary": 4.0, "margin": 2.0, "temperature": 1.0},
    "literal weights with gradient": {"weighting": "literal", "weight_gradient": True},
    "a loss of one's own": {"metric_loss": log_ratio_loss},
}


def make_networks(n_targets=None, encoder=None, head=None):
    networks = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        own = encoder() if encoder else make_encoder(D, (16, 8))
        networks.append(
            SiameseNetwork(own, head() if head else LinearPairHead(8, n_targets=n_targets)).double()
        )
    return networks


def make_data(n_targets=None):
    sets = []
    for seed in SEEDS:
        generator = torch.Generator().manual_seed(seed)
        x, u = (torch.rand(n, D, generator=generator, dtype=torch.float64) for n in (N, M))
        y = x @ torch.rand(D, n_targets or 1, generator=generator, dtype=torch.float64)
        sets.append(TrainingSet(x, y if n_targets else y[:, 0], u))
    return sets


def check_same(networks, data, **parameters):
    """Train copies alone and side by side, and compare weights, losses and estimates."""
    state = {name: parameters.pop(name) for name in ("optimizer_state",) if name in parameters}
    steps = parameters.pop("steps", None) or make_plan(**{"n_epochs": 4, "k": 4, **parameters})
    alone, rng_states = copy.deepcopy(networks), []
    histories_alone = []
    for network, one, seed in zip(alone, data, SEEDS, strict=True):
        torch.manual_seed(seed)
        rng_states.append(torch.get_rng_state())
        histories_alone.append(train(network, one, steps, seed=seed, **state))
    before = torch.get_rng_state()
    histories = train_side_by_side(networks, data, steps, seeds=SEEDS, rng_states=rng_states, **state)
    assert torch.equal(torch.get_rng_state(), before)
    everyone = zip(networks, alone, histories, histories_alone, strict=True)
    for network, single, history, history_alone in everyone:
        columns = ["epoch", "step", "n_steps", "skipped"]
        assert history[columns].equals(history_alone[columns])
        np.testing.assert_allclose(history["loss"], history_alone["loss"], rtol=1e-8)
        for weight, expected in zip(network.parameters(), single.parameters(), strict=True):
            assert_close(weight, expected, rtol=1e-8, atol=1e-8)
            assert weight.untyped_storage().nbytes() == weight.nbytes  # no view of all networks' weights
        assert not network.training


def can_be_stacked(networks):
    return stack_modules(copy.deepcopy(networks)) is not None


@pytest.mark.parametrize(
    ("arm", "n_targets"),
    [*((arm, None) for arm in ARMS), *((arm, 2) for arm in ARMS if "schedule" in arm or "one" in arm)],
)
def test_same_as_alone(arm, n_targets):
    networks, data = make_networks(n_targets), make_data(n_targets)
    assert can_be_stacked(networks)
    check_same(networks, data, **ARMS[arm])


class Dropout(nn.Sequential):
    def __init__(self):
        super().__init__(*make_encoder(D, (16, 8)), nn.Dropout(0.3))


class Convolution(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Unflatten(1, (1, D)), nn.Conv1d(1, 2, 2), nn.Flatten(), nn.Linear(6, 8))


class Normalized(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(D, 8), nn.BatchNorm1d(8), nn.ReLU())


def frozen():
    encoder = make_encoder(D, (16, 8))
    encoder[0].weight.requires_grad_(False)
    return encoder


def tied():
    encoder = nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, D), nn.Tanh(), nn.Linear(D, 8))
    encoder[2].weight = encoder[0].weight
    return encoder


def other_activations():
    return nn.Sequential(nn.Linear(D, 10), nn.Tanh(), nn.Sequential(nn.Linear(10, 8), nn.Identity()))


STACKED = {"encoder": other_activations, "head": lambda: LinearPairHead(8, nn.ReLU())}
MODULES = {
    "other activations, and codes before the last ReLU": STACKED,
    "a frozen layer": {"encoder": frozen},
    "a weight used twice": {"encoder": tied},
    "weights in another form": {
        "encoder": lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(D, 8)), nn.ReLU())
    },
    "dropout": {"encoder": Dropout},
    "convolution": {"encoder": Convolution},
    "BatchNorm": {"encoder": Normalized},
    "MLP head": {"head": lambda: naive.MLPHead(8)},
}


@pytest.mark.parametrize("modules", MODULES.values(), ids=MODULES)
def test_what_cannot_be_stacked_is_trained_in_turns(modules):
    networks = make_networks(**modules)
    assert can_be_stacked(networks) == (modules is STACKED)
    check_same(networks, make_data())


@pytest.mark.parametrize(
    "modules",
    [
        [nn.Linear(2, 3), nn.Linear(2, 4)],
        [nn.Linear(2, 3), nn.Sequential(nn.Linear(2, 3))],
        [nn.Sequential(nn.Linear(2, 3)), nn.Sequential(nn.Linear(2, 3), nn.ReLU())],
        [nn.Linear(2, 3, bias=False), nn.Linear(2, 3, bias=False)],
        [nn.LayerNorm(2), nn.LayerNorm(2)],
        [LinearPairHead(2, nn.Softmax(-1)), LinearPairHead(2, nn.Softmax(-1))],
        [nn.LeakyReLU(0.1), nn.LeakyReLU(0.2)],
        [LinearPairHead(2, nn.LeakyReLU(0.1)), LinearPairHead(2, nn.LeakyReLU(0.2))],
    ],
)
def test_modules_that_are_not_stacked(modules):
    assert stack_modules(modules) is None


def test_a_hook_on_a_layer_is_not_lost():
    networks, calls = make_networks(), []
    for network in networks:
        network.encoder[0].register_forward_hook(lambda *_: calls.append(1))
    assert not can_be_stacked(networks)


def test_hooks_see_each_network_with_its_weights():
    networks, seen, weights = make_networks(), [], []

    def hook(network, row):
        assert not network.training
        seen.append((networks.index(network), row["step"], row["epoch"]))
        weights.append(network.encoder[0].weight.detach().clone())
        row["seen"] = len(seen)

    steps = make_plan(n_epochs=2, k=2)
    histories = train_side_by_side(networks, make_data(), steps, seeds=SEEDS, hooks=[hook])
    assert seen == [(place, *epoch) for epoch in (("pairwise", 1), ("metric", 2)) for place in range(3)]
    assert [history["seen"].tolist() for history in histories] == [[1, 4], [2, 5], [3, 6]]
    for place, network in enumerate(networks):
        assert torch.equal(weights[3 + place], network.encoder[0].weight)
        assert not torch.equal(weights[place], network.encoder[0].weight)


class Decay(PairwiseStep):
    """A step of one's own, which looks at the weights."""

    def loss(self, network, data, *batch):
        return super().loss(network, data, *batch) + 0.1 * sum(w.square().sum() for w in network.parameters())


NEWER = [
    newer.MixedStep(newer.CodeLoss(newer.log_ratio_loss), n_unlabeled=6),
    newer.MixedStep(newer.loop_consistency_loss, n_unlabeled=6),
    newer.BarycentreStep(n_rows=4, n_neighbors=3),
]


@pytest.mark.parametrize("steps", [[Decay(8)], *([PairwiseStep(4), step] for step in NEWER)])
def test_other_steps_see_one_network(steps):
    check_same(make_networks(), make_data(), steps=steps * 3)
