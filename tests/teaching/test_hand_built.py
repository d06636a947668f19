"""Functions that notebooks build by hand, taken out of their cells and run against the package's."""

import copy
import inspect
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from sklearn.base import RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import MinMaxScaler
from torch import nn
from torch.nn import functional

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.foundation import scores as of_scores
from dmls2r_lite.losses import RankedListLoss, pairwise_similarity_loss, ranked_list_loss
from dmls2r_lite.miner import mine_positives_negatives
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.practice import choosing
from dmls2r_lite.practice.errors import nearest_shares
from dmls2r_lite.practice.folds import fit_with_seed, predict_held_out
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.rivals import newer
from dmls2r_lite.rivals.coreg import COREGRegressor
from dmls2r_lite.rivals.mssr import contrastive_loss
from dmls2r_lite.rivals.placebos import shuffle_columns
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study import comparing
from dmls2r_lite.study.comparing import give_verdict, holm
from dmls2r_lite.training import MetricStep, PairwiseStep, TrainingSet, alternate, plan, train

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@cache
def hand_built(number: str) -> SimpleNamespace:
    """Functions and classes that the cells tagged `hand-built` of a notebook define, by name.

    The cells see torch, np and nn, what they import, and each other; nothing else of the notebook.
    """
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    names = {"torch": torch, "np": np, "nn": nn, "__name__": "hand_built"}
    for cell in nbformat.read(path, as_version=4).cells:
        if "hand-built" in cell.metadata.get("tags", []):
            exec(compile(cell.source, str(path), "exec"), names)
    built = filter(lambda one: inspect.isroutine(one) or inspect.isclass(one), names.values())
    return SimpleNamespace(**{one.__name__: one for one in built if one.__module__ == "hand_built"})


@pytest.mark.parametrize("number", ["00", "01", "02", "03", "04", "05", "06", "08", "09", "10", "11"])
def test_notebook_builds_by_hand(number):
    built = vars(hand_built(number))
    assert built
    for name, value in built.items():
        assert value.__doc__, name
        function = value.__init__ if inspect.isclass(value) else value
        assert function.__annotations__.keys() >= {"return"}, name


@pytest.fixture(params=range(10))
def seed(request: pytest.FixtureRequest) -> int:
    torch.manual_seed(request.param)
    return request.param


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(*shape, dtype=torch.float64)


