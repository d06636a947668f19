"""The exercises in a real nbgrader: what each kind of submission gets."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from exercise_mistakes import MISTAKES
from grading_attacks import ATTACKS, NEEDS_BUBBLEWRAP, ON_OTHERS, attack_marks, attack_modules

from dmls2r_lite.command import cli

pytest.importorskip("nbgrader", reason="needs nbgrader: pip install -e '.[course]'")

from nbgrader.api import Gradebook

from dmls2r_lite.teaching.submission import can_shut_in

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks" / "exercises"
NAMES = list(MISTAKES)
FIRST = NAMES[0]
SECONDS = 10  # for a cell, where some do not end

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "course"
    made = CliRunner().invoke(cli.main, ["course", str(folder)])
    assert made.exit_code == 0, made.output
    return folder


def source_of(name):
    return FOLDER / "source" / name / f"{name}.ipynb"


def read(path):
    return nbformat.read(path, as_version=4)


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def index_of(nb, name):
    return next(index for index, cell in enumerate(nb.cells) if grade_id(cell) == name)


def submit(course, student, name, nb):
    path = course / "submitted" / student / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(nb, path)
    return path.parent


def configure(course, lines):
    config = course / "nbgrader_config.py"
    faster = config.read_text().replace("timeout = 60", f"timeout = {SECONDS}")
    config.write_text(f"{faster}{lines}\n")


def autograde(course, name):
    """Grade what has been submitted to a set; return points by student and cell, and nbgrader's log."""
    beside_python = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    graded = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", name],
        cwd=course,
        env={**os.environ, "PATH": beside_python},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert graded.returncode == 0, graded.stderr[-3000:]
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            submission.student.id: {grade.name: grade.auto_score for grade in submission.notebooks[0].grades}
            for submission in gradebook.assignment_submissions(name)
        }


def full_points(name):
    marks = [cell.metadata.get("nbgrader", {}) for cell in read(source_of(name)).cells]
    return {mark["grade_id"]: mark["points"] for mark in marks if mark.get("grade")}


def test_student_notebooks_in_the_repository_are_these(course):
    for name in NAMES:
        assert read(course / "release" / name / f"{name}.ipynb") == read(FOLDER / f"{name}.ipynb"), name


def test_what_a_teacher_gets(course):
    with zipfile.ZipFile(course / "exercises.zip") as packed:
        assert packed.namelist() == [f"exercises/{name}.ipynb" for name in NAMES]
        for name in NAMES:
            assert packed.read(f"exercises/{name}.ipynb") == (FOLDER / f"{name}.ipynb").read_bytes()
    for name in NAMES:
        solution = read(course / "solutions" / f"{name}.ipynb")
        text = "\n".join(cell.source for cell in solution.cells)
        assert not re.search("NotImplementedError  #|BEGIN|HIDDEN", text)
        assert not any("nbgrader" in cell.metadata for cell in solution.cells)


def test_making_it_again_keeps_what_others_made(course, tmp_path):
    folder = tmp_path / "course"
    assert CliRunner().invoke(cli.main, ["course", str(folder)]).exit_code == 0
    submission = folder / "submitted" / "ada" / FIRST / f"{FIRST}.ipynb"
    submission.parent.mkdir(parents=True)
    submission.write_text("hers")
    (folder / "nbgrader_config.py").write_text("# mine")
    (folder / "solutions" / "mine.ipynb").touch()
    (folder / "source" / "data.csv").touch()
    (folder / "source" / FIRST / f"{FIRST}.ipynb").write_text("changed by the teacher")
    assert CliRunner().invoke(cli.main, ["course", str(folder)]).exit_code == 0
    assert submission.read_text() == "hers"
    assert (folder / "nbgrader_config.py").read_text() == "# mine"
    assert (folder / "solutions" / "mine.ipynb").exists()
    assert (folder / "source" / "data.csv").exists()
    assert (folder / "release" / FIRST / f"{FIRST}.ipynb").exists()
    assert (folder / "source.earlier-1" / f"{FIRST}.ipynb").read_text() == "changed by the teacher"
    assert read(folder / "source" / FIRST / f"{FIRST}.ipynb") == read(source_of(FIRST))
    assert not (folder / "source.earlier-2").exists()


