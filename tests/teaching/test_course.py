"""The exercises in a real nbgrader: what each kind of submission gets, and what none can do to others."""

import os
import re
import shutil
import socket
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from exercise_mistakes import MISTAKES
from grading_attacks import HEAVY, ON_THE_COURSE, ON_THE_MACHINE, forge_marks

from dmls2r_lite.command import cli

pytest.importorskip("nbgrader", reason="needs nbgrader: pip install -e '.[course]'")

from nbgrader.api import Gradebook
from nbgrader.apps import AutogradeApp

from dmls2r_lite.teaching.course import build_course
from dmls2r_lite.teaching.grading import CellTimeoutError, _can_shut_in, _Session

FOLDER = Path(__file__).parents[2] / "notebooks" / "exercises"
NAMES = list(MISTAKES)
FIRST = NAMES[0]
SECONDS = 20  # for a cell, such as one that imports PyTorch
MEGABYTES = 8  # for files
HEAD = "def asymmetry(estimates):\n"

pytestmark = pytest.mark.slow
unix = pytest.mark.skipif(os.name == "nt", reason="the attacks are made for Unix")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "course"
    made = CliRunner().invoke(cli.main, ["course", str(folder)])
    assert made.exit_code == 0, made.output
    return folder


@pytest.fixture
def course(built, tmp_path, monkeypatch):
    """A copy of it, to grade in."""
    (tmp_path / "mine.txt").touch()
    folder = shutil.copytree(built, tmp_path / "course")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("A_TOKEN", "secret")
    yield folder
    AutogradeApp.clear_instance()


def source_of(name):
    return FOLDER / "source" / name / f"{name}.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


def solved(name=FIRST):
    return read(source_of(name))


def cell_of(nb, name):
    return next(cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def answering(code, answer="asymmetry"):
    """A submission that is right but for one answer."""
    nb = solved()
    cell_of(nb, answer).source = code
    return nb


def attacking(attacks, course, port=0):
    nb = read(FOLDER / f"{FIRST}.ipynb")
    for code in attacks.values():
        code = code.replace("COURSE", str(course)).replace("SET", FIRST).replace("PORT", str(port))
        nb.cells.append(nbformat.v4.new_code_cell(code))
    return nb


def grade(course, submissions, name=FIRST, modules=(), seconds=SECONDS):
    """Hand notebooks in, and grade them; return points by student and cell."""
    for student, nb in submissions.items():
        place = course / "submitted" / student / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(nb, place)
        for module in modules:
            place.with_name(f"{module}.py").write_text("raise SystemExit(f'{__name__} is imported')")
    limits = f"timeout = {seconds}\nc.ExecuteAll.disk = {MEGABYTES} * 2**20\nc.ExecuteAll.memory = 2**31"
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text().replace("timeout = 60", limits))
    app = AutogradeApp.instance()
    app.initialize([name])
    app.start()
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = {
            submission.student.id: {grade.name: grade.score for grade in submission.notebooks[0].grades}
            for submission in gradebook.assignment_submissions(name)
        }
    for student, points in scores.items():
        print(f"{name}  {student}: {sum(points.values()):g} of {sum(full_points(name).values()):g}")
    return scores


def full_points(name=FIRST, lost=()):
    marks = [cell.metadata.get("nbgrader", {}) for cell in solved(name).cells]
    points = {mark["grade_id"]: mark["points"] for mark in marks if mark.get("grade")}
    return {**points, **{f"test-{answer}": 0 for answer in lost}}


def everything(course):
    """What a submission must not change, with the maximum of each test."""
    folders = [course / name for name in ("source", "release", "solutions")]
    paths = [path for folder in folders for path in folder.rglob("*")]
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        worth = {cell.name: cell.max_score for cell in gradebook.find_notebook(FIRST, FIRST).grade_cells}
    return {path: path.read_bytes() for path in paths if path.is_file()}, worth


def test_what_a_teacher_gets(built):
    """The student notebooks are those of the repository."""
    with zipfile.ZipFile(built / "exercises.zip") as packed:
        assert packed.namelist() == [f"exercises/{name}.ipynb" for name in NAMES]
        for name in NAMES:
            ours = (FOLDER / f"{name}.ipynb").read_bytes()
            assert packed.read(f"exercises/{name}.ipynb") == ours
            assert (built / "release" / name / f"{name}.ipynb").read_bytes() == ours
    for name in NAMES:
        solution = read(built / "solutions" / f"{name}.ipynb")
        text = "\n".join(cell.source for cell in solution.cells)
        assert not re.search("NotImplementedError  #|BEGIN|HIDDEN", text)
        assert not any("nbgrader" in cell.metadata for cell in solution.cells)


