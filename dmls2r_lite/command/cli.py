"""The `dmls2r` command: what can be asked, and whether it makes sense. `runner` does the work."""

from __future__ import annotations

import ast
import itertools
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from .choose import choose
from .looks import ManyValues, WholeSentences, show_progress
from .options import merge_given
from .predict import predict
from .read import read

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

SAME_COMMAND = "the same command does the rest"
NUMBERED = "[0-9][0-9]_*.ipynb"
TYPES: dict[str, click.ParamType[Any]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "str": click.STRING,
}


@click.group(cls=WholeSentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dmls2r-lite", prog_name="dmls2r")
def main() -> None:
    """Learn semi-supervised deep metric regression (DML-S2R), notebook by notebook."""
    folder = os.environ.get("DMLS2R_DATA")
    if folder:  # notebooks run in a folder of their own
        os.environ["DMLS2R_DATA"] = os.path.abspath(folder)


main.add_command(choose)
main.add_command(predict)
main.add_command(read)


@main.group(cls=WholeSentences, invoke_without_command=True)
@click.pass_context
def datasets(context: click.Context) -> None:
    """List the datasets that have a name, and whether their files are here."""
    from ..data import uci
    from ..data.catalog import DATASETS
    from .tables import align

    if context.invoked_subcommand:
        return
    absent = [name for name in uci.FILES if _or_fail(uci.find, name) is None]
    rows = [("name", "rows", "columns", "target", "here")]
    for name, known in DATASETS.items():
        target, here = f"{known.target} [{known.unit}]", "no" if name in absent else "yes"
        rows.append((name, str(known.n_rows), str(known.n_features), target, here))
    heading, *lines = align(rows)
    width = shutil.get_terminal_size().columns
    click.echo(heading)
    for line, (name, known) in zip(lines, DATASETS.items(), strict=True):
        text = f"{known.source}. Licence: {known.licence}. {known.note}"
        if name in absent:
            text += f" To get it: dmls2r datasets fetch {name}"
        click.echo(line)
        click.echo(click.wrap_text(text, width, initial_indent="    ", subsequent_indent="    "))
    click.echo(
        click.wrap_text("\nA table of your own runs too: dmls2r run path/to/file.csv -p target COLUMN", width)
    )


@datasets.command()
@click.argument("name")
def fetch(name: str) -> None:
    """Get the dataset NAME from UCI, unless it is here."""
    from ..data import uci
    from ..data.catalog import DATASETS
    from ..foundation.parameters import did_you_mean, shown

    if name not in uci.FILES:
        known = f"{name} needs no file" if name in DATASETS else f"unknown dataset {shown(name)}"
        meant = did_you_mean(name, uci.FILES)
        raise click.ClickException(f"{known}; from UCI come {', '.join(uci.FILES)}{meant}")
    path = _or_fail(uci.find, name) or _or_fail(uci.fetch, name)
    _or_fail(uci.read, name, path)
    click.echo(f"{name} is in {path}")


def _or_fail(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and end the command with its message if it refuses."""
    try:
        return function(*args)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("datasets", nargs=-1, metavar="[DATASET]...")
@click.option(
    "-p",
    "given",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter in all notebooks that have it, e.g. -p n_labeled 50. Repeatable.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default="runs",
    show_default=True,
    help="Where to write DATASET/ and index.html.",
)
@click.option("--only", multiple=True, metavar="NUMBER", help="Run this notebook only, e.g. 03. Repeatable.")
@click.option(
    "--notebooks-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the notebooks are.  [default: those of this package]",
)
def run(
    datasets: tuple[str, ...],
    given: tuple[tuple[str, str], ...],
    output_dir: Path,
    only: tuple[str, ...],
    notebooks_dir: Path | None,
) -> None:
    """Run all numbered notebooks for each DATASET: a name (see `dmls2r datasets`) or a file.

    A file is a CSV, Excel or Parquet table; -p target COLUMN says what to estimate. Without any DATASET
    they run for boston.
    """
    from .runner import run_jobs

    for name in ("papermill", "traitlets"):  # they would repeat what is said here
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    notebooks = _find_notebooks(notebooks_dir, only)
    if str(output_dir) == ".":
        raise click.ClickException("--output-dir must be a folder of its own, got the current one")
    by_source: dict[str, str] = {}  # a file may be named twice, by two spellings
    for dataset in datasets:
        by_source.setdefault(os.path.abspath(dataset), dataset)
    jobs = _plan(list(by_source.values()) or ["boston"], notebooks, merge_given(given), output_dir)
    try:
        all_went_well = run_jobs(jobs, output_dir)
    except KeyboardInterrupt:
        click.echo("\nInterrupted: the same command picks up where this one stopped.", err=True)
        sys.exit(130)
    except OSError as error:
        raise click.ClickException(f"{error}. What is finished is kept: {SAME_COMMAND}") from error
    if not all_went_well:
        sys.exit(1)


@main.command(cls=ManyValues)
@click.option(
    "--study",
    type=click.Choice(["paper", "few-labels", "newer-losses"]),
    default="paper",
    show_default=True,
    help="The paper's tables with their controls; what choosing rows, averaging and intervals are worth; or "
    "newer losses in place of step 2.",
)
@click.option(
    "--datasets",
    multiple=True,
    metavar="NAME...",
    help="Default: all of the study; air_quality_as_published keeps its -200 for missing values.",
)
@click.option("--methods", multiple=True, metavar="NAME...", help="Default: all. A wrong name lists them.")
@click.option(
    "--n-labeled",
    multiple=True,
    type=click.IntRange(3),
    metavar="N...",
    help="Default: 10 20 50, and for the paper what Table 1 has at 100.",
)
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="How many.")
@click.option(
    "--first-seed",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    help="100 to 119 are for reporting; use 0 to 19 to choose something.",
)
@click.option("--jobs", default=2, show_default=True, help="Processes side by side; -1: one per core.")
@click.option(
    "--output",
    default="results",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the trials. Those that it holds are not run again.",
)
@click.option("--quick", is_flag=True, help="A look in two minutes: 3 seeds at N = 20.")
def benchmark(
    study: str,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    n_labeled: tuple[int, ...],
    seeds: int,
    first_seed: int,
    jobs: int,
    output: Path,
    quick: bool,
) -> None:
    """Run every method on the same splits and add a row per trial to a table in the output folder.

    It may be stopped at any moment: the same command does the rest. `dmls2r tables` shows the results of
    the study of the paper; notebooks 09 to 11 those of the other studies that come with the package.
    """
    from ..foundation.parameters import check_rules
    from ..study.benchmark import run_benchmark

    _or_fail(check_rules, {"--jobs": jobs})
    if quick:
        n_labeled, seeds = n_labeled or (20,), min(seeds, 3)
    chosen = {"datasets": datasets, "methods": methods, "n_labeled": n_labeled}
    options: dict[str, Any] = {name: values for name, values in chosen.items() if values}
    options |= {"seeds": range(first_seed, first_seed + seeds), "n_jobs": jobs}
    run_study: Callable[..., Iterator[int]] = run_benchmark
    table = "trials.csv"
    if study == "few-labels":
        from ..study.few_labels import run_few_labels

        run_study, table = run_few_labels, "few_labels.csv"
    elif study == "newer-losses":
        from ..study.newer import run_newer_losses

        run_study, table = run_newer_losses, "newer_losses.csv"
    progress = _or_fail(partial(run_study, output, **options))
    to_do = next(progress)
    click.echo(f"{to_do} trials to do, into {output / table}")
    try:
        show_progress(progress, to_do)
    except KeyboardInterrupt:
        click.echo("\nInterrupted: the same command does the rest.", err=True)
        sys.exit(130)
    except (RuntimeError, OSError) as error:
        raise click.ClickException(f"{error}. What is finished is kept: {SAME_COMMAND}") from error
    click.echo(f"done; now: dmls2r tables {output}" if study == "paper" else "done")


@main.command()
@click.argument("results", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--html", "as_html", is_flag=True, help="A page in HTML.")
def tables(results: Path | None, as_html: bool) -> None:
    """Print the paper's Tables 1 to 4 with the trials of the folder RESULTS beside them.

    Without a folder: the trials that come with the package.
    """
    from ..study.benchmark import read_trials, shipped_trials
    from .tables import tables_to_html, tables_to_text

    trials = _or_fail(read_trials, results) if results else shipped_trials()
    width = shutil.get_terminal_size((120, 24)).columns
    click.echo(tables_to_html(trials) if as_html else tables_to_text(trials, width))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def course(folder: Path) -> None:
    """Write the exercises into FOLDER as a course for nbgrader.

    That is: student notebooks in release/, solutions/, and exercises.zip with all student notebooks. Run
    nbgrader's commands in FOLDER. If it exists, these are replaced; submissions and grades stay.
    """
    try:
        from ..teaching.course import build_course
    except ModuleNotFoundError as error:
        raise click.ClickException(f'{error.name} is missing: pip install "dmls2r-lite[course]"') from error
    source = _find_notebooks(None, ())[0].parent / "exercises" / "source"
    try:
        releases = build_course(source, folder)
    except (OSError, ValueError, RuntimeError) as error:
        raise click.ClickException(str(error)) from error
    for path in releases:
        click.echo(path)
    click.echo(f"and {folder / 'exercises.zip'} with all of them; solutions in {folder / 'solutions'}")


def _find_notebooks(folder: Path | None, only: Sequence[str]) -> list[Path]:
    """The numbered notebooks in order: of a folder, of the repository or of the installed package."""
    package = Path(__file__).resolve().parents[1]
    candidates = [folder.resolve()] if folder else [package.parent / "notebooks", package / "notebooks"]
    found = next((paths for c in candidates if (paths := sorted(c.glob(NUMBERED)))), [])
    if not found:
        places = " or ".join(map(str, candidates))
        raise click.ClickException(f"no notebook named like 00_name.ipynb in {places}; see --notebooks-dir")
    numbers = {number.zfill(2) if number else "(empty)" for number in only}
    missing = numbers - {path.name[:2] for path in found}
    if missing:
        from ..foundation.parameters import did_you_mean

        stems = {path.stem: path.stem[3:] for path in found}
        meant = "".join(did_you_mean(number, [*stems, *stems.values()]) for number in sorted(missing))
        raise click.ClickException(
            f"no notebook has the number {', '.join(sorted(missing))}{meant}; there are\n  "
            + "\n  ".join(path.stem for path in found)
        )
    return [path for path in found if not numbers or path.name[:2] in numbers]


def _plan(
    datasets: Sequence[str], notebooks: Sequence[Path], given: dict[str, str], output_dir: Path
) -> list[Any]:
    """Check datasets and parameters for every notebook, before anything runs or is written."""
    from ..data.catalog import DATASETS
    from ..data.datasets import is_path, load_dataset
    from ..data.reading import table_name
    from ..foundation.parameters import did_you_mean, shown
    from ..teaching.notebook import check_parameters
    from .runner import Job
    from .tables import align

    for dataset in datasets:
        if dataset not in DATASETS and not is_path(dataset):
            raise click.ClickException(
                f"unknown dataset {shown(dataset)}; known are {', '.join(DATASETS)}, "
                f"or give the path of a file{did_you_mean(dataset, DATASETS)}"
            )
    for name, instead in {"dataset": "an argument: dmls2r run", "output_dir": "--output-dir"}.items():
        if name in given:
            raise click.ClickException(f"give the {name} as {instead} {given[name]}")

    known = {path: _inspect(path) for path in notebooks}
    unknown = [name for name in given if not any(name in parameters for parameters in known.values())]
    if unknown:
        rows: dict[str, list[str]] = {}
        for parameter in itertools.chain(*(parameters.values() for parameters in known.values())):
            name, default = parameter["name"], repr(parameter["default"])
            row = rows.setdefault(name, [name, parameter["type"], default, parameter["help"]])
            if default not in row[2].split(" or "):  # notebooks may differ
                row[2] += f" or {default}"
        meant = "".join(did_you_mean(name, rows) for name in unknown)
        raise click.ClickException(
            f"unknown parameter {', '.join(unknown)}{meant}; known are\n  "
            + "\n  ".join(align([["name", "type", "default", ""], *rows.values()]))
        )

    jobs = []
    for dataset in datasets:
        source = dataset if dataset in DATASETS else os.path.abspath(dataset)
        name = dataset if dataset in DATASETS else _or_fail(table_name, dataset)
        texts = {**given, "dataset": source, "output_dir": str((output_dir / name).resolve())}
        load = cache(load_dataset)  # once for all notebooks, and anew in the next run
        for path in notebooks:
            injected = {
                key: _convert(known[path][key], text) for key, text in texts.items() if key in known[path]
            }
            parameters = {key: p["default"] for key, p in known[path].items()} | injected
            label, note, doubts = "", "", []
            if "dataset" in parameters:
                to_check = {key: value for key, value in parameters.items() if key != "output_dir"}
                try:
                    data = check_parameters(**to_check, needs_targets=_needs_targets(path), load=load)
                except (TypeError, ValueError, OSError) as error:
                    raise click.ClickException(f"{dataset}, {path.stem}: {error}") from error
                label, note, doubts = data.target_label, data.note, data.doubts
                if path == notebooks[0] and name != source:
                    click.echo(f"{dataset}: {data.note}", err=True)
            jobs.append(Job(name, source, label, path, injected, parameters, note, doubts))
    return jobs


def _inspect(path: Path) -> dict[str, dict[str, Any]]:
    """Name, type, default and help of each parameter of a notebook."""
    from papermill import inspect_notebook

    from .runner import papermill_path

    try:
        parameters = inspect_notebook(papermill_path(path))
        for parameter in parameters.values():
            parameter["default"] = ast.literal_eval(parameter["default"])
            annotation = parameter["inferred_type_name"]
            parameter["type"] = annotation if annotation in TYPES else type(parameter["default"]).__name__
    except Exception as error:  # a file can be broken in many ways
        raise click.ClickException(f"cannot read the parameters of {path}: {error}") from error
    return parameters


def _needs_targets(path: Path) -> bool:
    """Whether a notebook leaves out samples without a target: it says so to `check_parameters`."""
    return "needs_targets=True" in path.read_text(encoding="utf-8")


def _convert(parameter: dict[str, Any], text: str) -> Any:
    try:
        return TYPES.get(parameter["type"], click.STRING).convert(text, None, None)
    except click.BadParameter as error:
        raise click.ClickException(
            f"{parameter['name']} must be of type {parameter['type']}: {error.message}"
        ) from error
