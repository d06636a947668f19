"""The command line, on notebooks so small that they run in a second."""

import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from click import ClickException
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from dmls2r_lite.command import cli, runner
from dmls2r_lite.data import load_dataset
from dmls2r_lite.data.catalog import DATASETS
from dmls2r_lite.teaching.notebook import RESULTS_MIME

PARAMETERS = """\
dataset: str = "boston"  # a name that `dmls2r datasets` lists
n_labeled: int = 20  # labeled samples, 2 or more
n_unlabeled: int = 200  # unlabeled samples, 1 or more
seed: int = 0  # of the split"""
FIGURE = """\
import matplotlib.pyplot as plt
plt.plot([0, n_labeled])
plt.show()"""
RESULTS = f"""\
from IPython.display import display
display({{{RESULTS_MIME!r}: {{"median_guess_mae": n_labeled / 3, "name": dataset, "none": float("nan")}},
         "text/plain": "results"}}, raw=True)"""


def tagged(tag, source):
    return new_code_cell(source, metadata={"tags": [tag]})


def write_notebook(path, *cells, parameters=PARAMETERS):
    cells = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3 (ipykernel)"}
    cells = [new_markdown_cell("# Title"), tagged("parameters", parameters), *cells]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


@pytest.fixture
def notebooks(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    return folder


def run(notebooks, *arguments, output=None):
    output = output or notebooks.parent / "runs"
    command = ["run", "--notebooks-dir", str(notebooks), "--output-dir", str(output), *arguments]
    return CliRunner().invoke(cli.main, command)


def start(notebooks, *arguments, output=None):
    """Like `run`, in a process of its own."""
    output = output or notebooks.parent / "runs"
    command = [sys.executable, "-c", "from dmls2r_lite.command.cli import main; main()", "run", *arguments]
    command += ["--notebooks-dir", notebooks, "--output-dir", output]
    # Where the tests run in the background, SIGINT may be ignored, and children inherit that.
    heed = None if os.name == "nt" else lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )


def read_record(folder):
    return json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)


def wait_for(path, process, text=""):
    deadline = time.time() + 100
    while not (path.exists() and text in path.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.time() < deadline
        time.sleep(0.05)


def check_ended(process_id, seconds=20):
    for _ in range(seconds * 10):
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {process_id} is still there")


# What can be asked without running anything


def test_help_needs_no_heavy_imports():
    heavy = "{'torch', 'papermill', 'pandas', 'sklearn', 'nbformat', 'nbconvert'}"
    code = f"import sys; import dmls2r_lite.command.cli; print({heavy} & set(sys.modules) or 'none')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "none"
    result = CliRunner().invoke(cli.main, ["--help"])
    assert result.exit_code == 0
    assert "datasets" in result.output


def test_version():
    assert re.search(r"\d+\.\d+\.\d+", CliRunner().invoke(cli.main, ["--version"]).output)


def test_datasets_are_listed_within_the_width_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = CliRunner().invoke(cli.main, ["datasets"]).output.splitlines()
    assert re.split(r"\s{2,}", lines[0]) == ["name", "rows", "columns", "target", "here"]
    assert re.split(r"\s{2,}", lines[1]) == ["boston", "506", "13", "MEDV [1000 USD]", "yes"]
    names = [line.split()[0] for line in lines[1 : lines.index("")] if line[0] != " "]
    assert names == list(DATASETS)
    assert max(map(len, lines)) <= 70
    text = " ".join(" ".join(lines).split()).replace("- ", "-")  # hyphens may end a line
    for known in DATASETS.values():
        assert known.source in text
        assert f"Licence: {known.licence}" in text
    assert "path/to/file.csv" in text


# Mistakes, found before anything runs


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "n_labelled", "5"], ["n_labelled", "n_labeled", "int", "20", "labeled samples, 2 or more"]),
        (["-p", "n_labeled", "2.5"], ["n_labeled", "'2.5'", "int"]),
        (["-p", "margin", "wide"], ["margin", "'wide'", "float"]),
        (["-p", "fast", "perhaps"], ["fast", "'perhaps'", "bool"]),
        (["-p", "n_labeled", "1"], ["n_labeled must be an integer of 2 or more", "got 1", "boston", "01_b"]),
        (["-p", "n_labeled", "306"], ["n_labeled + n_unlabeled must be below 506", "306 + 200"]),
        (["boston", "toy", "-p", "n_unlabeled", "450"], ["toy", "must be below 400"]),
        (["-p", "n_unlabeled", "4"], ["k must not exceed n_unlabeled, 4", "got 5"]),
        (["-p", "margin", "1.3"], ["margin must be a number from 0 to boundary, 1.2", "got 1.3"]),
        (["-p", "margin", "nan"], ["margin must be a number from 0 to boundary, 1.2, got nan"]),
        (["-p", "seed", "-1"], ["seed must be an integer from 0 to 2147483648, got -1"]),
        (["-p", "drop_columns", "B,CC"], ["drop_columns", "CRIM", "got CC"]),
        (["-p", "drop_columns", "B", "-p", "drop_columns", "CC"], ["CRIM", "got CC"]),
        (["-p", "seed", "1", "-p", "seed", "2"], ["give seed once, got 1 and 2"]),
        (["-p", "dataset", "toy"], ["dmls2r run toy"]),
        (["-p", "output_dir", "x"], ["give the output_dir as --output-dir x"]),
        (["./nothing.csv"], ["there is no file", "nothing.csv"]),
        (["table.xlsx"], ["there is no file", "table.xlsx"]),
        (["bostn"], ["unknown dataset 'bostn'", "boston, superconductivity", "or give the path of a file"]),
        (["--only", "07"], ["07", "01_b", "02_c"]),
        (["-p", "n_labeled"], ["-p"]),
    ],
)
def test_mistakes_are_one_clear_error_and_nothing_runs(notebooks, monkeypatch, arguments, expected):
    monkeypatch.setattr(runner, "execute_notebook", lambda *_, **__: pytest.fail("a notebook was run"))
    more = [
        "k: int = 5  # neighbours",
        "boundary: float = 1.2",
        "margin: float = 0.4",
        'drop_columns: str = ""',
    ]
    write_notebook(notebooks / "01_b.ipynb", parameters="\n".join([PARAMETERS, *more]))
    write_notebook(notebooks / "02_c.ipynb", parameters="fast: bool = True")
    result = run(notebooks, *arguments)
    assert result.exit_code in (1, 2)
    assert result.output.count("Error: ") == 1
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    for words in expected:
        assert words in result.output
    assert not (notebooks.parent / "runs").exists()


