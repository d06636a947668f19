"""DMLS2RRegressor: eq. 4 in the target's unit, reproducibility, what it takes and what it refuses."""

import copy
import doctest
import pickle
import re

import naive
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import mean_absolute_error
from torch import nn

import dmls2r_lite.estimators
import dmls2r_lite.fitting
from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.fitting import fit_side_by_side
from dmls2r_lite.losses import RankedListLoss
from dmls2r_lite.model import LinearPairHead, make_encoder
from dmls2r_lite.rivals.placebos import mine_swapped, null_loss
from dmls2r_lite.training import JointStep, MetricStep, PairwiseStep

SCALINGS = ["minmax", "standard", "none"]


def small(**parameters):
    """A regressor that is fitted in a moment."""
    quick = {"hidden_sizes": (8,), "n_epochs": 2, "max_steps_per_epoch": 4, "random_state": 0}
    return DMLS2RRegressor(**quick | parameters)


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("boston"), n_labeled=15, n_unlabeled=40, seed=0, scale_on="none")


@pytest.fixture(scope="module")
def fitted(split):
    return small().fit(split.X_train, split.y_train)


def test_example_in_the_docstring():
    assert doctest.testmod(dmls2r_lite.estimators) == (0, 5)  # failures, lines tried


def test_learns_something():
    split = split_dataset(load_dataset("toy"), n_labeled=30, n_unlabeled=100, seed=0, scale_on="none")
    model = DMLS2RRegressor(random_state=0).fit(split.X_train, split.y_train)
    mae = mean_absolute_error(split.y_test, model.predict(split.X_test))
    mae_of_median = (split.y_test - split.y_labeled.median()).abs().mean()
    assert mae < mae_of_median / 3
    pairwise_losses = model.history_.query("step == 'pairwise'")["loss"]
    assert pairwise_losses.iloc[-1] < pairwise_losses.iloc[0] / 10


class TestRandomState:
    def test_same_seed_same_bits_whatever_was_fitted_before(self, split, fitted):
        again = small().fit(split.X_train, split.y_train)
        for model in (again, again.fit(split.X_train, split.y_train)):
            assert_array_equal(model.predict(split.X_test), fitted.predict(split.X_test))
            assert model.history_["loss"].tolist() == fitted.history_["loss"].tolist()

    def test_other_seed_other_model(self, split, fitted):
        other = small(random_state=1).fit(split.X_train, split.y_train)
        assert not np.allclose(other.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-3)

    def test_seed_decides_the_order_of_pairs_too(self, split):
        fixed = {"encoder": make_encoder(13, (8,)), "head": LinearPairHead(8)}  # same initial weights
        losses = [
            small(random_state=seed, **fixed).fit(split.X_train, split.y_train).history_["loss"].tolist()
            for seed in (0, 1)
        ]
        assert losses[0] != losses[1]

    def test_global_generators_stay_untouched_and_do_not_matter(self, split):
        encoder = nn.Sequential(nn.Linear(13, 8), nn.Dropout(0.5))  # dropout draws while training
        predictions = []
        for seed in (0, 1):
            np.random.seed(seed)  # noqa: NPY002
            torch.manual_seed(seed)
            numpy_before, torch_before = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
            model = small(encoder=encoder).fit(split.X_train, split.y_train)
            predictions.append(model.predict(split.X_test))
            assert_array_equal(np.random.get_state()[1], numpy_before[1])  # noqa: NPY002
            assert torch.equal(torch.get_rng_state(), torch_before)
        assert_array_equal(*predictions)