def test_making_it_again_keeps_what_others_made(tmp_path):
    source, folder = tmp_path / "source", tmp_path / "course"
    shutil.copytree(source_of(FIRST).parent, source / FIRST)
    build_course(source, folder)
    submission = folder / "submitted" / "ada" / FIRST / f"{FIRST}.ipynb"
    submission.parent.mkdir(parents=True)
    kept = {submission: "hers", folder / "nbgrader_config.py": "# mine", folder / "source" / "data.csv": "1"}
    kept[folder / "solutions" / "mine.ipynb"] = "{}"
    for path, text in kept.items():
        path.write_text(text)
    (folder / "source" / FIRST / f"{FIRST}.ipynb").write_text("changed by the teacher")
    assert build_course(source, folder) == [folder / "release" / FIRST / f"{FIRST}.ipynb"]
    assert {path: path.read_text() for path in kept} == kept
    assert (folder / "source.earlier-1" / f"{FIRST}.ipynb").read_text() == "changed by the teacher"
    assert read(folder / "source" / FIRST / f"{FIRST}.ipynb") == solved()
    assert not (folder / "source.earlier-2").exists()


def test_refuses_a_folder_that_is_no_course(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    refused = CliRunner().invoke(cli.main, ["course", str(tmp_path)])
    assert refused.exit_code == 1
    assert "holds other things than a course" in refused.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    refused = CliRunner().invoke(cli.main, ["course", str(tmp_path / "a[1]")])
    assert "must not hold any of [ ] { } * ?" in refused.output


def test_without_nbgrader_the_command_says_what_to_install(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "nbgrader"]:
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("course", "grading"):
        monkeypatch.delitem(sys.modules, f"dmls2r_lite.teaching.{name}", raising=False)
    result = CliRunner().invoke(cli.main, ["course", str(tmp_path / "course")])
    assert result.exit_code == 1
    assert 'pip install "dmls2r-lite[course]"' in result.output
    assert not (tmp_path / "course").exists()


@unix
def test_what_submissions_get_and_what_they_cannot_do(course, capsys):
    """Of a shut-in submission nothing gets out but its answers; one that misbehaves costs others nothing."""
    if not _can_shut_in():
        pytest.skip("needs bubblewrap")
    ada, untidy = solved(), solved()
    forge_marks(ada)
    cell_of(untidy, "asymmetry").source = HEAD + "    return 0.0"
    cell_of(untidy, "test-asymmetry").source = "assert True"
    cell_of(untidy, "loop-inconsistency").source = "import sys\n\nsys.exit()"
    untidy.cells.remove(cell_of(untidy, "test-loop-inconsistency"))
    cell_of(untidy, "setup").source += "\nimport warnings\n\nwarnings.warn('old')"
    before = everything(course)
    home = set(Path.home().iterdir())
    with socket.create_server(("127.0.0.1", 0)) as server:
        attacker = attacking({**ON_THE_COURSE, **ON_THE_MACHINE}, course, server.getsockname()[1])
        submissions = {
            "ada": ada,
            "attacker": attacker,
            "endless": answering(HEAD + "    while True:\n        print(torch.rand(99))"),
            "exits": answering("import os\n\ntry:\n    import mine\nexcept SystemExit:\n    os._exit(0)"),
            "untidy": untidy,
            "zoe": solved(),
        }
        modules = ("sitecustomize", "ipykernel_launcher", "zmq", "comm", "matplotlib_inline", "mine")
        scores = grade(course, submissions, modules=modules)
    points = full_points()
    assert scores["ada"] == scores["zoe"] == points
    assert scores["attacker"] == dict.fromkeys(points, 0)
    assert scores["endless"] == full_points(lost=["asymmetry"])
    assert scores["exits"] == {**dict.fromkeys(points, 0), "test-recover-targets": 1}
    assert scores["untidy"] == full_points(lost=["asymmetry", "loop-inconsistency"])
    assert f"exits, {FIRST}: its kernel has ended" in capsys.readouterr().err

    assert everything(course) == before
    assert set(Path.home().iterdir()) == home
    for student, nb in submissions.items():
        assert read(course / "submitted" / student / FIRST / f"{FIRST}.ipynb") == nb
    graded = course / "autograded" / "attacker" / FIRST / f"{FIRST}.ipynb"
    assert graded.stat().st_size < 2**25  # it shows more than that
    outputs = [output for cell in read(graded).cells[-4:] for output in cell.get("outputs", ())]
    told = "".join(output.get("text", "") for output in outputs)  # of one cell it may come in parts
    assert told.startswith(f"reached []\nwritten {2 * MEGABYTES}\n")
    assert next(output.ename for output in outputs if "ename" in output) == "MemoryError"


@unix
def test_without_bubblewrap_the_course_is_put_back(course, capsys, monkeypatch):
    submissions = {"ada": solved(), "attacker": attacking(ON_THE_COURSE, course), "zoe": solved()}
    before = everything(course)
    monkeypatch.setenv("PATH", "")
    _can_shut_in.cache_clear()
    scores = grade(course, submissions)
    _can_shut_in.cache_clear()
    log = capsys.readouterr().err
    assert log.count("Without bubblewrap a submission may read, send and change whatever you may") == 1
    put_back = next(line for line in log.splitlines() if "Put back: " in line)
    for name in ("gradebook.db", f"release/{FIRST}", "hacked.txt", "of_a_ghost", "zoe", "autograded/ada"):
        assert f"{course}/" in put_back
        assert name in put_back
    assert everything(course) == before
    assert sorted(path.name for path in (course / "submitted").iterdir()) == sorted(submissions)
    for student, nb in submissions.items():
        assert read(course / "submitted" / student / FIRST / f"{FIRST}.ipynb") == nb
    assert scores.pop("attacker") == dict.fromkeys(full_points(), 0)
    assert scores == {"ada": full_points(), "zoe": full_points()}


def test_nothing_is_unpacked_after_a_cells_time():
    session = _Session()
    first, second = (session.serialize(session.msg("status"))[1:] for _ in range(2))
    assert session.deserialize(first)["msg_type"] == "status"
    session.deadline = 0
    with pytest.raises(CellTimeoutError):
        session.deserialize(second)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_solved_empty_and_wrong_submissions(course, name):
    wrong = solved(name)
    mistaken = {answer: code for answer, code, _ in MISTAKES[name][::2]}
    assert len(mistaken) >= 2
    for answer, code in mistaken.items():
        cell_of(wrong, answer).source = code
    submissions = {"solved": solved(name), "empty": read(FOLDER / f"{name}.ipynb"), "wrong": wrong}
    scores = grade(course, submissions, name, seconds=120)  # set 9 trains
    assert scores["solved"] == full_points(name)
    assert scores["empty"] == dict.fromkeys(full_points(name), 0)
    assert scores["wrong"] == full_points(name, lost=mistaken)


@pytest.mark.exhaustive
def test_submissions_that_misbehave(course, capsys):
    stubborn = "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while True:\n        time.sleep(1)"
    deleted_much, copied = solved(), solved()
    for name in ("setup", "asymmetry", "test-asymmetry", "test-robust-estimate"):
        deleted_much.cells.remove(cell_of(deleted_much, name))
    copied.cells.append(nbformat.from_dict({**cell_of(copied, "test-asymmetry"), "id": "copied"}))
    answer = cell_of(solved(), "asymmetry").source
    costs_itself_and_more = {
        "heavy": answering(HEAVY),
        "hidden_builtins": answering(f"sum = 0\nlist = [1]\n{answer}"),
        "silent": answering("import sys\n\nsys.stdout = None"),
        "stubborn": answering(f"import signal\nimport time\n\n\n{HEAD}{stubborn}"),
    }
    others = {"deleted_much": deleted_much, "copied": copied, "zoe": solved()}
    scores = grade(course, {**others, **costs_itself_and_more})
    points = full_points()
    assert scores["deleted_much"] == full_points(lost=["asymmetry"])
    assert scores["copied"] == scores["zoe"] == points
    for student in costs_itself_and_more:
        assert scores[student]["test-recover-targets"] == 1, student
        assert sum(scores[student].values()) < sum(points.values()), student
    log = capsys.readouterr().err
    for student in ("heavy", "stubborn"):
        assert f"{student}, {FIRST}: its kernel has ended or does not respond" in log
