"""The driver of all studies: what is written is read again; nothing is lost, done twice or overwritten."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor

from dmls2r_lite.data import load_dataset
from dmls2r_lite.foundation.parameters import ParameterError
from dmls2r_lite.study import driver
from dmls2r_lite.study.benchmark import TRIALS
from dmls2r_lite.study.driver import Study
from dmls2r_lite.study.few_labels import FEW_LABELS
from dmls2r_lite.study.newer import NEWER_LOSSES

KEY = ["dataset", "method", "kind", "n_labeled", "seed"]
HEADING = "dataset,method,kind,n_labeled,seed,mae,width,versions,finished\n"
METHODS = {"a": DummyRegressor(), "b, of one kind": DummyRegressor()}


def measure(dataset, method, kind, n, seeds):
    if kind == "broken":
        raise ValueError("no such thing")
    time.sleep(0.001)
    return [{"mae": n + len(method) + len(kind) + seed / 7, "other": 0} for seed in seeds]


def cells(dataset, name, method, n):
    return {(kind,): partial(measure, dataset.name, name, kind, n) for kind in ("one", "two")}


def broken(dataset, name, method, n):
    return {(kind,): partial(measure, dataset.name, name, kind, n) for kind in ("one", "broken")}


STUDY = Study("checks", tuple(KEY), ("mae", "width"), ("toy",), lambda: METHODS, cells)
SIZES, SEEDS = (5, 10), (3, 1, 2)
N_TRIALS = 2 * 2 * 3  # of kinds, N and seeds


def run(folder, study=STUDY, n_labeled=SIZES, seeds=SEEDS, **options):
    """Start: the trials that are left are given one by one."""
    return study.run(folder, ["toy"], ["a"], n_labeled, seeds, n_jobs=1, **options)


def comparable(trials):
    return trials.drop(columns="finished").sort_values(KEY, ignore_index=True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    list(run(folder))
    return comparable(STUDY.read(folder))


class TestRun:
    def test_cells_and_what_is_left(self, tmp_path):
        called = []

        def note(dataset, name, method, n):
            return {("one",): lambda seeds: called.append((n, seeds)) or [{"mae": 1.0}] * len(seeds)}

        assert list(run(tmp_path, replace(STUDY, cells=note), (5, 20, 10, 5))) == [9, 6, 3, 0]
        assert called == [(n, [3, 1, 2]) for n in (20, 10, 5)]  # the longest first; a cell's seeds together

    def test_nothing_is_made_before_it_runs(self, tmp_path):
        trials = run(tmp_path / "new")
        assert next(trials) == N_TRIALS
        assert not (tmp_path / "new").exists()

    def test_is_read_again(self, tmp_path):
        list(run(tmp_path))
        trials = STUDY.read(tmp_path)
        assert list(trials) == STUDY.columns == HEADING.strip().split(",")
        assert len(trials) == N_TRIALS
        for _, row in trials.iterrows():
            assert row["mae"] == float(f"{row['n_labeled'] + 4 + row['seed'] / 7:.6g}")  # six digits
            assert np.isnan(row["width"])  # that no row had
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["finished"])
            assert re.fullmatch(r"dmls2r-lite \S+; numpy \S+; scikit-learn \S+; torch \S+", row["versions"])
        assert [trials[name].dtype.kind for name in ("n_labeled", "seed", "mae", "width")] == list("iiff")
        table = pd.read_csv(tmp_path / "checks.csv")
        pd.testing.assert_frame_equal(table, trials)

    def test_names_with_commas(self, tmp_path):
        list(STUDY.run(tmp_path, ["toy"], None, [5], [0], n_jobs=1))
        assert set(STUDY.read(tmp_path)["method"]) == set(METHODS)

    def test_only_the_rest_is_done(self, tmp_path, expected):
        assert list(run(tmp_path, n_labeled=[5], seeds=[1, 3])) == [4, 2, 0]
        before = STUDY.read(tmp_path)
        assert next(iter(run(tmp_path))) == N_TRIALS - 4
        list(run(tmp_path))
        after = STUDY.read(tmp_path)
        pd.testing.assert_frame_equal(after[:4], before)
        pd.testing.assert_frame_equal(comparable(after), expected)
        whole = (tmp_path / "checks.csv").read_bytes()
        assert list(run(tmp_path, n_labeled=[5])) == [0]
        assert (tmp_path / "checks.csv").read_bytes() == whole

    def test_a_failing_cell_is_named_and_the_others_stay(self, tmp_path):
        message = "^dataset toy, method a, kind broken, n_labeled 5, seeds 1 to 2: no such thing"
        with pytest.raises(RuntimeError, match=message):
            list(run(tmp_path, replace(STUDY, cells=broken), [5], [1, 2]))
        assert STUDY.read(tmp_path)["kind"].tolist() == ["one"] * 2

    def test_a_full_disk(self, tmp_path, monkeypatch, expected):
        write = driver.write_whole
        written = []

        def write_twice(path, text):
            written.append(path)
            if len(written) > 2:
                raise OSError(f"{path} could not be written: No space left on device")
            write(path, text)

        monkeypatch.setattr(driver, "write_whole", write_twice)
        with pytest.raises(OSError, match="No space left"):
            list(run(tmp_path))
        monkeypatch.undo()
        assert list(run(tmp_path)) == [6, 3, 0]
        pd.testing.assert_frame_equal(comparable(STUDY.read(tmp_path)), expected)

    def test_two_at_once(self, tmp_path, expected):
        one, two = run(tmp_path), run(tmp_path, seeds=[1, 2, 3, 4])
        for _ in zip(one, two, strict=True):
            pass
        trials = STUDY.read(tmp_path)
        assert not trials.duplicated(KEY).any()
        assert len(pd.read_csv(tmp_path / "checks.csv")) == len(trials) == N_TRIALS // 3 * 4
        pd.testing.assert_frame_equal(comparable(trials[trials["seed"] < 4]), expected)

    def test_joblib_decides_where_trials_run(self, tmp_path, expected):
        with joblib.parallel_config(backend="threading", n_jobs=2):
            assert list(STUDY.run(tmp_path, ["toy"], ["a"], SIZES, SEEDS)) == [12, 9, 6, 3, 0]
        pd.testing.assert_frame_equal(comparable(STUDY.read(tmp_path)), expected)

    def test_default_datasets_sizes_and_seeds(self, tmp_path):
        assert next(STUDY.run(tmp_path)) == 4 * 3 * 20
        assert next(STUDY.run(tmp_path, methods=["a", "a"], seeds=[1, 1], n_labeled=[5, 5])) == 2

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"datasets": ["nix"]}, "datasets must be among 'boston', .*, 'toy', .*, got 'nix'"),
            ({"methods": ["a", "dml-s2r"]}, "methods must be among .*, got 'dml-s2r'; did you mean DML-S2R?"),
            ({"n_labeled": [10, 2]}, "n_labeled must be an integer of 3 or more, got 2"),
            ({"n_labeled": [10.0]}, "n_labeled must be an integer of 3 or more, got 10.0"),
            ({"n_labeled": [10, 300]}, r"n_labeled \+ n_unlabeled must be below 400"),
            ({"seeds": [0, -1]}, "seed must be an integer from 0 to 2147483648, got -1"),
            ({"n_jobs": 0}, "n_jobs must be an integer of 1 or more, or -1, or None, got 0"),
        ],
    )
    def test_mistakes_are_found_before_anything_runs(self, options, message, tmp_path):
        study = replace(STUDY, methods=lambda: {**METHODS, "DML-S2R": DummyRegressor()})
        with pytest.raises(ValueError, match="^" + message) as caught:
            study.run(tmp_path / "new", **options)
        assert isinstance(caught.value, ParameterError) or "below 400" in message
        assert not (tmp_path / "new").exists()


LINE = "toy,a,one,5,1,0.25,,numpy 2,2026-01-02T03:04:05Z\n"


class TestTablesOfOlderVersions:
    """They grew line by line; a run that was killed may have left part of one."""

    def test_whole_rows_only_each_once(self, tmp_path):
        lines = [
            LINE,
            LINE.replace("0.25", "9"),  # a second time: the first counts
            "toy,b,one,5,1,0.5,7,numpy 2,2026-01-02T03:04:05\n",  # cut off
            "toy,b,one,6,1,0.5,7,numpy 2\n",
            "toy,b\n",
            "\n",
            "toy,b,one,8,1,1,2,3,4,5,6,2026-01-02T03:04:05Z\n",  # two lines in one
            "toy,c,two,9,2,1e-3,nan,numpy 2,2026-01-02T03:04:06Z",
        ]
        STUDY.path(tmp_path).write_text(HEADING + "".join(lines))
        trials = STUDY.read(tmp_path)
        assert trials[KEY].to_numpy().tolist() == [["toy", "a", "one", 5, 1], ["toy", "c", "two", 9, 2]]
        assert trials["mae"].tolist() == [0.25, 0.001]
        assert trials["width"].isna().all()

    @pytest.mark.parametrize("cut", [1, 2, 15, 60, 90, 300])
    def test_the_rest_is_done_and_nothing_lost(self, cut, tmp_path, expected):
        list(run(tmp_path / "before"))
        whole = (tmp_path / "before" / "checks.csv").read_text()
        STUDY.path(tmp_path).write_text(whole[:-cut])
        before = STUDY.read(tmp_path)
        assert len(before) == whole[:-cut].count("\n") - (cut > 1)  # without its end of line a row is whole
        first, *_ = run(tmp_path)
        assert first == N_TRIALS - len(before)
        after = STUDY.read(tmp_path)
        pd.testing.assert_frame_equal(after[: len(before)], before)
        pd.testing.assert_frame_equal(comparable(after), expected)
        table = STUDY.path(tmp_path).read_text()
        assert table.startswith(whole[:-cut].rpartition("\n")[0])  # the user's own lines, as they were

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, r"cannot read trials from .*: there are none in checks\.csv"),
            (HEADING.encode(), r"cannot read trials from .*: there are none in checks\.csv"),
            (b"", r"cannot read trials from .*checks\.csv"),
            (b"\xff\xfe\x00", r"checks\.csv"),
            (b"a,b\n1,2\n", r"checks\.csv must have the columns dataset, .*, finished, got a, b"),
        ],
    )
    def test_not_a_table_of_trials(self, content, message, tmp_path):
        if content is not None:
            STUDY.path(tmp_path).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            STUDY.read(tmp_path)
        if content and "none" not in message:
            with pytest.raises(ValueError, match=message):
                run(tmp_path)
            assert STUDY.path(tmp_path).read_bytes() == content
            assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("study", [TRIALS, FEW_LABELS, NEWER_LOSSES], ids=lambda study: study.name)
def test_shipped(study):
    """They are the full grid, and say how they were made."""
    folder = resources.files("dmls2r_lite.study").joinpath("results")
    trials = study.shipped()
    assert list(trials) == study.columns
    assert trials.attrs == json.loads(folder.joinpath(f"{study.name}.json").read_text())
    assert trials.attrs["command"].startswith("dmls2r benchmark")
    assert set(trials["versions"]) == {trials.attrs["versions"]}
    assert trials.attrs["date"] == trials["finished"].max()[:10]
    assert np.isfinite(trials["mae"]).all()
    assert set(trials["seed"]) == set(driver.REPORT_SEEDS) == set(range(100, 120))
    assert not trials.duplicated(list(study.key)).any()
    toy = load_dataset("toy")
    grid = {
        (dataset, name, *added, n)
        for dataset in study.datasets
        for name, method in study.methods().items()
        for n in study.sizes(dataset, name)
        for added in study.cells(replace(toy, name=dataset), name, method, n)
    }
    per_cell = trials.groupby(list(study.key[:-1])).size()
    assert set(per_cell.index) == grid
    assert set(per_cell) == {20}


def run_many(folder, n_jobs=1):
    """60 cells of two trials."""
    list(STUDY.run(folder, ["toy"], ["a"], range(5, 35), range(2), n_jobs=n_jobs))


def kept(folder):
    return {path.name: path.read_bytes() for path in (folder / "checks").glob("[!.]*.csv")}


RUN = "import sys, test_driver as t\nt.run_many(t.Path(sys.argv[1]), int(sys.argv[2]))"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills process groups")
@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.exhaustive)])
def test_killed_at_any_moment(n_kills, tmp_path):
    """Nothing is lost, nothing done twice; the last is killed with its workers."""
    rng, seen = random.Random(n_kills), {}
    for number in range(n_kills):
        enough = len(seen) + rng.randint(1, 50 // n_kills)
        command = [sys.executable, "-c", RUN, tmp_path, "1" if number < n_kills - 1 else "2"]
        program = subprocess.Popen(command, start_new_session=True, cwd=Path(__file__).parent)
        try:
            while len(list(tmp_path.glob("checks/[!.]*"))) < enough and program.poll() is None:
                time.sleep(0.01)
            assert program.poll() is None, "it ended before it was killed"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        now = kept(tmp_path)
        assert now.items() >= seen.items()  # nothing lost, nothing written anew
        assert len(now) >= enough
        seen = now
    run_many(tmp_path)
    assert kept(tmp_path).items() >= seen.items()
    trials = STUDY.read(tmp_path)
    assert len(pd.read_csv(STUDY.path(tmp_path))) == len(trials) == 120  # nothing twice
    run_many(tmp_path / "at_once")
    pd.testing.assert_frame_equal(comparable(trials), comparable(STUDY.read(tmp_path / "at_once")))


def test_datasets_have_targets_everywhere(uci_folder):
    air_quality = driver.load_benchmark_dataset("air_quality")
    assert air_quality.target.notna().all()
    published = driver.load_benchmark_dataset(driver.AS_PUBLISHED)
    assert (published.target == -200).any()
    assert (published.name, len(published.target)) == ("air_quality_as_published", 9357)