def test_folder_without_notebooks(notebooks):
    result = run(notebooks)
    assert result.exit_code == 1
    assert str(notebooks) in result.output


def test_notebook_that_cannot_be_read(notebooks):
    (notebooks / "00_a.ipynb").write_text("{}")
    result = run(notebooks)
    assert result.exit_code == 1
    assert "Error: cannot read the parameters of" in result.output
    assert "00_a.ipynb" in result.output


def test_output_dir_that_cannot_be_made(notebooks):
    write_notebook(notebooks / "00_a.ipynb")
    (notebooks / "file").touch()
    result = run(notebooks, output=notebooks / "file" / "runs")
    assert result.exit_code == 1
    assert re.match(r"Error: .*Not a directory", result.output)


def plan(notebooks, given):
    return cli._plan(["toy"], cli._find_notebooks(notebooks, []), given, notebooks / "runs")


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("Yes", True), ("false", False), ("0", False), ("no", False)],
)
def test_bool_is_no_string(notebooks, text, value):
    write_notebook(notebooks / "00_a.ipynb", parameters="fast: bool = True  # or slow")
    (job,) = plan(notebooks, {"fast": text})
    assert job.injected == {"fast": value}


def test_values_follow_annotations(notebooks):
    annotated = "a: float = 1\nb: str = '1'\nc = 1\nd: int = 1  # an integer"
    write_notebook(notebooks / "00_a.ipynb", parameters=annotated)
    (job,) = plan(notebooks, dict.fromkeys("abcd", "2"))
    assert job.injected == {"a": 2.0, "b": "2", "c": 2, "d": 2}
    assert [type(value) for value in job.injected.values()] == [float, str, int, int]


def test_a_parameter_goes_only_to_notebooks_that_know_it(notebooks):
    write_notebook(notebooks / "00_a.ipynb", parameters="a: int = 1")
    write_notebook(notebooks / "01_b.ipynb", parameters="b: int = 1\nc: int = 3")
    jobs = plan(notebooks, {"b": "2"})
    assert [job.injected for job in jobs] == [{}, {"b": 2}]
    assert [job.parameters for job in jobs] == [{"a": 1}, {"b": 2, "c": 3}]


def test_notebooks_are_found_beside_and_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "dmls2r_lite"
    monkeypatch.setattr(cli, "__file__", str(package / "command" / "cli.py"))
    for folder in (package / "notebooks", tmp_path / "notebooks"):  # installed, then a repository
        folder.mkdir(parents=True)
        write_notebook(folder / "00_a.ipynb")
        (folder / "other.ipynb").touch()
        assert cli._find_notebooks(None, []) == [folder / "00_a.ipynb"]


