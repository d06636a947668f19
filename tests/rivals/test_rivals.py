"""COREG against a version that refits for every candidate; MSSR and the twins of step 1 against loops."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from pandas import DataFrame, Series
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.folds import fit_with_seeds
from dmls2r_lite.rivals.coreg import COREGRegressor
from dmls2r_lite.rivals.mssr import MSSRRegressor, contrastive_loss
from dmls2r_lite.rivals.twins import MLPRegressor, PairwiseDifferenceRegressor


def naive_coreg(X, y, k, ps, pool_size, max_rounds, seed):
    """Zhou and Li's algorithm with loops, a new fit for every candidate: picks and both labeled sets."""
    unlabeled = np.flatnonzero(np.isnan(y))
    waiting = [unlabeled[i] for i in np.random.RandomState(seed).permutation(len(unlabeled))]
    pool, waiting = waiting[:pool_size], waiting[pool_size:]
    known = np.flatnonzero(~np.isnan(y))
    sets = [([*X[known]], [*y[known]]) for _ in ps]
    picks = []
    for round_ in range(max_rounds):
        chosen = []
        for number, (p, (X_set, y_set)) in enumerate(zip(ps, sets, strict=True)):
            fitted = KNeighborsRegressor(k, p=p).fit(X_set, y_set)
            best = None
            for row in pool:
                (target,) = fitted.predict([X[row]])
                (near,) = fitted.kneighbors([X[row]], return_distance=False)
                refitted = KNeighborsRegressor(k, p=p).fit([*X_set, X[row]], [*y_set, target])
                drop = 0.0
                for i in near:
                    (before,), (after,) = fitted.predict([X_set[i]]), refitted.predict([X_set[i]])
                    drop += (y_set[i] - before) ** 2 - (y_set[i] - after) ** 2
                if best is None or drop > best[0] * (1 + 1e-10):
                    best = (drop, row, target)
            if best is not None and best[0] > 1e-12:
                chosen.append((number, best))
                pool = [row for row in pool if row != best[1]]
        if not chosen:
            break
        for number, (drop, row, target) in chosen:
            sets[1 - number][0].append(X[row])
            sets[1 - number][1].append(target)
            picks.append((round_, number, row, target, drop))
        while len(pool) < pool_size and waiting:
            pool.append(waiting.pop(0))
    return picks, sets


def problem(seed, n_labeled=12, n_unlabeled=30, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_labeled + n_unlabeled, n_features))
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + rng.normal(scale=0.1, size=len(X))
    y[rng.permutation(len(y))[:n_unlabeled]] = np.nan
    return X, y


@pytest.mark.parametrize("seed", range(6))
def test_picks_are_the_naive_ones(seed):
    X, y = problem(seed)
    k = 2 + seed % 3
    picks, sets = naive_coreg(X, y, k, (2, 5), pool_size=10, max_rounds=8, seed=seed)
    model = COREGRegressor(k, pool_size=10, max_rounds=8, random_state=seed).fit(X, y)
    assert len(picks) > 0
    assert model.picks_[["round", "chosen_by", "row"]].to_numpy().tolist() == [
        list(pick[:3]) for pick in picks
    ]
    assert_allclose(model.picks_["target"], [pick[3] for pick in picks])
    assert_allclose(model.picks_["drop"], [pick[4] for pick in picks], atol=1e-12)
    x_new = np.random.default_rng(seed).uniform(size=(50, 3))
    expected = [
        KNeighborsRegressor(k, p=p).fit(*labeled_set).predict(x_new)
        for p, labeled_set in zip((2, 5), sets, strict=True)
    ]
    assert_allclose(model.predict(x_new), np.mean(expected, axis=0))


