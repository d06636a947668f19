"""The notebooks on the two datasets from UCI, with the paper's number of unlabeled samples."""

import pytest
from notebook_runs import each_notebook, run_notebook

pytestmark = pytest.mark.usefixtures("uci_folder")


@pytest.mark.parametrize("dataset", ["superconductivity", "air_quality"])
@each_notebook
def test_runs(path, dataset, tmp_path):
    nb = run_notebook(path, [dataset], tmp_path)
    if path.name[:2] != "05":
        assert "1000" in "".join(str(cell.get("outputs", "")) for cell in nb.cells)


def test_air_quality_as_published(tmp_path):
    (path,) = (path for path in each_notebook.args[1] if path.name[:2] == "04")
    nb = run_notebook(path, ["air_quality", "-p", "missing", "as_published", "-p", "n_seeds", "3"], tmp_path)
    assert "paper 6" in "".join(str(cell.get("outputs", "")) for cell in nb.cells)
