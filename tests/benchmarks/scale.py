"""How cost grows: `python tests/benchmarks/scale.py OUTPUT [--device cuda]`, or `make bench`.

Mining, eq. 2 over all pairs and prediction, each in the package's way and in slower ways that give the
same: on pairs concatenated one by one, and on an outer sum. The floor is what no way can avoid: encode
each row once, and for mining sort the scores once. Every measurement has a process of its own and is the
fastest of three (of one, where it takes over 5 s); a way that would take over a minute, or whose matrix
would not fit, is left out. Ways are checked to agree at the smallest size first.

Writes scale.csv and scale.png to the folder OUTPUT and prints the table, ratios and growth exponents.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

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


def make_network(device: str) -> SiameseNetwork:
    torch.manual_seed(0)
    return SiameseNetwork(make_encoder(N_FEATURES), LinearPairHead(100)).to(device)


def by_blocks(function: Callable[[Tensor], Tensor], x: Tensor, block: int = BLOCK) -> Tensor:
    """A function of rows, some rows at a time, into one array: a list of blocks fragments the memory."""
    first = function(x[:block])
    results = first.new_empty(len(x), *first.shape[1:])
    for start in range(0, len(x), block):
        results[start : start + block] = function(x[start : start + block])
    return results


class OuterSum:
    """Both scores of each row, and of two sets of rows the matrix of their sums."""

    n_anchors, n_rows = 16, BLOCK // 8  # at once

    def encode(self, network: SiameseNetwork, rows: Tensor) -> Tensor:
        return torch.stack(network.scores(rows), dim=1)

    def pair(self, network: SiameseNetwork, a: Tensor, b: Tensor) -> Tensor:
        return a[:, None, 0] + b[:, 1]


class ConcatenatedPairs:
    """Every code of the one beside every code of the other, through the head."""

    n_anchors, n_rows = 10, 100

    def encode(self, network: SiameseNetwork, rows: Tensor) -> Tensor:
        return network.encoder(rows)

    def pair(self, network: SiameseNetwork, a: Tensor, b: Tensor) -> Tensor:
        return torch.stack([network.head(code.expand_as(b), b) for code in a])


Way = OuterSum | ConcatenatedPairs


def mine_by_pairs(way: Way, network: SiameseNetwork, x: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
    codes = by_blocks(partial(way.encode, network), x)
    positives, negatives = [], []
    for part in way.encode(network, anchors).split(way.n_anchors):
        distance = way.pair(network, part, codes).abs()
        positives.append(distance.topk(K, largest=False).indices)
        negatives.append(distance.topk(K).indices)
    return torch.cat(positives), torch.cat(negatives)


def mine_package(network: SiameseNetwork, x: Tensor, anchors: Tensor) -> tuple[Tensor, Tensor]:
    return mine(network, anchors, x, K)


def mine_floor(network: SiameseNetwork, x: Tensor, anchors: Tensor) -> Tensor:
    return by_blocks(lambda rows: network.scores(rows)[1], x).sort().indices


def predict_by_pairs(way: Way, network: SiameseNetwork, x: Tensor, anchors: Tensor) -> Tensor:
    codes_of_anchors, y = way.encode(network, anchors), anchors[:, 0]

    def estimate(rows: Tensor) -> Tensor:
        codes = way.encode(network, rows)
        forth, back = way.pair(network, codes, codes_of_anchors), way.pair(network, codes_of_anchors, codes)
        return ((forth - back.T) / 2 + y).mean(dim=1)

    return by_blocks(estimate, x, way.n_rows)


def predict_package(network: SiameseNetwork, x: Tensor, anchors: Tensor) -> Tensor:
    return by_blocks(lambda rows: network.predict(rows, anchors, anchors[:, 0]), x)


def predict_floor(network: SiameseNetwork, x: Tensor, anchors: Tensor) -> Tensor:
    return by_blocks(lambda rows: network.encoder(rows)[:, 0], x)


def loss_outer_sum(g: Tensor, h: Tensor, y: Tensor) -> Tensor:
    errors = (y[:, None] - y) - (g[:, None] + h)
    errors = errors - torch.diag(errors.diagonal())
    return errors.square().sum() / (len(y) * (len(y) - 1))


def loss_concatenated(g: Tensor, h: Tensor, y: Tensor) -> Tensor:
    i, j = pairs_from_numbers(torch.arange(len(y) * (len(y) - 1), device=y.device), len(y))
    pairs = torch.stack([g[i], h[j]], dim=1)
    return pairwise_similarity_loss(pairs @ torch.ones(2, device=y.device, dtype=y.dtype), y[i] - y[j])


WAYS: dict[str, dict[str, tuple[Callable[..., object], int]]] = {  # each up to 10^n rows
    "mining": {
        "package": (mine_package, 7),
        "outer sum": (partial(mine_by_pairs, OuterSum()), 6),
        "concatenated pairs": (partial(mine_by_pairs, ConcatenatedPairs()), 5),
        "floor": (mine_floor, 7),
    },
    "prediction": {
        "package": (predict_package, 6),
        "outer sum": (partial(predict_by_pairs, OuterSum()), 6),
        "concatenated pairs": (partial(predict_by_pairs, ConcatenatedPairs()), 5),
        "floor": (predict_floor, 6),
    },
    "loss and gradient": {
        "package": (pairwise_similarity_loss_all_pairs, 4),
        "outer sum": (loss_outer_sum, 4),
        "concatenated pairs": (loss_concatenated, 4),
    },
}
SMALLEST = {"mining": 2000, "prediction": 2000, "loss and gradient": 100}


def make_rows(path: Path, n: int) -> Tensor:
    """Rows in a file that is mapped into memory, made in blocks."""
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, N_FEATURES))
    for start in range(0, n, 10**6):
        rows[start : start + 10**6] = rng.random((min(10**6, n - start), N_FEATURES), dtype=np.float32)
    return torch.from_numpy(np.asarray(rows))


def prepare(task: str, size: int, device: str, folder: Path) -> tuple[object, ...]:
    torch.manual_seed(0)
    if task == "loss and gradient":
        return tuple(torch.randn(size, device=device, requires_grad=name != "y") for name in "ghy")
    network, x = make_network(device), make_rows(folder / "rows.npy", size)
    return network, x if device == "cpu" else x.to(device), torch.rand(N_ANCHORS, N_FEATURES, device=device)


def run_once(task: str, way: str, arguments: tuple[object, ...]) -> object:
    function = WAYS[task][way][0]
    if task == "loss and gradient":
        loss = function(*arguments)
        loss.backward()
        return loss
    with torch.no_grad():
        return function(*arguments)


def measure(task: str, way: str, size: int, device: str, threads: int) -> tuple[float, float]:
    """Seconds, and GiB beyond the data."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        run_once(task, way, prepare(task, SMALLEST[task], device, Path(folder)))  # starts everything up
        arguments = prepare(task, size, device, Path(folder))
        before = peak_bytes(device)
        seconds: list[float] = []
        while len(seconds) < 3 and sum(seconds) < 5:
            start = time.perf_counter()
            run_once(task, way, arguments)
            if device != "cpu":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - start)
        return min(seconds), (peak_bytes(device) - before) / 2**30