def test_by_hand():
    # k = 1: the candidate at 0.9 gets the target of 1.0, its nearest label. No labeled sample is nearer to it
    # than to itself, so no error can drop, and nothing is picked.
    X, y = np.array([[0.0], [1.0], [0.9]]), np.array([0.0, 1.0, np.nan])
    assert len(COREGRegressor(1, random_state=0).fit(X, y).picks_) == 0
    # k = 2, labels 0, 0, 3 at 0, 1, 4: the candidate at 3.5 gets (0 + 3) / 2 = 1.5. For the label at 4 it
    # takes the place of the one at 1: estimate (3 + 1.5) / 2 = 2.25 in place of 1.5, squared error 0.5625 in
    # place of 2.25. For the label at 1 the one at 0 stays nearer. Both regressors agree; the first picks it.
    X, y = np.array([[0.0], [1.0], [4.0], [3.5]]), np.array([0.0, 0.0, 3.0, np.nan])
    model = COREGRegressor(2, random_state=0).fit(X, y)
    assert model.picks_.to_numpy().tolist() == [[0, 0, 3, 1.5, 2.25 - 0.5625]]
    assert [len(regressor._y) for regressor in model.regressors_] == [3, 4]  # the other one got it
    assert model.predict([[3.6]]) == pytest.approx([((3 + 0) / 2 + (1.5 + 3) / 2) / 2])


def test_without_unlabeled_samples_it_is_two_nearest_neighbours():
    X, y = problem(1, 30, 0)
    expected = np.mean([KNeighborsRegressor(3, p=p).fit(X, y).predict(X) for p in (2, 5)], axis=0)
    assert_allclose(COREGRegressor().fit(X, y).predict(X), expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (COREGRegressor(13), "n_neighbors must not exceed the number of labels, 12, got 13"),
        (MSSRRegressor(n_neighbors=13), "n_neighbors must not exceed the number of labels, 12, got 13"),
        (MSSRRegressor(pair_batch_size=None), "pair_batch_size must be an integer of 1 or more, got None"),
        (
            MLPRegressor(encoder=torch.nn.Sequential(torch.nn.BatchNorm1d(3)), batch_size=1),
            "batch_size must be an integer of 2 or more, got 1",
        ),
    ],
)
def test_errors(model, message):
    with pytest.raises(ParameterError, match=message):
        model.fit(*problem(0))


@pytest.mark.parametrize(
    "method",
    [COREGRegressor(), MSSRRegressor(n_epochs=2), MLPRegressor(n_epochs=1), PairwiseDifferenceRegressor()],
)
def test_seed(method):
    X, y = problem(2, 20, 300)
    first, again, other = (
        clone(method).set_params(random_state=s).fit(X, y).predict(X + 0.1) for s in (0, 0, 1)
    )
    assert (first == again).all()
    assert not (first == other).all()


class TestContrastiveLoss:
    def test_by_hand(self):
        # distances 5 (similar), 5 and 0.6 (not): 25 / 2, 0 and (1 - 0.6)^2 / 2, their mean
        z_a = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        z_b = torch.tensor([[3.0, 4.0], [3.0, 4.0], [1.0, 1.6]], dtype=torch.float64)
        loss = contrastive_loss(z_a, z_b, torch.tensor([True, False, False]), margin=1.0)
        assert loss.item() == pytest.approx((12.5 + 0 + 0.08) / 3)

    def test_gradient_of_equal_codes_is_finite(self):
        z = torch.ones(4, 2, requires_grad=True)
        contrastive_loss(z, torch.ones(4, 2), torch.tensor([True, False, True, False]), 1.0).backward()
        assert z.grad.isfinite().all()