# A run that goes well


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two runs of two notebooks for two datasets; the folder's name is one that papermill would format."""
    notebooks = tmp_path_factory.mktemp("a{b} ü") / "notebooks"
    notebooks.mkdir()
    caption = new_markdown_cell('*Figure:* A line from (0, 0)\nto "the right" & up.')
    write_notebook(
        notebooks / "00_a.ipynb", tagged("key-figure", FIGURE), caption, tagged("results", RESULTS)
    )
    write_notebook(notebooks / "01_b.ipynb", "print(seed)", parameters="seed: int = 0")
    arguments = ["boston", "toy", "boston", "-p", "n_labeled", "30"]
    results = [run(notebooks, *arguments, output=notebooks.parent / name) for name in ("runs", "again")]
    return notebooks.parent, results


def test_a_page_names_the_dataset_only_if_its_notebook_has_one(finished):
    folder, _ = finished
    pages = {path.stem: path.read_text() for path in (folder / "runs" / "boston").glob("0*.html")}
    assert "This run is on boston." in pages["00_a"]
    assert "This run is on" not in pages["01_b"]


def test_run_says_what_it_does(finished):
    folder, (result, _) = finished
    assert result.exit_code == 0
    first, *lines = result.stderr.splitlines()
    assert re.fullmatch(r"notebooks to run: 4, [1-4] at a time", first)
    assert sorted(re.sub(r"\d+\.\d s", "N s", line) for line in lines) == [  # in the order in which they end
        "boston  00_a ... N s",
        "boston  01_b ... N s",
        "toy  00_a ... N s",
        "toy  01_b ... N s",
    ]
    table, path = result.stdout.strip().split("\n\n")
    assert path == f"All results: {folder / 'runs' / 'index.html'}"
    assert [re.sub(r" +", " ", re.sub(r" \d+\.\d", " N", line)) for line in table.splitlines()] == [
        "dataset notebook status seconds results",
        "boston 00_a ok N median_guess_mae 10, name boston, none nan",
        "boston 01_b ok N",
        "toy 00_a ok N median_guess_mae 10, name toy, none nan",
        "toy 01_b ok N",
    ]


def test_run_writes_notebooks_pages_and_results(finished):
    folder, _ = finished
    names = {path.name for path in (folder / "runs" / "toy").iterdir()} - {".lock"}
    assert names == {"00_a.ipynb", "00_a.html", "01_b.ipynb", "01_b.html", "results.json"}
    nb = nbformat.read(folder / "runs" / "toy" / "00_a.ipynb", as_version=4)
    assert 'dataset = "toy"' in nb.cells[2].source
    page = BeautifulSoup((folder / "runs" / "toy" / "00_a.html").read_text(), "html.parser")
    assert [img["alt"] for img in page.find_all("img")] == ['A line from (0, 0) to "the right" & up.']
    record = read_record(folder / "runs" / "toy")
    assert record["dataset"] == "toy"
    assert record["complete"] is True
    assert record["versions"].keys() == {"python", "torch", "numpy", "pandas", "scikit-learn", "dmls2r-lite"}
    assert list(record["notebooks"]) == ["00_a", "01_b"]
    entry = record["notebooks"]["00_a"]
    assert (entry["status"], entry["path"], entry["html"]) == ("ok", "00_a.ipynb", "00_a.html")
    assert entry["parameters"] == {"dataset": "toy", "n_labeled": 30, "n_unlabeled": 200, "seed": 0}
    assert entry["given"] == {"n_labeled": 30}
    assert entry["results"] == {"median_guess_mae": 10.0, "name": "toy", "none": "nan"}
    assert 0 < entry["seconds"] < 100


@pytest.mark.parametrize("dataset", ["boston", "toy"])
def test_two_runs_give_the_same_results(finished, dataset):
    folder, _ = finished
    first, second = (read_record(folder / name / dataset) for name in ("runs", "again"))
    for record in (first, second):
        for entry in record["notebooks"].values():
            for key in ("seconds", "path", "html"):
                del entry[key]
    assert first == second


def test_index_page(finished):
    folder, _ = finished
    html = (folder / "runs" / "index.html").read_text()
    page = BeautifulSoup(html, "html.parser")
    assert not page.find_all(["script", "link", "iframe"])
    assert [heading.text for heading in page.find_all("h2")] == [
        "boston",
        "toy",
        "All datasets beside each other",
    ]
    images = page.find_all("img")
    assert [image["alt"] for image in images] == ['A line from (0, 0) to "the right" & up.'] * 2
    assert all(image["src"].startswith("data:image/png;base64,iVBOR") for image in images)
    assert [image.parent["href"] for image in images] == ["boston/00_a.html", "toy/00_a.html"]
    for link in page.find_all("a"):
        target = link["href"]
        found = page.find(id=target[1:]) if target.startswith("#") else (folder / "runs" / target).exists()
        assert found, target
    rows = [
        [cell.text.strip() for cell in row.find_all(["th", "td"])]
        for row in page.find_all("table")[-1].find_all("tr")
    ]
    assert rows[:2] == [["", "boston", "toy"], ["target", "MEDV [1000 USD]", "y [units]"]]
    assert ["00: median guess mae", "10.0", "10.0"] in rows
    assert "n_labeled 30" in page.text