def peak_bytes(device: str) -> float:
    """Peak memory of the process, or of the GPU; mapped files count while they are in memory."""
    if device != "cpu":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2**10


def check_equality(device: str, folder: Path) -> None:
    """All ways agree at a small size, to rounding of float32."""
    for task, ways in WAYS.items():
        arguments = prepare(task, SMALLEST[task], device, folder)
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
        click.echo(f"{task}: {', '.join(results)} agree at {SMALLEST[task]}")


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
@click.option("--device", default="cpu", show_default=True)
@click.option("--threads", default=1, show_default=True)
def main(output: Path, device: str, threads: int) -> None:
    """Measure, and write scale.csv and scale.png to OUTPUT."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        check_equality(device, Path(folder))
    rows = []
    for task, ways in WAYS.items():
        for way, (_, largest) in ways.items():
            for size in (10**n for n in range(2 if task == "loss and gradient" else 4, largest + 1)):
                with multiprocessing.get_context("spawn").Pool(1) as process:
                    seconds, memory = process.apply(measure, (task, way, size, device, threads))
                row = {"task": task, "way": way, "size": size, "seconds": seconds, "memory_gib": memory}
                rows.append(row)
                click.echo(f"{task:18} {way:19} {size:9} {seconds:10.4f} s {memory:7.3f} GiB")
    table = pd.DataFrame(rows)
    table.round(5).to_csv(output / "scale.csv", index=False)
    draw(table, output / "scale.png")
    by_way = table.pivot(index=["task", "size"], columns="way", values="seconds")
    ratios = by_way.drop(columns="package").rdiv(1).mul(by_way["package"], axis=0)
    click.echo("\nThe package's time as a ratio to each way's:\n" + ratios.round(4).to_string(na_rep=""))
    for (task, way), part in table.groupby(["task", "way"], sort=False):
        large = part[part["size"] >= part["size"].max() / 100]
        if len(large) > 2:
            slope = np.polyfit(np.log(large["size"]), np.log(large["seconds"]), 1)[0]
            click.echo(f"{task}, {way}: seconds grow like size^{slope:.2f}")


if __name__ == "__main__":
    main()
