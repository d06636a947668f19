"""What a run writes, keeps and says: most of it without a kernel, the rest in few and small ones."""

import os
import re
import shutil
import signal
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from bs4 import BeautifulSoup
from fake_notebooks import (
    FIGURE,
    FILE_PARAMETERS,
    RESULTS,
    read_record,
    run,
    start,
    tagged,
    with_results,
    without_kernels,
    write_notebook,
)
from nbformat.v4 import new_markdown_cell
from waiting import wait_for


@pytest.fixture
def output(tmp_path):
    return tmp_path / "runs" / "toy"


@pytest.fixture
def executed(monkeypatch):
    """Names of notebooks, in place of kernels that run them; `executed.first` is called before each."""
    executed = SimpleNamespace(names=[], first=lambda: None)

    def before(client):
        executed.names.append(client.resources["metadata"]["name"])
        executed.first()

    without_kernels(monkeypatch, before)
    return executed


def statuses(folder):
    return {name: entry["status"] for name, entry in read_record(folder)["notebooks"].items()}


# In kernels


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two notebooks for two datasets; the folder's name is one that papermill would format."""
    folder = tmp_path_factory.mktemp("a{b} ü")
    caption = new_markdown_cell('*Figure:* A line from (0, 0)\nto "the right" & up.')
    write_notebook(
        folder / "notebooks" / "00_a.ipynb", tagged("key-figure", FIGURE), caption, tagged("results", RESULTS)
    )
    around = "from os import environ, path\n"
    around += "print(environ.get('JOBLIB_MULTIPROCESSING'), path.isdir(environ['DMLS2R_DATA']))"
    write_notebook(folder / "notebooks" / "01_b.ipynb", around, parameters="seed: int = 0")
    (folder / "data").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("DMLS2R_DATA", "data")
        patch.delenv("JOBLIB_MULTIPROCESSING", raising=False)
        patch.setattr("joblib.cpu_count", lambda: 2)
        return folder, run(folder / "notebooks", "boston", "toy", "boston", "-p", "n_labeled", "30")


def test_run_says_what_it_does(finished):
    folder, result = finished
    assert result.exit_code == 0, result.output
    first, *lines = result.stderr.splitlines()
    assert first == "notebooks to run: 4, 2 at a time"
    names = ["boston  00_a", "boston  01_b", "toy  00_a", "toy  01_b"]
    assert sorted(line.removesuffix(" begins") for line in lines if line.endswith(" begins")) == names
    ends = [re.fullmatch(r"(.*) \.\.\. \d+\.\d s", line) for line in lines if not line.endswith(" begins")]
    assert sorted(line[1] for line in ends) == names
    table, path = result.stdout.strip().split("\n\n")
    assert path == f"All results: {folder / 'runs' / 'index.html'}"
    heading, *rows = [line.split() for line in table.splitlines()]
    assert heading == ["dataset", "notebook", "status", "seconds", "results"]
    assert [row[:3] for row in rows[:2]] == [["boston", "00_a", "ok"], ["boston", "01_b", "ok"]]
    assert " ".join(rows[2]).endswith("name toy, none nan")


def test_run_writes_notebooks_pages_and_results(finished):
    folder = finished[0] / "runs" / "toy"
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"00_a.ipynb", "00_a.html", "01_b.ipynb", "01_b.html", "results.json"}
    nb = nbformat.read(folder / "00_a.ipynb", as_version=4)
    assert 'dataset = "toy"' in nb.cells[2].source
    page = BeautifulSoup((folder / "00_a.html").read_text(), "html.parser")
    assert [img["alt"] for img in page.find_all("img")] == ['A line from (0, 0) to "the right" & up.']
    assert "This run is on toy." in page.text
    assert "This run is on" not in (folder / "01_b.html").read_text()  # its notebook has no dataset
    around = nbformat.read(folder / "01_b.ipynb", as_version=4).cells[-1].outputs[0].text
    assert around == "0 True\n"  # no processes of its own beside another, and the folder of data is found
    record = read_record(folder)
    assert (record["dataset"], record["complete"]) == ("toy", True)
    assert list(record["notebooks"]) == ["00_a", "01_b"]
    assert record["versions"].keys() == {"python", "torch", "numpy", "pandas", "scikit-learn", "dmls2r-lite"}
    entry = record["notebooks"]["00_a"]
    assert (entry["status"], entry["path"], entry["html"]) == ("ok", "00_a.ipynb", "00_a.html")
    assert entry["parameters"] == {"dataset": "toy", "n_labeled": 30, "n_unlabeled": 200, "seed": 0}
    assert entry["given"] == {"n_labeled": 30}
    assert entry["results"] == {"median_guess_mae": 10.0, "name": "toy", "none": "nan"}
    assert 0 < entry["seconds"] < 100


