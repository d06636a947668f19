"""`dmls2r choose`: which rows it writes, how it keeps them, and what it refuses."""

import re

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dmls2r_lite.command.cli import main
from dmls2r_lite.data.reading import read
from dmls2r_lite.practice.choosing import choose_rows


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)).round(3), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["x", "y"], 60)
    frame.loc[5:9, "a"] = None
    return frame


def choose(*arguments):
    return CliRunner().invoke(main, ["choose", *map(str, arguments)])


def test_no_label_anywhere(frame, folder):
    frame.to_csv("rows.csv", index=False)
    result = choose("rows.csv", "-n", 7)
    assert result.exit_code == 0, result.output
    assert result.stdout == (
        "rows_chosen.csv: 7 rows of rows.csv to label, the first first; rows_chosen.png shows them\n"
    )
    assert "a: kept, missing: the median" in result.stderr
    written = pd.read_csv("rows_chosen.csv")
    expected = choose_rows(frame, 7)
    assert list(written) == ["line", "rank", "a", "b", "c", "kind"]
    assert written["line"].tolist() == (expected + 2).tolist()
    assert written["rank"].tolist() == list(range(1, 8))
    pd.testing.assert_frame_equal(written[frame.columns], frame.iloc[expected].reset_index(drop=True))
    picture = matplotlib.image.imread("rows_chosen.png")
    assert picture.shape[:2] == (900, 1200)
    assert sorted(path.name for path in folder.iterdir()) == [
        "rows.csv",
        "rows_chosen.csv",
        "rows_chosen.png",
    ]


def test_lines_of_the_file_are_kept_as_they_are(frame):
    """Semicolons, decimal commas, quotes, empty lines, a cell of two lines: each row by its line."""
    rows = [f'0{i},5;"say ""{"hi" if i % 3 else "ho"}""";{"" if i % 4 else "1,0"}' for i in range(10, 40)]
    rows[3] = rows[3].replace("say ", "say\n")
    lines = ["", "size;text;y", *rows]
    lines.insert(20, "")
    text = "\n".join(lines)
    with open("rows.txt", "w") as file:
        file.write(text)
    result = choose("rows.txt", "-n", 20, "-p", "target", "y", "--output", "out.csv")
    assert result.exit_code == 0, result.output
    with open("out.csv") as file:
        heading, *written = re.split(r"\n(?=\d+;)", file.read().rstrip("\n"))
    assert heading == "line;rank;size;text;y"
    assert len(written) == 20
    all_lines = text.split("\n")
    for rank, row in enumerate(written, start=1):
        line, its_rank, rest = row.split(";", 2)
        assert int(its_rank) == rank
        assert all_lines[int(line) - 1].startswith(rest.split("\n")[0])
        assert rest.endswith(";")  # without a label


def test_labeled_rows_are_known_and_targets_count(frame):
    frame["y"] = np.where(np.arange(60) % 5 == 0, 1.5, np.nan)
    frame.to_csv("rows.csv", index=False)
    frame.iloc[:8, [3, 2, 1, 0]].to_csv("ask.csv", index=False)
    labeled = np.arange(0, 60, 5)
    assert choose("rows.csv", "-n", 6, "-p", "target", "y", "--output", "1.csv").exit_code == 0
    first = choose_rows(frame.drop(columns="y"), 6, labeled)
    assert pd.read_csv("1.csv")["line"].tolist() == (first + 2).tolist()
    arguments = ["-n", 6, "-p", "target", "y", "--targets", "ask.csv", "--output", "2.csv"]
    assert choose("rows.csv", *arguments).exit_code == 0
    features = frame.drop(columns="y")
    asked = choose_rows(features, 6, labeled, features.iloc[:8])
    assert pd.read_csv("2.csv")["line"].tolist() == (asked + 2).tolist()
    frame.iloc[:1].to_csv("one.csv", index=False)
    assert choose("rows.csv", "-n", 2, "--targets", "one.csv", "--output", "0.csv").exit_code == 0
    assert choose("rows.csv", "-n", 6, "-p", "drop_columns", "y, a", "--output", "3.csv").exit_code == 0
    without = choose_rows(features.drop(columns="a"), 6)
    assert pd.read_csv("3.csv")["line"].tolist() == (without + 2).tolist()
    assert "a" in pd.read_csv("3.csv")