class TestMSSR:
    def test_prediction_is_the_mean_of_the_nearest_codes(self):
        X, y = problem(0, 20, 60)
        model = MSSRRegressor(n_epochs=3, random_state=0).fit(X, y)
        x_new = np.random.default_rng(1).uniform(size=(30, 3))
        with torch.no_grad():
            codes, new = (model.encoder_(torch.tensor(rows)).numpy() for rows in (X[~np.isnan(y)], x_new))
        known = y[~np.isnan(y)]
        expected = [np.mean(known[sorted(range(20), key=lambda i: d[i])[:3]]) for d in cdist(new, codes)]
        assert_allclose(model.predict(x_new), expected)

    def test_pairs_and_their_similarity(self):
        # Three labels 0, 1, 10: of the differences 1, 9 and 10 the least third is 1: only (0, 1) is similar.
        X = np.array([[0.0], [1.0], [2.0], [0.1], [1.9], [40.0]])
        y = np.array([0.0, 1.0, 10.0, np.nan, np.nan, np.nan])
        model = MSSRRegressor(similar_targets=1 / 3, similar_features=2 / 9, n_epochs=1, random_state=0)
        (batch,) = model._begin(X, y, seed=0)[1]
        pairs = list(zip(*(part.double().numpy().round(5).ravel().tolist() for part in batch), strict=True))
        assert {(min(a, b), max(a, b), similar) for a, b, similar in pairs[:3]} == {
            (0, 1, True),
            (0, 2, False),
            (1, 2, False),
        }
        # Of the 9 distances between an unlabeled and a labeled sample two are 0.1, the least.
        assert len(pairs) == 3 + 32
        for u, x, similar in pairs[3:]:
            assert u in (0.1, 1.9, 40.0)
            assert x in (0.0, 1.0, 2.0)
            assert similar == (abs(u - x) < 0.11)

    def test_learns_a_space_in_which_similar_targets_are_near(self):
        X, y = problem(3, 40, 200, 6)  # four of the six features have nothing to do with the target
        model = MSSRRegressor(random_state=0).fit(X, y)
        assert model.losses_[-1] < 0.9 * model.losses_[0]
        rng = np.random.default_rng(5)
        x_new = rng.uniform(size=(400, 6))
        truth = np.sin(4 * x_new[:, 0]) + x_new[:, 1] ** 2
        known = ~np.isnan(y)
        plain = KNeighborsRegressor(3).fit(X[known], y[known])
        errors = [np.abs(m.predict(x_new) - truth).mean() for m in (model, plain)]
        assert errors[0] < errors[1]


class TestMLP:
    def test_starts_as_its_twin(self):
        X, y = problem(0)
        same = {"n_epochs": 1, "learning_rate": 1e-12, "random_state": 3}
        mlp = MLPRegressor(**same).fit(X, y)
        twin = DMLS2RRegressor(feature_scaling="none", **same).fit(X, y)
        for a, b in zip(mlp.network_[0].parameters(), twin.network_.encoder.parameters(), strict=True):
            assert_allclose(a.detach(), b.detach(), atol=1e-9)

    @pytest.mark.parametrize(("n_labeled", "cap"), [(5, 100), (12, 100), (12, 3)])
    def test_takes_as_many_gradient_steps_as_step_1(self, n_labeled, cap, monkeypatch):
        X, y = problem(0, n_labeled)
        steps = []
        monkeypatch.setattr(torch.optim.Adam, "step", lambda self: steps.append(self))
        MLPRegressor(n_epochs=2, max_steps_per_epoch=cap, random_state=0).fit(X, y)
        n_mlp = len(steps)
        step_1 = DMLS2RRegressor(n_epochs=2, max_steps_per_epoch=cap, schedule="pairwise_only").fit(X, y)
        assert n_mlp == len(steps) - n_mlp == step_1.history_["n_steps"].sum()

    def test_fits_functions(self):
        X, y = problem(1, 100, 0)
        fitted = MLPRegressor(random_state=0).fit(X, np.column_stack([y, 1000 * y])).predict(X)
        assert (np.abs(fitted - np.column_stack([y, 1000 * y])).mean(axis=0) < [0.15, 150]).all()

    def test_unlabeled_rows_change_nothing(self):
        X, y = problem(1)
        known, model = ~np.isnan(y), MLPRegressor(n_epochs=2, random_state=0)
        assert (model.fit(X, y).predict(X) == model.fit(X[known], y[known]).predict(X)).all()

    def test_any_encoder(self):
        X, y = np.random.default_rng(0).normal(size=(20, 2, 8, 8)), np.arange(20.0)
        layers = torch.nn.Conv2d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 16)
        encoder = torch.nn.Sequential(*layers)
        before = [weight.clone() for weight in encoder.parameters()]
        model = MLPRegressor(encoder=encoder, random_state=0).fit(X, y)
        assert all(map(torch.equal, before, encoder.parameters()))  # it trains a copy
        assert np.abs(model.predict(X) - y).mean() < 0.5
        for wrong, message in [
            (None, "encoder must be given for samples of shape"),
            (torch.nn.Linear(3, 3), r"encoder must map 2 samples .* got RuntimeError"),
        ]:
            with pytest.raises(ValueError, match=message):
                MLPRegressor(encoder=wrong).fit(X, y)


