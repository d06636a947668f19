"""The exercises as a course for nbgrader: releases, solutions, and grading that no submission can stop."""

from __future__ import annotations

import itertools
import os
import re
import sys
import zipfile
from pathlib import Path

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbgrader import preprocessors as theirs
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from ..foundation.files import replacing, write_whole
from ..foundation.parameters import demand
from .grading import ExecuteAll, RestoreCells

OF_TEACHERS = r"\n### BEGIN HIDDEN TESTS.*?### END HIDDEN TESTS|\n *### (?:BEGIN|END) SOLUTION"

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
    first = [theirs.ClearOutput, theirs.OverwriteKernelspec, RestoreCells, theirs.CheckCellMetadata]
    then = [ExecuteAll, theirs.IgnorePattern, ClearMetadataPreprocessor, theirs.LimitOutput]
    marks = [theirs.SaveAutoGrades, theirs.AssignLatePenalties, theirs.CheckCellMetadata]
    c.Autograde.sanitize_preprocessors, c.Autograde.autograde_preprocessors = first, then + marks


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
    is_no_pattern = not set("[]{}*?") & set(str(course.resolve()))  # for nbgrader
    demand(is_no_pattern, f"the path of a course must not hold any of [ ] {{ }} * ?, got {course}")
    config = course / "nbgrader_config.py"
    is_other = course.exists() and any(course.iterdir()) and not config.exists()
    demand(not is_other, f"{course} holds other things than a course: give a new folder")
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
        for path, content in ((ours, text), (course / "solutions" / ours.name, _solution_of(text))):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
    settings = Config()
    configure(settings)
    settings.CourseDirectory.root = str(course.resolve())
    nbgrader = NbGraderAPI(config=settings)
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    os.environ["PATH"] = os.pathsep.join(places)  # where nbgrader looks for alembic
    for name in names:
        done = nbgrader.generate_assignment(name)
        if not done["success"]:
            raise ChildProcessError(f"nbgrader made no release of {name}:\n{done['log']}")
    releases = [course / "release" / name / f"{name}.ipynb" for name in names]
    archive = course / "exercises.zip"
    with replacing(archive) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in releases:
            packed.write(path, f"exercises/{path.name}")
    return releases


def _solution_of(source: str) -> str:
    """An exercise solved, for students to read: without hidden tests and marks for nbgrader."""
    solved = nbformat.reads(source, as_version=4)
    for cell in solved.cells:
        cell.metadata.pop("nbgrader", None)
        cell.source = re.sub(OF_TEACHERS, "", cell.source, flags=re.S)
    return nbformat.writes(solved)
