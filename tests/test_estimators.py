"""DMLS2RRegressor: eq. 4 in the target's unit, reproducibility, what it takes and what it refuses."""

import ast
import copy
import doctest
import re

import naive
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import mean_absolute_error
from torch import nn

import dmls2r_lite.estimators
from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.fitting import fit_side_by_side
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.losses import RankedListLoss
from dmls2r_lite.model import LinearPairHead, make_encoder
from dmls2r_lite.rivals.placebos import mine_swapped, null_loss

SCALINGS = ["minmax", "standard", "none"]


def small(**parameters):
    """A regressor that is fitted in a moment."""
    quick = {"hidden_sizes": (8,), "n_epochs": 4, "max_steps_per_epoch": 4, "random_state": 0}
    return DMLS2RRegressor(**quick | parameters)


def boston(seed):
    return split_dataset(load_dataset("boston"), n_labeled=15, n_unlabeled=40, seed=seed, scale_on="none")


@pytest.fixture(scope="module")
def split():
    return boston(0)


@pytest.fixture(scope="module")
def fitted(split):
    return small().fit(split.X_train, split.y_train)


def hide(y, rows):
    """Targets with those of some rows hidden."""
    return y.mask(np.isin(np.arange(len(y)), rows))


def test_example_in_the_docstring():
    assert doctest.testmod(dmls2r_lite.estimators) == (0, 5)  # failures, lines tried


CHANGES = [
    *({"n_epochs": 3}, {"learning_rate": 0.01}, {"optimizer_state": "separate"}, {"pair_batch_size": 6}),
    *({"anchor_batch_size": 7}, {"max_steps_per_epoch": 3}, {"k": 9}, {"miner": mine_swapped}),
    *({"miner": "signed"}, {"metric_loss": null_loss}, {"embedding": "raw"}, {"boundary": 1.0}),
    *({"margin": 1.2}, {"temperature": 1.0}, {"weighting": "literal"}, {"weight_gradient": True}),
    *({"schedule": "joint"}, {"schedule": lambda n_epochs: ["metric", "pairwise"]}, {"hidden_sizes": (9,)}),
    *({"metric_space": "before_relu"}, {"random_state": 1}, {"n_networks": 2}),
]


@pytest.mark.parametrize("change", CHANGES, ids=", ".join)
def test_every_parameter_changes_the_model(change, split):
    models = [small(**{"n_epochs": 4, "learning_rate": 0.02} | more) for more in ({}, change)]
    first, second = (model.fit(split.X_train, split.y_train).predict(split.X_test) for model in models)
    assert not np.allclose(first, second, rtol=1e-7)


