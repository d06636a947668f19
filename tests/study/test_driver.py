"""The driver of all studies: what is written is read again; nothing is lost, done twice or overwritten."""

import contextlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from few_labels import FEW_LABELS
from newer_losses import NEWER_LOSSES
from sklearn.dummy import DummyRegressor

from dmls2r_lite.study import trials as driver
from dmls2r_lite.study.benchmark import TRIALS
from dmls2r_lite.study.trials import AS_PUBLISHED, Study, load_benchmark_dataset, read_shipped

KEY = ("dataset", "method", "kind", "n_labeled", "seed")
HEADING = "dataset,method,kind,n_labeled,seed,mae,width,versions,finished\n"
METHODS = {"a": DummyRegressor(), "b, of one kind": DummyRegressor()}
SIZES, SEEDS = (5, 10), (3, 1, 2)
N_TRIALS = 2 * 2 * 3  # of kinds, N and seeds


def measure(dataset, name, method, kind, n, seeds):
    if kind == "broken":
        raise ValueError("no such thing")
    time.sleep(0.001)
    return [{"mae": n + len(name) + len(kind) + seed / 7, "other": 0} for seed in seeds]


def kinds(dataset, name):
    return [("one",), ("two",)]


STUDY = Study("checks", KEY, ("mae", "width"), ("toy",), lambda: METHODS, measure, kinds=kinds)


def run(folder, study=STUDY, n_labeled=SIZES, seeds=SEEDS):
    """Start: the trials that are left are given one by one."""
    return study.run(folder, ["toy"], ["a"], n_labeled, seeds, n_jobs=1)


def check_same(folder, expected):
    found = STUDY.read(folder) if isinstance(folder, Path) else folder
    found, expected = (
        trials.drop(columns="finished").sort_values([*KEY], ignore_index=True) for trials in (found, expected)
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    list(run(folder))
    return STUDY.read(folder)


class TestRun:
    def test_cells_and_what_is_left(self, tmp_path):
        called = []

        def note(dataset, name, method, kind, n, seeds):
            called.append((kind, n, seeds))
            return [{"mae": 1.0}] * len(seeds)

        left = run(tmp_path / "new", replace(STUDY, measure=note), (5, 20, 5))
        assert next(left) == 12
        assert not (tmp_path / "new").exists()  # nothing is made before it runs
        assert list(left) == [9, 6, 3, 0]
        # The longest first; a cell's seeds together.
        assert called == [(kind, n, [3, 1, 2]) for n in (20, 5) for kind in ("one", "two")]

    def test_is_read_again(self, tmp_path):
        list(STUDY.run(tmp_path, ["toy"], None, [5], SEEDS, n_jobs=1))
        trials = STUDY.read(tmp_path)
        assert list(trials) == STUDY.columns == HEADING.strip().split(",")
        assert trials["method"].value_counts().to_dict() == dict.fromkeys(METHODS, 6)
        for row in trials.itertuples():
            assert row.mae == float(f"{5 + len(row.method) + 3 + row.seed / 7:.6g}")  # six digits
            assert np.isnan(row.width)  # that no row had
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row.finished)
            assert re.fullmatch(r"python \S+; dmls2r-lite \S+; numpy \S+; .*torch \S+", row.versions)
        assert [trials[name].dtype.kind for name in ("n_labeled", "seed", "mae", "width")] == list("iiff")
        pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "checks.csv"), trials)

    def test_only_the_rest_is_done(self, tmp_path, expected):
        assert list(run(tmp_path, n_labeled=[5], seeds=[1, 3])) == [4, 2, 0]
        before = STUDY.read(tmp_path)
        assert next(iter(run(tmp_path))) == N_TRIALS - 4
        list(run(tmp_path))
        pd.testing.assert_frame_equal(STUDY.read(tmp_path)[:4], before)
        check_same(tmp_path, expected)
        whole = (tmp_path / "checks.csv").read_bytes()
        assert list(run(tmp_path, n_labeled=[5])) == [0]
        assert (tmp_path / "checks.csv").read_bytes() == whole

    def test_a_failing_cell_is_named_and_the_others_stay(self, tmp_path):
        broken = replace(STUDY, kinds=lambda *_: [("one",), ("broken",)])
        message = "^dataset toy, method a, kind broken, n_labeled 5, seeds 1 to 2: no such thing"
        with pytest.raises(RuntimeError, match=message):
            list(run(tmp_path, broken, [5], [1, 2]))
        assert STUDY.read(tmp_path)["kind"].tolist() == ["one"] * 2

    def test_a_full_disk(self, tmp_path, monkeypatch, expected):
        written = []

        def write_twice(path, text, write=driver.write_whole):
            written.append(path)
            if len(written) > 2:
                raise OSError("No space left on device")
            write(path, text)

        monkeypatch.setattr(driver, "write_whole", write_twice)
        with pytest.raises(OSError, match="No space left"):
            list(run(tmp_path))
        monkeypatch.undo()
        assert list(run(tmp_path)) == [6, 3, 0]
        check_same(tmp_path, expected)

    def test_two_at_once(self, tmp_path, expected):
        for _ in zip(run(tmp_path), run(tmp_path, seeds=[1, 2, 3, 4]), strict=True):
            pass
        trials = STUDY.read(tmp_path)
        assert len(pd.read_csv(tmp_path / "checks.csv")) == len(trials) == N_TRIALS // 3 * 4  # nothing twice
        check_same(trials[trials["seed"] < 4], expected)

    def test_joblib_decides_where_trials_run(self, tmp_path, expected):
        with joblib.parallel_config(backend="threading", n_jobs=2):
            assert list(STUDY.run(tmp_path, ["toy"], ["a"], SIZES, SEEDS)) == [12, 9, 6, 3, 0]
        check_same(tmp_path, expected)

    def test_default_datasets_sizes_and_seeds(self, tmp_path):
        assert next(STUDY.run(tmp_path)) == 2 * 2 * 3 * 20
        assert next(STUDY.run(tmp_path, methods=["a", "a"], seeds=[1, 1], n_labeled=[5, 5])) == 2

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"datasets": ["nix"]}, "dataset must be one of boston, .*, toy .*, got 'nix'"),
            ({"methods": ["a", "dml-s2r"]}, "methods must be among .*, got 'dml-s2r'; did you mean DML-S2R?"),
            ({"n_labeled": [10, 2]}, "n_labeled must be an integer of 3 or more, got 2"),
            ({"n_labeled": [10.0]}, "n_labeled must be an integer of 3 or more, got 10.0"),
            ({"n_labeled": [10, 300]}, r"n_labeled \+ n_unlabeled must be below 400"),
            ({"n_jobs": 0}, "n_jobs must be an integer of 1 or more, or -1, or None, got 0"),
        ],
    )
    def test_mistakes_are_found_before_anything_runs(self, options, message, tmp_path):
        study = replace(STUDY, methods=lambda: {**METHODS, "DML-S2R": DummyRegressor()})
        with pytest.raises(ValueError, match="^" + message):
            next(study.run(tmp_path / "new", **options))
        assert not (tmp_path / "new").exists()


