"""How cost grows: `python tests/benchmarks/scale.py OUTPUT`, or `make bench`.

Mining, eq. 2 over all pairs and prediction, each in the package's way and in slower ways that give the
same: on pairs concatenated one by one, and on an outer sum. The floor is what no way can avoid: encode
each row once, and for mining sort the scores once. Every measurement has one thread of a process of its own
and is the fastest of three (of one, where it takes over 5 s); a way that would take over a minute, or whose
matrix would not fit, is left out. Ways are checked to agree at the smallest size first.

Writes scale.csv and scale.png to the folder OUTPUT and prints the table and growth exponents.
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dmls2r_lite.foundation.scores import pairs_from_numbers, pairwise_similarity_loss_all_pairs
from dmls2r_lite.losses import pairwise_similarity_loss
from dmls2r_lite.miner import mine
from dmls2r_lite.model import LinearPairHead, SiameseNetwork, make_encoder
from dmls2r_lite.teaching.plotting import set_style

N_FEATURES, N_ANCHORS, K, BLOCK = 20, 1000, 5, 2**16


def by_blocks(function: Callable[[Tensor], Tensor], x: Tensor, block: int = BLOCK) -> Tensor:
    """A function of rows, some rows at a time, into one array: a list of blocks fragments the memory."""
    first = function(x[:block])
    results = first.new_empty(len(x), *first.shape[1:])
    for start in range(0, len(x), block):
        results[start : start + block] = function(x[start : start + block])
    return results


class Pairs(NamedTuple):
    """A slow way: codes of rows, a matrix from the codes of two sets, and how many rows of each at once."""

    encode: Callable[[SiameseNetwork, Tensor], Tensor]
    pair: Callable[[SiameseNetwork, Tensor, Tensor], Tensor]
    n_anchors: int
    n_rows: int

    def mine(self, network: SiameseNetwork, x: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
        codes = by_blocks(partial(self.encode, network), x)
        positives, negatives = [], []
        for part in self.encode(network, anchors).split(self.n_anchors):
            distance = self.pair(network, part, codes).abs()
            positives.append(distance.topk(K, largest=False).indices)
            negatives.append(distance.topk(K).indices)
        return torch.cat(positives), torch.cat(negatives)

    def predict(self, network: SiameseNetwork, x: Tensor, anchors: Tensor) -> Tensor:
        of_anchors, y = self.encode(network, anchors), anchors[:, 0]

        def estimate(rows: Tensor) -> Tensor:
            codes = self.encode(network, rows)
            forth, back = self.pair(network, codes, of_anchors), self.pair(network, of_anchors, codes)
            return ((forth - back.T) / 2 + y).mean(dim=1)

        return by_blocks(estimate, x, self.n_rows)


OUTER_SUM = Pairs(
    lambda network, rows: torch.stack(network.scores(rows), dim=1),
    lambda network, a, b: a[:, None, 0] + b[:, 1],
    16,
    BLOCK // 8,
)
CONCATENATED = Pairs(
    lambda network, rows: network.encoder(rows),
    lambda network, a, b: torch.stack([network.head(code.expand_as(b), b) for code in a]),
    10,
    100,
)


def loss_outer_sum(g: Tensor, h: Tensor, y: Tensor) -> Tensor:
    errors = (y[:, None] - y) - (g[:, None] + h)
    errors = errors - torch.diag(errors.diagonal())
    return errors.square().sum() / (len(y) * (len(y) - 1))


def loss_concatenated(g: Tensor, h: Tensor, y: Tensor) -> Tensor:
    i, j = pairs_from_numbers(torch.arange(len(y) * (len(y) - 1)), len(y))
    return pairwise_similarity_loss(torch.stack([g[i], h[j]], dim=1) @ torch.ones(2), y[i] - y[j])


WAYS: dict[str, dict[str, tuple[Callable[..., Any], int]]] = {  # each up to 10^n rows
    "mining": {
        "package": (lambda network, x, anchors: mine(network, anchors, x, K), 7),
        "outer sum": (OUTER_SUM.mine, 6),
        "concatenated pairs": (CONCATENATED.mine, 5),
        "floor": (lambda network, x, _: by_blocks(lambda rows: network.scores(rows)[1], x).sort().indices, 7),
    },
    "prediction": {
        "package": (
            lambda network, x, anchors: by_blocks(lambda r: network.predict(r, anchors, anchors[:, 0]), x),
            6,
        ),
        "outer sum": (OUTER_SUM.predict, 6),
        "concatenated pairs": (CONCATENATED.predict, 5),
        "floor": (lambda network, x, _: by_blocks(lambda rows: network.encoder(rows)[:, 0], x), 6),
    },
    "loss and gradient": {
        "package": (pairwise_similarity_loss_all_pairs, 4),
        "outer sum": (loss_outer_sum, 4),
        "concatenated pairs": (loss_concatenated, 4),
    },
}
SMALLEST = {"mining": 2000, "prediction": 2000, "loss and gradient": 100}


def prepare(task: str, size: int, folder: str) -> tuple[Any, ...]:
    """What a way is given: scores and targets; or a network, rows in a mapped file, and anchors."""
    torch.manual_seed(0)
    if task == "loss and gradient":
        return tuple(torch.randn(size, requires_grad=name != "y") for name in "ghy")
    network = SiameseNetwork(make_encoder(N_FEATURES), LinearPairHead(100))
    rng, path = np.random.default_rng(0), Path(folder) / "rows.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(size, N_FEATURES))
    for start in range(0, size, 10**6):
        rows[start : start + 10**6] = rng.random((min(10**6, size - start), N_FEATURES), dtype=np.float32)
    return network, torch.from_numpy(np.asarray(rows)), torch.rand(N_ANCHORS, N_FEATURES)


def run_once(task: str, way: str, arguments: tuple[Any, ...]) -> Any:
    with torch.set_grad_enabled(task == "loss and gradient"):
        result = WAYS[task][way][0](*arguments)
    if task == "loss and gradient":
        result.backward()
    return result


def measure(task: str, way: str, size: int) -> tuple[float, float]:
    """Seconds, and GiB beyond the data; mapped files count while they are in memory."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run_once(task, way, prepare(task, SMALLEST[task], folder))  # starts everything up
        arguments = prepare(task, size, folder)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds: list[float] = []
        while len(seconds) < 3 and sum(seconds) < 5:
            start = time.perf_counter()
            run_once(task, way, arguments)
            seconds.append(time.perf_counter() - start)
        return min(seconds), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


