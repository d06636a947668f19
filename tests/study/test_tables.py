"""Tables of trials: what is written is read again, whole rows only, and nothing is lost or done twice."""

import json
import re
import shutil
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from joblib import delayed

from dmls2r_lite.study.benchmark import TRIALS
from dmls2r_lite.study.tables import TrialTable, name_seeds

TABLE = TrialTable("checks", ("dataset", "n", "seed"), ("mae", "width"))
HEADING = "dataset,n,seed,mae,width,versions,finished\n"
KEYS = [(name, n, seed) for name in ("b", "a") for n in (5, 10) for seed in (3, 1, 2)]


def measure(cell, seeds):
    name, n = cell
    if name == "broken":
        raise RuntimeError("no such thing")
    return [{"dataset": name, "n": n, "seed": seed, "mae": n + seed / 7} for seed in seeds]


def run(folder, keys=KEYS, called=None):
    def call(cell, seeds):
        if called is not None:
            called.append((cell, seeds))
        return delayed(measure)(cell, seeds)

    return TABLE.run(folder, keys, call, n_jobs=1, cost=lambda cell: cell[1])


def keys_of(trials):
    return list(trials[list(TABLE.key)].itertuples(index=False, name=None))


class TestRun:
    def test_cells_and_what_is_left(self, tmp_path):
        called = []
        assert list(run(tmp_path, called=called)) == [12, 9, 6, 3, 0]
        # The longest first, those of one length in the order given; the seeds of a cell together.
        assert called == [(cell, [3, 1, 2]) for cell in (("b", 10), ("a", 10), ("b", 5), ("a", 5))]

    def test_nothing_is_made_before_it_runs(self, tmp_path):
        trials = run(tmp_path / "new")
        assert next(trials) == 12
        assert not (tmp_path / "new").exists()
        trials.close()

    def test_is_read_again(self, tmp_path):
        list(run(tmp_path))
        trials = TABLE.read(tmp_path)
        assert list(trials) == TABLE.columns == HEADING.strip().split(",")
        assert sorted(keys_of(trials)) == sorted(KEYS)
        assert TABLE.done(tmp_path) == set(KEYS)
        for _, row in trials.iterrows():
            assert row["mae"] == float(f"{row['n'] + row['seed'] / 7:.6g}")  # six digits
            assert np.isnan(row["width"])  # that no row had
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["finished"])
            assert re.fullmatch(r"dmls2r-lite \S+; numpy \S+; scikit-learn \S+; torch \S+", row["versions"])
        assert [trials[name].dtype.kind for name in ("n", "seed", "mae", "width")] == list("iiff")
        assert {path.name for path in tmp_path.iterdir()} == {"checks.csv", ".checks.lock"}

    def test_a_failing_cell_leaves_the_others(self, tmp_path):
        keys = [("broken", 1, 0), ("a", 2, 0)]
        with pytest.raises(RuntimeError, match="no such thing"):
            list(run(tmp_path, keys))
        assert TABLE.done(tmp_path) == {("a", 2, 0)}

    def test_a_table_that_is_there_is_continued(self, tmp_path):
        list(run(tmp_path, KEYS[:3]))
        before = (tmp_path / "checks.csv").read_text()
        list(run(tmp_path, KEYS[3:]))
        after = (tmp_path / "checks.csv").read_text()
        assert after.startswith(before)
        assert after.count(HEADING) == 1
        assert list(run(tmp_path, [])) == [0]
        assert (tmp_path / "checks.csv").read_text() == after

    def test_wherever_it_was_cut_off(self, tmp_path):
        """After any cut the rest is done again, and the table is whole."""
        list(run(tmp_path, KEYS[:6]))
        path = TABLE.path(tmp_path)
        whole = path.read_bytes()
        expected = TABLE.read(tmp_path).drop(columns="finished")
        for end in [*range(len(HEADING), len(whole), 23), len(whole) - 1, len(whole) - 2]:
            path.write_bytes(whole[:end])
            done = TABLE.done(tmp_path)
            n_lines = whole[:end].count(b"\n") - 1
            assert n_lines <= len(done) <= n_lines + 1  # a row without its end of line may be whole
            assert done <= set(KEYS[:6])
            left = [key for key in KEYS[:6] if key not in done]
            list(run(tmp_path, left))
            assert path.read_bytes().endswith(b"Z\n")
            again = TABLE.read(tmp_path).drop(columns="finished")
            by_key = [part.sort_values(list(TABLE.key), ignore_index=True) for part in (again, expected)]
            pd.testing.assert_frame_equal(*by_key)

    def test_a_line_that_another_program_has_left_cut_off(self, tmp_path):
        trials = run(tmp_path, KEYS)
        assert [next(trials), next(trials)] == [12, 9]
        with TABLE.path(tmp_path).open("a") as file:
            file.write("b,77,1,2.5")
        list(trials)
        assert TABLE.done(tmp_path) == set(KEYS)

    def test_a_folder_that_vanishes(self, tmp_path):
        folder = tmp_path / "results"
        trials = run(folder, KEYS[:6])
        next(trials)
        next(trials)
        shutil.rmtree(folder)
        list(trials)  # it is made again, with what came after
        assert len(TABLE.done(folder)) == 3
        list(run(folder, [key for key in KEYS[:6] if key not in TABLE.done(folder)]))
        assert TABLE.done(folder) == set(KEYS[:6])