class TestPredict:
    @pytest.mark.parametrize("feature_scaling", SCALINGS)
    @pytest.mark.parametrize("target_scaling", SCALINGS)
    @pytest.mark.parametrize("separable", [True, False])
    def test_is_eq_4_in_the_targets_unit(self, target_scaling, feature_scaling, separable, split):
        head = None if separable else naive.MLPHead(8)
        model = small(target_scaling=target_scaling, feature_scaling=feature_scaling, head=head)
        model.fit(split.X_train, split.y_train)
        X, y_labeled = split.X_test[:10], split.y_labeled.to_numpy()
        f_forth = model.pairwise_difference(X, split.X_labeled)
        f_back = model.pairwise_difference(split.X_labeled, X)
        expected = [
            sum((f_forth[new, i] - f_back[i, new]) / 2 + y_labeled[i] for i in range(15)) / 15
            for new in range(10)
        ]
        assert_allclose(model.predict(X), expected, rtol=1e-10)

    @pytest.mark.parametrize("target_scaling", SCALINGS)
    def test_pairwise_difference_is_the_networks_times_the_unit(self, target_scaling, split):
        model = small(target_scaling=target_scaling, feature_scaling="none")
        model.fit(split.X_train, split.y_train)
        y = split.y_labeled
        unit = {"minmax": y.max() - y.min(), "standard": y.std(ddof=0), "none": 1}[target_scaling]
        rows = [torch.tensor(X.to_numpy(dtype=float)) for X in (split.X_test[:4], split.X_labeled[:3])]
        expected = unit * naive.difference_matrix(naive.pair_function(model.network_), *rows)
        actual = model.pairwise_difference(split.X_test[:4], split.X_labeled[:3])
        assert_allclose(actual, expected.detach().numpy(), rtol=1e-10)

    def test_scalers_by_hand(self):
        # features scaled over all five rows (0 to 8), targets over the three labeled ones (10 to 30)
        model = small(k=1).fit([[0.0], [2.0], [4.0], [6.0], [8.0]], [np.nan, 10.0, 15.0, 30.0, np.nan])
        assert model.feature_scaler_.transform([[2.0], [8.0]]).tolist() == [[0.25], [1.0]]
        assert model.target_scaler_.transform([[10.0], [15.0], [30.0]]).tolist() == [[0.0], [0.25], [1.0]]

    def test_rows_one_by_one_equal_those_together(self, split, fitted):
        together = fitted.predict(split.X_test)
        one_by_one = [fitted.predict(split.X_test.iloc[[row]])[0] for row in range(len(split.X_test))]
        assert_allclose(one_by_one, together, rtol=1e-12)

    def test_blocks_of_rows_make_no_difference(self, split, fitted, monkeypatch):
        whole = fitted.predict(split.X_test), fitted.transform(split.X_test)
        monkeypatch.setattr("dmls2r_lite.foundation.rows.ROWS_PER_BLOCK", 7)
        assert_allclose(fitted.predict(split.X_test), whole[0], rtol=1e-12)
        assert_allclose(fitted.transform(split.X_test), whole[1], rtol=1e-12)

    def test_offset_of_the_target_is_only_added(self, split):
        # Offsets and targets in multiples of 1 / 16 are exact in every dtype that is passed.
        y = split.y_train.mul(16).round().div(16)
        here, far = (small(target_scaling="minmax").fit(split.X_train, y + shift) for shift in (0, 2**20))
        assert_allclose(far.predict(split.X_test) - 2**20, here.predict(split.X_test), rtol=1e-6)

    def test_raw_columns_of_wild_scales(self, split, fitted):
        # Powers of two scale without rounding: min-max scaled columns, and so all bits, are the same.
        scales = 2.0 ** np.linspace(-30, 30, 13).round()  # 1e-9 to 1e9
        model = small().fit(split.X_train * scales, split.y_train)
        assert_array_equal(model.predict(split.X_test * scales), fitted.predict(split.X_test))


class TestUnlabeledRows:
    def test_are_those_with_nan(self, split, fitted):
        assert (fitted.n_labeled_, fitted.n_unlabeled_) == (15, 40)
        # Anywhere among the labeled ones, as long as each kind keeps its order.
        places = np.random.default_rng(0).permutation(55)
        order = np.empty(55, dtype=int)
        order[np.sort(places[:15])], order[np.sort(places[15:])] = np.arange(15), np.arange(15, 55)
        mixed = small().fit(split.X_train.iloc[order], split.y_train.iloc[order])
        assert_array_equal(mixed.predict(split.X_test), fitted.predict(split.X_test))

    def test_change_the_model(self, split, fitted):
        nearer = pd.concat([split.X_labeled, split.X_unlabeled[::-1] * 0.5 + split.X_labeled.mean() * 0.5])
        other = small().fit(nearer, split.y_train)
        assert not np.allclose(other.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-6)

    def test_without_them_step_2_is_skipped(self, split):
        options = {"feature_scaling": "none", "n_epochs": 3}
        skipping = small(**options).fit(split.X_labeled, split.y_labeled)
        assert (skipping.n_labeled_, skipping.n_unlabeled_) == (15, 0)
        assert skipping.history_["skipped"].tolist() == ["", "no unlabeled samples"] * 3
        alone = small(schedule="pairwise_only", **options).fit(split.X_train, split.y_train)
        assert_array_equal(skipping.predict(split.X_test), alone.predict(split.X_test))

    def test_step_1_alone_mines_none_so_k_may_exceed_them(self, split):
        model = small(schedule="pairwise_only", k=41).fit(split.X_train, split.y_train)
        assert model.n_unlabeled_ == 40


