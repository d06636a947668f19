"""The notebooks on another bundled dataset than they are committed with, with more labels."""

import nbformat
import pytest
from notebook_runs import (
    FEWER,
    WITH_A_DATASET,
    check_run,
    count_figures,
    each_notebook_with_a_dataset,
    run_notebooks,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    arguments = ["diabetes", "-p", "n_labeled", "30", "-p", "seed", "7", *FEWER]
    return run_notebooks(WITH_A_DATASET, arguments, tmp_path_factory.mktemp("runs"))


@each_notebook_with_a_dataset
def test_runs(path, finished):
    nb = check_run(path, finished)
    committed = nbformat.read(path, as_version=4)
    committed.cells = [
        cell for cell in committed.cells if not cell.source.startswith('if dataset == "boston"')
    ]
    assert count_figures(nb) == count_figures(committed)
