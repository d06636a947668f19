"""Run a notebook with other parameters than its own, and look at what comes out."""

import re
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from dmls2r_lite.command import cli
from dmls2r_lite.command.pages import NO_CAPTION, collect_results

PATHS = sorted((Path(__file__).parents[1] / "notebooks").glob(cli.NUMBERED))

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
each_notebook_with_a_dataset = pytest.mark.parametrize(  # the others make their own data
    "path", [path for path in PATHS if "dataset: str" in path.read_text()], ids=lambda path: path.stem
)


def run_notebook(path: Path, arguments: list[str], output_dir: Path) -> nbformat.NotebookNode:
    """Run one notebook by `dmls2r run`; check that it is complete and shows no warning."""
    command = ["run", *arguments, "--only", path.name[:2], "--output-dir", str(output_dir)]
    result = CliRunner().invoke(cli.main, command)
    assert result.exit_code == 0, result.output
    (done,) = output_dir.glob(f"*/{path.name}")
    nb = nbformat.read(done, as_version=4)
    assert collect_results(nb).keys() == collect_results(nbformat.read(path, as_version=4)).keys()
    outputs = [output for cell in nb.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert f"{path.stem}.html" in (output_dir / "index.html").read_text()
    page = done.with_suffix(".html").read_text()
    assert NO_CAPTION not in page
    assert set(re.findall(r'href="\.\./(\w+\.html)', page)) <= {path.name for path in output_dir.iterdir()}
    return nb


def texts_of(nb: nbformat.NotebookNode) -> str:
    """What a notebook's cells have printed or shown as text."""
    return "".join(
        output.get("text", "") + output.get("data", {}).get("text/markdown", "")
        for cell in nb.cells
        for output in cell.get("outputs", [])
    )