class TestHistory:
    def test_validation_column(self, split, fitted):
        model = small().fit(split.X_train, split.y_train, split.X_test, split.y_test)
        assert len(model.history_) == 4
        predicted = model.predict(split.X_test)
        # While training the network computes in float32, afterwards in float64.
        last = model.history_["validation_mae"].iloc[-1]
        assert last == pytest.approx(mean_absolute_error(split.y_test, predicted), rel=1e-5)
        assert model.history_["validation_mae"].nunique() == 4
        assert_array_equal(predicted, fitted.predict(split.X_test))  # watching changes nothing

    def test_callback_sees_every_epoch(self, split):
        rows = []
        model = small(callback=lambda network, row: rows.append((network, row)))
        model.fit(split.X_train, split.y_train)
        assert all(network is model.network_ for network, _ in rows)
        assert [row["loss"] for _, row in rows] == model.history_["loss"].tolist()

    def test_every_training_parameter_is_passed_on(self, split, monkeypatch):
        passed = {}

        def train(networks, data, steps, **options):
            passed.update(options, steps=steps, n_networks=len(networks))
            return [pd.DataFrame({"epoch": [1], "step": ["pairwise"], "loss": [0.0]})] * len(networks)

        monkeypatch.setattr(dmls2r_lite.fitting, "train_side_by_side", train)
        parameters = {
            "schedule": lambda n_epochs: ["pairwise", "metric", "joint"] * n_epochs, "n_epochs": 3,
            "learning_rate": 0.5, "optimizer_state": "separate", "pair_batch_size": 6, "anchor_batch_size": 7,
            "max_steps_per_epoch": 8, "k": 9, "miner": mine_swapped, "embedding": "raw", "boundary": 10.5,
            "margin": 1.5, "temperature": 12.5, "weighting": "literal", "weight_gradient": True,
            "callback": print, "n_networks": 2,
        }  # fmt: skip
        small(**parameters).fit(split.X_train, split.y_train)
        pairwise = PairwiseStep(batch_size=6, max_steps=8)
        metric = MetricStep(9, mine_swapped, RankedListLoss(10.5, 1.5, 12.5, "literal", True), "raw", 7, 8)
        assert passed["steps"] == [pairwise, metric, JointStep(pairwise, metric)] * 3
        assert (passed["learning_rate"], passed["optimizer_state"]) == (0.5, "separate")
        assert passed["hooks"] == [print]
        assert passed["n_networks"] == len(passed["seeds"]) == len(passed["rng_states"]) == 2
        small(metric_loss=null_loss, miner="signed").fit(split.X_train, split.y_train)
        assert (passed["steps"][1].metric_loss, passed["steps"][1].miner) == (null_loss, "signed")

    def test_progress_is_a_bar_of_all_epochs(self, split, capsys):
        small(progress=True, n_networks=2).fit(split.X_train, split.y_train)
        assert "8/8" in capsys.readouterr().err

    def test_number_of_epochs_and_estimates_for_the_unlabeled(self, split, fitted):
        assert fitted.n_iter_ == fitted.n_epochs_ == 2
        unlabeled = split.y_train.isna().to_numpy()
        assert_allclose(fitted.transduction_, fitted.predict(split.X_train[unlabeled]), rtol=1e-12)
        order = np.random.default_rng(0).permutation(len(split.y_train))
        mixed = small().fit(split.X_train.iloc[order], split.y_train.iloc[order])
        rows = split.X_train.iloc[order][split.y_train.iloc[order].isna()]
        assert_allclose(mixed.transduction_, mixed.predict(rows), rtol=1e-12)
        assert small().fit(split.X_labeled, split.y_labeled).transduction_.shape == (0,)


