"""The benchmark: what it runs, that nothing is lost or done twice, that the shipped trials are its own."""

import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.neighbors import KNeighborsRegressor

from dmls2r_lite.data import split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
from dmls2r_lite.practice.folds import fit_with_seed
from dmls2r_lite.study import benchmark
from dmls2r_lite.study.benchmark import (
    AS_PUBLISHED,
    TRIALS,
    all_methods,
    control_arms,
    load_benchmark_dataset,
    read_trials,
    run_benchmark,
    shipped_trials,
)
from dmls2r_lite.study.trials import run_trial, run_trials

KEY = list(TRIALS.key)
FAST = ("median", "3-NN", "ridge")
SECONDS = ["fit_seconds", "predict_seconds", "finished"]
REPORT_SEEDS = range(100, 120)


def run(folder, **options):
    """Run to the end in this process; return the trials and how many it had to do."""
    first, *_ = run_benchmark(folder, n_jobs=1, **options)
    return read_trials(folder), first


def keys(trials):
    return set(trials[KEY].itertuples(index=False, name=None))


class TestRunBenchmark:
    def test_rows_are_those_of_run_trials(self, tmp_path):
        options = {"datasets": ["toy"], "methods": FAST, "n_labeled": [5, 10], "seeds": range(3)}
        trials, to_do = run(tmp_path, **options)
        assert to_do == len(trials) == 18
        toy = load_benchmark_dataset("toy")
        expected = run_trials(toy, {name: all_methods()[name] for name in FAST}, [5, 10], 200, range(3))
        columns = [*KEY, "mae", "rmse", "n_unlabeled", "n_test"]
        by_key = [table[columns].sort_values(KEY, ignore_index=True) for table in (trials, expected)]
        pd.testing.assert_frame_equal(*by_key, rtol=1e-5)
        assert re.fullmatch(r"dmls2r-lite \S+; numpy \S+; scikit-learn \S+; torch \S+", trials["versions"][0])

    def test_only_the_rest_is_done(self, tmp_path):
        options = {"datasets": ["toy"], "methods": FAST}
        before, _ = run(tmp_path, **options, n_labeled=[5], seeds=range(3))
        after, to_do = run(tmp_path, **options, n_labeled=[5, 10], seeds=range(4))
        assert (len(before), to_do, len(after)) == (9, 24 - 9, 24)
        pd.testing.assert_frame_equal(after[:9], before)
        assert run(tmp_path, **options, n_labeled=[5], seeds=range(3))[1] == 0

    def test_a_line_that_was_cut_off_is_done_again(self, tmp_path):
        options = {"datasets": ["toy"], "methods": ["median"], "n_labeled": [5], "seeds": range(5)}
        before, _ = run(tmp_path, **options)
        path = tmp_path / "trials.csv"
        whole = path.read_bytes()
        for cut in (1, 2, 15, 25, 80, 120):
            path.write_bytes(whole[:-cut])
            after, to_do = run(tmp_path, **options)
            assert to_do == (1 if cut > 1 else 0)  # without its end of line a row is still whole
            assert keys(after) == keys(before)
            assert after.set_index("seed")["mae"].to_dict() == before.set_index("seed")["mae"].to_dict()

    def test_default_grid(self, monkeypatch, tmp_path):
        monkeypatch.setattr(benchmark, "load_benchmark_dataset", lambda name: load_benchmark_dataset("toy"))
        n_methods = len(all_methods())
        assert next(run_benchmark(tmp_path)) == 4 * 3 * 20 * n_methods + 20 * len(benchmark.TABLE_1_METHODS)
        assert next(run_benchmark(tmp_path, n_labeled=[100])) == 4 * 20 * n_methods
        assert next(run_benchmark(tmp_path, datasets=["boston"])) == 3 * 20 * n_methods
        assert not (tmp_path / "trials.csv").exists()

    def test_weights_at_the_start_are_the_same_for_all_arms(self):
        toy = load_benchmark_dataset("toy")
        split = split_dataset(toy, 10, 50, 7)
        starts = []
        for arm in control_arms().values():
            seen = []
            learned = arm.set_params(
                learning_rate=1e-12, n_epochs=1, callback=lambda net, _, s=seen: s.append(net)
            )
            fit_with_seed(learned, split.X_train, split.y_train, 7)
            starts.append([weight.detach().numpy() for weight in seen[0].parameters()])
        for weights in starts[1:]:
            for a, b in zip(weights, starts[0], strict=True):
                np.testing.assert_allclose(a, b, atol=1e-8)

    def test_joblib_decides_where_trials_run(self, tmp_path):
        with joblib.parallel_config(backend="threading", n_jobs=2):
            left = list(run_benchmark(tmp_path, ["toy"], ["median"], [5, 6], range(4)))
        assert left == [8, 4, 0]  # a cell at a time
        trials = read_trials(tmp_path)
        assert trials.groupby("n_labeled")["seed"].apply(list).to_dict() == {5: [0, 1, 2, 3], 6: [0, 1, 2, 3]}

    def test_networks_of_a_cell_are_trained_side_by_side(self, tmp_path, monkeypatch):
        sizes = []
        whole = DMLS2RRegressor.fit_side_by_side
        monkeypatch.setattr(
            DMLS2RRegressor,
            "fit_side_by_side",
            staticmethod(lambda models, sets: (sizes.append(len(models)), whole(models, sets))[1]),
        )
        options = {"datasets": ["toy"], "methods": ["DML-S2R", "placebo random"], "n_labeled": [5]}
        trials, _ = run(tmp_path, **options, seeds=range(3))
        assert sizes == [3, 3]
        toy = load_benchmark_dataset("toy")
        methods = {name: all_methods()[name] for name in options["methods"]}
        alone = [run_trial(toy, name, methods[name], 5, 200, seed) for name in methods for seed in range(3)]
        by_key = [t.sort_values(KEY, ignore_index=True)["mae"] for t in (trials, pd.DataFrame(alone))]
        pd.testing.assert_series_equal(*by_key, rtol=0.02)  # rounding grows while float32 weights move

    @pytest.mark.slow
    def test_a_dask_cluster_gives_the_same(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        options = {
            "datasets": ["toy"],
            "methods": ["median", "step 1", "COREG"],
            "n_labeled": [5],
            "seeds": range(3),
        }
        local, _ = run(tmp_path / "local", **options)
        with (
            distributed.LocalCluster(
                2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config(backend="dask"),
        ):
            assert next(iter(run_benchmark(tmp_path / "dask", **options))) == 9
            list(run_benchmark(tmp_path / "dask", **options, n_jobs=-1))
        both = [
            trials.sort_values(KEY, ignore_index=True).drop(columns=SECONDS)
            for trials in (local, read_trials(tmp_path / "dask"))
        ]
        pd.testing.assert_frame_equal(*both)

    def test_slow_method_is_measured_on_fewer_rows(self, tmp_path, monkeypatch):
        monkeypatch.setitem(benchmark.MAX_TEST_ROWS, "median", 50)
        trials, _ = run(tmp_path, datasets=["toy"], methods=["median", "3-NN"], n_labeled=[5], seeds=[0])
        assert trials.set_index("method")["n_test"].to_dict() == {"median": 50, "3-NN": 195}
        assert benchmark.MAX_TEST_ROWS["extra trees on pairs"] == 2000

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"datasets": ["nix"]}, "datasets must be among boston, .*, got 'nix'"),
            ({"methods": ["median", "nix"]}, "methods must be among 'DML-S2R', .*, got 'nix'"),
            ({"n_labeled": [10, 2]}, "n_labeled must be an integer of 3 or more, got 2"),
            ({"n_labeled": [300]}, "n_labeled \\+ n_unlabeled must be below 400"),
        ],
    )
    def test_mistakes_are_found_before_anything_runs(self, options, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            run_benchmark(tmp_path / "new", **{"datasets": ["toy"], **options})
        assert not (tmp_path / "new").exists()

    def test_a_failing_trial_is_named_and_the_others_stay(self, tmp_path, monkeypatch):
        broken = {"median": DummyRegressor(), "3-NN": KNeighborsRegressor(n_neighbors=99)}
        monkeypatch.setattr(benchmark, "all_methods", lambda: broken)
        trials = run_benchmark(tmp_path, ["toy"], None, [5], [0], n_jobs=1)
        with pytest.raises(RuntimeError, match=r"3-NN on toy, N = 5, seed 0: .*n_neighbors"):
            list(trials)
        assert read_trials(tmp_path)["method"].tolist() == ["median"]


def test_no_name_needs_quotes_in_the_table():
    assert not any(set(name) & set(',"\n') for name in (*all_methods(), *benchmark.BENCHMARK_DATASETS))


class TestReadTrials:
    def test_no_table(self, tmp_path):
        with pytest.raises(ValueError, match=r"cannot read trials from .*trials\.csv"):
            read_trials(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00"])
    def test_not_a_table_of_trials(self, content, tmp_path):
        (tmp_path / "trials.csv").write_bytes(content)
        with pytest.raises(ValueError, match=r"trials\.csv"):
            read_trials(tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from dmls2r_lite.study.benchmark import run_benchmark
if __name__ == "__main__":
    options = {"datasets": ["toy"], "methods": ("median", "3-NN", "ridge"), "n_labeled": range(5, 30)}
    for left in run_benchmark(Path(sys.argv[1]), **options, seeds=range(4), n_jobs=2):
        pass
"""


@pytest.fixture
def start(tmp_path):
    """Start the benchmark of `SCRIPT` as a program with workers; the test's end is its end."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started = []

    def start_one(folder):
        started.append(subprocess.Popen([sys.executable, script, folder], start_new_session=True))
        return started[-1]

    yield start_one
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def lines_of(path):
    return path.read_bytes().decode().splitlines()[1:] if path.exists() else []


def run_fast_methods(folder):
    return run(folder, datasets=["toy"], methods=FAST, n_labeled=range(5, 30), seeds=range(4))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills process groups")
def test_killed_twenty_times(start, tmp_path):
    path = tmp_path / "results" / "trials.csv"
    rng = random.Random(0)
    server = multiprocessing.get_context("forkserver")  # its children need not import everything again
    server.set_forkserver_preload(["dmls2r_lite.study.benchmark"])
    seen = []
    for number in range(20):
        enough = len(seen) + rng.randint(1, 12)
        if number < 17:
            process = server.Process(target=run_fast_methods, args=(path.parent,))
            process.start()
            is_running, kill, wait = process.is_alive, process.kill, process.join
        else:  # the same with workers
            program = start(path.parent)
            is_running, wait = (lambda program=program: program.poll() is None), program.wait
            kill = partial(os.killpg, program.pid, signal.SIGKILL)
        while len(lines_of(path)) < enough and is_running():
            time.sleep(0.002)
        assert is_running(), "it ended before it was killed"
        kill()
        wait()
        lines = lines_of(path)
        assert lines[: len(seen)] == seen  # nothing lost
        assert len(lines) >= enough
        seen = lines
    assert start(path.parent).wait() == 0
    lines = lines_of(path)
    assert lines[: len(seen)] == seen
    trials = read_trials(path.parent)
    assert len(lines) == len(trials) == 300  # nothing twice
    expected, _ = run_fast_methods(tmp_path / "at_once")
    by_key = [table.sort_values(KEY, ignore_index=True).drop(columns=SECONDS) for table in (trials, expected)]
    pd.testing.assert_frame_equal(*by_key)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="ends process groups")
def test_two_at_once(start, tmp_path):
    folder = tmp_path / "results"
    both = [start(folder), start(folder)]
    assert [process.wait() for process in both] == [0, 0]
    lines = lines_of(folder / "trials.csv")
    assert {len(line.split(",")) for line in lines} == {len(TRIALS.columns)}  # whole lines, not mixed
    assert len(read_trials(folder)) == 300
    assert {path.name for path in folder.iterdir()} == {"trials.csv", ".trials.lock"}


class TestShippedTrials:
    def test_are_the_full_grid_on_the_report_seeds(self):
        trials = shipped_trials()
        assert set(trials["seed"]) == set(REPORT_SEEDS)
        assert not trials.duplicated(KEY).any()
        per_method = trials.groupby("method", sort=False)["seed"].size()
        assert set(per_method.index) == set(all_methods())
        cells = 4 * 3 * 20
        in_table_1 = per_method.index.isin(benchmark.TABLE_1_METHODS)
        assert (per_method == np.where(in_table_1, cells + 20, cells)).all()
        assert np.isfinite(trials[["mae", "rmse"]]).all(axis=None)

    def test_say_how_they_were_made(self):
        about = shipped_trials().attrs
        assert about["command"].startswith("dmls2r benchmark")
        assert set(shipped_trials()["versions"]) == {about["versions"]}
        assert about["date"] == shipped_trials()["finished"].max()[:10]

    def test_null_placebo_with_an_adam_of_its_own_is_step_1(self):
        # so it is no arm; the claim is in the docstring of control_arms
        toy = split_dataset(load_benchmark_dataset("toy"), 10, 50, 0)
        nothing = all_methods()["placebo null"].set_params(optimizer_state="separate", n_epochs=3)
        alone = all_methods()["step 1"].set_params(n_epochs=3)
        a, b = (fit_with_seed(m, toy.X_train, toy.y_train, 0).predict(toy.X_test) for m in (nothing, alone))
        np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("method", all_methods())
    @pytest.mark.parametrize("n_labeled", [10, 20])
    def test_can_be_recomputed(self, method, n_labeled, tmp_path):
        self.recompute("boston", method, n_labeled, 103, tmp_path)

    @pytest.mark.parametrize(
        "method", ["DML-S2R", "step 1", "COREG", "MSSR", "placebo random", "extra trees"]
    )
    @pytest.mark.parametrize("dataset", ["superconductivity", AS_PUBLISHED, "air_quality"])
    def test_can_be_recomputed_on_the_others(self, dataset, method, tmp_path, uci_folder):
        self.recompute(dataset, method, 10, 105, tmp_path)

    def recompute(self, dataset, method, n_labeled, seed, folder):
        trials, _ = run(folder, datasets=[dataset], methods=[method], n_labeled=[n_labeled], seeds=[seed])
        shipped = shipped_trials().merge(trials[KEY], on=KEY)
        # The same to rounding on the machine that made them; elsewhere networks end up a little off.
        assert trials["mae"].item() == pytest.approx(shipped["mae"].item(), rel=0.05)