def test_index_page_lists_earlier_runs_and_survives_other_files(finished, tmp_path):
    folder, _ = finished
    output = tmp_path / "runs"
    shutil.copytree(folder / "runs", output)
    for name, text in {"foreign": "[]", "broken": "{", "other": '{"a": 1}'}.items():
        (output / name).mkdir()
        (output / name / "results.json").write_text(text)
    (output / "toy" / "00_a.ipynb").unlink()
    assert run(folder / "notebooks", "friedman", "--only", "1", output=output).exit_code == 0
    page = BeautifulSoup((output / "index.html").read_text(), "html.parser")
    assert [heading.text for heading in page.find_all("h2")][:-1] == ["boston", "friedman", "toy"]
    assert len(page.find_all("img")) == 1


# Runs that do not go well


@pytest.mark.slow
def test_failing_notebook_is_kept_and_the_others_run(notebooks):
    write_notebook(
        notebooks / "00_a.ipynb", "if dataset == 'toy':\n    raise KeyError('one\\ntwo')", "print('after')"
    )
    write_notebook(notebooks / "01_b.ipynb", RESULTS)
    result = run(notebooks, "toy", "boston")
    output = notebooks.parent / "runs"
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 + 4 + 2
    failed = next(place for place, line in enumerate(lines) if line.startswith("toy  00_a"))
    failed, cell, see = lines[failed : failed + 3]
    assert re.fullmatch(r"toy  00_a \.\.\. failed after \d+\.\d s", failed)
    assert cell.startswith("    cell [3]: KeyError: 'one")
    assert see == f"    see {output / 'toy' / '00_a.partial.ipynb'}"
    assert (output / "toy" / "00_a.partial.ipynb").exists()
    assert (output / "toy" / "00_a.partial.html").exists()
    assert not (output / "toy" / "00_a.ipynb").exists()
    record = read_record(output / "toy")
    assert record["complete"] is True
    assert [entry["status"] for entry in record["notebooks"].values()] == ["failed", "ok"]
    assert record["notebooks"]["00_a"]["cell"] == 3
    assert record["notebooks"]["00_a"]["error"].startswith("KeyError")
    statuses = [entry["status"] for entry in read_record(output / "boston")["notebooks"].values()]
    assert statuses == ["ok", "ok"]
    index = BeautifulSoup((output / "index.html").read_text(), "html.parser")
    assert [cell.text for cell in index.find_all(class_="failed")] == ["failed"]

    write_notebook(notebooks / "00_a.ipynb", "print('mended')")
    assert run(notebooks, "toy").exit_code == 0
    assert not list((output / "toy").glob("*partial*"))


@pytest.mark.slow
def test_kernel_that_dies_is_a_failure_like_others(notebooks):
    write_notebook(notebooks / "00_a.ipynb", "import os", "os._exit(9)")
    write_notebook(notebooks / "01_b.ipynb", parameters="seed: int = 0")
    process = start(notebooks, "toy")
    stdout, stderr = process.communicate(timeout=100)
    assert process.returncode == 1
    assert re.search(r"01_b +ok", stdout)
    lines = stderr.splitlines()
    assert len(lines) == 5, stderr  # nothing else reaches the terminal
    failed = next(place for place, line in enumerate(lines) if line.startswith("toy  00_a ... failed"))
    assert lines[failed + 1].startswith("    cell [4]: DeadKernelError")


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=lambda sent: sent.name)
def test_a_run_that_was_stopped_goes_on(notebooks, sent):
    output = notebooks.parent / "runs" / "toy"
    started = notebooks.parent / "started"
    sleep = f"import pathlib, time\nif pathlib.Path({str(started)!r}).exists():\n    time.sleep(0)\nelse:\n"
    sleep += f"    import os\n    pathlib.Path({str(started)!r}).write_text(str(os.getpid()))\n"
    sleep += "    time.sleep(100)"
    write_notebook(notebooks / "00_a.ipynb", RESULTS)
    write_notebook(notebooks / "01_b.ipynb", sleep)
    process = start(notebooks, "toy")
    wait_for(started, process)
    wait_for(output / "results.json", process, "00_a")  # which may end later than the other begins
    process.send_signal(sent)
    _, stderr = process.communicate(timeout=50)
    check_ended(int(started.read_text()))
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert stderr.splitlines()[-1] == "Interrupted: the same command picks up where this one stopped."
        assert "Traceback" not in stderr
    record = read_record(output)
    assert record["complete"] is False
    assert list(record["notebooks"]) == ["00_a"]
    assert (output / ".unfinished-01_b.ipynb").exists()
    assert not list(output.glob("*partial*"))  # no failure: it was not its fault
    before = (output / "00_a.ipynb").read_bytes()

    result = run(notebooks, "toy")
    assert result.exit_code == 0
    first, number, second = result.stderr.splitlines()
    assert (first, number) == ("toy  00_a ... done before", "notebooks to run: 1, 1 at a time")
    assert re.fullmatch(r"toy  01_b \.\.\. \d+\.\d s", second)
    assert (output / "00_a.ipynb").read_bytes() == before
    record = read_record(output)
    assert record["complete"] is True
    assert list(record["notebooks"]) == ["00_a", "01_b"]
    assert not list(output.glob(".unfinished*"))
    assert "done before" not in run(notebooks, "toy").stderr  # a complete run is a new one


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that looks as if it was killed after its first notebook."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "notebooks").mkdir()
    write_notebook(folder / "notebooks" / "00_a.ipynb", "print(n_labeled)")
    assert run(folder / "notebooks", "toy").exit_code == 0
    path = folder / "runs" / "toy" / "results.json"
    path.write_text(path.read_text().replace('"complete": true', '"complete": false'))
    return folder


