"""The notebooks on the two datasets from UCI, with the paper's number of unlabeled samples."""

import pytest
from notebook_runs import (
    FEWER,
    PATHS,
    WITH_A_DATASET,
    check_run,
    each_notebook_with_a_dataset,
    run_notebooks,
    texts_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("uci_folder")]


@pytest.fixture(scope="module", params=["superconductivity", "air_quality"])
def finished(request, uci_folder, tmp_path_factory):
    arguments = [request.param, "-p", "n_labeled", "10", *FEWER]
    return run_notebooks(WITH_A_DATASET, arguments, tmp_path_factory.mktemp("runs"))


@each_notebook_with_a_dataset
def test_runs(path, finished):
    texts = texts_of(check_run(path, finished))
    assert "MEDV" not in texts
    if path.name[:2] in ("00", "02", "03", "04"):
        assert "1000" in texts  # unlabeled samples, as in the paper


def test_air_quality_as_published(tmp_path):
    (path,) = (path for path in PATHS if path.name[:2] == "04")
    arguments = ["air_quality", "-p", "missing", "as_published", "-p", "n_seeds", "2"]
    assert "N = 20: paper 6" in texts_of(check_run(path, run_notebooks([path], arguments, tmp_path)))
