"""A large table from file to predictions: `python tests/benchmarks/large_table.py [N_ROWS]`, or a million.

Writes a Parquet file with 50 columns, one target in five hundred known, and then, in a process of its own,
loads it, splits it (1000 labeled, all rows without a target unlabeled), trains 30 epochs (15 of each step),
and predicts all rows. Prints seconds and peak memory.
"""

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
import torch

from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor


def write_table(path: Path, n_rows: int) -> None:
    """Random columns, and a target that depends on three of them."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{i}": rng.normal(size=n_rows) for i in range(50)})
    y = table["x0"] + table["x1"] ** 2 + np.sin(table["x2"]) + rng.normal(scale=0.1, size=n_rows)
    table["y"] = y.where(rng.random(n_rows) < max(2000 / n_rows, 0.002))
    table.to_parquet(path, index=False)


def run_large(path: Path) -> None:
    """Load, split, train, predict."""
    torch.set_num_threads(2)
    last = time.perf_counter()

    def say(stage: str) -> None:
        nonlocal last
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux: in KiB
        print(f"{stage:24} {time.perf_counter() - last:7.2f} s   peak {peak:5.2f} GiB", flush=True)
        last = time.perf_counter()

    data = load_dataset(path, target="y")
    say("load")
    split = split_dataset(data, 1000, n_unlabeled := int(data.target.isna().sum()), seed=0)
    say(f"split, M = {n_unlabeled}")
    model = DMLS2RRegressor(random_state=0).fit(split.X_train, split.y_train)
    say("train")
    error = np.abs(model.predict(split.X_test) - split.y_test).mean()
    median_error = np.abs(split.y_labeled.median() - split.y_test).mean()
    predicted = model.predict(split.X_train)
    say(f"predict {len(predicted) + len(split.X_test)} rows")
    print(f"test MAE {error:.3f}, of the median {median_error:.3f}")


@click.command()
@click.argument("n_rows", type=click.IntRange(4000), default=10**6)
def main(n_rows: int) -> None:
    """Measure each stage on a table of N_ROWS rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.parquet"
        write_table(path, n_rows)
        with multiprocessing.get_context("spawn").Pool(1) as process:  # whose memory is that of these stages
            process.apply(run_large, (path,))


if __name__ == "__main__":
    main()