@pytest.mark.parametrize("change", ["nothing", "parameter", "source", "package", "output", "page"])
def test_only_what_is_still_true_is_skipped(stopped, tmp_path, monkeypatch, change):
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    notebook, output = tmp_path / "notebooks" / "00_a.ipynb", tmp_path / "runs" / "toy"
    if change == "source":
        notebook.write_text(notebook.read_text().replace("print(n_labeled)", "print(2)"))
    elif change == "package":
        package = tmp_path / "package"
        shutil.copytree(Path(runner.__file__).parents[1], package)
        (package / "miner.py").write_text("# changed")
        monkeypatch.setattr(runner, "__file__", str(package / "command" / "runner.py"))
    elif change == "output":
        (output / "00_a.ipynb").unlink()
    elif change == "page":
        (output / "00_a.html").unlink()
    parameters = ["-p", "n_labeled", "21"] if change == "parameter" else []
    result = run(notebook.parent, "toy", *parameters)
    assert result.exit_code == 0
    assert ("done before" in result.stderr) == (change == "nothing")


@pytest.mark.slow
def test_edited_notebooks_are_kept(notebooks):
    write_notebook(notebooks / "00_a.ipynb", "print(n_labeled)")
    output = notebooks.parent / "runs" / "toy"
    path = output / "00_a.ipynb"
    for number in (1, 2):
        assert "edited" not in run(notebooks, "toy").stderr
        edited = path.read_text().replace("print(n_labeled)", f"print(n_labeled + {number})")
        path.write_text(edited)
        result = run(notebooks, "toy")
        assert (
            f"00_a.ipynb had been edited: that version is now {output / f'00_a.edited-{number}.ipynb'}"
            in result.stderr
        )
        assert (output / f"00_a.edited-{number}.ipynb").read_text() == edited
        assert "print(n_labeled)" in path.read_text()
    path.write_text("not even a notebook")
    run(notebooks, "toy")
    assert (output / "00_a.edited-3.ipynb").read_text() == "not even a notebook"


def test_saving_without_a_change_is_no_edit(notebooks):
    write_notebook(notebooks / "00_a.ipynb", FIGURE, RESULTS.replace("/ 3", "* 1.0"), "print('a\\nb')")
    run(notebooks, "toy")
    path = notebooks.parent / "runs" / "toy" / "00_a.ipynb"
    assert '"median_guess_mae": 20.0' in path.read_text()
    path.write_text(json.dumps(json.loads(path.read_text().replace("20.0", "20"))))  # as JavaScript does
    assert not runner.is_edited(path)


def test_only_leaves_the_other_notebooks_alone(notebooks):
    write_notebook(notebooks / "00_a.ipynb", RESULTS)
    write_notebook(notebooks / "02_c.ipynb", RESULTS)
    run(notebooks, "toy")
    result = run(notebooks, "toy", "--only", "2", "-p", "n_labeled", "30")
    assert re.fullmatch(r"notebooks to run: 1, .*\ntoy  02_c \.\.\. \d+\.\d s\n", result.stderr)
    entries = read_record(notebooks.parent / "runs" / "toy")["notebooks"]
    assert [entry["parameters"]["n_labeled"] for entry in entries.values()] == [20, 30]
    page = BeautifulSoup((notebooks.parent / "runs" / "index.html").read_text(), "html.parser")
    lines = [line.text.split(":")[0] for line in page.find_all("dt")]
    assert lines == ["00_a", "02_c with n_labeled 30"]


