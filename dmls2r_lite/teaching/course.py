"""The exercises as a course for nbgrader: releases, solutions, and grading that no submission can stop."""

from __future__ import annotations

import copy
import itertools
import os
import re
import sys
import zipfile
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    ClearOutput,
    IgnorePattern,
    LimitOutput,
    OverwriteKernelspec,
    SaveAutoGrades,
)
from traitlets.config import Config

from ..foundation.files import replacing, write_whole
from .grading import ExecuteAll, RestoreCells

HIDDEN_TESTS = r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS"

CONFIG = """\
# Read by nbgrader when its commands run in this folder.
from dmls2r_lite.teaching.course import configure

c = get_config()
configure(c)
c.ExecuteAll.timeout = 60  # seconds that a cell may take
"""


def configure(c: Config) -> None:
    """Set what our course needs in a configuration of nbgrader."""
    c.CourseDirectory.course_id = "dmls2r"
    c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}
    c.HTMLExporter.sanitize_html = True  # no scripts in what a submission shows
    c.Autograde.sanitize_preprocessors = [
        ClearOutput, OverwriteKernelspec, RestoreCells, CheckCellMetadata,
    ]  # fmt: skip
    c.Autograde.autograde_preprocessors = [
        ExecuteAll, IgnorePattern, ClearMetadataPreprocessor, LimitOutput, SaveAutoGrades,
        AssignLatePenalties, CheckCellMetadata,
    ]  # fmt: skip


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
    ChildProcessError
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
                raise ChildProcessError(f"nbgrader made no release of {name}:\n{done['log']}")
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
