"""The notebooks on other bundled data than they are committed with."""

import pytest
from notebook_runs import each_notebook, run_notebook

SETTINGS = {
    "diabetes-10": ["diabetes", "-p", "n_labeled", "10"],
    "boston-50": ["boston", "-p", "n_labeled", "50", "-p", "seed", "7"],
}


@pytest.mark.parametrize("setting", SETTINGS)
@each_notebook
def test_runs(path, setting, tmp_path):
    run_notebook(path, SETTINGS[setting], tmp_path)
