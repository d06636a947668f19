"""How much faster networks train side by side: `python tests/benchmarks/side_by_side.py [OUTPUT.csv]`.

Fits of boston (13 features, 200 unlabeled samples) on one thread, one after the other and all at once, in
turns, so that a slow moment of the machine hits both.
"""

import time
from pathlib import Path

import click
import pandas as pd
from threadpoolctl import threadpool_limits

from dmls2r_lite import DMLS2RRegressor, load_dataset, split_dataset
from dmls2r_lite.foundation.files import write_whole
from dmls2r_lite.practice.folds import fit_with_seeds

METHODS = {"step 1": DMLS2RRegressor(schedule="pairwise_only"), "both steps": DMLS2RRegressor()}
N_NETWORKS, N_ALONE, N_REPEATS = 20, 4, 3  # one after the other each takes as long as any other


def seconds(method: DMLS2RRegressor, sets: list, at_once: int) -> float:
    """Seconds a network, so many of them at once."""
    start = time.perf_counter()
    for first in range(0, len(sets), at_once):
        fit_with_seeds(method, sets[first : first + at_once], range(first, first + at_once))
    return (time.perf_counter() - start) / len(sets)


@click.command()
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False), required=False)
def main(output: Path | None) -> None:
    """Print the table of seconds, and write it to OUTPUT."""
    if output and not output.parent.is_dir():
        raise click.BadParameter(f"{output.parent} is no folder")
    rows = []
    with threadpool_limits(1):
        for n in (10, 20, 50):
            splits = [split_dataset(load_dataset("boston"), n, 200, seed) for seed in range(N_NETWORKS)]
            sets = [(split.X_train, split.y_train) for split in splits]
            seconds(METHODS["both steps"], sets[:2], 2)  # the first fit of a process also loads things
            for name, method in METHODS.items():
                ways = {"alone": (sets[:N_ALONE], 1), "side by side": (sets, N_NETWORKS)}
                times = pd.DataFrame(
                    {way: seconds(method, *given) for way, given in ways.items()} for _ in range(N_REPEATS)
                )
                ratio = (times["alone"] / times["side by side"]).median()
                rows.append({"method": name, "labels": n, **times.median(), "ratio": ratio})
    table = pd.DataFrame(rows).round(4)
    print(f"Seconds a network, {N_NETWORKS} of them, one thread:\n{table.to_string(index=False)}")
    if output:
        write_whole(output, table.to_csv(index=False))


if __name__ == "__main__":
    main()
