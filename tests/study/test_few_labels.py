"""Trials of choosing, averaging and intervals: which rows are chosen, what is measured, what is kept."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.practice.choosing import choose_rows
from dmls2r_lite.practice.errors import correct_for_choice
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.study import few_labels as trials_module
from dmls2r_lite.study.benchmark import AS_PUBLISHED
from dmls2r_lite.study.few_labels import (
    CHOICES,
    CHOSEN,
    DATASETS,
    FEW_LABELS,
    RANDOM,
    SPACES,
    WANTED,
    choices_of,
    few_label_methods,
    has_intervals,
    run_few_labels,
)

N, SEED = 10, 3
KEY = list(FEW_LABELS.key)


@pytest.fixture(scope="module")
def split():
    return split_dataset(load_dataset("toy"), N, 200, SEED)


def choose(choice, seed=SEED, again=False):
    """Rows of the pool, and the rows of the test set that count."""
    call = trials_module._choose.__wrapped__ if again else trials_module._choose  # which is cached
    rows, wanted = call("toy", choice, N, seed)
    return np.array(rows), np.array(wanted)


def standardised(split, rows):
    return np.clip((rows - split.X_train.mean()) / split.X_train.std(ddof=0), -5, 5).to_numpy()


class TestChoices:
    @pytest.mark.parametrize("choice", CHOICES)
    def test_distinct_rows_of_the_pool_and_always_the_same(self, choice):
        rows, wanted = choose(choice)
        assert len(set(rows)) == N
        assert set(rows) <= set(range(210))
        assert len(set(wanted)) == len(wanted)
        assert set(wanted) <= set(range(190))
        for again, expected in zip(choose(choice, again=True), (rows, wanted), strict=True):
            assert_array_equal(again, expected)
        if choice != CHOSEN and not choice.startswith(RANDOM):
            assert tuple(choose(choice, SEED + 1)[0]) != tuple(rows)

    def test_random_and_chosen(self, split):
        assert choose(RANDOM)[0].tolist() == list(range(N))  # the labeled rows of the split
        assert_array_equal(choose(CHOSEN)[0], choose_rows(split.X_train, N))
        for choice in (RANDOM, CHOSEN, "k-means", *SPACES):
            assert choose(choice)[1].tolist() == list(range(190))  # all rows are wanted

    def test_nearest_to_the_centres_by_loops(self, split):
        Z = standardised(split, split.X_train)
        expected = []
        for centre in KMeans(N, n_init=10, random_state=SEED).fit(Z).cluster_centers_:
            free = [row for row in range(len(Z)) if row not in expected]
            expected.append(min(free, key=lambda row: ((Z[row] - centre) ** 2).sum()))
        assert choose("k-means")[0].tolist() == expected

    def test_a_row_that_is_taken_is_not_taken_again(self):
        """Of three centres the two at 0 want the same row; the second gets the next one."""
        pool = pd.DataFrame({"x": [0.0, 0.1, 50, 51, 100, 100.5]})
        rows = trials_module._nearest_to_centres(pool, 6, 0)
        assert sorted(rows) == list(range(6))

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
            found[name] = tuple(choose(name)[0])
            assert found[name][: N // 2] == tuple(half)
            assert found[name][N // 2 :] == tuple(choose_rows(space, N - N // 2, labeled=half))
        assert len(set(found.values())) == 3

    def test_wanted_rows(self, split):
        Z = standardised(split, split.X_test)
        along = PCA(1).fit_transform(Z)[:, 0]
        order = along.argsort()
        third = set(choose("random (a third)")[1])
        assert third in (set(order[:64]), set(order[-64:]))  # of 190, along the first principal component
        near = choose("random (20 near)")[1]
        distance = np.linalg.norm(Z - Z[near[0]], axis=1)  # the first is the centre
        assert set(near) == set(distance.argsort(kind="stable")[:20])
        for which in ("a third", "20 near"):
            rows, wanted = choose(f"targets ({which})")
            assert_array_equal(rows, choose_rows(split.X_train, N, targets=split.X_test.iloc[wanted]))
            for how in ("random", "chosen"):
                rows, same = choose(f"{how} ({which})")
                assert_array_equal(same, wanted)
                assert_array_equal(rows, choose(how)[0])

    def test_no_name_needs_quotes_in_the_table(self):
        assert not any(set(name) & set(',"\n') for name in (*CHOICES, *few_label_methods(), *DATASETS))
        assert len(set(CHOICES)) == len(CHOICES) == 12
        assert len(WANTED) == 6

    def test_every_learner_is_tried_with_random_rows(self):
        for method in few_label_methods():
            assert choices_of(method)[0] == RANDOM
            assert set(choices_of(method)) <= set(CHOICES)
            assert len(set(choices_of(method))) == len(choices_of(method))
        assert choices_of("extra trees") == CHOICES
        assert choices_of("average") == (RANDOM, CHOSEN)


@pytest.fixture
def two_choices(monkeypatch):
    monkeypatch.setattr(trials_module, "choices_of", lambda method: (RANDOM, CHOSEN))


def run(folder, methods=("ridge",), seeds=(0, 1, 2), **options):
    """Run to the end in this process; the trials and how many there were to do."""
    first, *_ = run_few_labels(folder, ["toy"], methods, [N], seeds, n_jobs=1, **options)
    return FEW_LABELS.read(folder), first


def test_where_intervals_are_measured():
    """Not where they take longest, and not where nothing is asked about them."""
    assert [name for name in few_label_methods() if has_intervals("toy", name, RANDOM, 50)] == [
        "DML-S2R", "average", "extra trees",
    ]  # fmt: skip
    assert [choice for choice in CHOICES if has_intervals("toy", "extra trees", choice, 50)] == [
        RANDOM, CHOSEN,
    ]  # fmt: skip
    assert [n for n in (10, 20, 21, 50) if has_intervals("toy", "average", CHOSEN, n)] == [10, 20]
    assert not has_intervals(AS_PUBLISHED, "average", RANDOM, 10)


class TestRun:
    def test_errors_by_hand(self, tmp_path):
        trials, to_do = run(tmp_path, seeds=[SEED, SEED + 1])
        assert to_do == len(trials) == 12  # six choices
        assert set(trials["choice"]) == set(choices_of("ridge"))
        for _, trial in trials.iterrows():
            split = split_dataset(load_dataset("toy"), N, 200, trial["seed"])
            rows, wanted = choose(trial["choice"], trial["seed"])
            y = pd.concat([split.y_labeled, split.y_unlabeled]).to_numpy()
            fitted = few_label_methods()["ridge"].fit(split.X_train.iloc[rows], y[rows])
            errors = np.abs(fitted.predict(split.X_test.iloc[wanted]) - split.y_test.to_numpy()[wanted])
            assert_allclose(trial["mae"], sum(errors) / len(errors), rtol=1e-5)  # six digits are written
            assert trial["n_test"] == 190
            assert np.isnan(trial["expected"])

    def test_only_the_rest_is_done(self, tmp_path, two_choices):
        before, to_do = run(tmp_path, seeds=[0, 1])
        assert (to_do, len(before)) == (4, 4)
        whole = FEW_LABELS.path(tmp_path).read_bytes()
        assert list(run_few_labels(tmp_path, ["toy"], ["ridge"], [N], [0, 1], n_jobs=1)) == [0]
        assert FEW_LABELS.path(tmp_path).read_bytes() == whole
        after, to_do = run(tmp_path, seeds=[0, 1, 2])
        assert (to_do, len(after)) == (2, 6)
        pd.testing.assert_frame_equal(after[:4], before)

    @pytest.mark.parametrize("cut", [1, 2, 25, 60, 100])
    def test_a_line_that_was_cut_off_is_done_again(self, cut, tmp_path, two_choices):
        before, _ = run(tmp_path)
        path = FEW_LABELS.path(tmp_path)
        path.write_bytes(path.read_bytes()[:-cut])
        after, to_do = run(tmp_path)
        assert to_do == (1 if cut > 1 else 0)  # without its end of line a row is still whole
        by_key = [t.sort_values(KEY, ignore_index=True).drop(columns="finished") for t in (before, after)]
        pd.testing.assert_frame_equal(*by_key)

    @pytest.mark.parametrize("choice", [RANDOM, CHOSEN])
    def test_intervals_by_hand(self, choice, tmp_path, monkeypatch):
        methods = {"extra trees": ExtraTreesRegressor(10)}
        monkeypatch.setattr(trials_module, "few_label_methods", lambda: methods)
        monkeypatch.setattr(trials_module, "choices_of", lambda method: (choice,))
        trials, _ = run(tmp_path, ["extra trees"], [SEED, SEED + 1])
        assert len(trials) == 2
        for _, trial in trials.iterrows():
            seed = trial["seed"]
            split = split_dataset(load_dataset("toy"), N, 200, seed)
            rows, _ = choose(choice, seed)
            y = pd.concat([split.y_labeled, split.y_unlabeled]).to_numpy(copy=True)
            is_chosen = np.isin(np.arange(210), rows)
            y[~is_chosen] = np.nan
            model = ConformalRegressor(ExtraTreesRegressor(10), random_state=seed).fit(split.X_train, y)
            X, y_test = split.X_test, split.y_test.to_numpy()
            estimates, errors = model.predict(X), sorted(model.errors_)
            expected = {
                "mae": np.mean([abs(a - b) for a, b in zip(estimates, y_test, strict=True)]),
                "expected": sum(errors) / N,
                "expected_corrected": correct_for_choice(
                    model.errors_, model.fold_, split.X_train[is_chosen], split.X_train[~is_chosen]
                )[0],
            }
            for percent, rank in ((80, 9), (90, 10)):  # of ten errors: ceil(0.8 * 11) and ceil(0.9 * 11)
                bounds = model.predict_interval(X, percent / 100)
                held = [low <= value <= high for (low, high), value in zip(bounds, y_test, strict=True)]
                expected[f"coverage_{percent}"] = np.mean(held)
                expected[f"width_{percent}"] = np.mean([high - low for low, high in bounds])
                half = errors[rank - 1]
                expected[f"constant_coverage_{percent}"] = np.mean(np.abs(y_test - estimates) <= half)
                expected[f"constant_width_{percent}"] = 2 * half
            for name, value in expected.items():
                assert_allclose(trial[name], value, rtol=1e-5, err_msg=name)

    def test_wanted_rows_are_measured_on(self, tmp_path, monkeypatch):
        monkeypatch.setattr(trials_module, "choices_of", lambda method: WANTED)
        trials, to_do = run(tmp_path, ["ridge"], [SEED])
        assert to_do == len(trials) == 6
        n_test = trials.set_index("choice")["n_test"]
        assert (n_test[[choice for choice in WANTED if "20 near" in choice]] == 20).all()
        assert (n_test[[choice for choice in WANTED if "a third" in choice]] == 64).all()
        split = split_dataset(load_dataset("toy"), N, 200, SEED)
        for choice in WANTED:
            rows, wanted = choose(choice)
            y = pd.concat([split.y_labeled, split.y_unlabeled]).to_numpy()
            fitted = few_label_methods()["ridge"].fit(split.X_train.iloc[rows], y[rows])
            errors = np.abs(fitted.predict(split.X_test.iloc[wanted]) - split.y_test.to_numpy()[wanted])
            mae = trials.set_index("choice")["mae"][choice]
            assert_allclose(mae, errors.mean(), rtol=1e-5)

    def test_default_grid(self, tmp_path, monkeypatch):
        n_choices = sum(len(choices_of(method)) for method in few_label_methods())
        monkeypatch.setattr(trials_module, "_load", lambda name: load_dataset("toy"))
        # Of Air Quality as published only the average on random rows, beside the paper's cells.
        assert next(run_few_labels(tmp_path / "new")) == 3 * 20 * (5 * n_choices + 1)
        assert next(run_few_labels(tmp_path / "new", [AS_PUBLISHED], seeds=[0])) == 3
        assert next(run_few_labels(tmp_path / "new", ["toy"])) == 3 * 20 * n_choices
        assert next(run_few_labels(tmp_path / "new", ["toy", "toy"], ["ridge"] * 2, [10, 10], [1, 1])) == 6
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"datasets": ["nix"]}, "datasets must be among boston, .*, toy, got 'nix'"),
            ({"methods": ["ridge", "nix"]}, "methods must be among 'DML-S2R', 'average', .*, got 'nix'"),
            ({"n_labeled": [10, 8]}, "n_labeled must be an integer of 9 or more, got 8"),
            ({"n_labeled": [10.0]}, "n_labeled must be an integer of 9 or more, got 10.0"),
            ({"n_labeled": [10, 300]}, r"n_labeled \+ n_unlabeled must be below 400"),
            ({"seeds": [0, -1]}, "seed must be an integer from 0 to 2147483648, got -1"),
            ({"n_jobs": 0}, "n_jobs must be an integer of 1 or more, or -1, or None, got 0"),
        ],
    )
    def test_mistakes_are_found_before_anything_runs(self, options, message, tmp_path):
        with pytest.raises(ValueError, match="^" + message) as caught:
            run_few_labels(tmp_path / "new", **{"datasets": ["toy"], **options})
        assert isinstance(caught.value, ParameterError) or "below 400" in message
        assert not (tmp_path / "new").exists()

    def test_a_failing_trial_is_named_and_the_others_stay(self, tmp_path, monkeypatch, two_choices):
        broken = few_label_methods()["3-NN"]
        methods = {"ridge": few_label_methods()["ridge"], "3-NN": clone(broken).set_params(n_neighbors=99)}
        monkeypatch.setattr(trials_module, "few_label_methods", lambda: methods)
        message = r"^3-NN on toy, random rows, N = 10, seeds 0 to 1: .*n_neighbors"
        with pytest.raises(RuntimeError, match=message):
            list(run_few_labels(tmp_path, ["toy"], None, [N], [0, 1], n_jobs=1))
        done = FEW_LABELS.read(tmp_path)
        assert set(done["method"]) == {"ridge"}
        assert len(done) == 4


def test_heading():
    assert FEW_LABELS.columns[:5] == ["dataset", "method", "choice", "n_labeled", "seed"]
    assert re.fullmatch(r"\w+", FEW_LABELS.name)