class TestRandomState:
    def test_same_seed_same_bits_whatever_was_fitted_before(self, split, fitted):
        again = small().fit(split.X_train, split.y_train)
        for model in (again, again.fit(split.X_train, split.y_train)):
            assert_array_equal(model.predict(split.X_test), fitted.predict(split.X_test))
            assert model.history_["loss"].tolist() == fitted.history_["loss"].tolist()

    def test_seed_decides_the_order_of_pairs_too(self, split):
        fixed = {"encoder": make_encoder(13, (8,)), "head": LinearPairHead(8)}  # same initial weights
        first, second = (
            small(random_state=seed, **fixed).fit(split.X_train, split.y_train) for seed in (0, 1)
        )
        assert first.history_["loss"].tolist() != second.history_["loss"].tolist()

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
    @pytest.mark.parametrize("scalings", list(zip(SCALINGS, [*SCALINGS[1:], "minmax"], strict=True)))
    @pytest.mark.parametrize("separable", [True, False])
    def test_is_eq_4_in_the_targets_unit(self, scalings, separable, split):
        head = None if separable else naive.MLPHead(8)
        model = small(target_scaling=scalings[0], feature_scaling=scalings[1], head=head)
        model.fit(split.X_train, split.y_train)
        X, y_labeled = split.X_test[:10], split.y_labeled.to_numpy()
        f_forth = model.pairwise_difference(X, split.X_labeled)
        f_back = model.pairwise_difference(split.X_labeled, X)
        expected = [
            sum((f_forth[new, i] - f_back[i, new]) / 2 + y_labeled[i] for i in range(15)) / 15
            for new in range(10)
        ]
        assert_allclose(model.predict(X), expected, rtol=1e-10)
        assert_allclose(model.predict_each(X)[:, 0], expected, rtol=1e-10)

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

    @pytest.mark.parametrize("method", ["predict", "predict_each", "transform"])
    def test_blocks_of_rows_make_no_difference(self, method, split, fitted, monkeypatch):
        whole = getattr(fitted, method)(split.X_test)
        monkeypatch.setattr("dmls2r_lite.foundation.networks.ROWS_PER_BLOCK", 7)
        assert_allclose(getattr(fitted, method)(split.X_test), whole, rtol=1e-12)

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
        assert_allclose(fitted.transduction_, fitted.predict(split.X_unlabeled), rtol=1e-12)
        # Anywhere among the labeled ones, as long as each kind keeps its order.
        places = np.random.default_rng(0).permutation(55)
        order = np.empty(55, dtype=int)
        order[np.sort(places[:15])], order[np.sort(places[15:])] = np.arange(15), np.arange(15, 55)
        mixed = small().fit(split.X_train.iloc[order], split.y_train.iloc[order])
        assert_array_equal(mixed.predict(split.X_test), fitted.predict(split.X_test))
        assert_array_equal(mixed.transduction_, fitted.transduction_)

    def test_change_the_model(self, split, fitted):
        nearer = pd.concat([split.X_labeled, split.X_unlabeled[::-1] * 0.5 + split.X_labeled.mean() * 0.5])
        other = small().fit(nearer, split.y_train)
        assert not np.allclose(other.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-6)

    @pytest.mark.parametrize("optimizer_state", ["shared", "separate"])
    def test_without_them_step_2_is_skipped(self, optimizer_state, split):
        options = {"feature_scaling": "none", "optimizer_state": optimizer_state}
        skipping = small(n_epochs=6, **options).fit(split.X_labeled, split.y_labeled)
        assert (skipping.n_labeled_, skipping.n_unlabeled_) == (15, 0)
        assert skipping.transduction_.shape == (0,)
        assert skipping.history_["skipped"].tolist() == ["", "no unlabeled samples"] * 3
        assert skipping.history_["n_steps"].tolist() == [4, 0] * 3
        # Step 1 alone mines none, so k may exceed them.
        alone = small(schedule="pairwise_only", n_epochs=3, k=41, **options).fit(split.X_train, split.y_train)
        assert_array_equal(skipping.predict(split.X_test), alone.predict(split.X_test))
        assert skipping.history_["loss"].dropna().tolist() == alone.history_["loss"].tolist()


class TestHistory:
    @pytest.mark.parametrize("n_networks", [1, 2])
    def test_validation_samples_and_callback_see_every_epoch_of_each_network(self, n_networks, split):
        rows = []
        model = small(n_networks=n_networks, callback=lambda *seen: rows.append(seen))
        model.fit(split.X_train, split.y_train, split.X_test, split.y_test)
        assert [network for network, _ in rows] == model.networks_ * 4
        assert sorted(row["loss"] for _, row in rows) == sorted(model.history_["loss"])
        assert model.history_["validation_mae"].nunique() == 4 * n_networks
        assert model.n_iter_ == model.n_epochs_ == model.history_["epoch"].max() == 4

    def test_watching_changes_nothing(self, split, fitted):
        model = small().fit(split.X_train, split.y_train, split.X_test, split.y_test)
        predicted = model.predict(split.X_test)
        # While training the network computes in float32, afterwards in float64.
        last = model.history_["validation_mae"].iloc[-1]
        assert last == pytest.approx(mean_absolute_error(split.y_test, predicted), rel=1e-5)
        assert_array_equal(predicted, fitted.predict(split.X_test))


class TestSeveralNetworks:
    @pytest.fixture
    def three(self, split):
        return small(n_networks=3).fit(split.X_train, split.y_train)

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
        each = three.predict_each(X)
        assert_allclose(each, np.array([m.predict(X) for m in singles]).T, rtol=1e-4)
        assert_allclose(each.mean(axis=1), three.predict(X), rtol=1e-10)
        assert three.get_feature_names_out().shape == (24,)
        assert_allclose(three.transduction_, three.predict(split.X_unlabeled), rtol=1e-12)
        losses = three.history_.groupby("network")["loss"].apply(list)
        assert_allclose(losses.tolist(), [m.history_["loss"].tolist() for m in singles], rtol=1e-4)

    def test_same_seed_same_bits(self, three, split):
        again = small(n_networks=3).fit(split.X_train, split.y_train)
        assert_array_equal(again.predict(split.X_test), three.predict(split.X_test))
        without_seconds = [model.history_.drop(columns="seconds") for model in (again, three)]
        pd.testing.assert_frame_equal(*without_seconds)


