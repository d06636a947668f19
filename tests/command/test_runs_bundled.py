"""The notebooks on other bundled data than they are committed with."""

import nbformat
import pytest
from notebook_runs import (
    FEWER,
    PATHS,
    WITH_A_DATASET,
    check_run,
    count_figures,
    each_notebook,
    each_notebook_with_a_dataset,
    run_notebooks,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def diabetes_10(tmp_path_factory):
    arguments = ["diabetes", "-p", "n_labeled", "10", "-p", "seed", "7"]
    return run_notebooks(PATHS, arguments, tmp_path_factory.mktemp("diabetes"))


@pytest.fixture(scope="module")
def boston_50(tmp_path_factory):
    """Not those without a dataset: here they would do as before."""
    arguments = ["boston", "-p", "n_labeled", "50", "-p", "seed", "7", *FEWER]
    return run_notebooks(WITH_A_DATASET, arguments, tmp_path_factory.mktemp("boston"))


def check_with_figures(path, output_dir):
    committed = nbformat.read(path, as_version=4)
    assert count_figures(check_run(path, output_dir)) == count_figures(committed)


@each_notebook
def test_diabetes_10(path, diabetes_10):
    check_with_figures(path, diabetes_10)


@each_notebook_with_a_dataset
def test_boston_50(path, boston_50):
    check_with_figures(path, boston_50)