class TestSeveralNetworks:
    @pytest.fixture
    def three(self, split):
        return small(n_networks=3).fit(split.X_train, split.y_train)

    def test_the_first_is_the_only_one(self, three, fitted, split):
        assert len(three.networks_) == 3
        for a, b in zip(three.network_.parameters(), fitted.network_.parameters(), strict=True):
            assert_allclose(a.detach(), b.detach(), atol=1e-5)
        assert not np.allclose(three.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-3)

    def test_are_those_of_three_fits(self, three, split):
        rng = np.random.RandomState(0)
        singles = [small(random_state=rng).fit(split.X_train, split.y_train) for _ in range(3)]
        X = split.X_test
        assert_allclose(three.predict(X), np.mean([m.predict(X) for m in singles], axis=0), rtol=1e-4)
        assert_allclose(
            three.pairwise_difference(X[:5], X[:3]),
            np.mean([m.pairwise_difference(X[:5], X[:3]) for m in singles], axis=0),
            atol=1e-3,
        )
        assert_allclose(three.transform(X), np.hstack([m.transform(X) for m in singles]), atol=1e-4)
        assert three.get_feature_names_out().shape == (24,)
        assert_allclose(three.transduction_, three.predict(split.X_unlabeled), rtol=1e-12)
        losses = three.history_.groupby("network")["loss"].apply(list)
        assert_allclose(losses.tolist(), [m.history_["loss"].tolist() for m in singles], rtol=1e-4)

    def test_same_seed_same_bits(self, three, split):
        again = small(n_networks=3).fit(split.X_train, split.y_train)
        assert_array_equal(again.predict(split.X_test), three.predict(split.X_test))
        pd.testing.assert_frame_equal(
            again.history_.drop(columns="seconds"), three.history_.drop(columns="seconds")
        )

    def test_validation_and_callback_see_each(self, split):
        rows = []
        model = small(n_networks=2, callback=lambda network, row: rows.append((network, row)))
        model.fit(split.X_train, split.y_train, split.X_test, split.y_test)
        assert [network for network, _ in rows] == model.networks_ * 4
        assert model.history_["validation_mae"].nunique() == 8

    def test_warm_start(self, split):
        model = small(n_networks=2, warm_start=True, learning_rate=1e-9).fit(split.X_train, split.y_train)
        before = model.predict(split.X_test)
        assert_allclose(model.fit(split.X_train, split.y_train).predict(split.X_test), before, rtol=1e-3)
        with pytest.raises(ValueError, match="n_networks must stay 2 for a warm start, got 3"):
            model.set_params(n_networks=3).fit(split.X_train, split.y_train)

    def test_early_stopping_asks_all_networks(self, split):
        options = {"n_epochs": 5, "learning_rate": 0.02, "n_networks": 3}
        model = small(early_stopping="held_out", **options).fit(split.X_train, split.y_train)
        seed = np.random.RandomState(0).randint(2**31 - 1)
        labels = np.flatnonzero(split.y_train.notna())
        rows = np.random.default_rng(seed).permutation(labels)[: len(labels) // 5]
        hidden = split.y_train.copy()
        hidden.iloc[rows] = np.nan
        watched = small(**options).fit(
            split.X_train, hidden, split.X_train.iloc[rows], split.y_train.iloc[rows]
        )
        of_step_2 = watched.history_.query("step == 'metric'")
        expected = [of_step_2.query("epoch == @epoch")["validation_mae"].mean() for epoch in range(1, 6)]
        assert_allclose(model.validation_, expected)
        assert model.n_epochs_ == np.argmin(expected) + 1

    def test_frozen_weights_stay(self, split):
        encoder = make_encoder(13, (8, 8))
        encoder[0].requires_grad_(False)
        model = small(encoder=encoder, n_networks=2).fit(split.X_train, split.y_train)
        for network in model.networks_:
            assert torch.equal(network.encoder[0].weight.float(), encoder[0].weight)
            assert not torch.equal(network.encoder[2].weight.float(), encoder[2].weight)


class TestSideBySide:
    def test_equal_single_fits(self):
        splits = [split_dataset(load_dataset("boston"), 15, 40, seed) for seed in range(3)]
        together = [small(random_state=seed, n_networks=1 + 1) for seed in range(3)]
        assert fit_side_by_side(together, [(s.X_train, s.y_train) for s in splits]) == together
        for seed, (model, split) in enumerate(zip(together, splits, strict=True)):
            alone = small(random_state=seed, n_networks=2).fit(split.X_train, split.y_train)
            assert_allclose(model.predict(split.X_test), alone.predict(split.X_test), rtol=1e-4)
            assert (model.n_labeled_, model.n_unlabeled_) == (15, 40)

    def test_early_stopping_chooses_for_each(self):
        splits = [split_dataset(load_dataset("boston"), 15, 40, seed) for seed in range(4)]
        options = {"n_epochs": 8, "learning_rate": 0.02, "early_stopping": "held_out"}
        models = [small(random_state=seed, **options) for seed in range(4)]
        fit_side_by_side(models, [(s.X_train, s.y_train) for s in splits])
        assert len({model.n_epochs_ for model in models}) > 1
        for seed, (model, split) in enumerate(zip(models, splits, strict=True)):
            alone = small(random_state=seed, **options).fit(split.X_train, split.y_train)
            assert model.n_iter_ == model.n_epochs_ == alone.n_epochs_
            assert_array_equal(model.predict(split.X_test), alone.predict(split.X_test))

    @pytest.mark.parametrize("parameters", [{"head": naive.MLPHead(8)}, {"metric_loss": RankedListLoss(1.0)}])
    def test_copies_of_modules_and_callables_are_the_same(self, parameters, split):
        models = [clone(small(**parameters)).set_params(random_state=seed) for seed in range(2)]
        fit_side_by_side(models, [(split.X_train, split.y_train)] * 2)
        for seed, model in enumerate(models):
            alone = small(random_state=seed, **parameters).fit(split.X_train, split.y_train)
            assert_allclose(model.predict(split.X_test), alone.predict(split.X_test), rtol=1e-3)

    @pytest.mark.parametrize("early_stopping", [None, "held_out"])
    def test_validation_is_in_each_models_own_scale(self, early_stopping):
        splits = [split_dataset(load_dataset("boston"), 15, 40, seed, scale_on="none") for seed in range(2)]
        X, y = splits[0].X_test, splits[0].y_test
        models = [small(random_state=seed, early_stopping=early_stopping) for seed in range(2)]
        fit_side_by_side(models, [(s.X_train, s.y_train) for s in splits], [(X, y)] * 2)
        for model in models:
            error = mean_absolute_error(y, model.predict(X))
            assert model.history_["validation_mae"].iloc[-1] == pytest.approx(error, rel=1e-5)

    def test_unlabeled_rows_for_some_only(self, split):
        sets = [(split.X_train, split.y_train), (split.X_labeled, split.y_labeled)]
        models = [small(), small()]
        with pytest.raises(ValueError, match="as many labels, with unlabeled samples or without"):
            fit_side_by_side(models, sets)
        assert not any(hasattr(model, "networks_") for model in models)

    def test_parameters_must_be_the_same(self, split):
        models = [small(random_state=0), small(random_state=1, k=3)]
        with pytest.raises(ValueError, match="k must be the same in all models, got 5 and 3"):
            fit_side_by_side(models, [(split.X_train, split.y_train)] * 2)

    def test_a_mistake_in_one_set_is_found_before_any_is_trained(self, split, monkeypatch):
        monkeypatch.setattr(dmls2r_lite.fitting, "train_side_by_side", lambda *_, **__: pytest.fail("begun"))
        bad = split.y_train * np.nan
        with pytest.raises(ValueError, match="y must hold at least 2 targets"):
            fit_side_by_side([small(), small()], [(split.X_train, split.y_train), (split.X_train, bad)])


class Returns(nn.Module):
    """Whatever a function makes of the input."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, *inputs):
        return self.function(*inputs)


class BadScores(LinearPairHead):
    def scores(self, z):
        g, h = super().scores(z)
        return g + 1, h


class TestProbes:
    """Mistakes in an encoder or a head of one's own are named before training."""

    @pytest.fixture(autouse=True)
    def no_training(self, monkeypatch):
        monkeypatch.setattr(dmls2r_lite.fitting, "train_side_by_side", lambda *_, **__: pytest.fail("begun"))

    @pytest.mark.parametrize(
        ("encoder", "message"),
        [
            (
                nn.Linear(7, 3),
                r"encoder must map 2 samples of shape \(13,\) to a tensor \(2, n_codes\), got Runt",
            ),
            (Returns(lambda x: x.sum(dim=1)), r"got shape \(2,\)"),
            (Returns(lambda x: x[:1]), r"got shape \(1, 13\)"),
            (Returns(lambda x: x[:, None]), r"got shape \(2, 1, 13\)"),
            (Returns(lambda x: x.tolist()), "got list"),
            (Returns(lambda x: (x, x)), "got tuple"),
            (Returns(lambda x: x.long()), r"got torch\.int64 on cpu"),
            (Returns(lambda x: x.double()), r"got torch\.float64 on cpu"),
            (Returns(lambda x: x.to("meta")), r"got torch\.float32 on meta"),
            (
                nn.Linear(13, 3, device="meta"),
                "encoder must hold its weights, got one whose .* on the meta device",
            ),
        ],
    )
    def test_encoder(self, encoder, message, split):
        with pytest.raises(ValueError, match=message):
            small(encoder=encoder).fit(split.X_train, split.y_train)

    @pytest.mark.parametrize(
        ("head", "message"),
        [
            (
                LinearPairHead(5),
                r"head must map two batches of codes \(2, 8\) to a tensor \(2,\), got RuntimeError",
            ),
            (LinearPairHead(8, n_targets=2), r"to a tensor \(2,\), got shape \(2, 2\)"),
            (nn.Bilinear(8, 8, 1), r"to a tensor \(2,\), got shape \(2, 1\)"),
            (Returns(lambda a, b: 0.0), "got float"),
            (Returns(lambda a: a.sum(dim=1)), "got TypeError"),
            (BadScores(8), r"head must have a method scores with head\(z_i, z_j\) == g_i \+ h_j, or none"),
        ],
    )
    def test_head(self, head, message, split):
        with pytest.raises(ValueError, match=message):
            small(head=head).fit(split.X_train, split.y_train)


@pytest.mark.parametrize(
    "returned", [lambda b: 1.0, lambda b: None, lambda b: torch.zeros(()), lambda b: b.anchors.sum(dim=1)]
)
@pytest.mark.parametrize("n_networks", [1, 2])
def test_a_loss_must_be_a_scalar_of_the_weights(returned, n_networks, split):
    model = small(metric_loss=returned, n_networks=n_networks)
    with pytest.raises(
        ValueError, match="metric_loss must give a scalar tensor that depends on the network's weights"
    ):
        model.fit(split.X_train, split.y_train)


def test_an_encoder_without_weights_has_nothing_to_learn_in_step_2(split):
    with pytest.raises(ValueError, match="encoder must have weights to train in step 2, got Identity"):
        small(encoder=nn.Identity()).fit(split.X_train, split.y_train)
    small(encoder=nn.Identity(), schedule="pairwise_only").fit(split.X_train, split.y_train)


class TestBatchNorm:
    """A batch of one has no variance."""

    ENCODER = nn.Sequential(nn.Linear(13, 8), nn.BatchNorm1d(8), nn.ReLU())

    @pytest.mark.parametrize("size", [1, 7])
    def test_a_last_batch_of_one_anchor(self, size, split):
        message = f"must leave no batch of one, which BatchNorm cannot take, got 32 and {size}"
        model = small(encoder=self.ENCODER, anchor_batch_size=size, max_steps_per_epoch=100)
        with pytest.raises(ValueError, match=message):
            model.fit(split.X_train, split.y_train)
        assert not hasattr(model, "networks_")

    @pytest.mark.parametrize(
        "parameters", [{}, {"anchor_batch_size": 4}, {"anchor_batch_size": 7, "schedule": "joint"}]
    )
    def test_other_batches(self, parameters, split):
        model = small(encoder=self.ENCODER, **parameters).fit(split.X_train, split.y_train)
        assert np.isfinite(model.predict(split.X_test)).all()


class TestNetwork:
    @pytest.mark.parametrize("part", ["encoder", "head"])
    def test_a_module_of_ones_own_is_copied_and_starts_from_its_weights(self, part, split):
        module = (
            nn.Sequential(nn.Linear(13, 6), nn.Tanh()).double() if part == "encoder" else naive.MLPHead(8)
        )
        before = copy.deepcopy(module.state_dict())
        model = small(**{part: module}, learning_rate=1e-6).fit(split.X_train, split.y_train)
        trained = getattr(model.network_, part).state_dict()
        for name, weight in module.state_dict().items():
            assert torch.equal(weight, before[name])
            assert not torch.equal(trained[name], weight.double())
            assert_allclose(trained[name], weight, atol=1e-4)
        assert model.transform(split.X_test).shape == (len(split.X_test), 6 if part == "encoder" else 8)
        assert model.network_.is_separable == (part == "encoder")

    @pytest.mark.parametrize(("metric_space", "has_negative"), [("after_relu", False), ("before_relu", True)])
    def test_metric_space(self, metric_space, has_negative, split):
        model = small(metric_space=metric_space).fit(split.X_train, split.y_train)
        assert (model.transform(split.X_test) < 0).any() == has_negative

    def test_transform(self, split, fitted):
        codes = fitted.transform(split.X_test)
        lengths = np.linalg.norm(codes, axis=1)
        assert codes.shape == (len(split.X_test), 8)
        assert_allclose(lengths, 1, rtol=1e-12)
        assert fitted.get_feature_names_out().tolist() == [f"dmls2rregressor{i}" for i in range(8)]
        raw = small(embedding="raw").fit(split.X_train, split.y_train).transform(split.X_test)
        assert np.ptp(np.linalg.norm(raw, axis=1)) > 0.1


class TestCopies:
    def test_clone(self, split):
        model = small(encoder=nn.Linear(13, 4), schedule="pairwise_only").fit(split.X_train, split.y_train)
        copied = clone(model)
        assert not hasattr(copied, "network_")
        assert copied.encoder is not model.encoder
        copied.fit(split.X_train, split.y_train)
        assert_array_equal(copied.predict(split.X_test), model.predict(split.X_test))

    def test_pickle(self, split, fitted):
        loaded = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(loaded.predict(split.X_test), fitted.predict(split.X_test))
        assert_array_equal(loaded.transform(split.X_test), fitted.transform(split.X_test))
        pd.testing.assert_frame_equal(loaded.history_, fitted.history_)


COUNT, FINITE = "an integer of 1 or more", "a finite number"


class TestErrors:
    """Each is raised before training starts, and names the parameter, what is allowed and the value."""

    @pytest.fixture(autouse=True)
    def no_training(self, monkeypatch):
        def train(*_, **__):
            pytest.fail("training has started")

        monkeypatch.setattr(dmls2r_lite.fitting, "train_side_by_side", train)

    @pytest.mark.parametrize(
        ("name", "value", "allowed"),
        [
            *[(name, value, COUNT) for name in ("n_epochs", "k", "max_steps_per_epoch") for value in (0, -1)],
            *[(name, value, COUNT) for name in ("n_epochs", "k") for value in (2.5, "5", None, True)],
            *[(f"{of}_batch_size", n, f"{COUNT}, or None") for of in ("pair", "anchor") for n in (0, 1.5)],
            *[
                (name, value, f"{FINITE} above 0")
                for name in ("learning_rate", "boundary")
                for value in (0, -0.1, float("inf"), float("nan"), "0.1", None)
            ],
            *[("margin", m, "from 0 to boundary, 1.2") for m in (-0.1, 1.3, float("nan"), "0.4", None)],
            *[("temperature", value, FINITE) for value in (float("inf"), float("nan"), "10", None)],
            *[
                ("hidden_sizes", value, "one or more integers of 1 or more")
                for value in ((), 100, (100, 0), (10.5,), "100", None)
            ],
            *[(name, "mlp", "a torch.nn.Module or None") for name in ("encoder", "head")],
            ("encoder", nn.Linear, "a torch.nn.Module or None"),
            ("callback", 3, "callable or None"),
            ("metric_space", "relu", "'after_relu', 'before_relu'"),
            ("feature_scaling", "max", "'minmax', 'standard', 'none'"),
            ("target_scaling", None, "'minmax', 'standard', 'none'"),
            ("schedule", "alternating", "'alternate', 'alternate_pairwise_last', 'pairwise_only'"),
            ("schedule", None, "'alternate', 'alternate_pairwise_last', 'pairwise_only'"),
            ("optimizer_state", "both", "'shared', 'separate'"),
            ("miner", "squared", "'absolute', 'signed'"),
            ("metric_loss", "ranked_list", "callable or None"),
            ("embedding", "norm", "'unit', 'raw'"),
            ("weighting", "equal", "'ranked_list', 'literal'"),
            ("weight_gradient", "yes", "False, True"),
            ("early_stopping", "yes", "None, 'held_out', 'cross_validation', 'leave_one_out'"),
            ("warm_start", "yes", "False, True"),
            ("device", "nonsense", "'auto' or one that PyTorch can use"),
            ("device", None, "'auto' or one that PyTorch can use"),
            ("random_state", "seed", "numpy.random.RandomState"),
        ],
    )  # fmt: skip
    def test_parameter(self, name, value, allowed, split):
        model = small(**{name: value})
        with pytest.raises(ValueError, match=re.escape(repr(value))) as error:
            model.fit(split.X_train, split.y_train)
        assert allowed in str(error.value)
        if name != "random_state":  # scikit-learn's own message, which does not name it
            assert str(error.value).startswith(f"{name} must be ")

    def test_k_above_the_number_of_unlabeled_samples(self, split):
        with pytest.raises(ValueError, match="k must not exceed the number of unlabeled samples, 40, got 41"):
            small(k=41).fit(split.X_train, split.y_train)

    @pytest.mark.parametrize("n_labels", [0, 1])
    def test_fewer_than_two_labels(self, n_labels, split):
        y = split.y_train.to_numpy(copy=True)
        y[n_labels:] = np.nan
        with pytest.raises(ValueError, match=f"at least 2 targets that are not NaN, got {n_labels}"):
            small().fit(split.X_train, y)

    def test_validation_samples(self, split):
        with pytest.raises(ValueError, match="X_validation and y_validation must be given together"):
            small().fit(split.X_train, split.y_train, split.X_test)
        with pytest.raises(ValueError, match="feature names should match"):
            small().fit(split.X_train, split.y_train, split.X_test.iloc[:, 1:], split.y_test)
        with pytest.raises(ValueError, match="contains NaN"):
            small().fit(split.X_train, split.y_train, split.X_test, split.y_test * np.nan)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            small().fit(split.X_train, split.y_train, split.X_test, split.y_test[1:])


def test_unknown_step_of_a_custom_schedule(split):
    model = small(schedule=lambda n_epochs: ["pairwise", "triplet"])
    with pytest.raises(ValueError, match=r"'pairwise', 'metric', 'joint', got \['pairwise', 'triplet'\]"):
        model.fit(split.X_train, split.y_train)


def test_diverging_training_says_so(split):
    with pytest.raises(ValueError, match=r"has training diverged|training diverged: the loss of"):
        small(learning_rate=1e30).fit(split.X_train, split.y_train)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_cuda(split, fitted):
    model = small(device="cuda").fit(split.X_train, split.y_train)
    assert next(model.network_.parameters()).device.type == "cuda"
    assert_allclose(model.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-3)
    again = small(device="auto").fit(split.X_train, split.y_train)
    assert_array_equal(again.predict(split.X_test), model.predict(split.X_test))


class TestRobustness:
    def make(self):
        split = split_dataset(load_dataset("toy"), 10, 40, 0)
        return split.X_train, split.y_train

    def test_numpy_integers_are_integers(self):
        X, y = self.make()
        sizes = {
            "k": 3,
            "pair_batch_size": 30,
            "anchor_batch_size": 5,
            "max_steps_per_epoch": 3,
            "n_epochs": 2,
        }
        kinds = (int, np.int64, np.int8)
        models = [small(**{name: kind(n) for name, n in sizes.items()}).fit(X, y) for kind in kinds]
        for model in models[1:]:
            assert_array_equal(model.predict(X), models[0].predict(X))

    def test_a_failed_fit_leaves_no_network_behind(self):
        X, y = self.make()

        def fail(network, row):
            raise RuntimeError("from the callback")

        bad = {"schedule": lambda n_epochs: ["bogus"]}
        for change, error in (
            ({"callback": fail}, RuntimeError),
            ({"k": 1000}, ValueError),
            (bad, ValueError),
        ):
            model = DMLS2RRegressor(n_epochs=1, random_state=0).fit(X, y)
            with pytest.raises(error):
                model.set_params(**change).fit(X, y)
            with pytest.raises(NotFittedError):
                model.predict(X)

    def test_a_callback_may_leave_the_network_in_training_mode(self):
        X, y = self.make()
        encoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.5))
        model = DMLS2RRegressor(
            encoder=encoder, n_epochs=1, random_state=0, callback=lambda network, row: network.train()
        ).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), model.predict(X))

    def test_global_settings_do_not_matter(self):
        X, y = self.make()
        expected = DMLS2RRegressor(n_epochs=1, random_state=0).fit(X, y).predict(X)
        with sklearn.config_context(transform_output="pandas"):
            found = DMLS2RRegressor(n_epochs=1, random_state=0).fit(X, y).predict(X)
        np.testing.assert_array_equal(found, expected)
        torch.set_default_dtype(torch.float64)
        try:
            DMLS2RRegressor(n_epochs=1, random_state=0).fit(X, y).predict(X)
        finally:
            torch.set_default_dtype(torch.float32)