class TestSideBySide:
    @pytest.mark.parametrize(
        ("name", "value", "other"),
        [("k", 5, 3), ("learning_rate", np.float32(0.1), np.float32(0.2)), ("metric_loss", len, sum)],
    )
    def test_parameters_must_be_the_same(self, name, value, other, split):
        models = [small(random_state=0, **{name: value}), small(random_state=1, **{name: other})]
        with pytest.raises(ParameterError, match=f"{name} must be the same in all models, got "):
            fit_side_by_side(models, [(split.X_train, split.y_train)] * 2)

    @pytest.mark.parametrize(
        ("models", "sets", "message"),
        [
            ([], [], "models and training_sets must be as many, 1 or more, got 0 and 0"),
            ([small()], ["Xy"] * 2, "models and training_sets must be as many, 1 or more, got 1 and 2"),
            ([small()] * 2, ["Xy"] * 2, "models must be different ones of one class"),
            ([small(), small()], ["Xy", "X"], r"training_sets must hold pairs \(X, y\), got CRIM"),
            ([small(), small()], ["Xy", "Xy", None], "validation must be as many as models, 2, got 1"),
        ],
        ids=["none", "too few", "twice", "no pair", "validation"],
    )
    def test_a_set_for_each_of_different_models(self, models, sets, message, split):
        given = {"Xy": (split.X_train, split.y_train), "X": split.X_train}
        validation = [None] * sets.count(None)
        with pytest.raises(ParameterError, match=message):
            fit_side_by_side(models, [given[one] for one in sets if one], validation)

    @pytest.mark.parametrize(
        "parameters",
        [
            {"n_networks": 2},
            {"early_stopping": "held_out", "n_epochs": 8, "learning_rate": 0.02},  # which chooses for each
            {"head": naive.MLPHead(8)},
            {"metric_loss": RankedListLoss(1.0)},
        ],
        ids=str,
    )
    def test_equals_single_fits(self, parameters):
        splits = [boston(seed) for seed in range(3)]
        models = [clone(small(random_state=seed, **parameters)) for seed in range(3)]
        sets = [(one.X_train, one.y_train) for one in splits]
        together = fit_side_by_side(models, sets, [(one.X_test, one.y_test) for one in splits])
        assert together == models
        for seed, (model, one) in enumerate(zip(models, splits, strict=True)):
            alone = small(random_state=seed, **parameters).fit(one.X_train, one.y_train)
            assert_allclose(model.predict(one.X_test), alone.predict(one.X_test), rtol=1e-3)
            assert model.n_iter_ == model.n_epochs_ == alone.n_epochs_
            if model.n_networks == 1:  # measured in each model's own scale
                error = mean_absolute_error(one.y_test, model.predict(one.X_test))
                assert model.history_["validation_mae"].iloc[-1] == pytest.approx(error, rel=1e-5)
        assert (len({model.n_epochs_ for model in models}) > 1) == ("early_stopping" in parameters)

    @pytest.mark.parametrize("what", ["labels", "unlabeled"])
    def test_what_does_not_fit_together(self, what, split):
        other = (split.X_train, hide(split.y_train, [0]))
        sets = [
            (split.X_train, split.y_train),
            other if what == "labels" else (split.X_labeled, split.y_labeled),
        ]
        models = [small(), small()]
        with pytest.raises(ValueError, match="as many labels, and unlabeled samples or none"):
            fit_side_by_side(models, sets)
        assert not any(hasattr(model, "networks_") for model in models)


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


