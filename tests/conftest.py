"""What all tests share."""

import pytest
import torch

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other


@pytest.fixture(autouse=True)
def seeded():
    """The same random modules and tensors in every run."""
    torch.manual_seed(0)


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items):
    """Keep the cells of a notebook on one worker: `pytest -n 2 --dist loadgroup` spreads the rest."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