class TestTablesOfOlderVersions:
    """They grew line by line; a run that was killed may have left part of one."""

    def test_whole_rows_only_each_once(self, tmp_path):
        lines = [
            "toy,a,one,5,1,0.25,,numpy 2,2026-01-02T03:04:05Z\n",
            "toy,a,one,5,1,9,,numpy 2,2026-01-02T03:04:05Z\n",  # a second time: the first counts
            "toy,b,one,5,1,0.5,7,numpy 2,2026-01-02T03:04:05\n",  # cut off
            "toy,b,one,6,1,0.5,7,numpy 2\n",
            "toy,b\n",
            "\n",
            "toy,b,one,8,1,1,2,3,4,5,6,2026-01-02T03:04:05Z\n",  # two lines in one
            "toy,c,two,9,2,1e-3,nan,numpy 2,2026-01-02T03:04:06Z",
        ]
        STUDY.path(tmp_path).write_text(HEADING + "".join(lines))
        trials = STUDY.read(tmp_path)
        assert trials[[*KEY]].to_numpy().tolist() == [["toy", "a", "one", 5, 1], ["toy", "c", "two", 9, 2]]
        assert trials["mae"].tolist() == [0.25, 0.001]
        assert trials["width"].isna().all()

    @pytest.mark.parametrize("cut", [1, 2, 15, 60, 90, 300])
    def test_the_rest_is_done_and_nothing_lost(self, cut, tmp_path, expected):
        whole = expected.to_csv(index=False, lineterminator="\n")[:-cut]
        STUDY.path(tmp_path).write_text(whole)
        before = STUDY.read(tmp_path)
        assert len(before) == whole.count("\n") - (cut > 1)  # without its end of line a row is whole
        assert next(iter(run(tmp_path))) == N_TRIALS - len(before)
        list(run(tmp_path))
        pd.testing.assert_frame_equal(STUDY.read(tmp_path)[: len(before)], before)
        check_same(tmp_path, expected)
        # The user's own lines, as they were.
        assert STUDY.path(tmp_path).read_text().startswith(whole.rpartition("\n")[0])

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
                list(run(tmp_path))
            assert STUDY.path(tmp_path).read_bytes() == content
            assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("study", [TRIALS, FEW_LABELS, NEWER_LOSSES], ids=lambda study: study.name)
