"""Pack the trials of a finished benchmark for the package: `python tests/benchmarks/pack_trials.py results`.

Before, `dmls2r benchmark` must have run to its end with nothing else to do for the machine: the
minutes are those from the making of the table to its last trial.
"""

import gzip
import json
import os
import platform
from pathlib import Path

import click
import pandas as pd

from dmls2r_lite.study.benchmark import TIME, all_methods, read_trials

DATASETS = Path(__file__).parents[2] / "dmls2r_lite" / "study" / "results"


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--command", default="dmls2r benchmark", show_default=True, help="That made them.")
def main(results: Path, command: str) -> None:
    """Write trials.csv.gz and trials.json into the package."""
    trials = read_trials(results)
    (versions,) = trials["versions"].unique()
    finished = pd.to_datetime(trials["finished"], format=TIME)
    begun = pd.Timestamp(results.stat().st_mtime, unit="s")  # the folder changes when the table is made
    about = {
        "command": command,
        "date": f"{finished.max():%Y-%m-%d}",
        "minutes": round((finished.max() - begun).total_seconds() / 60),
        "how": "one thread each; the networks of all seeds of a cell trained side by side",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": versions,
    }
    order = {name: place for place, name in enumerate(all_methods())}
    trials = trials.sort_values(
        ["dataset", "n_labeled", "seed", "method"],
        key=lambda column: column.map(order) if column.name == "method" else column,
    )
    content = trials.to_csv(index=False, lineterminator="\n").encode()
    (DATASETS / "trials.csv.gz").write_bytes(gzip.compress(content, mtime=0))
    (DATASETS / "trials.json").write_text(json.dumps(about, indent=2) + "\n")
    click.echo(f"{len(trials)} trials, {about}")


if __name__ == "__main__":
    main()
