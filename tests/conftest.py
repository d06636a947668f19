"""One thread for each worker: the networks here are tiny, and threads would only wait for each other."""

import torch

torch.set_num_threads(1)
