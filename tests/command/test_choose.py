"""`dmls2r choose`: which rows it writes, how it keeps them, and what it refuses."""

import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dmls2r_lite.command.cli import main
from dmls2r_lite.data.reading import read
from dmls2r_lite.practice.choosing import choose_rows

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)).round(3), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["x", "y"], 60)
    frame.loc[5:9, "a"] = None
    return frame


def choose(*arguments):
    return CliRunner().invoke(main, ["choose", *map(str, arguments)])


def chosen(frame, n, *arguments):
    """The positions of the rows that are chosen, in order."""
    frame.to_csv("rows.csv", index=False)
    for suffix in ("csv", "png"):
        Path(f"rows_chosen.{suffix}").unlink(missing_ok=True)
    result = choose("rows.csv", "-n", n, *arguments)
    assert result.exit_code == 0, result.output
    return (pd.read_csv("rows_chosen.csv")["line"] - 2).tolist()


def test_no_label_anywhere(frame, folder):
    frame.to_csv("rows.csv", index=False)
    result = choose("rows.csv", "-n", 7)
    assert result.exit_code == 0, result.output
    files = ["rows.csv", "rows_chosen.csv", "rows_chosen.png"]
    told = f"{files[1]}: 7 rows of {files[0]} to label, the first first; {files[2]} shows them\n"
    assert result.stdout == told
    assert "a: kept, missing: the median" in result.stderr
    written, expected = pd.read_csv("rows_chosen.csv"), choose_rows(frame, 7)
    table = frame.iloc[expected].reset_index(drop=True)
    table.insert(0, "line", expected + 2)
    table.insert(1, "rank", range(1, 8))
    pd.testing.assert_frame_equal(written, table)
    assert matplotlib.image.imread("rows_chosen.png").shape[:2] == (900, 1200)
    assert sorted(path.name for path in folder.iterdir()) == files


def test_lines_of_the_file_are_kept_as_they_are(frame):
    """Semicolons, decimal commas, quotes, empty lines, a cell of two lines: each row by its line."""
    rows = [f'0{i},5;"say ""{"hi" if i % 3 else "ho"}""";{"" if i % 4 else "1,0"}' for i in range(10, 40)]
    rows[3] = rows[3].replace("say ", "say\n")
    all_lines = "\n".join(["", "size;text;y", *rows[:18], "", *rows[18:]]).split("\n")
    Path("rows.txt").write_text("\n".join(all_lines))
    result = choose("rows.txt", "-n", 20, "-p", "target", "y", "--output", "out.csv")
    assert result.exit_code == 0, result.output
    heading, *written = re.split(r"\n(?=\d+;)", Path("out.csv").read_text().rstrip("\n"))
    assert heading == "line;rank;size;text;y"
    assert len(written) == 20
    for rank, row in enumerate(written, start=1):
        line, its_rank, rest = row.split(";", 2)
        assert int(its_rank) == rank
        assert all_lines[int(line) - 1].startswith(rest.split("\n")[0])
        assert rest.endswith(";")  # without a label


def test_labels_targets_and_columns_left_out_count(frame):
    labeled = np.arange(0, 60, 5)
    with_y = frame.assign(y=np.where(np.arange(60) % 5 == 0, 1.5, np.nan))
    assert chosen(with_y, 6, "-p", "target", "y") == choose_rows(frame, 6, labeled).tolist()
    frame.iloc[:8, [3, 2, 1, 0]].to_csv("ask.csv", index=False)
    asked = chosen(with_y, 6, "-p", "target", "y", "--targets", "ask.csv")
    assert asked == choose_rows(frame, 6, labeled, frame.iloc[:8]).tolist()
    frame.iloc[:1].to_csv("one.csv", index=False)
    assert len(chosen(frame, 2, "--targets", "one.csv")) == 2
    without = choose_rows(frame[["b", "c", "kind"]], 6).tolist()
    assert chosen(with_y, 6, "-p", "drop_columns", "y, a") == without
    assert "a" in pd.read_csv("rows_chosen.csv")
    leaked = with_y.assign(fee=with_y["y"] * np.arange(60))  # known with the target only
    assert chosen(leaked, 6, "-p", "target", "y") == choose_rows(frame, 6, labeled).tolist()
    arguments = ["-p", "drop_columns", "a", "-p", "drop_columns", "k*", "-p", "groups", "b"]
    assert chosen(frame, 5, *arguments) == choose_rows(frame[["c"]], 5).tolist()


def test_codes_among_targets_are_those_of_the_file(frame):
    """Also where those of the targets look like numbers: 1 is a text here, and no 1.0."""
    codes = pd.Series(np.random.default_rng(1).choice(["1", "x", "y"], 60, p=[0.2, 0.4, 0.4]))
    frame = frame.assign(code=codes)
    asked = frame[codes == "1"]
    asked.to_csv("ask.csv", index=False)
    assert chosen(frame, 6, "--targets", "ask.csv") == choose_rows(frame, 6, targets=asked).tolist()