def test_refuses_a_folder_that_is_no_course(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    refused = CliRunner().invoke(cli.main, ["course", str(tmp_path)])
    assert refused.exit_code == 1
    assert "holds other things than a course" in refused.output
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    refused = CliRunner().invoke(cli.main, ["course", str(tmp_path / "a[1]")])
    assert "must not hold any of [ ] { } * ?" in refused.output


@pytest.mark.parametrize("name", NAMES)
def test_solved_empty_and_wrong_submissions(course, name):
    solved, wrong = read(source_of(name)), read(source_of(name))
    mistaken = {answer: code for answer, code, _ in MISTAKES[name][::2]}
    assert len(mistaken) >= 2
    for answer, code in mistaken.items():
        wrong.cells[index_of(wrong, answer)].source = code
    submit(course, "solved", name, solved)
    submit(course, "empty", name, read(FOLDER / f"{name}.ipynb"))
    submit(course, "wrong", name, wrong)
    scores = autograde(course, name)

    points = full_points(name)
    assert scores["solved"] == points
    assert scores["empty"] == dict.fromkeys(points, 0)
    lost = {f"test-{answer}" for answer in mistaken}
    assert scores["wrong"] == {cell: 0 if cell in lost else n for cell, n in points.items()}
    for student in ("solved", "empty", "wrong"):
        print(f"{name}  {student}: {sum(scores[student].values()):g} of {sum(points.values())}")


def test_submissions_that_misbehave(course):
    configure(course, "c.ExecuteAll.max_fatal = 2")
    points = full_points(FIRST)
    answer, test = "asymmetry", "test-asymmetry"
    head = "def asymmetry(estimates):\n"

    def submit_with(student, change):
        nb = read(source_of(FIRST))
        change(nb)
        submit(course, student, FIRST, nb)

    def replace_answer(code):
        def change(nb):
            nb.cells[index_of(nb, answer)].source = code

        return change

    def edit_test(nb):
        nb.cells[index_of(nb, answer)].source = head + "    return estimates.mean()\n"
        nb.cells[index_of(nb, test)].source = "assert True"

    def delete_test(nb):
        nb.cells[index_of(nb, answer)].source = head + "    return estimates.mean()\n"
        del nb.cells[index_of(nb, test)]

    def delete_answer_and_tests(nb):
        for name in ("setup", answer, test, "test-robust-estimate"):
            del nb.cells[index_of(nb, name)]

    submit_with("endless", replace_answer(head + "    while True:\n        pass\n"))
    stubborn = "    while True:\n        try:\n            while True:\n                pass\n"
    stubborn += "        except BaseException:\n            pass\n"
    submit_with("stubborn", replace_answer(head + stubborn))
    submit_with("exits", replace_answer(head + "    import os\n\n    os._exit(0)\n"))
    submit_with("quits", replace_answer(head + "    import sys\n\n    sys.exit()\n"))
    submit_with("exits_at_once", replace_answer("import os\n\nos._exit(0)\n"))
    submit_with("edited", edit_test)
    submit_with("deleted", delete_test)
    submit_with("deleted_much", delete_answer_and_tests)

    def copy_a_cell(nb):
        copied = nbformat.from_dict(nb.cells[index_of(nb, test)])
        copied.id = "copied"
        nb.cells.append(copied)

    def hide_builtins(nb):
        cell = nb.cells[index_of(nb, answer)]
        cell.source = f"from torch import *\n\nsum = 0\nlist = [1]\n{cell.source}"

    def fall_silent(nb):
        nb.cells[index_of(nb, "recover-targets")].source = "import sys\n\nsys.stdout = None"

    def warn(nb):
        cell = nb.cells[index_of(nb, answer)]
        cell.source = cell.source.replace(
            "    ### BEGIN", "    import warnings\n\n    warnings.warn('slow')\n    ### BEGIN"
        )

    submit_with("silent", fall_silent)
    submit_with("warns", warn)
    submit_with("copied", copy_a_cell)
    submit_with("hidden_builtins", hide_builtins)
    submit_with("well_behaved", lambda nb: None)
    scores = autograde(course, FIRST)

    one_lost = {**points, test: 0}
    misbehaving = (
        "endless",
        "stubborn",
        "exits",
        "quits",
        "exits_at_once",
        "edited",
        "deleted",
        "deleted_much",
    )
    assert {student: scores[student] for student in misbehaving} == dict.fromkeys(misbehaving, one_lost)
    assert scores["silent"] == {**points, "test-recover-targets": 0}
    harmless = ("warns", "copied", "hidden_builtins", "well_behaved")
    assert {student: scores[student] for student in harmless} == dict.fromkeys(harmless, points)
    for student in (*misbehaving, *harmless):
        print(f"{FIRST}  {student}: {sum(scores[student].values()):g} of {sum(points.values())}")
    graded = read(course / "autograded" / "endless" / FIRST / f"{FIRST}.ipynb")
    *_, error = graded.cells[index_of(graded, test)].outputs
    assert f"no end within {SECONDS} seconds" in error.evalue


def everything(course):
    """What a submission must not change, with the maximum of each test."""
    folders = [course / name for name in ("source", "release", "solutions", "submitted")]
    paths = [path for folder in folders for path in folder.rglob("*")]
    found = {path: path.read_bytes() if path.is_file() else None for path in paths}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        cells = gradebook.find_notebook(FIRST, FIRST).grade_cells
        return found, sorted(path.name for path in course.iterdir()), {c.name: c.max_score for c in cells}


@pytest.mark.skipif(os.name == "nt", reason="the attacks are made for Unix")
@pytest.mark.parametrize("sandbox", ["bubblewrap", "none"])
def test_attacks(sandbox, tmp_path):
    """An attack loses the points of the attacker at most, and wins none; nobody else's change."""
    if sandbox == "bubblewrap" and not can_shut_in():
        pytest.skip("needs bubblewrap")
    course = tmp_path / "course"
    assert CliRunner().invoke(cli.main, ["course", str(course)]).exit_code == 0
    configure(course, f"c.ExecuteAll.sandbox = '{sandbox}'")
    released, points = read(FOLDER / f"{FIRST}.ipynb"), full_points(FIRST)
    for student in ("ada", "zoe"):  # the first and the last one that is graded
        submit(course, student, FIRST, read(source_of(FIRST)))
    if sandbox == "bubblewrap":
        names = [*ATTACKS, "marks", "modules"]
    elif can_shut_in():  # the others do not depend on it
        names = [*ON_OTHERS]
    else:
        names = [name for name in [*ATTACKS, "marks", "modules"] if name not in NEEDS_BUBBLEWRAP]
    for name in names:
        nb = nbformat.from_dict(released)
        if name == "marks":
            attack_marks(nb)
        elif name != "modules":
            nb.cells[index_of(nb, "recover-targets")].source = ATTACKS[name].replace("COURSE", str(course))
        folder = submit(course, f"attacker_{name}", FIRST, nb)
        if name == "modules":
            attack_modules(folder, course)
    (course / "autograded").mkdir()
    (course / ".nbgrader.log").touch()
    before = everything(course)
    home = set(Path.home().iterdir())
    scores = autograde(course, FIRST)

    assert everything(course) == before
    assert set(Path.home().iterdir()) == home or sandbox == "none"
    assert scores.pop("ada") == scores.pop("zoe") == points
    assert len(scores) == len(names)
    for student, found in scores.items():
        print(f"{sandbox:10}  {student:24} {sum(found.values()):g} of {sum(points.values()):g}")
    assert {sum(found.values()) for found in scores.values()} == {0}


def test_without_nbgrader_the_command_says_what_to_install(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.split(".")[0] == "nbgrader"]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "dmls2r_lite.teaching.course", raising=False)
    result = CliRunner().invoke(cli.main, ["course", str(tmp_path / "course")])
    assert result.exit_code == 1
    assert 'pip install "dmls2r-lite[course]"' in result.output
    assert not (tmp_path / "course").exists()
