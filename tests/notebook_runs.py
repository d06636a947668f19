"""Run the notebooks with other parameters than their own, and look at what comes out."""

import re
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from dmls2r_lite.command import cli
from dmls2r_lite.command.pages import NO_CAPTION, collect_results
from dmls2r_lite.command.plan import NUMBERED

PATHS = sorted((Path(__file__).parents[1] / "notebooks").glob(NUMBERED))
WITH_A_DATASET = [path for path in PATHS if "dataset: str" in path.read_text()]  # others make their own

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def run_notebooks(paths: list[Path], arguments: list[str], output_dir: Path) -> tuple[Path, str]:
    """Run notebooks by one `dmls2r run` into a folder; return it, for `check_run`, and what was said."""
    only = [argument for path in paths for argument in ("--only", path.name[:2])]
    command = ["run", *arguments, *only, "--output-dir", str(output_dir)]
    one_process = {"JOBLIB_MULTIPROCESSING": "0"}  # tests run side by side already
    result = CliRunner().invoke(cli.main, command, env=one_process)
    failed = list(output_dir.glob("*/*.partial.ipynb"))  # which `check_run` notices
    assert result.exit_code == bool(failed), result.output
    return output_dir, result.output


def check_run(path: Path, output_dir: Path) -> nbformat.NotebookNode:
    """Check that a notebook ran to its end, is complete and shows no warning; return it executed."""
    assert not list(output_dir.glob(f"*/{path.stem}.partial.ipynb"))
    (done,) = output_dir.glob(f"*/{path.name}")
    nb = nbformat.read(done, as_version=4)
    assert collect_results(nb).keys() == collect_results(nbformat.read(path, as_version=4)).keys()
    assert not [output.text for output in outputs_of(nb) if output.get("name") == "stderr"]
    assert f"{path.stem}.html" in (output_dir / "index.html").read_text()
    page = done.with_suffix(".html").read_text()
    assert NO_CAPTION not in page
    assert set(re.findall(r'href="\.\./(\w+\.html)', page)) <= {path.name for path in output_dir.iterdir()}
    return nb


def outputs_of(nb: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """What all cells of a notebook show."""
    return [output for cell in nb.cells for output in cell.get("outputs", [])]


def count_figures(nb: nbformat.NotebookNode) -> int:
    """How many figures a notebook shows."""
    return sum("image/png" in output.get("data", {}) for output in outputs_of(nb))


def texts_of(nb: nbformat.NotebookNode) -> str:
    """What a notebook's cells have printed or shown as text."""
    return "".join(
        output.get("text", "") + output.get("data", {}).get("text/markdown", "") for output in outputs_of(nb)
    )