def test_shipped(study):
    """They are the full grid, and say how they were made."""
    trials = read_shipped(study.name)
    assert list(trials) == study.columns
    assert trials.attrs == json.loads((driver.RESULTS / f"{study.name}.json").read_text())
    assert trials.attrs["command"].startswith(("dmls2r benchmark", "python studies/make.py"))
    assert set(trials["versions"]) == {trials.attrs["versions"]}
    assert trials.attrs["date"] == trials["finished"].max()[:10]
    assert np.isfinite(trials["mae"]).all()
    assert set(trials["seed"]) == set(driver.REPORT_SEEDS) == set(range(100, 120))
    assert not trials.duplicated(list(study.key)).any()
    grid = {
        (dataset, name, *kind, n)
        for dataset in study.datasets
        for name in study.methods()
        for n in study.sizes(dataset, name)
        for kind in study.kinds(dataset, name)
    }
    per_cell = trials.groupby(list(study.key[:-1])).size()
    assert set(per_cell.index) == grid
    assert set(per_cell) == {20}


ON_BOSTON = ("DML-S2R", "step 1", "step 1, half the epochs", "COREG", "placebo swapped", "extra trees")
OFTEN = [
    *((TRIALS, "boston", name) for name in ON_BOSTON),
    (TRIALS, "superconductivity", "DML-S2R"),
    (TRIALS, AS_PUBLISHED, "DML-S2R"),
    (FEW_LABELS, "boston", "ridge", "k-means"),
    (FEW_LABELS, "boston", "DML-S2R", "chosen"),
    (NEWER_LOSSES, "boston", "barycentre", "shuffled"),
    (NEWER_LOSSES, "boston", "log-ratio", "noise"),
    (NEWER_LOSSES, "air_quality", "step 1", "real"),
]
ALL = itertools.product([TRIALS], TRIALS.datasets, TRIALS.methods())
SELDOM = [pytest.param(cell, marks=pytest.mark.exhaustive) for cell in ALL if cell not in OFTEN]


@pytest.mark.parametrize("cell", [*OFTEN, *SELDOM])
def test_shipped_trials_can_be_computed_anew(cell, request):
    """To rounding, which training amplifies: another processor gives other last digits."""
    study, dataset, method, *kind = cell
    if dataset != "boston":
        request.getfixturevalue("uci_folder")
    data, seeds = load_benchmark_dataset(dataset), range(100, 106)
    anew = pd.DataFrame(study.measure(data, method, study.methods()[method], *kind, 10, seeds))
    shipped = read_shipped(study.name).set_index(list(study.key)).sort_index()
    shipped = shipped.loc[(dataset, method, *kind, 10)].loc[seeds]
    changes = abs(np.log(anew.set_index("seed")["mae"] / shipped["mae"]))
    assert changes.median() < 0.01
    assert changes.max() < 0.05
    if "width_80" in anew:
        assert anew["width_80"].tolist() == pytest.approx(shipped["width_80"].tolist(), rel=0.1)


def run_many(folder, n_jobs=1):
    """60 cells of two trials."""
    list(STUDY.run(folder, ["toy"], ["a"], range(5, 35), range(2), n_jobs=n_jobs))


def kept(folder):
    return {path.name: path.read_bytes() for path in (folder / "checks").glob("[!.]*.csv")}


RUN = """import sys
sys.path.append("../../studies")
import test_driver as t
t.run_many(t.Path(sys.argv[1]), int(sys.argv[2]))"""


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
    assert len(pd.read_csv(STUDY.path(tmp_path))) == 120  # nothing twice
    run_many(tmp_path / "at_once")
    check_same(tmp_path, STUDY.read(tmp_path / "at_once"))


def test_datasets_have_targets_everywhere(uci_folder):
    assert load_benchmark_dataset("air_quality").target.notna().all()
    published = load_benchmark_dataset(AS_PUBLISHED)
    assert (published.target == -200).any()
    assert (published.name, len(published.target)) == ("air_quality_as_published", 9357)
