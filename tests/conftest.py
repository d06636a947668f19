"""What all tests share."""

import pytest
import torch

torch.set_num_threads(1)  # the networks here are tiny: threads would only wait for each other


@pytest.fixture(autouse=True)
def seeded():
    """The same random modules and tensors in every run."""
    torch.manual_seed(0)