def expect(error, split, **parameters):
    """A fit with these parameters raises that error before any epoch is over."""
    model = small(**{"callback": lambda *_: pytest.fail("training has begun")} | parameters)
    with pytest.raises(ValueError, match=error):
        model.fit(split.X_train, split.y_train)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            nn.Linear(7, 3),
            r"encoder must map 2 samples of shape \(13,\) to a tensor \(2, n_codes\), got Run",
        ),
        (Returns(lambda x: x.sum(dim=1)), r"got shape \(2,\)"),
        (Returns(lambda x: x[:1]), r"got shape \(1, 13\)"),
        (Returns(lambda x: x[:, None]), r"got shape \(2, 1, 13\)"),
        (Returns(lambda x: (x, x)), "got <class 'tuple'>"),
        (Returns(lambda x: x.long()), r"torch\.float32 on cpu, got .* torch\.int64 on cpu"),
        (Returns(lambda x: x.to("meta")), r"torch\.float32 on cpu, got .* torch\.float32 on meta"),
        (nn.Linear(13, 3, device="meta"), "encoder must map"),
        (nn.Identity(), "encoder must have weights to train in step 2, got Identity"),
    ],
)
def test_what_an_encoder_gives(encoder, message, split):
    expect(message, split, encoder=encoder)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            LinearPairHead(5),
            r"head must map two batches of codes \(2, 8\) to a tensor \(2,\), got RuntimeE",
        ),
        (LinearPairHead(8, n_targets=2), r"to a tensor \(2,\), .* got shape \(2, 2\)"),
        (Returns(lambda a, b: 0.0), "got <class 'float'>"),
        (Returns(lambda a: a.sum(dim=1)), "got TypeError"),
        (BadScores(8), r"head must have a method scores with head\(z_i, z_j\) == g_i \+ h_j, or none"),
    ],
)
def test_what_a_head_gives(head, message, split):
    expect(message, split, head=head)


@pytest.mark.parametrize(
    "returned", [lambda b: 1.0, lambda b: None, lambda b: torch.zeros(()), lambda b: b.anchors.sum(dim=1)]
)
@pytest.mark.parametrize("n_networks", [1, 2])
def test_a_loss_must_be_a_scalar_of_the_weights(returned, n_networks, split):
    message = "metric_loss must give a scalar tensor that depends on the network's weights"
    expect(message, split, metric_loss=returned, n_networks=n_networks, callback=None)


def test_a_batch_of_one_has_no_variance(split):
    encoder = nn.Sequential(nn.Linear(13, 8), nn.BatchNorm1d(8), nn.ReLU())
    several = {"encoder": encoder, "max_steps_per_epoch": 100, "callback": None}
    message = (
        "must leave no batch of one, which BatchNorm cannot take, got 32 and 7"  # 15 anchors: 7, 7 and 1
    )
    expect(message, split, anchor_batch_size=7, **several)
    model = small(anchor_batch_size=4, **several).fit(split.X_train, split.y_train)
    assert np.isfinite(model.predict(split.X_test)).all()


class TestNetwork:
    @pytest.mark.parametrize("part", ["encoder", "head"])
    def test_a_module_of_ones_own_is_copied_and_starts_from_its_weights(self, part, split):
        encoder = nn.Sequential(nn.Linear(13, 6), nn.Tanh()).double()
        module = encoder if part == "encoder" else naive.MLPHead(8)
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
        assert codes.shape == (len(split.X_test), 8)
        assert_allclose(np.linalg.norm(codes, axis=1), 1, rtol=1e-12)
        assert fitted.get_feature_names_out().tolist() == [f"dmls2rregressor{i}" for i in range(8)]
        raw = small(embedding="raw").fit(split.X_train, split.y_train).transform(split.X_test)
        assert np.ptp(np.linalg.norm(raw, axis=1)) > 0.1


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("n_epochs", 0, "an integer of 1 or more"),
        ("anchor_batch_size", 0, "an integer of 1 or more, or None"),
        ("margin", 1.3, "from 0 to boundary, 1.2"),
        *[("hidden_sizes", value, "one or more integers of 1 or more") for value in ((), 100, (0.5,), "9")],
        ("encoder", nn.Linear, "a torch.nn.Module, or None"),
        ("encoder", ast.Module([], []), "a torch.nn.Module, or None"),
        ("callback", 3, "callable or None"),
        ("target_scaling", None, "'minmax', 'standard', 'none'"),
        ("schedule", "alternating", "'alternate', 'pairwise_only', 'joint'"),
        ("miner", "squared", "'absolute', 'signed'"),
        ("early_stopping", "yes", "None, 'held_out', 'cross_validation', 'leave_one_out'"),
        ("warm_start", "yes", "False, True"),
        ("device", "nonsense", "'auto' or one that PyTorch can use"),
        ("device", None, "'auto' or one that PyTorch can use"),
    ],
)
def test_a_wrong_parameter(name, value, allowed, split):
    expect(f"^{name} must be .*{re.escape(allowed)}.*{re.escape(repr(value))}", split, **{name: value})


