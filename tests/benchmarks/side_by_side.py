"""How much faster networks train side by side: `python tests/benchmarks/side_by_side.py [OUTPUT.csv]`.

The same fits of boston (13 features, 200 unlabeled samples) on one thread, one after the other and all at
once, in turns, so that a slow moment of the machine hits both.
"""

import time
from pathlib import Path

import click
import pandas as pd
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from dmls2r_lite import DMLS2RRegressor, load_dataset, split_dataset
from dmls2r_lite.fitting import fit_side_by_side

METHODS = {"step 1": DMLS2RRegressor(schedule="pairwise_only"), "both steps": DMLS2RRegressor()}
N_ALONE = 4  # fits one after the other: each takes as long as any other


def measure(method: DMLS2RRegressor, n_labeled: int, n_networks: int) -> dict[str, float]:
    """Seconds a network, alone and side by side."""
    boston = load_dataset("boston")
    splits = [split_dataset(boston, n_labeled, 200, seed) for seed in range(n_networks)]
    sets = [(split.X_train, split.y_train) for split in splits]
    models = [clone(method).set_params(random_state=seed) for seed in range(n_networks)]
    start = time.perf_counter()
    for model, (X, y) in zip(models[:N_ALONE], sets, strict=False):
        model.fit(X, y)
    alone = (time.perf_counter() - start) / N_ALONE
    start = time.perf_counter()
    fit_side_by_side(models, sets)
    together = (time.perf_counter() - start) / n_networks
    return {"alone": alone, "side by side": together}


@click.command()
@click.argument("output", type=click.Path(path_type=Path), required=False)
@click.option("--networks", default=20, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(output: Path | None, networks: int, repeats: int) -> None:
    """Print seconds a network and their ratio, the median over repeats."""
    rows = []
    with threadpool_limits(1):
        measure(METHODS["both steps"], 10, 2)  # the first fit of a process also loads things
        for n in (10, 20, 50):
            for name, method in METHODS.items():
                times = pd.DataFrame([measure(method, n, networks) for _ in range(repeats)])
                ratio = (times["alone"] / times["side by side"]).median()
                rows.append({"method": name, "labels": n, **times.median(), "ratio": ratio})
    table = pd.DataFrame(rows).round(4)
    click.echo(f"Seconds a network, {networks} of them, one thread:")
    click.echo(table.to_string(index=False))
    if output:
        table.to_csv(output, index=False)


if __name__ == "__main__":
    main()
