"""The notebooks as they are committed.

That each cell runs as it is, is tested by nbval: `make test` calls both. `test_runs.py` runs some with
other parameters than their own. Headings of all texts are looked at in `test_project.py`.
"""

import ast
import inspect
import json
import re

import nbformat
import pytest
from notebook_runs import PATHS, outputs_of
from papermill import inspect_notebook

from dmls2r_lite.command.pages import caption_of, collect_results
from dmls2r_lite.foundation.parameters import RULES
from dmls2r_lite.teaching.notebook import TO_LOAD, check_parameters, check_values

MAX_MEGABYTES = 1.5
MAX_MEGABYTES_OF_ALL = 8


@pytest.fixture(scope="module", params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture(scope="module")
def nb(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="module")
def code(nb):
    """Its cells of code."""
    return [cell for cell in nb.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def parameters(code):
    """Name and default of each parameter, by Python's own parser."""
    statements = ast.parse(code[0].source).body
    assert all(isinstance(statement, ast.AnnAssign) for statement in statements)
    return {statement.target.id: ast.literal_eval(statement.value) for statement in statements}


def tagged(nb, tag):
    return [cell for cell in nb.cells if tag in cell.metadata.get("tags", [])]


def pictures(cell):
    return [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]


def test_numbers_are_complete_and_files_small_enough_to_read_on_the_web():
    assert [path.name[:2] for path in PATHS] == [f"{number:02}" for number in range(len(PATHS))]
    assert max(path.stat().st_size for path in PATHS) < MAX_MEGABYTES * 1e6
    everything = [*PATHS, *(PATHS[0].parent / "exercises").rglob("*.ipynb")]
    assert sum(path.stat().st_size for path in everything) < MAX_MEGABYTES_OF_ALL * 1e6


def test_first_code_cell_holds_parameters(path, nb, code, parameters):
    assert tagged(nb, "parameters") == [code[0]]
    for line in code[0].source.splitlines():
        assert re.fullmatch(r"\w+: (int|float|bool|str) = [^#]+  # .+", line), line
    seen_by_papermill = inspect_notebook(path)
    assert list(seen_by_papermill) == list(parameters)  # it skips a line with a second = sign
    assert all(parameter["help"] for parameter in seen_by_papermill.values())


def test_second_code_cell_checks_all_parameters(code, parameters):
    source = code[1].source
    assert 'if "google.colab" in sys.modules:\n    %pip install --quiet dmls2r-lite' in source
    if "dataset" in parameters:
        assert "begin(globals()" in source  # which takes those that it knows
        known = {*inspect.signature(check_parameters).parameters, *TO_LOAD, *RULES, "groups"}
        assert parameters.keys() <= known
        if parameters["dataset"]:  # else the notebook has a table of its own
            check_parameters(**parameters)
    else:
        listed = ", ".join(f"{name}={name}" for name in parameters)
        assert f"check_values({listed})" in source
        check_values(**parameters)


def test_last_code_cell_records_results(path, nb, code):
    assert tagged(nb, "results") == [code[-1]]
    results = collect_results(nb)
    assert results == collect_results(nbformat.v4.new_notebook(cells=code[-1:]))
    finding = results.pop("finding")
    assert 3 <= len(results) <= 6
    assert finding.endswith(".")
    assert "{" not in finding
    if not path.stem.startswith(("07", "08", "10", "11")):  # whose findings have no unit
        assert "(in 1000 USD)" in finding or "(in units of price)" in finding


def test_one_key_figure_and_a_description_of_each(nb):
    assert [len(pictures(cell)) for cell in tagged(nb, "key-figure")] == [1]
    with_figures = [index for index, cell in enumerate(nb.cells) if pictures(cell)]
    for index in with_figures:
        caption = caption_of(nb, index)
        assert len(caption) > 20, nb.cells[index].source
        for output in pictures(nb.cells[index]):
            assert output.metadata["image/png"] == {"alt": caption}


def test_outputs_are_clean(nb):
    shown = []
    for output in outputs_of(nb):
        assert output.output_type != "error"
        assert output.get("name") != "stderr", output.text
        assert not [kind for kind in output.get("data", {}) if "widget" in kind]
        assert output.get("metadata", {}).keys() <= {"image/png"}
        shown.append({**output, "data": {**output.get("data", {}), "image/png": ""}})
        text = output.get("data", {}).get("text/markdown", output.get("text", ""))
        text = re.sub(r"\$[^$]*\$", "", text)
        assert not re.search(r"\{\w[^{}\n]*\}", text), text  # a string that was to be filled in, and is not
    assert not re.search(r"/(home|root|tmp|Users)/|0x[0-9a-f]{8}", json.dumps(shown))


def test_executed_top_to_bottom(code):
    assert all(cell.source.strip() for cell in code)
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def test_metadata_is_clean(path, nb):
    nbformat.validate(nb)
    assert set(nb.metadata) == {"kernelspec", "language_info"}
    assert nb.metadata.kernelspec.name == "python3"
    assert "version" not in nb.metadata.language_info
    for cell in nb.cells:
        assert set(cell.metadata) <= {"tags", "jupyter"}
        assert cell.metadata.get("jupyter", {"source_hidden": True}) == {"source_hidden": True}
    tags = {tag for cell in nb.cells for tag in cell.metadata.get("tags", [])}
    assert tags <= {"parameters", "hand-built", "key-figure", "results", "summary"}
    assert not re.search(r'vnd\.jupyter\.widget|"widgets":', path.read_text())  # views and state


def test_asks_before_it_answers_and_has_exact_facts_to_compare(path, nb, code):
    assert any("**Predict.**" in cell.source for cell in nb.cells)
    assert sum(cell.source.startswith("# NBVAL_CHECK_OUTPUT") for cell in code) >= 2
    if path.stem != "08_images":  # what it adds to 01 is a matter of the encoder
        closing = next(cell.source for cell in reversed(nb.cells) if "## Recap" in cell.source)
        assert re.search(r"\*\*Exercises:\*\* .*\(exercises/\d_\w+\.ipynb\)", closing)