def test_index_page(finished, executed, tmp_path):
    """Of this run; and of another one into the same folder, among files of others."""
    output = shutil.copytree(finished[0] / "runs", tmp_path / "runs")
    html = (output / "index.html").read_text()
    page = BeautifulSoup(html, "html.parser")
    assert not page.find_all(["script", "link", "iframe"])
    headings = [heading.text for heading in page.find_all("h2")]
    assert headings == ["boston", "toy", "All datasets beside each other"]
    images = page.find_all("img")
    assert [image.parent["href"] for image in images] == ["boston/00_a.html", "toy/00_a.html"]
    assert all(image["src"].startswith("data:image/png;base64,iVBOR") for image in images)
    for link in page.find_all("a"):
        target = link["href"]
        assert page.find(id=target[1:]) if target.startswith("#") else (output / target).exists(), target
    assert "n_labeled 30" in page.text

    for name, text in {"foreign": "[]", "broken": "{", "other": '{"a": 1}'}.items():
        (output / name).mkdir()
        (output / name / "results.json").write_text(text)
    (output / "toy" / "00_a.ipynb").unlink()
    assert run(finished[0] / "notebooks", "friedman", "--only", "1", output=output).exit_code == 0
    page = BeautifulSoup((output / "index.html").read_text(), "html.parser")
    assert [heading.text for heading in page.find_all("h2")][:-1] == ["boston", "friedman", "toy"]
    assert len(page.find_all("img")) == 1