def test_other_mistakes_in_parameters(split):
    expect("k must not exceed the number of unlabeled samples, 40, got 41", split, k=41)
    for steps in ([], ["pairwise", "triplet"]):
        message = rf"one or more of 'pairwise', 'metric', 'joint', got {re.escape(repr(steps))}"
        expect(message, split, schedule=lambda n_epochs, steps=steps: steps)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda s: (s.X_train, hide(s.y_train, range(1, 55))), "at least 2 targets that are not NaN, got 1"),
        (lambda s: (s.X_train, s.y_train, s.X_test), "X_validation and y_validation must be given together"),
        (lambda s: (s.X_train, s.y_train, s.X_test.iloc[:, 1:], s.y_test), "feature names should match"),
        (lambda s: (s.X_train, s.y_train, s.X_test, s.y_test * np.nan), "y_validation must .* NaN, got"),
        (lambda s: (s.X_train, s.y_train, s.X_test, s.y_test[1:]), "inconsistent numbers of samples"),
        (
            lambda s: (s.X_train, np.column_stack([s.y_train] * 2), s.X_test, s.y_test),
            r"y_validation must have targets of shape \(2,\) as in fit, got \(\)",
        ),
    ],
)
def test_a_mistake_in_the_data(arguments, message, split):
    with pytest.raises(ValueError, match=message):
        small().fit(*arguments(split))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_cuda(split, fitted):
    model = small(device="cuda").fit(split.X_train, split.y_train)
    assert next(model.network_.parameters()).device.type == "cuda"
    assert_allclose(model.predict(split.X_test), fitted.predict(split.X_test), rtol=1e-3)
    again = small(device="auto").fit(split.X_train, split.y_train)
    assert_array_equal(again.predict(split.X_test), model.predict(split.X_test))


class TestRobustness:
    def test_numpy_integers_are_integers(self, split):
        names = ("k", "pair_batch_size", "anchor_batch_size", "max_steps_per_epoch", "n_epochs", "n_networks")
        models = [small(**{name: kind(2) for name in names}) for kind in (int, np.int8)]
        first, second = (model.fit(split.X_train, split.y_train).predict(split.X_test) for model in models)
        assert_array_equal(first, second)

    def test_a_callback_may_leave_the_network_in_training_mode(self, split):
        encoder = nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Dropout(0.5))
        model = small(encoder=encoder, callback=lambda network, row: network.train())
        model.fit(split.X_train, split.y_train)
        assert_array_equal(model.predict(split.X_test), model.predict(split.X_test))

    def test_global_settings_do_not_matter(self, split, fitted):
        with sklearn.config_context(transform_output="pandas"):
            found = small().fit(split.X_train, split.y_train).predict(split.X_test)
        assert_array_equal(found, fitted.predict(split.X_test))

    def test_features_in_a_file_mapped_into_memory(self, split, tmp_path):
        X = np.asarray(split.X_train, dtype=np.float32)
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        from_file, from_memory = (small().fit(rows, split.y_train).predict(rows) for rows in (mapped, X))
        assert_array_equal(from_file, from_memory)
        expected = small().fit(split.X_train, split.y_train).predict(split.X_train)
        assert_allclose(from_file, expected, rtol=1e-3)


class TestVectorTargets:
    @pytest.fixture
    def table(self):
        X = np.random.default_rng(0).uniform(size=(300, 4))
        y = np.column_stack([10 + 3 * X[:, 0] - X[:, 1], 1000 * X[:, 2] ** 2])
        return X, y, np.where(np.arange(300)[:, None] < 30, y, np.nan)[:200]

    def test_learns_both_in_their_units(self, table):
        X, y, hidden = table
        model = DMLS2RRegressor(random_state=0).fit(X[:200], hidden)
        assert (model.n_labeled_, model.n_unlabeled_) == (30, 170)
        predicted = model.predict(X[200:])
        mae = np.abs(predicted - y[200:]).mean(axis=0)
        assert (mae < np.abs(np.median(y[:30], axis=0) - y[200:]).mean(axis=0) / 3).all()
        differences = model.pairwise_difference(X[200:], X[:30])
        assert differences.shape == (100, 30, 2)
        # eq. 4 by hand
        back = model.pairwise_difference(X[:30], X[200:]).transpose(1, 0, 2)
        assert_allclose(((differences - back) / 2 + y[:30]).mean(axis=1), predicted)
        assert model.transform(X[:5]).shape == (5, 100)
        several = small(n_networks=2).fit(X[:200], hidden)
        each = several.predict_each(X[:5])
        assert each.shape == (5, 2, 2)
        assert_allclose(each.mean(axis=1), several.predict(X[:5]), rtol=1e-10)

    def test_a_column_is_a_number(self, table):
        X, _, hidden = table
        with pytest.warns(sklearn.exceptions.DataConversionWarning):
            column = small().fit(X[:200], hidden[:, :1]).predict(X)
        assert_array_equal(column, small().fit(X[:200], hidden[:, 0]).predict(X))


