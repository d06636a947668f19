"""Does another checkout read tables otherwise? `python tests/benchmarks/compare_readings.py OLD_CHECKOUT`.

Writes random tables (`--n 10000 --seed 0`) of which it is known what they mean, and takes the tables in a
folder (`--files FOLDER`) too. The package of OLD_CHECKOUT and the one here read and load all of them, each in
a process of its own. Counts tables with the same result (values, types, what is a guess, what is done to
columns, notices, or the error), with other words only, and with another result, which are listed; and those
that either misreads without a word. Ends with 1 if this one has another result or misreads more.
"""

import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests")]

from random_tables import Table, make_table, misread, overlooked  # noqa: E402


def take_in(path: Path, table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """What reading and loading a file give: results, and words."""
    from dmls2r_lite.data.datasets import load_dataset
    from dmls2r_lite.data.reading import read

    result: dict[str, Any] = {"misread": ""}
    words: dict[str, Any] = {}
    try:
        reading = read(path, **table.options)
    except Exception as error:  # of whatever kind
        result["error"], words["error"] = type(error).__name__, str(error)
        return result, words
    frame, columns = reading.table, reading.columns
    result["misread"] = misread(reading, table)
    result["table"] = (frame.index.tolist(), [(name, str(frame[name].dtype)) for name in frame])
    result["values"] = repr(frame.to_numpy(dtype=object).tolist())
    result["columns"] = columns[["taken_for", "guessed"]].to_numpy().tolist()
    result["cells"] = (repr(reading.cells.to_numpy().tolist()), reading.lines, reading.separator)
    words["reading"] = (columns[["rule", "written", "read"]].to_numpy().tolist(), reading.assumed)
    target = "y" if "y" in frame else str(frame.columns[-1])
    try:
        data = load_dataset(path, target=target, **table.options)
    except Exception as error:
        result["refused"], words["refused"] = type(error).__name__, str(error)
        return result, words
    result["misread"] = result["misread"] or overlooked(data, table)
    described, y = data.columns, repr(data.target.tolist())
    result["features"] = (list(data.features), y, data.n_unlabeled)
    result["described"] = described[["kind", "missing", "distinct"]].to_numpy().tolist()
    result["notices"] = [notice.topic for notice in data.notices]
    words["dataset"] = (data.name, data.target_label, data.note, data.doubts, described.to_numpy().tolist())
    return result, words


def work(folder: Path) -> None:
    """Read all tables that are written down in a folder, and write down what they are read as."""
    warnings.simplefilter("ignore")  # a dataset has them in its note and doubts
    tables = pickle.loads((folder / "tables.pickle").read_bytes())
    found = {name: take_in(Path(name), table) for name, table in tables.items()}
    sys.stdout.buffer.write(pickle.dumps(found))


@click.command()
@click.argument("old", type=click.Path(path_type=Path, exists=True))
@click.option("--n", default=10_000, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--files", type=click.Path(path_type=Path, exists=True), help="Of tables that are read too.")
def main(old: Path, n: int, seed: int, files: Path | None) -> None:
    """Compare how OLD, a checkout, and this one read tables."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, tables = Path(temporary), {}
        for place in range(n):
            table = make_table(np.random.default_rng([seed, place]))
            path = folder / str(place) / table.name
            path.parent.mkdir()
            path.write_bytes(table.content)
            tables[str(path)] = table
        found = sorted(path for path in files.rglob("*") if path.is_file()) if files else []
        tables |= {str(path): Table(path.name, b"", {}) for path in found}
        (folder / "tables.pickle").write_bytes(pickle.dumps(tables))
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, "--work", temporary],
                env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{HERE / 'tests'}"},
                stdout=subprocess.PIPE,
            )
            for checkout in (old.resolve(), HERE)
        ]
        before, after = (pickle.loads(worker.communicate()[0]) for worker in workers)
    counts: Counter[str] = Counter()
    for name in tables:
        (old_result, old_words), (result, words) = before[name], after[name]
        counts["read by this one"] += "error" not in result
        counts["misread before"] += bool(old_result["misread"])
        counts["misread by this one"] += bool(result["misread"])
        counts["plain"] += tables[name].plain
        counts["plain and misread by this one"] += tables[name].plain and bool(result["misread"])
        is_other, old_all, new_all = old_result != result, old_result | old_words, result | words
        parts = [part for part in old_all | new_all if old_all.get(part) != new_all.get(part)]
        counts["another result" if is_other else "other words only" if parts else "same"] += 1
        if is_other or (parts and counts["other words only"] <= 20):
            told = [f"{part}: {old_all.get(part)} -> {new_all.get(part)}" for part in parts]
            print(f"{name} {tables[name].options}", *told, sep="\n  ")
    print(f"{len(tables)} tables:", ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    sys.exit(counts["another result"] > 0 or counts["misread by this one"] > counts["misread before"])


if __name__ == "__main__":
    work(Path(sys.argv[2])) if sys.argv[1:2] == ["--work"] else main()