class TestPairwiseDifference:
    def test_equals_loop(self, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.rivals.twins.PAIRS_PER_BLOCK", 50)
        X, y = problem(0, 6, 4)
        known = np.flatnonzero(~np.isnan(y))
        rows, differences = [], []
        for i in known:
            for j in known:
                if i != j:
                    rows.append([*X[i], *X[j], *(X[i] - X[j])])
                    differences.append(y[i] - y[j])
        tree = KNeighborsRegressor(2).fit(rows, differences)
        x_new = np.random.default_rng(0).uniform(size=(20, 3))
        expected, each = [], []
        for x in x_new:
            estimates = []
            for i in known:
                (forth,) = tree.predict([[*x, *X[i], *(x - X[i])]])
                (back,) = tree.predict([[*X[i], *x, *(X[i] - x)]])
                estimates.append((forth - back) / 2 + y[i])
            expected.append(np.mean(estimates))
            each.append(estimates)
        model = PairwiseDifferenceRegressor(KNeighborsRegressor(2)).fit(X, y)
        assert_allclose(model.predict(x_new), expected)
        assert_allclose(model.predict_each(x_new), each)  # of 20 rows, in blocks of 8
        assert_allclose(model.predict_each(x_new.tolist()).mean(axis=1), model.predict(x_new))

    def test_each_is_for_fitted_models_and_their_columns(self):
        with pytest.raises(NotFittedError):
            PairwiseDifferenceRegressor().predict_each([[0.0]])
        model = PairwiseDifferenceRegressor(LinearRegression()).fit(*problem(0))
        with pytest.raises(ValueError, match=r"X has 2 features, but Pair.* is expecting 3"):
            model.predict_each([[0.0, 1.0]])


WITH_DROPOUT = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.3))


@pytest.mark.parametrize(
    ("method", "sizes"),
    [
        (MLPRegressor(n_epochs=3), [(12, 40)] * 3),
        (MLPRegressor(n_epochs=3), [(12, 40), (12, 0), (12, 9)]),
        (MSSRRegressor(n_epochs=3), [(12, 40), (12, 30), (12, 9)]),
        (MSSRRegressor(n_epochs=3, pair_batch_size=7, max_steps_per_epoch=4), [(12, 0)] * 3),
        (MSSRRegressor(n_epochs=2), [(12, 40), (12, 0), (12, 9)]),
        (MLPRegressor(n_epochs=2), [(12, 40), (13, 40), (12, 40)]),
        (MLPRegressor(encoder=WITH_DROPOUT, n_epochs=2), [(12, 40)] * 3),
    ],
)
def test_side_by_side_as_alone(method, sizes, monkeypatch):
    single = torch.float32  # in double precision only rounding may differ
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    monkeypatch.setattr(torch.nn.Module, "float", torch.nn.Module.double)
    monkeypatch.setattr(torch, "float32", torch.float64)
    sets = [problem(seed, *size) for seed, size in enumerate(sizes)]
    torch.set_default_dtype(torch.float64)
    try:
        alone = [clone(method).set_params(random_state=seed).fit(*sets[seed]) for seed in range(3)]
        before = torch.get_rng_state()
        together = fit_with_seeds(method, [(DataFrame(X), Series(y)) for X, y in sets], range(3))
        assert torch.equal(torch.get_rng_state(), before)
    finally:
        torch.set_default_dtype(single)
    for model, expected, (X, _) in zip(together, alone, sets, strict=True):
        assert_allclose(model.predict(DataFrame(X)), expected.predict(X), rtol=1e-8)
        if isinstance(model, MSSRRegressor):
            assert_allclose(model.losses_, expected.losses_, rtol=1e-8)
            network, network_alone = model.encoder_, expected.encoder_
        else:
            network, network_alone = model.network_, expected.network_
        assert not network.training
        for weight, other in zip(network.parameters(), network_alone.parameters(), strict=True):
            assert_allclose(weight.detach(), other.detach(), rtol=1e-8, atol=1e-8)
            assert weight.untyped_storage().nbytes() == weight.nbytes