def test_codes_among_targets_are_those_of_the_file(frame):
    """Also where those of the targets look like numbers: 1 is a text here, and no 1.0."""
    codes = pd.Series(np.random.default_rng(1).choice(["1", "x", "y"], 60, p=[0.2, 0.4, 0.4]))
    frame = frame.assign(code=codes)
    frame.to_csv("rows.csv", index=False)
    asked = frame[codes == "1"]
    asked.to_csv("ask.csv", index=False)
    assert choose("rows.csv", "-n", 6, "--targets", "ask.csv", "--output", "out.csv").exit_code == 0
    expected = choose_rows(frame, 6, targets=asked)
    assert pd.read_csv("out.csv")["line"].tolist() == (expected + 2).tolist()


def test_parquet_and_one_column_and_names_that_are_taken():
    pd.DataFrame({"line": np.arange(30.0) ** 2}).to_parquet("t.parquet")
    assert choose("t.parquet", "-n", 3).exit_code == 0
    written = pd.read_csv("t_chosen.csv")
    assert list(written) == ["line in t.parquet", "rank", "line"]
    assert (
        written["line in t.parquet"].tolist() == (choose_rows(np.arange(30.0)[:, None] ** 2, 3) + 1).tolist()
    )


def test_all_rows_that_are_left():
    pd.DataFrame({"a": [1.0, 2, 3, 4], "y": [None, 1, None, None]}).to_csv("t.csv", index=False)
    assert choose("t.csv", "-n", 3, "-p", "target", "y").exit_code == 0
    assert sorted(pd.read_csv("t_chosen.csv")["line"]) == [2, 4, 5]


