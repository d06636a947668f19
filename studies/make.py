"""Make the trials of a study, and pack them for the package: `python studies/make.py few-labels results`.

It may be stopped at any moment: the same command does the rest.
"""

import gzip
import json
import os
import platform
from pathlib import Path
from typing import Any

import click
import pandas as pd
from few_labels import FEW_LABELS
from newer_losses import NEWER_LOSSES

from dmls2r_lite.command.cli import benchmark, run_study
from dmls2r_lite.foundation.files import replacing, write_whole
from dmls2r_lite.study.benchmark import TRIALS
from dmls2r_lite.study.trials import RESULTS, TIME, Study

STUDIES = {"paper": TRIALS, "few-labels": FEW_LABELS, "newer-losses": NEWER_LOSSES}
OPTIONS = [option for option in benchmark.params if option.name != "output"]


@click.command(params=OPTIONS)
@click.argument("study", type=click.Choice(list(STUDIES)))
@click.argument("output", type=click.Path(path_type=Path, file_okay=False))
@click.option("--pack", is_flag=True, help="Write what the folder OUTPUT holds in the end into the package.")
@click.option("--minutes", type=int, help="That it took, if it did not run alone, or in parts.")
def main(study: str, output: Path, pack: bool, minutes: int | None, **given: Any) -> None:
    """Run the trials of STUDY that the folder OUTPUT does not hold yet."""
    try:
        run_study(STUDIES[study], output, **given)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if pack:
        if n_left := next(STUDIES[study].run(output)):
            raise click.ClickException(f"only a whole study is packed, and {n_left} trials are still to do")
        command = "dmls2r benchmark" if study == "paper" else f"python studies/make.py {study}"
        write(STUDIES[study], output, command, minutes)


def write(study: Study, output: Path, command: str, minutes: int | None) -> None:
    """Write a study's table and how it was made into the package.

    The minutes are those between the first and the last trial, so that they mean something only if the
    machine had nothing else to do.
    """
    trials = study.read(output)
    versions = " and ".join(trials["versions"].unique())
    finished = pd.to_datetime(trials["finished"], format=TIME)
    about = {
        "command": command,
        "date": f"{finished.max():%Y-%m-%d}",
        "minutes": minutes or round((finished.max() - finished.min()).total_seconds() / 60),
        "how": "one thread each; the networks of all seeds of a cell trained side by side",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": versions,
    }
    trials["method"] = pd.Categorical(trials["method"], list(study.methods()))  # in this order
    trials = trials.sort_values([*(name for name in study.key if name != "method"), "method"])
    content = trials.to_csv(index=False, lineterminator="\n").encode()
    with replacing(RESULTS / f"{study.name}.csv.gz") as unfinished:
        unfinished.write_bytes(gzip.compress(content, mtime=0))
    write_whole(RESULTS / f"{study.name}.json", json.dumps(about, indent=2) + "\n")
    click.echo(f"{len(trials)} trials, {about}")


if __name__ == "__main__":
    main()