class TestVectorTargets:
    @pytest.fixture
    def table(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(300, 4))
        y = np.column_stack([10 + 3 * X[:, 0] - X[:, 1], 1000 * X[:, 2] ** 2])
        hidden = y.copy()
        hidden[30:200] = np.nan
        return X, y, hidden

    def test_learns_both_in_their_units(self, table):
        X, y, hidden = table
        model = DMLS2RRegressor(random_state=0).fit(X[:200], hidden[:200])
        assert (model.n_labeled_, model.n_unlabeled_) == (30, 170)
        predicted = model.predict(X[200:])
        mae = np.abs(predicted - y[200:]).mean(axis=0)
        mae_of_median = np.abs(np.median(y[:30], axis=0) - y[200:]).mean(axis=0)
        assert (mae < mae_of_median / 3).all()
        differences = model.pairwise_difference(X[200:], X[:30])
        assert differences.shape == (100, 30, 2)
        # eq. 4 by hand
        back = model.pairwise_difference(X[:30], X[200:]).transpose(1, 0, 2)
        assert_allclose(((differences - back) / 2 + y[:30]).mean(axis=1), predicted)
        assert model.transform(X[:5]).shape == (5, 100)

    def test_a_column_is_a_number(self, table):
        X, _, hidden = table
        with pytest.warns(sklearn.exceptions.DataConversionWarning):
            column = small().fit(X[:200], hidden[:200, :1]).predict(X)
        assert_array_equal(column, small().fit(X[:200], hidden[:200, 0]).predict(X))