def test_parquet_and_one_column_and_names_that_are_taken():
    pd.DataFrame({"line": np.arange(30.0) ** 2}).to_parquet("t.parquet")
    assert choose("t.parquet", "-n", 3).exit_code == 0
    written = pd.read_csv("t_chosen.csv")
    assert list(written) == ["line in t.parquet", "rank", "line"]
    expected = choose_rows(np.arange(30.0)[:, None] ** 2, 3) + 1
    assert written["line in t.parquet"].tolist() == expected.tolist()


def test_rows_without_a_value_are_not_chosen():
    values = {"a": [1.0, 2, 9, 4, None, None], "b": [3.0, 1, 2, 7, None, None], "id": range(6)}
    frame = pd.DataFrame(values).assign(y=[1, *[None] * 4, 2])
    arguments = ["-p", "target", "y", "-p", "drop_columns", "id"]
    assert sorted(chosen(frame, 3, *arguments)) == [1, 2, 3]
    refused = choose("rows.csv", "-n", 4, *arguments, "--output", "4.csv")
    assert "n must not exceed the number of rows without a label but with a value, 3, got 4" in refused.output


def test_notices(frame):
    frame["site"] = [f"s{i % 15}" for i in range(60)]
    frame.loc[3, "b"] = -999
    frame.to_csv("rows.csv", index=False)
    told = choose("rows.csv", "-n", 12).stderr
    assert "-999 is far from all other values of b (1 time)" in told
    assert "site: as many values as rows to choose" in told
    assert "site" not in choose("rows.csv", "-n", 20, "--output", "2.csv").stderr


def test_an_interrupted_picture_leaves_nothing(frame, folder, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    frame.to_csv("t.csv", index=False)
    told = "t_chosen.png could not be written: no space left on device; there is no such file now"
    assert choose("t.csv", "-n", "1").output.endswith(f"Error: {told}\n")
    assert [path.name for path in folder.iterdir()] == ["t.csv"]


TARGET = ("-p", "target")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*TARGET, "a"], "n must not exceed the number of rows without a label but with a value, 0, got 1"),
        (["-n", "3", *TARGET, "y"],
         "n must not exceed the number of rows without a label, 2, got 3"),
        (["-n", "0"], "n must be an integer of 1 or more, got 0"),
        ([*TARGET, "z"], "target must name a column of t.csv (a, b, y), got 'z'"),
        ([*TARGET, "b"], "target must name a column of numbers, but b of t.csv holds x"),
        ([*TARGET, "y", "-p", "drop_columns", "y"], "drop_columns must not name the target, got y"),
        (["-p", "groups", "z"], "groups must name a column of t.csv (a, b, y), got 'z'"),
        ([*TARGET, "y", "-p", "groups", "y"], "groups must name a column of t.csv (a, b), got 'y'"),
        (["-p", "drop_columns", "z"], "drop_columns must name a column of t.csv (a, b, y), got 'z'"),
        (["-p", "drop_columns", "a,y"], "t.csv must have a column that can be used, and not be the same in "
         "all rows"),
        ([*TARGET, "a", *TARGET, "y"], "give target once, got a and y"),
        (["-p", "seed", "3"], "unknown parameter 'seed'; known are target, drop_columns, groups, "
         "column_types, missing_values"),
        (["--targets", "other.csv"], "other.csv lacks columns that are needed: b, y"),
        (["--targets", "no.csv"], "there is no file no.csv"),
        (["--output", "out.png"], "--output must end in .csv, got out.png"),
        (["--output", "other.csv"], "other.csv exists: move it, or name another file with --output"),
        (["--output", "kept.csv"], "kept.png exists: move it, or name another file with --output"),
        (["--output", "no/out.csv"], "there is no folder no"),
    ],
)  # fmt: skip
def test_refused(arguments, message, folder):
    pd.DataFrame({"a": [1.0, 2, 3, 4], "b": "x", "y": [None, 1, None, 3]}).to_csv("t.csv", index=False)
    pd.DataFrame({"a": [1.0, 2, 3, 4]}).to_csv("other.csv", index=False)
    (folder / "kept.png").write_text("mine")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = choose("t.csv", "-n", "1", *arguments)
    assert result.exit_code == 1
    assert result.output == f"Error: {message}\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n\na,b\n1,2\n\n3,4\n5,6\n", [4, 6, 7]),
        ('a,b\n"x\ny",1\nz,2\n"p\n\nq",3\nr,4\n', [2, 4, 5, 8]),
        ("a\r\n1\r\n2\r\n\r\n3\r\n", [2, 3, 5]),
        ("a\r1\r2\r3\r", [2, 3, 4]),
    ],
)
def test_where_rows_stand(folder, text, lines):
    (folder / "t.csv").write_bytes(text.encode())
    assert read("t.csv", min_rows=1).lines == lines
