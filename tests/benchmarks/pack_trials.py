"""Pack the trials of a finished benchmark for the package: `python tests/benchmarks/pack_trials.py results`.

Before, `dmls2r benchmark` must have run to its end; the minutes are those between its first and its last
trial, so that they mean something only if the machine had nothing else to do.
"""

import gzip
import json
import os
import platform
from pathlib import Path

import click
import pandas as pd

from dmls2r_lite.study.benchmark import TRIALS
from dmls2r_lite.study.few_labels import FEW_LABELS
from dmls2r_lite.study.newer import NEWER_LOSSES
from dmls2r_lite.study.trials import RESULTS, TIME

STUDIES = {"paper": TRIALS, "few-labels": FEW_LABELS, "newer-losses": NEWER_LOSSES}


@click.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--study", type=click.Choice(list(STUDIES)), default="paper", show_default=True)
@click.option("--command", default="dmls2r benchmark", show_default=True, help="That made them.")
@click.option("--minutes", type=int, help="If it did not run alone, or in parts.")
def main(results: Path, study: str, command: str, minutes: int | None) -> None:
    """Write trials.csv.gz and trials.json, or those of another study, into the package."""
    packed = STUDIES[study]
    trials = packed.read(results)
    (versions,) = trials["versions"].unique()
    finished = pd.to_datetime(trials["finished"], format=TIME)
    about = {
        "command": command,
        "date": f"{finished.max():%Y-%m-%d}",
        "minutes": minutes or round((finished.max() - finished.min()).total_seconds() / 60),
        "how": "one thread each; the networks of all seeds of a cell trained side by side",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": versions,
    }
    trials["method"] = pd.Categorical(trials["method"], list(packed.methods()))  # in this order
    trials = trials.sort_values([*(name for name in packed.key if name != "method"), "method"])
    content = trials.to_csv(index=False, lineterminator="\n").encode()
    (RESULTS / f"{packed.name}.csv.gz").write_bytes(gzip.compress(content, mtime=0))
    (RESULTS / f"{packed.name}.json").write_text(json.dumps(about, indent=2) + "\n")
    click.echo(f"{len(trials)} trials, {about}")


if __name__ == "__main__":
    main()
