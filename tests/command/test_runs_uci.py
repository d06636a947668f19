"""The notebooks on the two datasets from UCI, with the paper's number of unlabeled samples."""

import pytest
from notebook_runs import PATHS, each_notebook_with_a_dataset, run_notebook, texts_of

FEWER = {  # splits than by default, to save time: what many say is tested on smaller tables
    "04_evaluation": ["-p", "n_seeds", "3"],
    "05_your_own_data": ["-p", "n_repeats", "2"],
    "07_reproducing_the_paper": ["-p", "n_seeds", "3"],
}

pytestmark = pytest.mark.usefixtures("uci_folder")


@pytest.mark.parametrize("dataset", ["superconductivity", "air_quality"])
@each_notebook_with_a_dataset
def test_runs(path, dataset, tmp_path):
    texts = texts_of(run_notebook(path, [dataset, *FEWER.get(path.stem, [])], tmp_path))
    assert "MEDV" not in texts
    if path.name[:2] in ("00", "02", "03", "04"):
        assert "1000" in texts  # unlabeled samples, as in the paper


def test_air_quality_as_published(tmp_path):
    (path,) = (path for path in PATHS if path.name[:2] == "04")
    nb = run_notebook(path, ["air_quality", "-p", "missing", "as_published", "-p", "n_seeds", "3"], tmp_path)
    assert "N = 20: paper 6" in texts_of(nb)