def test_files_of_others_are_kept(notebooks):
    write_notebook(notebooks / "00_a.ipynb", RESULTS)
    output = notebooks.parent / "runs"
    foreign = ["index.html", "toy/results.json", "toy/00_a.html", "toy/.unfinished-mine"]
    (output / "toy").mkdir(parents=True)
    for name in foreign:
        (output / name).write_text(f"mine: {name}")
    result = run(notebooks, "toy")
    assert result.exit_code == 0, result.output
    kept = [
        "index.edited-1.html",
        "toy/results.edited-1.json",
        "toy/00_a.edited-1.html",
        "toy/.unfinished-mine",
    ]
    assert [(output / name).read_text() for name in kept] == [f"mine: {name}" for name in foreign]
    assert result.stderr.count("is not of this program") == 3
    assert "edited-2" not in run(notebooks, "toy").stderr
    assert "is not of this program" not in run(notebooks, "toy").stderr


@pytest.mark.parametrize("content", ["[]", '{"00_a": {"status": "ok"}}', '{"zz": 3}'])
def test_damaged_results_are_put_aside(notebooks, content):
    write_notebook(notebooks / "00_a.ipynb", RESULTS)
    run(notebooks, "toy")
    path = notebooks.parent / "runs" / "toy" / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "notebooks": json.loads(content)}))
    result = run(notebooks, "toy")
    assert result.exit_code == 0, result.output
    assert list(read_record(path.parent)["notebooks"]) == ["00_a"]
    assert path.with_name("results.edited-1.json").exists()


@pytest.mark.slow
def test_two_runs_at_once(notebooks):
    """One dataset at a time: the second is told; other datasets share the index page."""
    started = notebooks.parent / "started"
    write_notebook(
        notebooks / "00_a.ipynb", f"open({str(started)!r}, 'w')\nimport time\ntime.sleep(4)", RESULTS
    )
    output = notebooks.parent / "runs"
    first = start(notebooks, "boston")
    wait_for(started, first)
    second = run(notebooks, "toy", "boston")
    assert second.exit_code == 1
    assert f"Error: another run is writing to {output / 'boston'}: wait for it" in second.output
    assert run(notebooks, "toy").exit_code == 0
    assert first.wait(100) == 0
    for dataset in ("boston", "toy"):
        assert read_record(output / dataset)["complete"] is True
    page = BeautifulSoup((output / "index.html").read_text(), "html.parser")
    assert {"boston", "toy"} <= {heading.text for heading in page.find_all("h2")}
    assert not [name for _, _, names in os.walk(output) for name in names if "unfinished" in name]


# Tables of one's own

FILE_PARAMETERS = """\
dataset: str = "boston"  # a name or a path
target: str = ""  # column to estimate
n_labeled: int = 5  # labeled samples
n_unlabeled: int = 0  # unlabeled samples; 0: the dataset's own number
output_dir: str = ""  # for files"""
WRITE = """\
from pathlib import Path
Path(output_dir, "predictions.csv").write_text(f"{dataset} {target}")"""


@pytest.fixture
def flats(tmp_path):
    path = tmp_path / "flats.csv"
    rows = [f"{i},{'north' if i % 3 else 'south'},{i * 2 if i % 2 else ''}" for i in range(30)]
    path.write_text("\n".join(["size,where,price", *rows]))
    return path


def test_a_file_runs_with_what_the_notebook_needs(notebooks, flats, monkeypatch):
    write_notebook(notebooks / "00_a.ipynb", WRITE, RESULTS, parameters=FILE_PARAMETERS)
    monkeypatch.chdir(flats.parent)
    result = run(notebooks, "flats.csv", "-p", "target", "price")
    assert result.exit_code == 0, result.output
    assert "flats.csv: 30 rows, 15 of them without a target." in result.output
    folder = notebooks.parent / "runs" / "flats"
    assert (folder / "predictions.csv").read_text() == f"{flats.resolve()} price"
    record = read_record(folder)
    assert (record["dataset"], record["target"]) == ("flats", "price")
    assert record["notebooks"]["00_a"]["given"] == {"target": "price"}
    index = BeautifulSoup((folder.parent / "index.html").read_text(), "html.parser")
    assert index.find(id="flats").text == "flats"


def test_a_file_needs_a_target(notebooks, flats):
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    result = run(notebooks, str(flats))
    assert result.exit_code == 1
    assert "target must name a column of flats.csv (size, where, price), got nothing" in result.output
    result = run(notebooks, str(flats), "-p", "target", "where")
    assert "target must name a column of numbers, but where of flats.csv holds south, north" in result.output


