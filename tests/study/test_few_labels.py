"""Trials of choosing, averaging and intervals: which rows are chosen, what is measured, what is kept."""

import few_labels
import numpy as np
import pandas as pd
import pytest
from few_labels import CHOICES, CHOSEN, FEW_LABELS, RANDOM, SPACES, has_intervals
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesRegressor

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.choosing import choose_rows
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.trials import read_shipped

N, SEED = 10, 3


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), N, 200, SEED)


def choose(choice, seed=SEED, again=False):
    """Rows of the pool that get a label."""
    call = few_labels._choose.__wrapped__ if again else few_labels._choose  # which is cached
    return call("toy", choice, N, seed)


class TestChoices:
    @pytest.mark.parametrize("choice", CHOICES)
    def test_distinct_rows_of_the_pool_and_always_the_same(self, choice):
        rows = choose(choice)
        assert len(set(rows)) == N
        assert set(rows) <= set(range(210))
        assert_array_equal(choose(choice, again=True), rows)
        if choice not in (CHOSEN, RANDOM):
            assert tuple(choose(choice, SEED + 1)) != tuple(rows)

    def test_random_and_chosen(self, split):
        assert choose(RANDOM).tolist() == list(range(N))  # the labeled rows of the split
        assert_array_equal(choose(CHOSEN), choose_rows(split.X_train, N))

    def test_nearest_to_the_centres_by_loops(self, split):
        X = split.X_train
        Z = np.clip((X - X.mean()) / X.std(ddof=0), -5, 5).to_numpy()
        expected = []
        for centre in KMeans(N, n_init=10, random_state=SEED).fit(Z).cluster_centers_:
            free = [row for row in range(len(Z)) if row not in expected]
            expected.append(min(free, key=lambda row: ((Z[row] - centre) ** 2).sum()))
        assert choose("k-means").tolist() == expected

    def test_a_row_that_is_taken_is_not_taken_again(self):
        """Of three centres the two at 0 want the same row; the second gets the next one."""
        pool = pd.DataFrame({"x": [0.0, 0.1, 50, 51, 100, 100.5]})
        assert sorted(few_labels._nearest_to_centres(pool, 6, 0)) == list(range(6))

    def test_spaces_continue_from_the_same_half(self, split):
        pool, half = split.X_train, np.arange(N // 2)
        y = split.y_train.to_numpy(copy=True)
        y[N // 2 :] = np.nan
        trained = DMLS2RRegressor(random_state=SEED).fit(pool, y).transform(pool)
        untrained = DMLS2RRegressor(n_epochs=1, learning_rate=1e-30, random_state=SEED)
        spaces = {
            "input space": pool.to_numpy(),
            "metric space": trained,
            "untrained space": untrained.fit(pool, -y).transform(pool),  # whatever the labels and epochs
        }
        assert tuple(spaces) == SPACES
        found = {}
        for name, space in spaces.items():
            found[name] = tuple(choose(name))
            assert found[name][: N // 2] == tuple(half)
            assert found[name][N // 2 :] == tuple(choose_rows(space, N - N // 2, labeled=half))
        assert len(set(found.values())) == 3


def test_where_intervals_are_measured():
    """Not where they take longest, and not where nothing is asked about them: as in the shipped trials."""
    cells = (
        read_shipped("few_labels").groupby(["dataset", "method", "choice", "n_labeled"])["width_80"].count()
    )
    once = ("boston", "average", CHOSEN, 50)  # though it takes long
    assert set(cells.index[cells == 20]) - {once} == {cell for cell in cells.index if has_intervals(*cell)}
    assert not has_intervals(*once)
    assert has_intervals("boston", "average", CHOSEN, 20)


def measured(name, choice, seeds, method):
    """The rows of a cell of that learner, with a method in its place."""
    return FEW_LABELS.measure(load_dataset("toy"), name, method, choice, N, seeds)


@pytest.mark.parametrize("choice", ["chosen", "input space"])
def test_errors_by_hand(choice):
    rows = measured("ridge", choice, [SEED, SEED + 1], plain_models()["ridge"])
    for seed, row in zip((SEED, SEED + 1), rows, strict=True):
        split = split_dataset(load_dataset("toy"), N, 200, seed)
        labeled = choose(choice, seed)
        y = pd.concat([split.y_labeled, split.y_unlabeled]).to_numpy()
        fitted = plain_models()["ridge"].fit(split.X_train.iloc[labeled], y[labeled])
        errors = np.abs(fitted.predict(split.X_test) - split.y_test.to_numpy())
        assert (row["mae"], row["n_test"]) == (pytest.approx(errors.mean()), len(errors))
        assert "expected" not in row


@pytest.mark.parametrize("choice", [RANDOM, CHOSEN])
def test_intervals_by_hand(choice):
    (found,) = measured("extra trees", choice, [SEED], ExtraTreesRegressor(10))
    split = split_dataset(load_dataset("toy"), N, 200, SEED)
    is_chosen = np.isin(np.arange(210), choose(choice))
    y = pd.concat([split.y_labeled, split.y_unlabeled]).where(is_chosen)
    model = ConformalRegressor(ExtraTreesRegressor(10), random_state=SEED).fit(split.X_train, y)
    estimates, y_test, errors = model.predict(split.X_test), split.y_test.to_numpy(), sorted(model.errors_)
    expected = {
        "mae": np.abs(estimates - y_test).mean(),
        "n_test": 190,
        "expected": sum(errors) / N,
    }
    for percent, rank in ((80, 9), (90, 10)):  # of ten errors: ceil(0.8 * 11) and ceil(0.9 * 11)
        low, high = model.predict_interval(split.X_test, percent / 100).T
        expected[f"coverage_{percent}"] = np.mean((low <= y_test) & (y_test <= high))
        expected[f"width_{percent}"] = np.mean(high - low)
        half = errors[rank - 1]
        expected[f"constant_coverage_{percent}"] = np.mean(np.abs(y_test - estimates) <= half)
        expected[f"constant_width_{percent}"] = 2 * half
    assert set(expected) == set(FEW_LABELS.measured)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_an_interval_of_90_percent_takes_nine_labels(tmp_path):
    with pytest.raises(ParameterError, match="n_labeled must be an integer of 9 or more, got 8"):
        next(FEW_LABELS.run(tmp_path, n_labeled=[8]))
