"""The exercises as a course for nbgrader: releases, solutions, and grading that no submission can stop."""

from __future__ import annotations

import copy
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
from traitlets import Bool, Unicode
from traitlets.config import Config

CONFIG = """\
# Read by nbgrader when its commands run in this folder.
from dmls2r_lite.course import configure

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

    Such a cell counts as failed. The others are executed once more without it, in a fresh kernel.
    """

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

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute one cell, unless it is known to be fatal."""
        self._index = index
        if index not in self._fatal:
            return super().preprocess_cell(cell, resources, index)
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
        What it holds of ours is replaced: ``source``, ``release``, ``solutions`` and ``exercises.zip``.
        Submissions, grades and a changed ``nbgrader_config.py`` stay, and a ``source`` that differs from
        the new one is kept as ``source.earlier-1``.

    Returns
    -------
    list of Path
        The student notebooks.

    Raises
    ------
    RuntimeError
        If nbgrader cannot make a release.
    """
    names = sorted(path.parent.name for path in source.glob("*/*.ipynb"))
    course.mkdir(parents=True, exist_ok=True)
    config = course / "nbgrader_config.py"
    if not config.exists():
        config.write_text(CONFIG, encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=course) as new:
        (Path(new) / "solutions").mkdir()
        for name in names:
            original = source / name / f"{name}.ipynb"
            (Path(new) / "source" / name).mkdir(parents=True)
            shutil.copy(original, Path(new) / "source" / name)
            solution = solution_of(nbformat.read(original, as_version=4))
            nbformat.write(solution, Path(new) / "solutions" / original.name)
        if _notebooks_in(course / "source") not in ({}, _notebooks_in(Path(new) / "source")):
            aside = (course / f"source.earlier-{number}" for number in itertools.count(1))
            (course / "source").rename(next(path for path in aside if not path.exists()))
        for part in ("source", "solutions"):
            if (course / part).exists():
                shutil.rmtree(course / part)
            (Path(new) / part).rename(course / part)
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
    with zipfile.ZipFile(archive.with_suffix(".part"), "w", zipfile.ZIP_DEFLATED) as packed:
        for path in releases:
            packed.write(path, f"exercises/{path.name}")
    archive.with_suffix(".part").replace(archive)
    return releases


def _notebooks_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*/*.ipynb")}


def solution_of(source: NotebookNode) -> NotebookNode:
    """An exercise solved, for students to read: without hidden tests and marks for nbgrader."""
    solved = copy.deepcopy(source)
    for cell in solved.cells:
        cell.metadata.pop("nbgrader", None)
        without = re.sub(r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS", "", cell.source, flags=re.S)
        cell.source = re.sub(r"\n *### (BEGIN|END) SOLUTION", "", without)
    return solved
