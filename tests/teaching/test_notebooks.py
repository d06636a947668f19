"""The notebooks as they are committed.

That each cell runs as it is, is tested by nbval: `make test` calls both. `test_runs_*.py` run them with
other parameters than their own.
"""

import ast
import itertools
import json
import re

import nbformat
from notebook_runs import PATHS, each_notebook
from papermill import inspect_notebook

from dmls2r_lite.command.pages import caption_of, collect_results
from dmls2r_lite.teaching.notebook import check_parameters, check_values

MAX_MEGABYTES = 1.5
MAX_MEGABYTES_OF_ALL = 8


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(nb):
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def tagged(nb, tag):
    return [cell for cell in nb.cells if tag in cell.metadata.get("tags", [])]


def outputs(nb):
    return [output for cell in code_cells(nb) for output in cell.outputs]


def parameters_of(nb):
    """Name and default of each parameter, by Python's own parser."""
    statements = ast.parse(code_cells(nb)[0].source).body
    assert all(isinstance(statement, ast.AnnAssign) for statement in statements)
    return {statement.target.id: ast.literal_eval(statement.value) for statement in statements}


def test_numbers_are_complete():
    assert [path.name[:2] for path in PATHS] == [f"{number:02}" for number in range(len(PATHS))]
    assert len(PATHS) >= 6


@each_notebook
def test_first_code_cell_holds_parameters(path):
    nb = read(path)
    first = code_cells(nb)[0]
    assert tagged(nb, "parameters") == [first]
    for line in first.source.splitlines():
        assert re.fullmatch(r"\w+: (int|float|bool|str) = [^#]+  # .+", line), line
    seen_by_papermill = inspect_notebook(path)
    assert list(seen_by_papermill) == list(parameters_of(nb))  # it skips a line with a second = sign
    assert all(parameter["help"] for parameter in seen_by_papermill.values())


@each_notebook
def test_second_code_cell_checks_all_parameters(path):
    nb = read(path)
    source = code_cells(nb)[1].source
    assert 'if "google.colab" in sys.modules:\n    %pip install --quiet dmls2r-lite' in source
    tree = ast.parse(source.replace("%pip", "pass  # "))
    parameters = parameters_of(nb)
    checks = "check_parameters" if "dataset" in parameters else "check_values"
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == checks
    ]
    passed = {keyword.arg: getattr(keyword.value, "id", None) for keyword in call.keywords}
    assert {name: name for name in parameters}.items() <= passed.items()
    if "dataset" not in parameters:
        check_values(**parameters)
    elif parameters["dataset"]:  # else the notebook writes a table of its own
        check_parameters(**parameters)


@each_notebook
def test_last_code_cell_records_results(path):
    nb = read(path)
    last = code_cells(nb)[-1]
    assert tagged(nb, "results") == [last]
    results = collect_results(nb)
    assert results == collect_results(nbformat.v4.new_notebook(cells=[last]))
    finding = results.pop("finding")
    assert 3 <= len(results) <= 6
    assert finding.endswith(".")
    assert "{" not in finding
    if not path.stem.startswith(("07", "08", "10", "11")):  # whose findings have no unit
        assert "(in 1000 USD)" in finding or "(in units of price)" in finding


@each_notebook
def test_one_key_figure(path):
    nb = read(path)
    (cell,) = tagged(nb, "key-figure")
    assert len([output for output in cell.outputs if "image/png" in output.get("data", {})]) == 1


@each_notebook
def test_figures_have_a_description(path):
    nb = read(path)
    with_figures = [
        index
        for index, cell in enumerate(nb.cells)
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    assert with_figures
    for index in with_figures:
        caption = caption_of(nb, index)
        assert len(caption) > 20, nb.cells[index].source
        for output in nb.cells[index].outputs:
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"] == {"alt": caption}


@each_notebook
def test_outputs_are_clean(path):
    nb = read(path)
    for output in outputs(nb):
        assert output.output_type != "error"
        assert output.get("name") != "stderr", output.text
        assert not [kind for kind in output.get("data", {}) if "widget" in kind]
        assert output.get("metadata", {}).keys() <= {"image/png"}
    text = json.dumps(
        [{**output, "data": {**output.get("data", {}), "image/png": ""}} for output in outputs(nb)]
    )
    assert not re.search(r"/(home|root|tmp|Users)/|0x[0-9a-f]{8}", text)
    for output in outputs(nb):  # a string that was to be filled in, and is not
        shown = re.sub(r"\$[^$]*\$", "", output.get("data", {}).get("text/markdown", output.get("text", "")))
        assert not re.search(r"\{\w[^{}\n]*\}", shown), shown


@each_notebook
def test_executed_top_to_bottom(path):
    cells = code_cells(read(path))
    assert all(cell.source.strip() for cell in cells)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@each_notebook
def test_metadata_is_clean(path):
    nb = read(path)
    nbformat.validate(nb)
    assert set(nb.metadata) == {"kernelspec", "language_info"}
    assert nb.metadata.kernelspec.name == "python3"
    assert "version" not in nb.metadata.language_info
    for cell in nb.cells:
        assert set(cell.metadata) <= {"tags", "jupyter"}
        assert cell.metadata.get("jupyter", {"source_hidden": True}) == {"source_hidden": True}
    tags = {tag for cell in nb.cells for tag in cell.metadata.get("tags", [])}
    assert tags <= {"parameters", "hand-built", "key-figure", "results", "summary"}


@each_notebook
def test_size(path):
    assert path.stat().st_size < MAX_MEGABYTES * 1e6


@each_notebook
def test_headings_are_in_order(path):
    lines = [
        line
        for cell in read(path).cells
        if cell.cell_type == "markdown"
        for line in re.sub(r"```.*?```", "", cell.source, flags=re.S).splitlines()
    ]
    levels = [len(line) - len(line.lstrip("#")) for line in lines if re.match(r"#+ ", line)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


@each_notebook
def test_leaves_no_widgets(path):
    assert not re.search(r'vnd\.jupyter\.widget|"widgets":', path.read_text())  # views and state


def test_all_notebooks_are_small_enough_to_read_on_the_web():
    everything = [*PATHS, *(PATHS[0].parent / "exercises").rglob("*.ipynb")]
    assert sum(path.stat().st_size for path in everything) < MAX_MEGABYTES_OF_ALL * 1e6


@each_notebook
def test_points_to_its_exercises(path):
    if path.stem != "08_images":  # what it adds to 01 is a matter of the encoder
        closing = next(cell.source for cell in reversed(read(path).cells) if "## Recap" in cell.source)
        assert re.search(r"\*\*Exercises:\*\* .*\(exercises/\d_\w+\.ipynb\)", closing)


@each_notebook
def test_asks_before_it_answers_and_has_exact_facts_to_compare(path):
    nb = read(path)
    assert any("**Predict.**" in cell.source for cell in nb.cells)
    assert sum(cell.source.startswith("# NBVAL_CHECK_OUTPUT") for cell in code_cells(nb)) >= 2