@pytest.mark.slow
def test_what_fails_is_kept_and_the_others_run(notebooks, output):
    """An error, and a kernel that dies; nothing else than what is said here reaches the terminal."""
    committed = with_results()  # of an earlier run: nothing of it may be taken for this one's
    write_notebook(notebooks / "00_a.ipynb", "raise KeyError('one\\ntwo')", committed)
    write_notebook(notebooks / "01_b.ipynb", "import os", "os._exit(9)")
    write_notebook(notebooks / "02_c.ipynb", RESULTS, parameters=FILE_PARAMETERS)
    process = start(notebooks, "toy")
    stdout, stderr = process.communicate(timeout=100)
    assert process.returncode == 1
    lines = stderr.splitlines()
    assert len(lines) == 1 + 3 + 3 + 3 + 1, stderr
    for name, error in {"00_a": "cell [3]: KeyError: 'one", "01_b": "cell [4]: DeadKernelError"}.items():
        failed = rf"toy  {name} \.\.\. failed after \d+\.\d s\n    {re.escape(error)}.*\n    see (.*)"
        assert (found := re.search(failed, stderr)), stderr
        assert found[1] == str(output / f"{name}.partial.ipynb")
        assert (output / f"{name}.partial.html").exists()
        assert not (output / f"{name}.ipynb").exists()
    assert re.search(r"02_c +ok", stdout)
    assert statuses(output) == {"00_a": "failed", "01_b": "failed", "02_c": "ok"}
    entry = read_record(output)["notebooks"]["00_a"]
    assert entry["cell"] == 3
    assert entry["error"].startswith("KeyError")
    assert entry["results"] == {}
    index = BeautifulSoup((output.parent / "index.html").read_text(), "html.parser")
    assert [cell.text for cell in index.find_all(class_="failed")] == ["failed"] * 2

    write_notebook(notebooks / "00_a.ipynb", "print('mended')")
    assert run(notebooks, "toy", "--only", "0").exit_code == 0
    assert [path.name for path in output.glob("*partial*ipynb")] == ["01_b.partial.ipynb"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends signals")
def test_a_run_that_was_stopped_goes_on(notebooks, output):
    """Interrupted, then killed: what is finished stays, kernels end, and the same command does the rest."""
    started, go = notebooks.parent / "started", notebooks.parent / "go"
    waits = (
        f"import os, pathlib, time\npathlib.Path({str(started)!r}).write_text(str(os.getpid()))\n"
        f"while not pathlib.Path({str(go)!r}).exists():\n    time.sleep(0.1)"
    )
    write_notebook(notebooks / "00_a.ipynb", waits)
    write_notebook(notebooks / "01_b.ipynb", with_results("1"))  # begins first
    for sent in (signal.SIGINT, signal.SIGKILL):
        process = start(notebooks, "toy")
        wait_for(started.exists)
        # The other may end later than this one begins.
        wait_for(lambda: (output / "results.json").exists() and "01_b" in statuses(output))
        process.send_signal(sent)
        _, stderr = process.communicate(timeout=50)
        wait_for(lambda: not psutil.pid_exists(int(started.read_text())), 20)
        started.unlink()
        assert read_record(output)["complete"] is False
        assert statuses(output) == {"01_b": "ok"}
        assert not list(output.glob("*partial*"))  # no failure: it was not its fault
        if sent == signal.SIGINT:
            assert process.returncode == 130
            assert stderr.splitlines()[-1] == "Interrupted: the same command does the rest."
            assert "Traceback" not in stderr
    before = (output / "01_b.ipynb").read_bytes()
    go.touch()
    result = run(notebooks, "toy")
    assert result.exit_code == 0
    *lines, last = result.stderr.splitlines()
    assert lines == ["toy  01_b ... done before", "notebooks to run: 1, 1 at a time", "toy  00_a begins"]
    assert re.fullmatch(r"toy  00_a \.\.\. \d+\.\d s", last)
    assert (output / "01_b.ipynb").read_bytes() == before
    assert read_record(output)["complete"] is True
    assert statuses(output) == {"00_a": "ok", "01_b": "ok"}
    assert not list(output.glob(".unfinished*"))


# Without one


@pytest.mark.parametrize(
    "change", ["nothing", "parameter", "notebook", "package", "table", "edited", "gone", "page"]
)
def test_only_what_is_still_true_is_skipped(notebooks, flats, executed, monkeypatch, change):
    for name in ("00_a", "01_b"):
        write_notebook(notebooks / f"{name}.ipynb", with_results(), parameters=FILE_PARAMETERS)
    monkeypatch.setattr("joblib.cpu_count", lambda: 1)

    def full_disk():
        if len(executed.names) == 2:
            raise OSError(28, "no space left on device")

    executed.first = full_disk
    arguments = [str(flats), "-p", "target", "price"]
    stopped = run(notebooks, *arguments)
    assert stopped.exit_code == 1
    assert (
        "no space left on device. What is finished is kept: the same command does the rest" in stopped.output
    )
    folder = notebooks.parent / "runs" / "flats"
    (done,) = statuses(folder)
    if change == "parameter":
        arguments += ["-p", "n_labeled", "6"]
    elif change == "notebook":
        write_notebook(notebooks / f"{done}.ipynb", with_results("2"), parameters=FILE_PARAMETERS)
    elif change == "package":
        monkeypatch.setattr("dmls2r_lite.command.plan.versions", lambda: {"torch": "9.9"})
    elif change == "table":
        flats.write_text(flats.read_text() + "\n40,north,1")
    elif change == "edited":
        path = folder / f"{done}.ipynb"
        path.write_text(path.read_text().replace("Title", "Mine"))
    elif change in ("gone", "page"):
        (folder / f"{done}.{'ipynb' if change == 'gone' else 'html'}").unlink()
    result = run(notebooks, *arguments)
    assert result.exit_code == 0, result.output
    assert (executed.names.count(done) == 1) == ("done before" in result.stderr) == (change == "nothing")
    assert "done before" not in run(notebooks, *arguments).stderr  # a complete run is a new one


def test_edited_notebooks_are_kept(notebooks, output, executed):
    write_notebook(notebooks / "00_a.ipynb", "print(n_labeled)")
    path = output / "00_a.ipynb"
    for number in (1, 2):
        assert "edited" not in run(notebooks, "toy").stderr
        nbformat.write(nbformat.read(path, as_version=4), path)  # saving without a change is no edit
        assert "edited" not in run(notebooks, "toy").stderr
        edited = path.read_text().replace("print(n_labeled)", f"print(n_labeled + {number})")
        path.write_text(edited)
        told = f"{path} had been edited, or is not of this program: it is now "
        assert told + str(output / f"00_a.edited-{number}.ipynb") in run(notebooks, "toy").stderr
        assert (output / f"00_a.edited-{number}.ipynb").read_text() == edited
        assert "print(n_labeled)" in path.read_text()
    path.write_text("not even a notebook")
    run(notebooks, "toy")
    assert (output / "00_a.edited-3.ipynb").read_text() == "not even a notebook"


def test_only_leaves_the_other_notebooks_alone(notebooks, output, executed):
    for name in ("00_a", "02_c"):
        write_notebook(notebooks / f"{name}.ipynb", with_results())
    run(notebooks, "toy")
    result = run(notebooks, "toy", "--only", "2", "-p", "n_labeled", "30")
    assert re.fullmatch(r"notebooks to run: 1, .*\n.* begins\ntoy  02_c \.\.\. \d+\.\d s\n", result.stderr)
    assert sorted(executed.names) == ["00_a", "02_c", "02_c"]
    entries = read_record(output)["notebooks"]
    assert [entry["parameters"]["n_labeled"] for entry in entries.values()] == [20, 30]
    assert "n_labeled 30" in (output.parent / "index.html").read_text()


def test_files_of_others_and_damaged_ones_are_kept(notebooks, output, executed):
    write_notebook(notebooks / "00_a.ipynb", with_results())
    foreign = ["index.html", "toy/results.json", "toy/00_a.html", "toy/00_a.ipynb"]
    output.mkdir(parents=True)
    for name in foreign:
        (output.parent / name).write_text(f"mine: {name}")
    result = run(notebooks, "toy")
    assert result.exit_code == 0, result.output
    for name in foreign:
        assert (output.parent / name.replace(".", ".edited-1.")).read_text() == f"mine: {name}"
    assert result.stderr.count("is not of this program") == len(foreign)
    assert "is not of this program" not in run(notebooks, "toy").stderr

    for name in ("results.json", "00_a.html"):
        (output / name).write_text((output / name).read_text().replace("00", "OO", 1))
        assert run(notebooks, "toy").exit_code == 0
        assert statuses(output) == {"00_a": "ok"}
        assert (output / name.replace(".", ".edited-2.")).exists()


def test_two_runs_at_once(notebooks, output, executed):
    """One dataset at a time: the second is told; other datasets share the index page."""
    write_notebook(notebooks / "00_a.ipynb", with_results())
    meanwhile = []

    def first():
        if not meanwhile:
            meanwhile.append("")
            meanwhile[:] = [run(notebooks, "boston", "toy"), run(notebooks, "boston")]

    executed.first = first
    assert run(notebooks, "toy").exit_code == 0
    refused, other = meanwhile
    assert refused.exit_code == 1
    assert f"Error: another run is writing to {output}: wait for it" in refused.output
    assert other.exit_code == 0, other.output
    for dataset in ("boston", "toy"):
        assert read_record(output.parent / dataset)["complete"] is True
    page = BeautifulSoup((output.parent / "index.html").read_text(), "html.parser")
    assert {"boston", "toy"} <= {heading.text for heading in page.find_all("h2")}
    assert not [name for _, _, names in os.walk(output.parent) for name in names if "unfinished" in name]


def test_a_table_of_ones_own(notebooks, flats, executed, monkeypatch):
    """What it may have wrong, and what was guessed, stands where results are looked for."""
    write_notebook(notebooks / "00_a.ipynb", with_results(), parameters=FILE_PARAMETERS)
    monkeypatch.chdir(flats.parent)
    heading, *lines = flats.read_text().splitlines()
    lines = [f"{line},0{1 + i % 9}/02/2021,{-999 if i < 3 else i}" for i, line in enumerate(lines)]
    flats.write_text("\n".join([f"{heading},sold,level", *lines]))
    result = run(notebooks, "flats.csv", "./flats.csv", "-p", "target", "price")
    assert result.exit_code == 0, result.output
    assert executed.names == ["00_a"]  # one file by two spellings
    assert "flats.csv: 30 rows, 15 of them without a target." in result.stderr
    _, end = result.stdout.split("flats: before you trust this, look at\n")
    assert "- sold: dates, day first (assumed: " in end
    assert "- -999 is far from all other values of level (3 times)" in end
    assert "All results: " in end
    folder = notebooks.parent / "runs" / "flats"
    record = read_record(folder)
    assert (record["dataset"], record["source"], record["target"]) == ("flats", str(flats), "price")
    entry = record["notebooks"]["00_a"]
    assert entry["given"] == {"target": "price"}
    assert entry["parameters"]["output_dir"] == str(folder)
    index = BeautifulSoup((folder.parent / "index.html").read_text(), "html.parser")
    assert "-999 is far from all other values of level" in index.find("div", class_="findings").text
    page = BeautifulSoup((folder / entry["html"]).read_text(), "html.parser")
    assert "look at: sold: dates, day first" in page.find("div", class_="findings").text
    assert index.find(id="flats").text == "flats"


def test_two_files_of_one_name_do_not_mix(notebooks, flats, executed):
    write_notebook(notebooks / "00_a.ipynb", parameters=FILE_PARAMETERS)
    (flats.parent / "other").mkdir()
    other = shutil.copy(flats, flats.parent / "other")
    target = ["-p", "target", "price"]
    assert "would both be written to" in run(notebooks, str(flats), other, *target).output
    assert run(notebooks, str(flats), *target).exit_code == 0
    then = run(notebooks, other, *target)
    assert f"Error: {notebooks.parent / 'runs' / 'flats'} has the results of {flats}: give" in then.output


# At length


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="limits files by what Windows does not have")
def test_a_full_disk(notebooks, output):
    """An error says what is kept, and the same command does the rest."""
    for name in ("00_a", "01_b"):
        write_notebook(notebooks / f"{name}.ipynb", RESULTS)
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    process = start(notebooks, "toy", before=limit)
    _, stderr = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "Traceback" not in stderr
    assert re.search(r"Error: .*What is finished is kept: the same command does the rest", stderr)
    result = run(notebooks, "toy")
    assert result.exit_code == 0, result.output
    assert statuses(output) == {"00_a": "ok", "01_b": "ok"}
    assert not list(output.glob("*edited*"))
    assert not list(output.glob(".unfinished*"))
