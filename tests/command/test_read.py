"""`dmls2r read`: what it says of a table, and how the same is said by a run."""

import pytest
from click.testing import CliRunner

from dmls2r_lite.command.cli import main

pytestmark = pytest.mark.usefixtures("folder")


def read(text, *parameters):
    with open("t.csv", "w") as file:
        file.write("\n".join(text.split()) + "\n")
    given = [word for name, value in parameters for word in ("-p", name, value)]
    return CliRunner().invoke(main, ["read", "t.csv", *given])


def test_what_is_in_a_file(folder):
    result = read("when;size;y 03/02/2021;1,5;10 04/02/2021;2,25;21 05/02/2021;;30 06/02/2021;3;")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    first, *lines = result.stdout.splitlines()
    assert first == "t.csv: 4 rows, 3 columns"
    table = {line.split()[0]: line for line in lines if line}
    for words in (
        "date",
        "day first",
        "03/02/2021 | 04/02/2021 | 05/02",
        "2021-02-03 | 2021-02-04 | 2021-02",
    ):
        assert words in table["when"]
    assert "1,5 | 2,25 | 3" in table["size"]
    assert "1.5 | 2.25 | 3" in table["size"]
    assert ["? " in table[name] for name in ("when", "size")] == [True, False]  # a guess: day or month first
    assert [path.name for path in folder.iterdir()] == ["t.csv"]


CODED = "a,lab2,lab1 1,10,11 2,21,20 3,29,-999 4,41,40 5,52,50 6,, 7,, 8,, 9,,"


@pytest.mark.parametrize(
    ("text", "parameters", "told"),
    [
        (CODED, {"target": "lab1"},
         ["t.csv: 9 rows, 3 columns; lab1 is known in 5\n",
          "What is done to columns:\n- lab2: left out: no value in any row without a target\n\nLook at",
          "\n- -999 is far from all other values of lab1 (1 time); a row with it in lab1 counts"]),
        (CODED, {"target": "lab1", "missing_values": "-999"}, ["lab1 is known in 4"]),
        ("a,b,y 1,2, 2,4, 3,5, 4,9, 5,7,", {"target": "y"},
         ["y is known in 0: dmls2r choose says which to label"]),
        ("gen,y 101,3 102,4 101,5 103,", {"column_types": "gen=category"}, ["gen     category"]),
        ("a,y 1,3 n.d.,4 3,5 4,6", {"missing_values": "a=n.d."}, ["n.d. for missing"]),
        ('a,y,"a,y" 1,2,2 3,4,5 5,6,6', {"target": "a,y"}, ["3 columns; a,y is known in 3"]),
        ("a,sign,y 1,>,2 3,=,4 5,>,6", {"target": "y"}, ["- sign: signs (>, =). Where one says that"]),
        ("a,sign,y 1,<=,2 3,,4 5,,6", {"target": "y"}, ["- sign: signs (<=). Where one says that"]),
    ],
)  # fmt: skip
def test_what_a_run_would_say(text, parameters, told):
    result = read(text, *parameters.items())
    assert result.exit_code == 0, result.output
    for words in told:
        assert words in result.stdout
    assert ("-999 is far" in result.stdout) == ("-999 is far" in told[-1])


def test_columns_named_several_times_are_all_left_out():
    result = read("a,b,c,y 1,2,3,4 5,6,7,8 9,1,2,3", ("drop_columns", "a"), ("drop_columns", "c"))
    assert result.stdout.startswith("t.csv: 3 rows, 2 columns")
    two = [("missing_values", "7"), ("missing_values", "y=98,99")]
    assert "y is known in 2" in read("a,y 99,1 2,99 3,98 7,2", *two, ("target", "y")).stdout


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([("target", "z")], "target must name a column of t.csv (a, y), got 'z'"),
        ([("target", "Y")], "got 'Y'; did you mean y?"),
        ([("target", "a, y")], "target must name one column, got a, y: run once for each"),
        ([("seed", "1")], "unknown parameter 'seed'; known are target, drop_columns, column_types, missing"),
        ([("target", "a"), ("target", "y")], "give target once, got a and y"),
        ([("missing_values", "7")], "missing_values must occur in the file, got 7, which does not"),
        ([("drop_columns", "z")], "drop_columns must name a column of t.csv (a, y), got 'z'"),
        ([], "seems to hold numbers, but has 'n.d.'"),
    ],
)
def test_refused(parameters, message):
    result = read("a,y 1,2 3,4 5,6" if parameters else "a,y 1,3 n.d.,4 3,5 4,6", *parameters)
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output