def test_images():
    """Bright bars whose height is the target."""
    heights = np.random.default_rng(0).uniform(1, 7, size=120)
    bars = np.clip(heights[:, None, None] - np.arange(8)[None, :, None], 0, 1) * np.ones((1, 1, 8)) * 255
    X, y = bars[:, None], np.where(np.isin(np.arange(120), range(20, 80)), np.nan, heights)
    encoder = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 16), nn.ReLU()
    )
    model = DMLS2RRegressor(encoder=encoder, random_state=0).fit(X[:80], y[:80])
    mae = np.abs(model.predict(X[80:]) - heights[80:]).mean()
    assert mae < np.abs(np.median(heights[:20]) - heights[80:]).mean() / 3
    assert model.transform(X[:3]).shape == (3, 16)
    assert model.pairwise_difference(X[:3], X[:5]).shape == (3, 5)
    # One scale for all pixels.
    assert (model.feature_scaler_.data_min_, model.feature_scaler_.data_max_) == (0, 255)
    message = r"encoder must be given for samples of shape \(1, 8, 8\), got None"
    with pytest.raises(ValueError, match=message):
        DMLS2RRegressor().fit(X, y)


class TestEarlyStopping:
    @pytest.mark.parametrize(
        ("kind", "n_networks"),
        [("held_out", 1), ("held_out", 3), ("cross_validation", 1), ("leave_one_out", 1)],
    )
    def test_by_hand(self, kind, n_networks, split):
        """Of 13 labels: 2 held out; fifths of 3, 3, 3, 2, 2, each row counting once; each in turn."""
        X, y = split.X_train, hide(split.y_train, [0, 1])
        options = {"n_epochs": 6, "learning_rate": 0.02, "n_networks": n_networks}
        model = small(early_stopping=kind, **options).fit(X, y)
        labels = np.flatnonzero(y.notna())
        dealt = np.random.default_rng(np.random.RandomState(0).randint(2**31 - 1)).permutation(labels)
        folds = {
            "held_out": [dealt[:2]],
            "cross_validation": np.array_split(dealt, 5),
            "leave_one_out": labels[:, None],
        }[kind]
        total = np.zeros(6)
        for fold in folds:
            watched = small(**options).fit(X, hide(y, fold), X.iloc[fold], y.iloc[fold]).history_
            total += len(fold) * watched.groupby("epoch")["validation_mae"].mean().to_numpy()
        assert_allclose(model.validation_, total / sum(map(len, folds)), rtol=1e-5)
        assert model.n_epochs_ == model.validation_.idxmin() == total.argmin() + 1
        as_chosen = small(**options | {"n_epochs": model.n_epochs_}).fit(X, y)
        assert_array_equal(model.predict(split.X_test), as_chosen.predict(split.X_test))

    def test_too_few_labels(self, split):
        model = small(early_stopping="held_out")
        with pytest.raises(ValueError, match="early_stopping needs 3 labels or more, got 2"):
            model.fit(split.X_train, hide(split.y_train, range(2, 55)))


@pytest.mark.parametrize("n_networks", [1, 2])
def test_warm_start_goes_on_with_the_networks(n_networks, split):
    options = {"n_networks": n_networks, "learning_rate": 1e-9}
    model = small(warm_start=True, **options).fit(split.X_train, split.y_train)
    before, scaler = model.predict(split.X_test), model.feature_scaler_
    model.set_params(random_state=5).fit(split.X_train, split.y_train)
    assert_allclose(model.predict(split.X_test), before, rtol=1e-3)
    assert model.feature_scaler_ is scaler
    other = small(random_state=5, **options).fit(split.X_train, split.y_train)
    assert not np.allclose(other.predict(split.X_test), before, rtol=1e-3)
    X, y = split.X_train, split.y_train
    for other, targets, message in [
        (X, np.column_stack([y, y]), r"y must have targets of shape \(\) as in fit, got \(2,\)"),
        (X.iloc[:, 1:], y, "feature names should match"),
        (X[X.columns[::-1]], y, "Feature names must be in the same order"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(other, targets)
    with pytest.raises(ValueError, match=f"n_networks must stay {n_networks} for a warm start, got 3"):
        model.set_params(n_networks=3).fit(X, y)