@pytest.mark.parametrize("says", ["", "data = check_parameters(dataset=dataset, needs_targets=True)"])
def test_lessons_that_need_targets_have_fewer_rows(notebooks, flats, says):
    write_notebook(notebooks / "00_a.ipynb", says and f"if False:\n    {says}", parameters=FILE_PARAMETERS)
    result = run(notebooks, str(flats), "-p", "target", "price", "-p", "n_unlabeled", "12")
    assert (result.exit_code == 0) == (says == ""), result.output
    if says:
        assert "n_labeled + n_unlabeled must be below 15, the number of rows of flats" in result.output


def test_a_dataset_is_loaded_once_in_a_run(notebooks, flats, tmp_path, monkeypatch):
    paths = [notebooks / f"{name}.ipynb" for name in ("00_a", "01_b", "02_c")]
    for path in paths:
        write_notebook(path, parameters=FILE_PARAMETERS)
    loads = []

    def load(name, *arguments, **options):
        loads.append(Path(name).stem)
        return load_dataset(name, *arguments, **options)

    monkeypatch.setattr("dmls2r_lite.data.datasets.load_dataset", load)
    given = {"target": "price", "n_unlabeled": "12"}
    jobs = cli._plan([str(flats)], paths, given, tmp_path)
    assert [job.notebook for job in jobs] == paths
    assert loads == ["flats"]
    flats.write_text(
        "size,where,price\n1,north,2\n2,south,\n3,north,4\n4,south,5"
    )  # another run reads it anew
    with pytest.raises(ClickException, match="target must have a value in 5 rows or more, but price has 3"):
        cli._plan([str(flats)], paths, given, tmp_path)
    assert len(cli._plan(["boston", "toy"], paths, {}, tmp_path)) == 6
    assert loads == ["flats", "flats", "boston", "toy"]


def test_doubts_are_told_at_the_end(notebooks, flats):
    """What a table may have wrong, and what was guessed, stands where results are looked for."""
    write_notebook(notebooks / "00_a.ipynb", RESULTS, parameters=FILE_PARAMETERS)
    lines = flats.read_text().splitlines()
    days = [f"0{1 + i % 9}/02/2021" for i in range(len(lines) - 1)]
    with_codes = [
        f"{line},{day},{-999 if i < 3 else i}"
        for i, (line, day) in enumerate(zip(lines[1:], days, strict=True))
    ]
    flats.write_text("\n".join([f"{lines[0]},sold,level", *with_codes]))
    result = run(notebooks, str(flats), "-p", "target", "price")
    assert result.exit_code == 0, result.output
    _, end = result.stdout.split("flats: before you trust this, look at\n")
    assert "- sold: dates, day first (assumed: " in end
    assert "- -999 is far from all other values of level (3 times)" in end
    assert "All results: " in end


def test_two_files_of_one_name_do_not_mix(notebooks, flats, tmp_path):
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    (tmp_path / "other").mkdir()
    other = shutil.copy(flats, tmp_path / "other")
    both = run(notebooks, str(flats), other, "-p", "target", "price")
    assert both.exit_code == 1
    assert "would both be written to" in both.output
    assert run(notebooks, str(flats), "-p", "target", "price").exit_code == 0
    then = run(notebooks, other, "-p", "target", "price")
    assert then.exit_code == 1
    assert f"has the results of {flats}: give another --output-dir" in then.output


def test_one_file_by_two_spellings_runs_once(notebooks, flats, monkeypatch):
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    monkeypatch.chdir(flats.parent)
    result = run(notebooks, "toy", "flats.csv", "./flats.csv", "toy", "-p", "target", "price", "--only", "00")
    assert "target must name a column of toy" in result.output  # one target for all
    result = run(notebooks, "flats.csv", "./flats.csv", "-p", "target", "price")
    assert result.exit_code == 0
    assert result.stdout.count("00_a") == 1


@pytest.mark.slow
def test_a_changed_file_is_run_again(notebooks, flats):
    waiting = (
        "import time\nfrom pathlib import Path\n"
        "while not Path(dataset).with_name('go').exists():\n    time.sleep(0.1)"
    )
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    write_notebook(notebooks / "01_b.ipynb", waiting, parameters=FILE_PARAMETERS)
    interrupted = start(notebooks, str(flats), "-p", "target", "price")
    record = notebooks.parent / "runs" / "flats" / "results.json"
    wait_for(record, interrupted, "00_a")
    interrupted.send_signal(signal.SIGKILL)
    interrupted.communicate()
    (flats.parent / "go").touch()
    assert "00_a ... done before" in run(notebooks, str(flats), "-p", "target", "price").output
    content = json.loads(record.read_text()) | {"complete": False}
    record.write_text(json.dumps(content))
    flats.write_text(flats.read_text() + "\n40,north,1")
    assert "done before" not in run(notebooks, str(flats), "-p", "target", "price").output