LINE = "a,5,1,0.25,,numpy 2,2026-01-02T03:04:05Z\n"


class TestRead:
    def test_by_hand(self, tmp_path):
        lines = [
            LINE,
            LINE.replace("0.25", "9"),  # a second time: the first counts
            "b,5,1,0.5,7,numpy 2,2026-01-02T03:04:05\n",  # cut off
            "b,6,1,0.5,7,numpy 2\n",
            'c,7,"1,0.5,7,nu',
            "\n",
            "d,8,1,1,2,3,4,5,6,2026-01-02T03:04:05Z\n",  # two lines in one
            "e,9,2,1e-3,nan,numpy 2,2026-01-02T03:04:06Z\n",
        ]
        TABLE.path(tmp_path).write_text(HEADING + "".join(lines))
        trials = TABLE.read(tmp_path)
        assert keys_of(trials) == [("a", 5, 1), ("e", 9, 2)]
        assert trials["mae"].tolist() == [0.25, 0.001]
        assert trials["width"].isna().all()
        assert trials.index.tolist() == [0, 1]
        assert TABLE.done(tmp_path) == {("a", 5, 1), ("e", 9, 2)}

    def test_no_folder_and_no_trials(self, tmp_path):
        assert TABLE.done(tmp_path / "none") == set()
        with pytest.raises(ValueError, match=r"cannot read trials from .*none.checks\.csv"):
            TABLE.read(tmp_path / "none")
        TABLE.path(tmp_path).write_text(HEADING)
        assert len(TABLE.read(tmp_path)) == 0
        assert TABLE.done(tmp_path) == set()

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", r"cannot read trials from .*checks\.csv"),
            (b"\xff\xfe\x00", r"checks\.csv"),
            (
                b"a,b\n1,2\n",
                r"checks\.csv must have the columns dataset, n, .*, finished, got a, b",
            ),
            (HEADING.replace(",mae", "").encode(), r"must have the columns .*, got dataset, n, seed, width"),
        ],
    )
    def test_not_a_table_of_trials(self, content, message, tmp_path):
        TABLE.path(tmp_path).write_bytes(content)
        for read in (TABLE.read, TABLE.done):
            with pytest.raises(ValueError, match=message):
                read(tmp_path)

    def test_shipped(self):
        folder = resources.files("dmls2r_lite.study").joinpath("results")
        trials = TRIALS.shipped()
        assert list(trials) == TRIALS.columns
        assert trials.attrs == json.loads(folder.joinpath("trials.json").read_text())
        raw = pd.read_csv(str(folder.joinpath("trials.csv.gz")))
        assert trials["mae"].tolist() == raw["mae"].tolist()
        assert trials["seed"].dtype.kind == "i"


def test_seeds_in_words():
    assert name_seeds([7]) == "seed 7"
    assert name_seeds([100, 101, 102]) == "seeds 100 to 102"