def assert_alike(by_hand, of_package, *inputs: torch.Tensor) -> None:
    for tensor in inputs:
        tensor.requires_grad_()
    ours, theirs = by_hand(*inputs), of_package(*inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    gradients = torch.autograd.grad(ours.sum(), inputs), torch.autograd.grad(theirs.sum(), inputs)
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


def test_split_and_scaling(seed: int) -> None:
    by_hand = hand_built("00")
    data = load_dataset("toy")
    n_labeled, n_unlabeled = 2 + 7 * seed, 5 + 20 * seed
    rows = by_hand.draw_rows(len(data.target), n_labeled, n_unlabeled, seed)
    raw = split_dataset(data, n_labeled, n_unlabeled, seed, scale_on="none")
    for numbers, part in zip(rows, (raw.y_labeled, raw.y_unlabeled, raw.y_test), strict=True):
        np.testing.assert_array_equal(numbers, part.index)
    X, X_fit = data.features.to_numpy(), raw.X_train.to_numpy().copy()
    X_fit[:, 1] = 3.0 if seed == 0 else X_fit[:, 1]  # a constant column
    np.testing.assert_allclose(by_hand.min_max_scale(X_fit, X), MinMaxScaler().fit(X_fit).transform(X))


def test_pairwise_losses(seed: int) -> None:
    by_hand = hand_built("01")
    n = 2 + seed
    i, j = by_hand.ordered_pairs(n)
    numbers = of_scores.pairs_from_numbers(torch.arange(n * (n - 1)), n)
    assert i.equal(numbers[0])
    assert j.equal(numbers[1])

    matrix, g, h, y = normal(n, n), normal(n), normal(n), normal(n, scale=5)
    for loss in (by_hand.pairwise_similarity_loss_by_loops, by_hand.pairwise_similarity_loss_of_matrix):
        assert_alike(loss, lambda m, t: pairwise_similarity_loss(m[i, j], t[i] - t[j]), matrix, y)
    assert_alike(by_hand.all_pairs_loss_from_scores, of_scores.pairwise_similarity_loss_all_pairs, g, h, y)


def test_network_and_prediction(seed: int) -> None:
    by_hand = hand_built("01")
    network = by_hand.HandSiameseNetwork(4).double()
    twin = SiameseNetwork(make_encoder(4), LinearPairHead(100)).double()
    twin.encoder.load_state_dict(network.encoder.state_dict())
    twin.head.linear.load_state_dict(network.head.state_dict())
    x, x_labeled, y_labeled = normal(7, 4), normal(2 + seed, 4), normal(2 + seed)

    torch.testing.assert_close(network(x, x.flip(0)), twin(x, x.flip(0)))
    torch.testing.assert_close(by_hand.scores_by_halves(network, x), twin.scores(x))
    expected = twin.predict(x, x_labeled, y_labeled)
    torch.testing.assert_close(by_hand.predict_by_loops(network, x, x_labeled, y_labeled), expected)
    scores = *by_hand.scores_by_halves(network, x), *by_hand.scores_by_halves(network, x_labeled)
    torch.testing.assert_close(by_hand.predict_from_scores(*scores, y_labeled), expected)
    one_anchor = by_hand.estimate_from_anchor(network, x, x_labeled[0], y_labeled[0])
    torch.testing.assert_close(one_anchor, twin.predict(x, x_labeled[:1], y_labeled[:1]))


@pytest.mark.parametrize("mode", ["absolute", "signed"])
def test_mining(seed: int, mode: str) -> None:
    by_hand = hand_built("02")
    n, m = 1 + seed, 6 + 5 * seed
    for k in (1, 5, m):
        for differences in (normal(n, m), torch.randint(-3, 4, (n, m)).double()):  # that is full of ties
            found = by_hand.mine_by_loops(differences, k, mode)
            torch.testing.assert_close(found, mine_positives_negatives(differences, k, mode))
    g, h = normal(n), normal(m)
    torch.testing.assert_close(by_hand.mine_by_sorting(g, h, 5), of_scores.mine_from_scores(g, h, 5))


@pytest.mark.parametrize("weighting", ["ranked_list", "literal"])
def test_ranked_list_loss(seed: int, weighting: str) -> None:
    by_hand = hand_built("02")
    n, k = 1 + seed, 1 + seed % 5
    settings = (*[(1.2, 0.4, 10.0), (2.0, 1.0, 0.0), (3.0, 0.5, -0.5)][seed % 3], weighting)
    assert_alike(
        lambda *codes: by_hand.ranked_list_loss_by_loops(*codes, *settings),
        lambda *codes: ranked_list_loss(*codes, *settings),
        *(normal(n, 3), normal(n, k, 3), normal(n, k, 3)),
    )


def test_alternate_training(seed: int) -> None:
    by_hand = hand_built("03")
    n, k = 4 + seed, 1 + seed % 3
    x_labeled, y_labeled, x_unlabeled = normal(n, 3), normal(n), normal(20, 3)
    start = SiameseNetwork(make_encoder(3, (8, 5)), LinearPairHead(5)).double()
    ours, theirs = copy.deepcopy(start), copy.deepcopy(start)
    adam = torch.optim.Adam(ours.parameters(), lr=0.003)
    loss = {"boundary": 1.0, "margin": 0.3, "temperature": 5.0}
    losses = by_hand.train_alternately(
        ours, adam, x_labeled, y_labeled, x_unlabeled, n_epochs=3, k=k, seed=seed, **loss
    )
    steps = plan(alternate, 3, PairwiseStep(32, 100), MetricStep(k=k, metric_loss=RankedListLoss(**loss)))
    data = TrainingSet(x_labeled, y_labeled, x_unlabeled)
    history = train(theirs, data, steps, learning_rate=0.003, seed=seed)
    np.testing.assert_allclose(losses, history["loss"])
    torch.testing.assert_close([*ours.parameters()], [*theirs.parameters()])


def test_paired_comparison(seed: int, rng: np.random.Generator) -> None:
    by_hand = hand_built("04")
    a, b = rng.uniform(3, 6, size=(2, 3 + seed % 8))
    rows = {"seed": range(len(a)), "dataset": "d", "n_labeled": 20, "A": a, "B": b}
    trials = pd.DataFrame(rows).melt(["seed", "dataset", "n_labeled"], var_name="method", value_name="mae")
    row = give_verdict(trials, "A", "B").loc["d", 20]
    mean, standard_error = by_hand.paired_difference(a, b)
    np.testing.assert_allclose([mean, standard_error], [row["mean_difference"], scipy.stats.sem(a - b)])
    np.testing.assert_allclose(by_hand.signed_rank_p_value(a - b), row["p_value"])


@pytest.mark.parametrize("n_placebos", [0, 1, 2])
def test_verdicts(
    seed: int, rng: np.random.Generator, n_placebos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = hand_built("04")
    n_cells, n_splits, level = 1 + seed % 4, 6 + seed % 3, (0.05, 0.2)[seed % 2]
    monkeypatch.setattr(comparing, "LEVEL", level)
    p_values = rng.uniform(size=1 + seed) ** 3
    np.testing.assert_allclose(by_hand.correct_by_holm(p_values), holm(p_values))

    names = ["A", "B", "C", "D"][: 2 + n_placebos]
    for _ in range(2):
        effects = rng.choice([-0.6, -0.3, 0, 0.4], size=(len(names), n_cells, 1))
        errors = rng.uniform(3, 6, size=(n_cells, n_splits)) + effects
        errors = errors + rng.normal(0, 0.3, size=errors.shape)
        errors[0, 0, 0] += 5 * (seed % 5 == 0)  # may pull the mean to the side where the ranks are not
        levels = {"method": names, "n_labeled": range(n_cells), "seed": range(n_splits)}
        rows = pd.MultiIndex.from_product(levels.values(), names=levels)
        trials = pd.Series(errors.ravel(), rows, name="mae").reset_index().assign(dataset="d")
        expected = give_verdict(trials, "A", "B", names[2:])["verdict"].tolist()
        assert by_hand.verdicts_by_hand(errors[0], errors[1], list(errors[2:]), level) == expected


@pytest.mark.parametrize("model", [DummyRegressor(), RidgeCV(), ExtraTreesRegressor(10)])
@pytest.mark.parametrize("seed", range(5))
def test_held_out_predictions(seed: int, rng: np.random.Generator, model: RegressorMixin) -> None:
    by_hand = hand_built("05")
    n = int(rng.integers(10, 40))
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    y[rng.permutation(n)[rng.integers(6, n) :]] = np.nan
    predicted = by_hand.leave_labels_out(
        X, y, lambda X, y: fit_with_seed(model, pd.DataFrame(X), pd.Series(y), seed), 5, seed
    )
    held_out = predict_held_out(pd.DataFrame(X), pd.Series(y), {"model": model}, n_repeats=1, seed=seed)
    assert held_out["row"].is_unique
    np.testing.assert_allclose(held_out.set_index("row")["prediction"].reindex(range(n)), predicted)


def test_first_round_of_coreg(seed: int, rng: np.random.Generator) -> None:
    by_hand = hand_built("06")
    n_labeled, n_unlabeled, k = int(rng.integers(4, 20)), int(rng.integers(1, 40)), 2 + seed % 3
    X = rng.uniform(size=(n_labeled + n_unlabeled, 1 + seed % 4))
    y = np.append(np.sin(4 * X[:n_labeled, 0]), np.full(n_unlabeled, np.nan))
    model = COREGRegressor(k, p=(1, 3), pool_size=15, max_rounds=1, random_state=seed).fit(X, y)
    pool = n_labeled + np.random.RandomState(seed).permutation(n_unlabeled)[:15]
    picks = by_hand.first_round(X[:n_labeled], y[:n_labeled], X[pool], k, (1, 3))
    expected = [(regressor, pool[place], *numbers) for regressor, place, *numbers in picks]
    found = model.picks_[["chosen_by", "row", "target", "drop"]].to_numpy()
    np.testing.assert_allclose(found, np.reshape(expected, (-1, 4)))


def test_contrastive_loss(seed: int) -> None:
    by_hand = hand_built("06")
    n_pairs, margin = 1 + 3 * seed, 0.5 + 0.3 * seed
    is_similar = torch.rand(n_pairs) < seed / 9  # none in the first, all in the last
    assert_alike(
        lambda a, b: by_hand.contrastive_loss_by_loop(a, b, is_similar, margin),
        lambda a, b: contrastive_loss(a, b, is_similar, margin),
        *normal(2, n_pairs, 3),
    )


def test_mining_by_norm(seed: int) -> None:
    by_hand = hand_built("08")
    n, m, n_targets = 1 + seed, 6 + 5 * seed, 1 + seed % 3
    for k in (1, 5, m):
        for differences in (normal(n, m, n_targets), torch.randint(-3, 4, (n, m, n_targets)).double()):
            found = by_hand.mine_by_norm(differences, k)
            torch.testing.assert_close(found, mine_positives_negatives(differences, k))
            if n_targets == 1:
                torch.testing.assert_close(found, mine_positives_negatives(differences[..., 0], k))


@pytest.mark.parametrize("size", [8, 24, 28])
def test_image_encoder(size: int) -> None:
    by_hand = hand_built("08")
    torch.manual_seed(size)
    encoder = by_hand.ImageEncoder(size, n_codes=7).double()
    images = torch.rand(3, 1, size, size, dtype=torch.float64)
    codes = encoder(images)
    assert codes.shape == (3, 7)
    assert (codes >= 0).all()
    torch.testing.assert_close(encoder(images[1:2]), codes[1:2])

    maps, layers = images, [layer for layer in encoder.modules() if isinstance(layer, nn.Conv2d)]
    assert len(layers) == 2
    for layer in layers:
        maps = functional.conv2d(maps, layer.weight, layer.bias, layer.stride, layer.padding).relu()
    expected = maps.flatten(1) @ encoder.to_code.weight.T + encoder.to_code.bias
    torch.testing.assert_close(codes, expected.relu())


def test_antisymmetric_head(seed: int) -> None:
    by_hand = hand_built("08")
    n_codes, n_targets = 2 + seed, 1 + seed % 3
    head = by_hand.AntisymmetricHead(n_codes, n_targets).double()
    z_a, z_b = normal(20, n_codes), normal(20, n_codes)
    estimated = head(z_a, z_b)
    assert estimated.shape == (20, n_targets)
    assert torch.equal(estimated, -head(z_b, z_a))
    assert not head(z_a, z_a).any()
    assert estimated.all()

    network = SiameseNetwork(nn.Identity(), head)
    assert not network.is_separable
    y = normal(20, n_targets)
    forth = torch.stack([head(z_a, z_b[i].expand_as(z_a)) + y[i] for i in range(20)])  # no need to average
    torch.testing.assert_close(network.predict(z_a, z_b, y), forth.mean(dim=0))


def test_choosing_rows(seed: int, rng: np.random.Generator) -> None:
    by_hand = hand_built("09")
    X = rng.normal(size=(30, 1 + seed % 4)) * 10.0 ** rng.integers(-3, 4, 1 + seed % 4)
    X[3, 0] = 100 * np.abs(X).max()  # clipped
    X = np.column_stack([X, np.full(30, 0.1)])  # a constant column
    chosen = choosing.choose_rows(X, 8)
    assert by_hand.choose_by_hand(X, 8) == chosen.tolist()
    K = by_hand.covariance(X)
    C = K
    for row in chosen:
        np.testing.assert_allclose(by_hand.score(C), choosing.variance_reduction(C))
        C = by_hand.given_label(C, row)
    np.testing.assert_allclose(C, choosing.posterior_covariance(K, chosen), atol=1e-12)

    centres = by_hand.nearest_to_centres(X[:, :-1], 6, seed)
    assert len(set(centres)) == 6


def test_worth_of_labels_and_corrected_error(rng: np.random.Generator) -> None:
    by_hand = hand_built("09")
    sizes = np.array([10, 20, 50])
    power, gain = rng.uniform(0.1, 1), rng.uniform(0.3, 2)
    errors = 7 * sizes**-power  # a straight line on log scales: so many more labels everywhere
    worth = by_hand.worth_in_random_labels(sizes, errors, 7 * (gain * sizes) ** -power)
    np.testing.assert_allclose(worth, gain * sizes)

    X, e = rng.normal(size=(52, 3)), rng.uniform(size=12)
    Z = by_hand.standardise(X, by=X[12:])
    corrected = by_hand.corrected_error(e, Z[:12], Z[12:])
    np.testing.assert_allclose(corrected, nearest_shares(pd.DataFrame(X[:12]), pd.DataFrame(X[12:])) @ e)
    np.testing.assert_allclose(
        by_hand.corrected_error(e[:2], Z[:2], Z[[1, 0, 0, 0]]), 0.75 * e[0] + 0.25 * e[1]
    )


@pytest.mark.parametrize("model", ["median", "ridge", "3-NN"])
def test_intervals(seed: int, rng: np.random.Generator, model: str) -> None:
    by_hand = hand_built("10")
    n = 9 + 4 * seed
    X, X_new, y = rng.normal(size=(n, 3)), rng.normal(size=(30, 3)), rng.normal(size=n)
    regressor = plain_models()[model]
    of_package = ConformalRegressor(regressor, cv=2 + seed, random_state=seed).fit(X, y)
    copies = by_hand.fit_without_folds(regressor, X, y, of_package.fold_)
    low, high = by_hand.opinions_of_labels(copies, of_package.fold_, X, y, X_new)
    np.testing.assert_allclose((high - low) / 2, np.tile(of_package.errors_, (30, 1)), atol=1e-12)
    for coverage in (0.6, 0.8, 0.9):
        bounds = by_hand.cv_plus(low, high, coverage)
        np.testing.assert_allclose(bounds, of_package.predict_interval(X_new, coverage))


def test_newer_losses(seed: int) -> None:
    by_hand = hand_built("11")
    n = 3 + seed
    targets = normal(n).round(decimals=seed % 3)  # also rows that are equally far
    codes, differences = normal(n, 3), normal(n, n)
    for name in ("rank_n_contrast", "log_ratio"):
        ours, theirs = getattr(by_hand, name), getattr(newer, f"{name}_loss")
        assert_alike(partial(ours, targets=targets), partial(theirs, targets=targets), codes.clone())
    loop = newer.loop_consistency_loss
    batch = partial(newer.MixedBatch, codes, codes, y=targets)
    assert_alike(by_hand.loop_consistency, lambda d: loop(batch(differences=d)), differences)
    torch.testing.assert_close(
        by_hand.barycentric_weights(codes[0], codes[1:]),
        newer.barycentric_weights(codes[:1], codes[None, 1:])[0],
    )
    X = np.random.default_rng(seed).normal(size=(20, n))
    np.testing.assert_array_equal(by_hand.shuffle(X, seed), shuffle_columns(pd.DataFrame(X), seed))
