"""The command line: what is asked, what is refused, and how fast."""

import os
import re
import subprocess
import sys

import pytest
from click import unstyle
from click.testing import CliRunner
from fake_notebooks import FILE_PARAMETERS, PARAMETERS, run, without_kernels, write_notebook

from dmls2r_lite.command import cli, plan
from dmls2r_lite.data import load_dataset
from dmls2r_lite.data.catalog import DATASETS

HEAVY = {"numpy", "torch", "papermill", "nbclient", "nbformat", "nbconvert", "jsonschema", "sklearn"}


# What can be asked without running anything


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], "datasets"),
        (["datasets"], "boston"),
        (["run", "boston", "-p", "n_labeled", "1"], "n_labeled must be an integer of 2 or more, got 1"),
        (["run", "boston", "-p", "n_label", "5"], "did you mean n_labeled?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_answers_come_at_once(arguments, expected):
    """By what is not imported: each of these takes a second."""
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom dmls2r_lite.command.cli import main\n"
        f"print(CliRunner().invoke(main, {arguments}).output, *({HEAVY} & set(sys.modules)), sep='HEAVY ')"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert expected in output
    assert "HEAVY" not in output


def test_nobody_reads_on():
    """As in `dmls2r datasets | head`: it ends without a word."""
    read, write = os.pipe()
    os.close(read)
    code = "from dmls2r_lite.command.cli import main\nmain(['datasets'])"
    ended = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, check=False)
    assert (ended.stderr, ended.returncode) == (b"", 1)


def test_version():
    assert re.search(r"\d+\.\d+\.\d+", CliRunner().invoke(cli.main, ["--version"]).output)


def test_help_does_not_cut_sentences():
    listed = " ".join(CliRunner().invoke(cli.main, ["--help"]).output.partition("Commands:")[2].split())
    assert "..." not in listed
    for name, command in cli.main.commands.items():
        assert f"{name} {command.help.splitlines()[0]}" in listed


def test_datasets_are_listed_within_the_width_of_the_terminal():
    lines = CliRunner().invoke(cli.main, ["datasets"], env={"COLUMNS": "70"}).output.splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["name", "rows", "columns", "target", "here"]
    assert re.split(r"\s{2,}", lines[1]) == ["boston", "506", "13", "MEDV [1000 USD]", "yes"]
    assert max(map(len, lines)) <= 70
    text = " ".join(" ".join(lines).split()).replace("- ", "-")  # hyphens may end a line
    for name, known in DATASETS.items():
        assert any(line.startswith(f"{name} ") for line in lines)
        assert f"{known.source}. Licence: {known.licence}" in text
    assert "path/to/file.csv" in text


# Mistakes, found before anything runs


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["-p", "n_labelled", "5"],
            ["'n_labelled'; did you mean n_labeled?", "known are dataset, n_lab"],
        ),
        (["-p", "n_labeled", "2.5"], ["n_labeled", "'2.5'", "int"]),
        (["-p", "margin", "wide"], ["margin", "'wide'", "float"]),
        (["-p", "fast", "perhaps"], ["fast", "'perhaps'", "bool"]),
        (["-p", "n_labeled", "1"], ["n_labeled must be an integer of 2 or more", "got 1", "boston, 01_b"]),
        (["-p", "n_labeled", "306"], ["n_labeled + n_unlabeled must be below 506", "306 + 200"]),
        (["boston", "toy", "-p", "n_unlabeled", "450"], ["toy", "must be below 400"]),
        (["-p", "n_unlabeled", "4"], ["k must not exceed n_unlabeled, 4", "got 5"]),
        (["-p", "margin", "1.3"], ["margin must be a number from 0 to boundary, 1.2", "got 1.3"]),
        (["-p", "drop_columns", "B,CC"], ["drop_columns", "CRIM", "got 'CC'"]),
        (["-p", "drop_columns", "B", "-p", "drop_columns", "CC"], ["CRIM", "got 'CC'"]),
        (["-p", "seed", "1", "-p", "seed", "2"], ["give seed once, got 1 and 2"]),
        (["-p", "dataset", "toy"], ["dmls2r run toy"]),
        (["-p", "output_dir", "x"], ["give the output_dir as --output-dir x"]),
        (["./nothing.csv"], ["there is no file", "nothing.csv"]),
        (["table.xlsx"], ["there is no file", "table.xlsx"]),
        (["bostn"], ["unknown dataset 'bostn'; did you mean boston?", "superconductivity", "path of a file"]),
        (["x" * 300], ["unknown dataset 'xxx", "xxx...; known are boston"]),
        (["x/" * 3000 + "x.csv", "-p", "target", "y"], []),
        (["--only", "07"], ["unknown notebook '07'", "known are 01, 02"]),
        (["-p", "n_labeled"], ["-p"]),
        (["--output-dir", "file/runs"], ["Not a directory"]),
    ],
    ids=lambda value: " ".join(value)[:40] if value and value[0] else "",
)
def test_mistakes_are_one_clear_error_and_nothing_runs(notebooks, monkeypatch, arguments, expected):
    without_kernels(monkeypatch, lambda client: pytest.fail("a notebook was run"))
    monkeypatch.chdir(notebooks.parent)
    (notebooks.parent / "file").touch()
    more = ["k: int = 5  # neighbours", "boundary: float = 1.2", "margin: float = 0.4", 'drop_columns = ""']
    write_notebook(notebooks / "01_b.ipynb", parameters="\n".join([PARAMETERS, *more]))
    write_notebook(notebooks / "02_closer.ipynb", parameters="fast: bool = True")
    result = run(notebooks, *arguments)
    check_refused(result, *expected)
    assert not (notebooks.parent / "runs").exists()


