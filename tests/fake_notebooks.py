"""Notebooks so small that they run in a second, and the command that runs them."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dmls2r_lite.command import cli
from dmls2r_lite.teaching.notebook import RESULTS_MIME

PARAMETERS = """\
dataset: str = "boston"  # a name that `dmls2r datasets` lists
n_labeled: int = 20  # labeled samples, 2 or more
n_unlabeled: int = 200  # unlabeled samples, 1 or more
seed: int = 0  # of the split"""
FILE_PARAMETERS = """\
dataset: str = "boston"  # a name or a path
target: str = ""  # column to estimate
n_labeled: int = 5  # labeled samples
n_unlabeled: int = 0  # unlabeled samples; 0: the dataset's own number
output_dir: str = ""  # for files"""
FIGURE = """\
import matplotlib.pyplot as plt
plt.plot([0, n_labeled])
plt.show()"""
RESULTS = f"""\
from IPython.display import display
display({{{RESULTS_MIME!r}: {{"median_guess_mae": n_labeled / 3, "name": dataset, "none": float("nan")}},
         "text/plain": "results"}}, raw=True)"""


def tagged(tag, source):
    return new_code_cell(source, metadata={"tags": [tag]})


def write_notebook(path, *cells, parameters=PARAMETERS):
    cells = [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    kernel = {"name": "python3", "language": "python", "display_name": "Python 3 (ipykernel)"}
    cells = [new_markdown_cell("# Title"), tagged("parameters", parameters), *cells]
    path.parent.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


def with_results(source="1"):
    """A cell that has been executed and has results."""
    data = {RESULTS_MIME: {"median_guess_mae": 7.0}, "text/plain": ""}
    return new_code_cell(source, outputs=[new_output("display_data", data)])


def command(notebooks, *arguments, output=None):
    output = output or notebooks.parent / "runs"
    return ["run", "--notebooks-dir", str(notebooks), "--output-dir", str(output), *arguments]


def run(notebooks, *arguments, output=None):
    return CliRunner().invoke(cli.main, command(notebooks, *arguments, output=output))


def start(notebooks, *arguments, before=""):
    """Like `run`, in a process of its own."""
    code = f"{before}\nfrom dmls2r_lite.command.cli import main\nmain()"
    # Where the tests run in the background, SIGINT may be ignored, and children inherit that.
    heed = None if os.name == "nt" else lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        [sys.executable, "-c", code, *command(notebooks, *arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,
    )


def without_kernels(patch, before=lambda client: None):
    """Let notebooks come out at once, with the outputs that are in their files, after `before` was called."""

    @contextlib.contextmanager
    def setup_kernel(client, **_):
        before(client)
        yield

    def execute_cell(client, cell, *_, **__):
        about = client.resources["metadata"]
        in_file = nbformat.read(f"{about['path']}/{about['name']}.ipynb", as_version=4).cells
        if known := [one.outputs for one in in_file if one.id == cell.id and one.cell_type == "code"]:
            (cell.outputs,) = known

    patch.setattr("nbclient.NotebookClient.setup_kernel", setup_kernel)
    patch.setattr("nbclient.NotebookClient.execute_cell", execute_cell)


def read_record(folder):
    return json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