REFUSED = {
    "all labeled": (["-p", "target", "a"], "t.csv must have a row to choose, but a has a value in all 4"),
    "too many": (["-n", "5"], "n must not exceed the number of rows without a label, 4, got 5"),
    "too many left": (
        ["-n", "3", "-p", "target", "y"],
        "n must not exceed the number of rows without a label, 2, got 3",
    ),
    "none": (["-n", "0"], "n must be an integer of 1 or more, got 0"),
    "no such column": (["-p", "target", "z"], "target must name a column of t.csv (a, b, y), got 'z'"),
    "a target of texts": (
        ["-p", "target", "b"],
        "target must name a column of numbers, but b of t.csv holds x",
    ),
    "target and dropped": (
        ["-p", "target", "y", "-p", "drop_columns", "y"],
        "drop_columns must not name the target, got y",
    ),
    "dropped and not there": (
        ["-p", "drop_columns", "z"],
        "drop_columns must name a column of t.csv (a, b, y), got 'z'",
    ),
    "nothing to use": (
        ["-p", "drop_columns", "a,y"],
        "t.csv must have a column that can be used, and not be the same in all rows",
    ),
    "a parameter that is given twice": (
        ["-p", "target", "a", "-p", "target", "y"],
        "give target once, got a and y",
    ),
    "another parameter": (
        ["-p", "seed", "3"],
        "unknown parameter seed; known are target, drop_columns, groups, column_types, missing_values",
    ),
    "targets without columns": (
        ["--targets", "other.csv"],
        "other.csv must have the columns of t.csv, but lacks b, y",
    ),
    "no such targets": (["--targets", "no.csv"], "there is no file no.csv"),
    "another kind of output": (["--output", "out.png"], "--output must end in .csv, got out.png"),
    "an output that exists": (
        ["--output", "other.csv"],
        "other.csv exists: move it, or name another file with --output",
    ),
    "a picture that exists": (
        ["--output", "kept.csv"],
        "kept.png exists: move it, or name another file with --output",
    ),
    "no such folder": (["--output", "no/out.csv"], "there is no folder no"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, folder):
    pd.DataFrame({"a": [1.0, 2, 3, 4], "b": "x", "y": [None, 1, None, 3]}).to_csv("t.csv", index=False)
    pd.DataFrame({"a": [1.0, 2, 3, 4]}).to_csv("other.csv", index=False)
    (folder / "kept.png").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    arguments, message = REFUSED[case]
    result = choose("t.csv", "-n", "1", *arguments)
    assert result.exit_code == 1
    assert result.output == f"Error: {message}\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_no_such_file():
    result = choose("no.csv", "-n", "1")
    assert (result.exit_code, result.output) == (1, "Error: there is no file no.csv\n")


def test_lines_of_spaces_only(folder):
    (folder / "t.csv").write_text("a\n1\n  \n2\n3\n")
    result = choose("t.csv", "-n", "1")
    assert result.exit_code == 0, result.output
    assert pd.read_csv("t_chosen.csv")["line"].tolist() in ([2], [4], [5])


def test_columns_may_be_named_one_by_one(frame):
    frame.to_csv("rows.csv", index=False)
    arguments = ["-p", "drop_columns", "a", "-p", "drop_columns", "k*", "-p", "groups", "b"]
    assert choose("rows.csv", "-n", 5, *arguments).exit_code == 0
    expected = choose_rows(frame[["c"]], 5)
    assert pd.read_csv("rows_chosen.csv")["line"].tolist() == (expected + 2).tolist()


def test_rows_without_a_value_are_not_chosen():
    frame = pd.DataFrame(
        {"a": [1.0, 2, 9, 4, None, None], "b": [3.0, 1, 2, 7, None, None], "y": [1, *[None] * 4, 2]}
    )
    frame["id"] = range(6)
    frame.to_csv("t.csv", index=False)
    arguments = ["-p", "target", "y", "-p", "drop_columns", "id"]
    assert choose("t.csv", "-n", 3, *arguments).exit_code == 0
    assert sorted(pd.read_csv("t_chosen.csv")["line"]) == [3, 4, 5]
    refused = choose("t.csv", "-n", 4, *arguments, "--output", "4.csv")
    assert "n must not exceed the number of rows without a label but with a value, 3, got 4" in refused.output


def test_notices_of_choose(frame):
    frame["site"] = [f"s{i % 15}" for i in range(60)]
    frame.loc[3, "b"] = -999
    frame.to_csv("rows.csv", index=False)
    told = choose("rows.csv", "-n", 12).stderr
    assert "-999 is far from all other values of b (1 time)" in told
    assert "site: as many values as rows to choose" in told
    assert "site" not in choose("rows.csv", "-n", 20, "--output", "2.csv").stderr


def test_an_interrupted_picture_leaves_nothing(frame, folder, monkeypatch):
    frame.to_csv("t.csv", index=False)

    def fail(*_args, **_kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    told = "t_chosen.png could not be written: no space left on device; there is no such file now"
    assert choose("t.csv", "-n", "1").output.endswith(f"Error: {told}\n")
    assert [path.name for path in folder.iterdir()] == ["t.csv"]


def test_where_rows_stand(folder):
    path = folder / "t.csv"
    for text, lines in {
        "\n\na,b\n1,2\n\n3,4\n5,6\n": [4, 6, 7],
        'a,b\n"x\ny",1\nz,2\n"p\n\nq",3\nr,4\n': [2, 4, 5, 8],
        "a\r\n1\r\n2\r\n\r\n3\r\n": [2, 3, 5],
        "a\r1\r2\r3\r": [2, 3, 4],
        "a,b\n1,\n,\n  ,3\n4,5": [2, 3, 4, 5],
        '"a\nb",c\n1,2\n3,4\n5,6': [3, 4, 5],
    }.items():
        path.write_bytes(text.encode())
        reading = read(path, min_rows=1)
        assert (reading.lines, reading.separator) == (lines, ",")
    path.write_bytes("\ufeffa;b\n1;2\n3;4\n".encode())
    reading = read(path, min_rows=1)
    assert (reading.lines, reading.separator) == ([2, 3], ";")
