"""The exercises as a course for nbgrader: releases, solutions, and grading that no submission can stop."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    Execute,
    IgnorePattern,
    LimitOutput,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets import Bool, Enum, Integer, Unicode
from traitlets.config import Config

from ..foundation.files import replacing, write_whole
from .submission import can_shut_in, nothing_left, unchanged

HIDDEN_TESTS = r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS"

CONFIG = """\
# Read by nbgrader when its commands run in this folder.
from dmls2r_lite.teaching.course import configure

c = get_config()
configure(c)
c.ExecuteAll.timeout = 60  # seconds that a cell may take
"""


class RestoreCells(OverwriteCells):
    """Make cells what the gradebook says they are, and put back locked ones that were changed or lost."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """As nbgrader's, once nothing is left of what a submission says of its cells but their names."""
        known = _marks(resources)
        for cell in reversed(nb.cells):  # of several with one name the last one counts
            mark = cell.metadata.get("nbgrader")
            name = mark.get("grade_id") if isinstance(mark, dict) else None
            cell.metadata = NotebookNode()
            if isinstance(name, str) and name in known:
                cell.metadata.nbgrader = known.pop(name)
        return super().preprocess(nb, resources)

    def add_missing_grade_cells(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Cells without points go to the beginning, as imports, and tests to the end.

        nbgrader's own method looks for the cell before, and stops if that is lost too.
        """
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        points = {cell.name: cell.max_score for cell in source.grade_cells}
        present = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in nb.cells}
        first: list[NotebookNode] = []
        last: list[NotebookNode] = []
        for cell in source.source_cells:
            if cell.locked and cell.name not in present:
                self.log.warning("Cell %s was deleted: it is put back", cell.name)
                restored = nbformat.from_dict(self.missing_cell_transform(cell, points.get(cell.name, 0)))
                if nb.nbformat_minor >= 5:
                    restored.id = f"restored-{len(first) + len(last)}"
                restored.source = cell.source  # without the notice, which would change its checksum
                if cell.name not in points:
                    restored.metadata.nbgrader["grade"] = False
                    del restored.metadata.nbgrader["points"]
                (last if cell.name in points else first).append(restored)
        nb.cells = [*first, *nb.cells, *last]
        return nb, resources


def _marks(resources: dict[str, Any]) -> dict[str, NotebookNode]:
    """What nbgrader notes on each cell that it knows of, by the gradebook."""
    about = resources["nbgrader"]
    with Gradebook(about["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(about["notebook"], about["assignment"])
        points = {cell.name: cell.max_score for cell in notebook.grade_cells}
        solutions = {cell.name for cell in notebook.solution_cells}
        tasks = {cell.name: cell.max_score for cell in notebook.task_cells}
        marks = {}
        for cell in notebook.source_cells:
            mark = {
                "grade_id": cell.name,
                "cell_type": cell.cell_type,
                "checksum": cell.checksum,
                "grade": cell.name in points,
                "locked": cell.locked,
                "schema_version": 3,
                "solution": cell.name in solutions,
                "task": cell.name in tasks,
            }
            worth = (points | tasks).get(cell.name)
            marks[cell.name] = NotebookNode(mark if worth is None else {**mark, "points": worth})
        return marks


class ExecuteAll(Execute):
    """Execute a student's cells in a process of their own, and ours where they are out of its reach.

    The kernel executes locked cells only, as the gradebook has them. In it the names of the answers stand for
    functions of that other process, see `Submission`. With bubblewrap the process reaches nothing else;
    without, what it has changed in the course is put back.
    """

    max_fatal = Integer(8, help="cells and functions that do not end before all else counts as failed").tag(
        config=True
    )
    memory = Integer(4 * 2**30, help="bytes that a submission may use").tag(config=True)
    disk = Integer(2**28, help="bytes that a submission may write").tag(config=True)
    sandbox = Enum(
        ["auto", "bubblewrap", "none"], "auto", help="whether to shut submissions in; auto: where it works"
    ).tag(config=True)
    interrupt_on_timeout = Bool(False)
    shutdown_kernel = Unicode("immediate")

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute a notebook, and leave nothing of it but its outputs."""
        is_shut_in = self.sandbox != "none" and _can_shut_in()
        if not is_shut_in:
            if self.sandbox == "bubblewrap":
                raise RuntimeError(
                    "bubblewrap is missing here, or may not do its work: see ExecuteAll.sandbox"
                )
            self.log.warning("No bubblewrap here: a submission may read what you may read")
        course = Path(CourseDirectory(parent=self).root).resolve()
        folder = Path(resources["metadata"]["path"]).resolve()
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            about = resources["nbgrader"]
            cells = gradebook.find_notebook(about["notebook"], about["assignment"]).source_cells
            self._ours = {cell.name: cell.source for cell in cells if cell.locked}
            stubs = "\n".join(cell.source for cell in cells if not cell.locked)
        self._index, self._is_started = -1, False
        self.timeout_func = lambda cell: 3 * self.timeout + 300  # the process has a limit of its own
        with contextlib.ExitStack() as after:
            if not is_shut_in:
                changed: list[Path] = []
                after.callback(lambda: self.log.warning("Put back: %s", changed) if changed else None)
                after.enter_context(unchanged(course, changed, but=[course / ".nbgrader.log"]))
            elsewhere = Path(after.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            after.enter_context(nothing_left())
            files, empty = elsewhere / "files", elsewhere / "empty"
            shutil.copytree(folder, files, ignore=shutil.ignore_patterns("*.ipynb", ".*"), symlinks=True)
            empty.mkdir()  # for the kernel: beside the notebook there may be modules that it would import
            metadata = {**resources["metadata"], "path": str(empty)}
            options = {
                "is_shut_in": is_shut_in,
                "seconds": self.timeout,
                "memory": self.memory,
                "disk": self.disk,
                "max_stops": self.max_fatal,
            }
            lines = [
                "from dmls2r_lite.teaching import remote as _remote, submission as _grading",
                f"_remote.set_limits({2 * self.memory}, {self.disk})  # whatever it gets for an answer",
                f"_submission = _grading.Submission({str(files)!r}, {str(course)!r}, **{options})",
            ]
            answers = re.findall(r"^def (\w+)", stubs, flags=re.M)
            self._start = "\n".join([*lines, *(f"{name} = _submission.answer({name!r})" for name in answers)])
            try:
                super().preprocess(nb, {**resources, "metadata": metadata}, km)
            except (CellTimeoutError, DeadKernelError) as error:
                if not self._is_started:
                    raise
                for cell in nb.cells[self._index :]:
                    if cell.cell_type == "code":
                        cell.outputs = [
                            nbformat.v4.new_output(
                                "error", ename="Stopped", evalue=str(error), traceback=["Stopped"]
                            )
                        ]
        return nb, resources

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute one cell."""
        if cell.cell_type != "code":
            return cell, resources
        self._index = index
        if not self._is_started:
            outputs = self._execute(self._start, resources, index)
            if any(output.output_type == "error" for output in outputs):
                raise RuntimeError(f"a submission cannot be executed: {outputs}")
            self._is_started = True
        self._execute("_submission.begin()", resources, index)
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if self._ours.get(name) == cell.source:
            cell.outputs = self._execute(cell.source, resources, index)
            visible = re.sub(HIDDEN_TESTS, "", cell.source, flags=re.S)
            self._execute(f"_submission.define({visible!r})", resources, index)
        else:
            cell.outputs = self._execute(f"_submission.run({cell.source!r})", resources, index)
        self.nb.cells[index] = cell
        return cell, resources

    def _execute(self, source: str, resources: dict[str, Any], index: int) -> list[NotebookNode]:
        done, _ = super().preprocess_cell(nbformat.v4.new_code_cell(source), resources, index)
        return [output for output in done.outputs if output.get("name") != "stderr"]  # nbgrader's "failed"


@functools.cache
def _can_shut_in() -> bool:
    return can_shut_in()


def configure(c: Config) -> None:
    """Set what our course needs in a configuration of nbgrader."""
    c.CourseDirectory.course_id = "dmls2r"
    c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}
    c.Autograde.sanitize_preprocessors = [
        ClearOutput, OverwriteKernelspec, RestoreCells, CheckCellMetadata,
    ]  # fmt: skip
    c.Autograde.autograde_preprocessors = [
        ExecuteAll, IgnorePattern, ClearMetadataPreprocessor, LimitOutput, SaveAutoGrades,
        AssignLatePenalties, CheckCellMetadata,
    ]  # fmt: skip
    c.RestoreCells.add_missing_cells = True


def build_course(source: Path, course: Path) -> list[Path]:
    """Write a folder in which nbgrader works: student notebooks, solutions, and a zip for a class.

    Parameters
    ----------
    source : Path
        Of exercises in nbgrader's format, ``NAME/NAME.ipynb`` each.
    course : Path
        A new or empty folder, or a course. What it holds of ours is replaced: notebooks in ``source``,
        ``release`` and ``solutions``, and ``exercises.zip``. Everything else stays, and notebooks in
        ``source`` that differ from the new ones go to ``source.earlier-1``.

    Returns
    -------
    list of Path
        The student notebooks.

    Raises
    ------
    ValueError
        If the folder holds other things, or nbgrader could not work with its path.
    RuntimeError
        If nbgrader cannot make a release.
    """
    if set("[]{}*?") & set(str(course.resolve())):  # nbgrader takes them for patterns
        raise ValueError(f"the path of a course must not hold any of [ ] {{ }} * ?, got {course}")
    config = course / "nbgrader_config.py"
    if course.exists() and any(course.iterdir()) and not config.exists():
        raise ValueError(f"{course} holds other things than a course: give a new folder")
    names = sorted(path.parent.name for path in source.glob("*/*.ipynb"))
    course.mkdir(parents=True, exist_ok=True)
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")
    number = next(n for n in itertools.count(1) if not (course / f"source.earlier-{n}").exists())
    for name in names:
        text = (source / name / f"{name}.ipynb").read_text(encoding="utf-8")
        ours = course / "source" / name / f"{name}.ipynb"
        if ours.exists() and ours.read_text(encoding="utf-8") != text:
            aside = course / f"source.earlier-{number}" / ours.name
            aside.parent.mkdir(exist_ok=True)
            ours.rename(aside)
        _write(ours, text)
        solution = solution_of(nbformat.reads(text, as_version=4))
        _write(course / "solutions" / ours.name, nbformat.writes(solution))
    settings = Config()
    configure(settings)
    settings.CourseDirectory.root = str(course.resolve())
    nbgrader = NbGraderAPI(config=settings)
    places = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), places])  # for alembic
    try:
        for name in names:
            done = nbgrader.generate_assignment(name)
            if not done["success"]:
                raise RuntimeError(f"nbgrader made no release of {name}:\n{done['log']}")
    finally:
        os.environ["PATH"] = places
    releases = [course / "release" / name / f"{name}.ipynb" for name in names]
    archive = course / "exercises.zip"
    with replacing(archive) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in releases:
            packed.write(path, f"exercises/{path.name}")
    return releases


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def solution_of(source: NotebookNode) -> NotebookNode:
    """An exercise solved, for students to read: without hidden tests and marks for nbgrader."""
    solved = copy.deepcopy(source)
    for cell in solved.cells:
        cell.metadata.pop("nbgrader", None)
        without = re.sub(HIDDEN_TESTS, "", cell.source, flags=re.S)
        cell.source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", without)
    return solved