def check_refused(result, *expected):
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)
    assert unstyle(result.output).count("Error: ") == 1
    assert "Traceback" not in result.output
    for words in expected:
        assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["datasets", "fetch", "air_qualty"], "did you mean air_quality?"),
        (["choose", "x.csv", "-n", "3", "-p", "drop_column", "A"], "did you mean drop_columns?"),
    ],
)
def test_what_was_meant(arguments, message):
    check_refused(CliRunner().invoke(cli.main, arguments), message)


def test_notebooks_that_cannot_be_read(notebooks):
    notebooks.mkdir()
    check_refused(run(notebooks), str(notebooks))
    (notebooks / "00_a.ipynb").write_text("{}")
    check_refused(run(notebooks), "Error: cannot read the parameters of", "00_a.ipynb")


# What will be run


def jobs_of(notebooks, given, datasets=("toy",)):
    return plan.plan(datasets, plan.find_notebooks(notebooks), given, notebooks / "runs")


def test_values_are_of_the_type_of_defaults(notebooks):
    annotated = "a: float = 1.0\nb: str = '1'\nc = 1\nd: int = 1  # an integer\ne: bool = True  # or = False"
    write_notebook(notebooks / "00_a.ipynb", parameters=annotated)
    write_notebook(notebooks / "01_b.ipynb", parameters="b: int = 1\nf: int = 3")
    first, second = jobs_of(notebooks, {**dict.fromkeys("abcd", "2"), "e": "no"})
    assert first.injected == {"a": 2.0, "b": "2", "c": 2, "d": 2, "e": False}
    assert [type(value) for value in first.injected.values()] == [float, str, int, int, bool]
    assert (second.injected, second.parameters) == ({"b": 2}, {"b": 2, "f": 3})


def test_notebooks_are_found_beside_and_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "dmls2r_lite"
    monkeypatch.setattr(plan, "__file__", str(package / "command" / "plan.py"))
    package.mkdir()
    for folder in (package / "notebooks", tmp_path / "notebooks"):  # installed, then a repository
        write_notebook(folder / "00_a.ipynb")
        (folder / "other.ipynb").touch()
        assert plan.find_notebooks() == [folder / "00_a.ipynb"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "target must name a column of flats.csv (size, where, price), got nothing"),
        (
            ["target", "where"],
            "target must name a column of numbers, but where of flats.csv holds south, north",
        ),
        (["target", "price"], "n_labeled + n_unlabeled must be below 15, the number of rows"),
    ],
)
def test_a_file_needs_a_target(notebooks, flats, given, message):
    """And a lesson that compares with the truth leaves out the rows without one."""
    needs = "data = check_parameters(dataset=dataset, needs_targets=True)"
    write_notebook(notebooks / "00_a.ipynb", needs, parameters=FILE_PARAMETERS)
    more = ["-p", *given] if given else []
    check_refused(run(notebooks, str(flats), "-p", "n_unlabeled", "12", *more), message)
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    if given == ["target", "price"]:
        assert len(jobs_of(notebooks, {"target": "price", "n_unlabeled": "12"}, [str(flats)])) == 1


def test_a_dataset_is_loaded_once_in_a_run(notebooks, flats, monkeypatch):
    for name in ("00_a", "01_b", "02_c"):
        write_notebook(notebooks / f"{name}.ipynb", parameters=FILE_PARAMETERS)
    loads = []

    def load(name, *arguments, **options):
        loads.append(name)
        return load_dataset(name, *arguments, **options)

    monkeypatch.setattr("dmls2r_lite.data.datasets.load_dataset", load)
    given = {"target": "price", "n_unlabeled": "12"}
    assert len(jobs_of(notebooks, given, [str(flats)])) == 3
    assert loads == [str(flats)]
    flats.write_text("size,where,price\n1,north,2\n2,south,\n3,north,4\n4,south,5")
    with pytest.raises(ValueError, match="target must have a value in 5 rows or more, but price has 3"):
        jobs_of(notebooks, given, [str(flats)])  # another run reads it anew
