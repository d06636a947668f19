"""The exercises as a course for nbgrader: releases, solutions, and grading that no submission can stop."""

from __future__ import annotations

import copy
import itertools
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    DeduplicateIds,
    Execute,
    IgnorePattern,
    LimitOutput,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets import Bool, Integer, Unicode
from traitlets.config import Config

from ..system import replacing, write_whole

CONFIG = """\
# Read by nbgrader when its commands run in this folder.
from dmls2r_lite.teaching.course import configure

c = get_config()
configure(c)
c.ExecuteAll.timeout = 60  # seconds that a cell may take
"""


class RestoreCells(OverwriteCells):
    """Put back locked cells that a submission has changed or lost, wherever its other cells are."""

    def add_missing_grade_cells(
        self, nb: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Cells without points go to the beginning, as imports, and tests to the end.

        nbgrader's own method looks for the cell before, and stops if that is lost too.
        """
        for cell in nb.cells:
            if not cell.metadata.get("nbgrader", True):  # what is left of the mark of a copied cell
                del cell.metadata["nbgrader"]
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


class ExecuteAll(Execute):
    """Execute every cell, also after one that never ends or ends its kernel.

    Such a cell counts as failed. The others are executed once more without it, in a fresh kernel. After
    `max_fatal` such cells, what has not been executed counts as failed too. Before each test, names in the
    notebook that hide Python's own, such as ``sum = 0``, are removed: tests use them.
    """

    max_fatal = Integer(8).tag(config=True)  # by default more than a set has tests
    UNHIDE = (
        "import builtins\n"
        "for _name in set(dir(builtins)) & set(globals()):\n"
        "    if not _name.startswith('_'):\n"
        "        del globals()[_name]"
    )
    interrupt_on_timeout = Bool(False)  # an interrupt can be caught by the code that does not end
    shutdown_kernel = Unicode("immediate")

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """As nbgrader's, as often as it takes."""
        self._index, self._fatal = -1, dict[int, str]()
        while True:
            try:
                return super().preprocess(nb, resources, km)
            except (CellTimeoutError, DeadKernelError) as error:
                if self._index in {-1, *self._fatal}:  # no cell is to blame: the kernel does not start
                    raise
                too_long = isinstance(error, CellTimeoutError)
                reason = f"no end within {self.timeout} seconds" if too_long else "it has ended Python"
                self._fatal[self._index] = reason
                if len(self._fatal) >= self.max_fatal:
                    for index in range(self._index + 1, len(nb.cells)):
                        self._fatal[index] = "not executed: too many cells before it did not end"

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute one cell, unless it is known to be fatal."""
        if cell.cell_type != "code":
            return cell, resources
        self._index = index
        if index not in self._fatal:
            is_test = cell.metadata.get("nbgrader", {}).get("grade", False)
            if is_test:
                super().preprocess_cell(nbformat.v4.new_code_cell(self.UNHIDE), resources, index)
                self.nb.cells[index] = cell  # nbclient has put the other one here
            cell, resources = super().preprocess_cell(cell, resources, index)
            if is_test:  # nbgrader takes a warning for a failure
                cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            return cell, resources
        reason = self._fatal[index]
        cell.outputs = [
            nbformat.v4.new_output("error", ename="Stopped", evalue=reason, traceback=[f"Stopped: {reason}"])
        ]
        return cell, resources


def configure(c: Config) -> None:
    """Set what our course needs in a configuration of nbgrader."""
    c.CourseDirectory.course_id = "dmls2r"
    c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}
    c.Autograde.sanitize_preprocessors = [
        ClearOutput, DeduplicateIds, OverwriteKernelspec, RestoreCells, CheckCellMetadata,
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
        without = re.sub(r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", cell.source, flags=re.S)
        cell.source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", without)
    return solved
