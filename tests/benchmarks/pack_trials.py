"""Pack the trials of a finished benchmark for the package: `python tests/benchmarks/pack_trials.py results`.

Before, `dmls2r benchmark` must have run to its end; the minutes are those from the making of the table to
its last trial, so that they mean something only if the machine had nothing else to do.
"""

import gzip
import json
import os
import platform
from pathlib import Path

import click
import pandas as pd

from dmls2r_lite.study.benchmark import TRIALS, all_methods
from dmls2r_lite.study.few_labels import FEW_LABELS, few_label_methods
from dmls2r_lite.study.newer import NEWER_LOSSES, newer_methods
from dmls2r_lite.study.tables import TIME

STUDIES = {
    "paper": (TRIALS, all_methods),
    "few-labels": (FEW_LABELS, few_label_methods),
    "newer-losses": (NEWER_LOSSES, newer_methods),
}
DATASETS = Path(__file__).parents[2] / "dmls2r_lite" / "study" / "results"


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--study", type=click.Choice(list(STUDIES)), default="paper", show_default=True)
@click.option("--command", default="dmls2r benchmark", show_default=True, help="That made them.")
@click.option("--minutes", type=int, help="If it did not run alone, or in parts.")
def main(results: Path, study: str, command: str, minutes: int | None) -> None:
    """Write trials.csv.gz and trials.json, or those of another study, into the package."""
    table, methods = STUDIES[study]
    trials = table.read(results)
    (versions,) = trials["versions"].unique()
    finished = pd.to_datetime(trials["finished"], format=TIME)
    begun = pd.Timestamp(results.stat().st_mtime, unit="s")  # the folder changes when the table is made
    about = {
        "command": command,
        "date": f"{finished.max():%Y-%m-%d}",
        "minutes": minutes or round((finished.max() - begun).total_seconds() / 60),
        "how": "one thread each; the networks of all seeds of a cell trained side by side",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": versions,
    }
    order = {name: place for place, name in enumerate(methods())}
    trials = trials.sort_values(
        [*(name for name in table.key if name != "method"), "method"],
        key=lambda column: column.map(order) if column.name == "method" else column,
    )
    content = trials.to_csv(index=False, lineterminator="\n").encode()
    (DATASETS / f"{table.name}.csv.gz").write_bytes(gzip.compress(content, mtime=0))
    (DATASETS / f"{table.name}.json").write_text(json.dumps(about, indent=2) + "\n")
    click.echo(f"{len(trials)} trials, {about}")


if __name__ == "__main__":
    main()
