"""What all tests share."""

import os
from pathlib import Path

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("quick", max_examples=20, deadline=None)
hypothesis.settings.register_profile("thorough", max_examples=150, deadline=None)  # for `make test-all`
hypothesis.settings.load_profile("quick")

# The networks here are tiny, and tests run side by side: threads would only wait for each other.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"  # of kernels


def pytest_collection_finish():
    """Let kernels start no processes of their own; here joblib has looked at the environment before."""
    os.environ["JOBLIB_MULTIPROCESSING"] = "0"


@pytest.fixture(autouse=True)
def seeded():
    """The same random modules and tensors in every run."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def uci_folder():
    """Where the files from UCI are, for tests that need them."""
    if not os.environ.get("DMLS2R_DATA"):
        pytest.skip("needs the files from UCI: name their folder in the environment variable DMLS2R_DATA")
    return Path(os.environ["DMLS2R_DATA"]).resolve()