def check_equality(folder: str) -> None:
    """All ways agree at a small size, to rounding of float32."""
    for task, ways in WAYS.items():
        arguments = prepare(task, SMALLEST[task], folder)
        results = {way: run_once(task, way, arguments) for way in ways if way != "floor"}
        if task == "mining":  # as distances, for ties at rounding may swap
            network, x, anchors = arguments
            with torch.no_grad():
                exact = network.double().difference_matrix(anchors.double(), x.double()).abs()
            results = {
                way: torch.cat([exact.gather(1, rows) for rows in found]) for way, found in results.items()
            }
        for result in results.values():
            torch.testing.assert_close(result, results["package"], rtol=1e-4, atol=1e-5, check_dtype=False)
        print(f"{task}: {', '.join(results)} agree at {SMALLEST[task]}")


def draw(table: pd.DataFrame, path: Path) -> None:
    """A panel per task: seconds against size, a line per way."""
    set_style()
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.8))
    looks = {"package": "o-", "outer sum": "s--", "concatenated pairs": "^:", "floor": "x-."}
    for ax, (task, part) in zip(axes, table.groupby("task", sort=False), strict=True):
        for way, rows in part.groupby("way", sort=False):
            ax.loglog(rows["size"], rows["seconds"], looks[way], label=way)
        label = {"loss and gradient": "labeled samples N"}.get(task, f"rows M (N = {N_ANCHORS})")
        ax.set(title=task, xlabel=label, ylabel="seconds")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    fig.savefig(path, dpi=100)


@click.command()
@click.argument("output", type=click.Path(path_type=Path, file_okay=False))
def main(output: Path) -> None:
    """Measure, and write scale.csv and scale.png to OUTPUT."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        check_equality(folder)
    rows = []
    for task, ways in WAYS.items():
        for way, (_, largest) in ways.items():
            for size in (10**n for n in range(2 if task == "loss and gradient" else 4, largest + 1)):
                with multiprocessing.get_context("spawn").Pool(1) as process:
                    seconds, memory = process.apply(measure, (task, way, size))
                row = {"task": task, "way": way, "size": size, "seconds": seconds, "memory_gib": memory}
                rows.append(row)
                print(f"{task:18} {way:19} {size:9} {seconds:10.4f} s {memory:7.3f} GiB", flush=True)
    table = pd.DataFrame(rows)
    table.round(5).to_csv(output / "scale.csv", index=False)
    draw(table, output / "scale.png")
    for (task, way), part in table.groupby(["task", "way"], sort=False):
        large = part[part["size"] >= part["size"].max() / 100]
        if len(large) > 2:
            slope = np.polyfit(np.log(large["size"]), np.log(large["seconds"]), 1)[0]
            print(f"{task}, {way}: seconds grow like size^{slope:.2f}")


if __name__ == "__main__":
    main()
