"""The `dmls2r` command: what can be asked. Each does its work elsewhere."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..data import catalog
from .options import Commands, align, check_names, parameters_option, resumable
from .own_tables import choose, predict, read
from .plan import find_notebooks, plan

if TYPE_CHECKING:
    from ..study.trials import Study

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dmls2r-lite", prog_name="dmls2r")
def main() -> None:
    """Learn semi-supervised deep metric regression (DML-S2R), notebook by notebook."""
    if folder := os.environ.get("DMLS2R_DATA"):  # notebooks run in a folder of their own
        os.environ["DMLS2R_DATA"] = os.path.abspath(folder)


for command in (choose, predict, read):
    main.add_command(command)


@main.group(cls=Commands, invoke_without_command=True)
@click.pass_context
def datasets(context: click.Context) -> None:
    """List the datasets that have a name, and whether their files are here."""
    if context.invoked_subcommand:
        return
    rows, texts = [("name", "rows", "columns", "target", "here")], []
    for name, known in catalog.DATASETS.items():
        is_absent = name in catalog.FROM_UCI and catalog.find(name) is None
        size = str(known.n_rows), str(known.n_features)
        rows.append((name, *size, f"{known.target} [{known.unit}]", "no" if is_absent else "yes"))
        to_get = f" To get it: dmls2r datasets fetch {name}" if is_absent else ""
        texts.append(f"{known.source}. Licence: {known.licence}. {known.note}{to_get}")
    heading, *lines = align(rows)
    width = shutil.get_terminal_size().columns
    click.echo(heading)
    for line, text in zip(lines, texts, strict=True):
        click.echo(f"{line}\n{click.wrap_text(text, width, '    ', '    ')}")
    own = "\nA table of your own runs too: dmls2r run path/to/file.csv -p target COLUMN"
    click.echo(click.wrap_text(own, width))


@datasets.command()
@click.argument("name")
def fetch(name: str) -> None:
    """Get the dataset NAME from UCI, unless it is here."""
    check_names("dataset from UCI", [name], catalog.FROM_UCI)
    path = catalog.find(name) or catalog.fetch(name)
    catalog.read_content(name, path)
    click.echo(f"{name} is in {path}")


@main.command()
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@parameters_option("Set a parameter in all notebooks that have it, e.g. -p n_labeled 50. Repeatable.")
@click.option("--output-dir", type=FOLDER, default="runs", show_default=True, help="For all results.")
@click.option("--only", multiple=True, metavar="NUMBER", help="Run this notebook only, e.g. 03. Repeatable.")
@click.option(
    "--notebooks-dir", type=FOLDER, help="Where the notebooks are.  [default: those of this package]"
)
def run(
    datasets: tuple[str, ...],
    given: dict[str, str],
    output_dir: Path,
    only: tuple[str, ...],
    notebooks_dir: Path | None,
) -> None:
    """Run all numbered notebooks for each DATASET: a name (see `dmls2r datasets`) or a file.

    A file is a CSV, Excel or Parquet table; -p target COLUMN says what to estimate. Without any DATASET
    they run for boston.
    """
    jobs = plan(datasets or ["boston"], find_notebooks(notebooks_dir, only), given, output_dir)
    from .runner import run_jobs

    logging.getLogger("traitlets").setLevel(logging.CRITICAL + 1)  # it would repeat what is said here
    with resumable():
        if not run_jobs(jobs, output_dir):
            sys.exit(1)


@main.command()
@click.option(
    "--datasets",
    multiple=True,
    metavar="NAME",
    help="Repeatable. Default: all of the study; air_quality_as_published keeps its -200 for missing values.",
)
@click.option(
    "--methods", multiple=True, metavar="NAME", help="Repeatable. Default: all. A wrong name lists them."
)
@click.option(
    "--n-labeled",
    multiple=True,
    type=click.IntRange(3),
    metavar="N",
    help="Repeatable. Default: 10, 20, 50, and what Table 1 has at 100.",
)
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="How many splits.")
@click.option("--jobs", default=2, show_default=True, help="Processes side by side; -1: one per core.")
@click.option(
    "--output", type=FOLDER, default="results", show_default=True, help="Has trials, which are not run again."
)
def benchmark(output: Path, **given: Any) -> None:
    """Run every method on the same splits and add a row per trial to a table in the output folder.

    It may be stopped at any moment: the same command does the rest. `dmls2r tables` shows the results.
    """
    from ..study.benchmark import TRIALS

    run_study(TRIALS, output, **given)
    click.echo(f"done; now: dmls2r tables {output}")


def run_study(study: Study, output: Path, seeds: int, jobs: int, **chosen: Any) -> None:
    """Run the trials of a study that a folder does not hold yet, with a bar for those who wait."""
    from tqdm import tqdm

    from ..foundation.parameters import check_rules
    from ..study.trials import REPORT_SEEDS

    check_rules({"--jobs": jobs})
    some_seeds = range(REPORT_SEEDS.start, REPORT_SEEDS.start + seeds)
    progress = study.run(output, seeds=some_seeds, n_jobs=jobs, **chosen)
    to_do = next(progress)
    click.echo(f"{to_do} trials to do, into {study.path(output)}")
    seldom = 0.1 if sys.stderr.isatty() else 30  # seconds between lines where there is no terminal
    with resumable(), tqdm(total=to_do, unit=" trials", mininterval=seldom) as bar:
        for left in progress:
            bar.update(to_do - left - bar.n)


@main.command()
@click.argument("results", required=False, type=FOLDER)
def tables(results: Path | None) -> None:
    """Print the paper's Tables 1 to 4 with the trials of the folder RESULTS beside them.

    Without a folder: the trials that come with the package.
    """
    from ..study.benchmark import read_trials, shipped_trials
    from .tables import tables_to_text

    trials = read_trials(results) if results else shipped_trials()
    click.echo(tables_to_text(trials, shutil.get_terminal_size((120, 24)).columns))


@main.command()
@click.argument("folder", type=FOLDER)
def course(folder: Path) -> None:
    """Write the exercises into FOLDER as a course for nbgrader.

    That is: student notebooks in release/, solutions/, and exercises.zip with all student notebooks. Run
    nbgrader's commands in FOLDER. If it exists, these are replaced; submissions and grades stay.
    """
    try:
        from ..teaching.course import build_course
    except ModuleNotFoundError as error:
        raise click.ClickException(f'{error.name} is missing: pip install "dmls2r-lite[course]"') from error
    for path in build_course(find_notebooks()[0].parent / "exercises" / "source", folder):
        click.echo(path)
    click.echo(f"and {folder / 'exercises.zip'} with all of them; solutions in {folder / 'solutions'}")