class TestImages:
    @pytest.fixture
    def images(self):
        """Bright bars whose height is the target."""
        rng = np.random.default_rng(0)
        heights = rng.uniform(1, 7, size=120)
        rows = np.arange(8)[None, :, None]
        X = np.clip(heights[:, None, None] - rows, 0, 1) * np.ones((1, 1, 8)) * 255
        return X[:, None], heights

    def make_encoder(self):
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 16), nn.ReLU()
        )

    def test_convolutional_encoder(self, images):
        X, heights = images
        y = heights.copy()
        y[20:80] = np.nan
        model = DMLS2RRegressor(encoder=self.make_encoder(), random_state=0).fit(X[:80], y[:80])
        mae = np.abs(model.predict(X[80:]) - heights[80:]).mean()
        assert mae < np.abs(np.median(heights[:20]) - heights[80:]).mean() / 3
        assert model.transform(X[:3]).shape == (3, 16)
        assert model.pairwise_difference(X[:3], X[:5]).shape == (3, 5)

    def test_one_scale_for_all_pixels(self, images):
        X, heights = images
        model = DMLS2RRegressor(encoder=self.make_encoder(), n_epochs=1, random_state=0).fit(X, heights)
        assert (model.feature_scaler_.data_min_, model.feature_scaler_.data_max_) == (0, 255)

    def test_without_an_encoder(self, images):
        with pytest.raises(
            ValueError, match=r"encoder must be given for samples of shape \(1, 8, 8\), got None"
        ):
            DMLS2RRegressor().fit(*images)


