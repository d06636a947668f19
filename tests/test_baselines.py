"""COREG: every pick is what a version that refits for every candidate picks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from dmls2r_lite.baselines import COREGRegressor


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


@pytest.mark.parametrize("seed", range(20))
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


def test_picks_leave_the_unlabeled_set():
    X, y = problem(0, 30, 200)
    model = COREGRegressor(random_state=0).fit(X, y)
    assert model.picks_["row"].is_unique
    assert np.isnan(y[model.picks_["row"]]).all()
    assert (model.picks_["drop"] > 0).all()
    assert model.picks_.groupby("round").size().max() <= 2


def test_without_unlabeled_samples_it_is_two_nearest_neighbours():
    X, y = problem(1, 30, 0)
    expected = np.mean([KNeighborsRegressor(3, p=p).fit(X, y).predict(X) for p in (2, 5)], axis=0)
    assert_allclose(COREGRegressor().fit(X, y).predict(X), expected)


def test_seed():
    X, y = problem(2, 20, 300)
    first, again, other = (COREGRegressor(random_state=seed).fit(X, y).picks_ for seed in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors == 0, must be >= 1"),
        ({"n_neighbors": 2.5}, TypeError, "n_neighbors must be an instance of int"),
        ({"n_neighbors": 13}, ValueError, "n_neighbors must not exceed the number of labels, 12, got 13"),
        ({"p": (2,)}, ValueError, r"p must be 2 exponents of 1 or more, got \(2,\)"),
        ({"p": (0.5, 2)}, ValueError, "p must be 2 exponents of 1 or more"),
        ({"pool_size": 0}, ValueError, "pool_size == 0, must be >= 1"),
        ({"max_rounds": -1}, ValueError, "max_rounds == -1, must be >= 0"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        COREGRegressor(**options).fit(*problem(0))


@parametrize_with_checks([COREGRegressor()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