def test_folder_of_data_is_found_from_the_notebooks(notebooks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DMLS2R_DATA", "data")
    write_notebook(notebooks / "00_a.ipynb", "import os\nassert os.path.isdir(os.environ['DMLS2R_DATA'])")
    assert run(notebooks).exit_code == 0


# Words

MEANT = {
    "a dataset": (["run", "bostn"], "unknown dataset 'bostn'; .*; did you mean boston\\?"),
    "a dataset to fetch": (["datasets", "fetch", "air_qualty"], "did you mean air_quality\\?"),
    "a parameter": (
        ["run", "-p", "n_labelled", "20"],
        "unknown parameter n_labelled; did you mean n_labeled\\?",
    ),
    "a notebook": (["run", "--only", "altrnating_training"], "; did you mean alternating_training\\?"),
    "a method": (["benchmark", "--methods", "DMLS2R"], "got 'DMLS2R'; did you mean DML-S2R\\?"),
    "a parameter of choose": (
        ["choose", "x.csv", "-n", "3", "-p", "drop_column", "A"],
        "mean drop_columns\\?",
    ),
    "a long name": (["run", "x" * 300], "unknown dataset 'x+\\.\\.\\.; known are"),
    "a long path": (["run", "x/" * 3000 + "x.csv", "-p", "target", "y"], ""),
}


@pytest.mark.parametrize("case", MEANT)
def test_what_was_meant(case):
    arguments, message = MEANT[case]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert re.search(f"^Error: .*{message}", result.output, flags=re.M)
    assert result.output.count("Error:") == 1


def test_help_does_not_cut_sentences():
    listed = " ".join(CliRunner().invoke(cli.main, ["--help"]).output.partition("Commands:")[2].split())
    assert "..." not in listed
    for name, command in cli.main.commands.items():
        first_line = command.help.split("\n")[0]
        assert f"{name} {first_line}" in listed


def test_lines_where_there_is_no_terminal(tmp_path):
    arguments = [
        "benchmark",
        "--quick",
        "--datasets",
        "toy",
        "--methods",
        "median",
        "--output",
        str(tmp_path),
    ]
    result = CliRunner().invoke(cli.main, [*arguments, "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "3 of 3 trials done" in result.stderr


# What comes between


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills process groups")
def test_killed_twenty_times(notebooks):
    """At random moments: nothing is lost, nothing done twice, and the same command finishes."""
    for name in ("00_a", "01_b", "02_c"):
        write_notebook(notebooks / f"{name}.ipynb", RESULTS)
    output, rng = notebooks.parent / "runs" / "toy", random.Random(0)
    server = multiprocessing.get_context("forkserver")  # its children need not import everything again
    server.set_forkserver_preload(["dmls2r_lite.command.runner", "dmls2r_lite.teaching.notebook"])
    kept: dict = {}
    for _ in range(20):
        process = server.Process(target=run, args=(notebooks, "toy"))
        process.start()
        process.join(rng.uniform(0.2, 3))
        process.kill()
        process.join()
        record = read_record(output) if (output / "results.json").exists() else {"notebooks": {}}
        for name, before in kept.items():
            if not record.get("complete"):
                assert record["notebooks"].get(name) == before  # nothing lost, nothing done twice
        for entry in record["notebooks"].values():
            assert (output / entry["path"]).exists()
            nbformat.read(output / entry["path"], as_version=4)
        kept = {} if record.get("complete") else record["notebooks"]
    assert run(notebooks, "toy").exit_code == 0
    record = read_record(output)
    assert record["complete"]
    assert [entry["status"] for entry in record["notebooks"].values()] == ["ok"] * 3
    assert not list(output.glob(".unfinished*"))
    assert not list(output.glob("*edited*"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits files by what Windows does not have")
@pytest.mark.parametrize("n_bytes", [100, 1000, 3000])
def test_a_full_disk(notebooks, n_bytes):
    """An error says what is kept, and the same command does the rest."""
    write_notebook(notebooks / "00_a.ipynb", RESULTS)
    write_notebook(notebooks / "01_b.ipynb", RESULTS)
    output = notebooks.parent / "runs" / "toy"
    code = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({n_bytes},) * 2)\n"
    code += "from dmls2r_lite.command.cli import main\nmain()"
    command = [sys.executable, "-c", code, "run", "toy", "--notebooks-dir", notebooks, "--output-dir"]
    done = subprocess.run([*command, output.parent], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(r"Error: .*What is finished is kept: the same command does the rest", done.stderr)
    result = run(notebooks, "toy")
    assert result.exit_code == 0, result.output
    assert list(read_record(output)["notebooks"]) == ["00_a", "01_b"]
    assert not list(output.glob("*edited*"))
    assert not list(output.glob(".unfinished*"))