class TestEarlyStopping:
    def test_held_out_by_hand(self, split):
        model = small(n_epochs=6, early_stopping="held_out").fit(split.X_train, split.y_train)
        curve = model.validation_
        assert curve.index.tolist() == list(range(1, 7))
        assert model.n_epochs_ == curve.idxmin()
        as_chosen = small(n_epochs=model.n_epochs_).fit(split.X_train, split.y_train)
        assert_array_equal(model.predict(split.X_test), as_chosen.predict(split.X_test))

    def test_leave_one_out_by_hand(self, split):
        X, y = split.X_train, split.y_train
        model = small(n_epochs=3, early_stopping="leave_one_out").fit(X, y)
        curves = []
        for row in np.flatnonzero(y.notna()):
            hidden = y.copy()
            hidden.iloc[row] = np.nan
            history = small(n_epochs=3).fit(X, hidden, X.iloc[[row]], y.iloc[[row]]).history_
            curves.append(history.query("step == 'metric'")["validation_mae"].to_numpy())
        assert len(curves) == 15
        assert_allclose(model.validation_, np.mean(curves, axis=0))
        assert model.n_epochs_ == np.mean(curves, axis=0).argmin() + 1

    def test_cross_validation_by_hand(self, split):
        """Five fifths of 13 labels: 3, 3, 3, 2, 2, each row counting once."""
        X, y = split.X_train, split.y_train.copy()
        y.iloc[:2] = np.nan
        model = small(n_epochs=3, early_stopping="cross_validation").fit(X, y)
        labels = np.flatnonzero(y.notna())
        seed = np.random.RandomState(small().random_state).randint(2**31 - 1)
        total = np.zeros(3)
        for fold in np.array_split(np.random.default_rng(seed).permutation(labels), 5):
            hidden = y.copy()
            hidden.iloc[fold] = np.nan
            history = small(n_epochs=3).fit(X, hidden, X.iloc[fold], y.iloc[fold]).history_
            total += len(fold) * history.query("step == 'metric'")["validation_mae"].to_numpy()
        assert_allclose(model.validation_, total / 13)
        assert model.n_epochs_ == total.argmin() + 1

    def test_too_few_labels(self, split):
        y = split.y_train.copy()
        y.iloc[2:] = np.nan
        with pytest.raises(ValueError, match="early_stopping needs 3 labels or more, got 2"):
            small(early_stopping="held_out").fit(split.X_train, y)


class TestWarmStart:
    def test_goes_on_with_the_network(self, split):
        cold = small(warm_start=True, learning_rate=1e-9).fit(split.X_train, split.y_train)
        before = [weight.detach().clone() for weight in cold.network_.parameters()]
        scaler = cold.feature_scaler_
        cold.set_params(random_state=5).fit(split.X_train, split.y_train)
        for a, b in zip(cold.network_.parameters(), before, strict=True):
            assert_allclose(a.detach(), b, atol=1e-6)
        assert cold.feature_scaler_ is scaler
        other = small(random_state=5, learning_rate=1e-9).fit(split.X_train, split.y_train)
        assert not np.allclose(other.predict(split.X_test), cold.predict(split.X_test), rtol=1e-3)

    def test_a_mistake_does_not_lose_the_model(self, split):
        model = small(warm_start=True).fit(split.X_train, split.y_train)
        before = model.predict(split.X_test)
        with pytest.raises(ValueError, match="y must hold at least 2 targets"):
            model.fit(split.X_train, np.full(len(split.y_train), np.nan))
        assert_array_equal(model.predict(split.X_test), before)


def test_interrupt_in_a_notebook_keeps_the_model(split, monkeypatch):
    monkeypatch.setattr("dmls2r_lite.foundation.descent._is_interactive", lambda: True)
    calls = []

    def loss(batch):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return null_loss(batch)

    model = small(metric_loss=loss, n_epochs=5)
    with pytest.warns(UserWarning, match="interrupted in metric epoch"):
        model.fit(split.X_train, split.y_train)
    assert np.isfinite(model.predict(split.X_test)).all()


def test_features_in_a_file_mapped_into_memory(split, tmp_path):
    X = np.asarray(split.X_train, dtype=np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    from_file, from_memory = (small().fit(rows, split.y_train).predict(rows) for rows in (mapped, X))
    assert_array_equal(from_file, from_memory)
    assert_allclose(from_file, small().fit(split.X_train, split.y_train).predict(split.X_train), rtol=1e-3)
