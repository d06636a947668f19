"""The `dmls2r` command: what can be asked, and whether it makes sense. `runner` does the work."""

from __future__ import annotations

import ast
import itertools
import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

# Heavy imports are inside the functions that need them, so that `dmls2r --help` is fast.

NUMBERED = "[0-9][0-9]_*.ipynb"
TYPES: dict[str, click.ParamType[Any]] = {
    "int": click.INT,
    "float": click.FLOAT,
    "bool": click.BOOL,
    "str": click.STRING,
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dmls2r-lite", prog_name="dmls2r")
def main() -> None:
    """Learn semi-supervised deep metric regression (DML-S2R), notebook by notebook."""


@main.command()
def datasets() -> None:
    """List the datasets that can be run."""
    from .data import DATASET_NAMES, load_dataset
    from .report import align

    known = [load_dataset(name) for name in DATASET_NAMES]
    rows = [(data.name, *map(str, data.features.shape), data.target_label) for data in known]
    heading, *lines = align([("name", "rows", "columns", "target"), *rows])
    width = shutil.get_terminal_size().columns
    click.echo(heading)
    for line, data in zip(lines, known, strict=True):
        text = f"{data.source}. {data.note}"
        click.echo(line)
        click.echo(click.wrap_text(text, width, initial_indent="    ", subsequent_indent="    "))


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
    """Run all numbered notebooks for each DATASET (default: boston; see `dmls2r datasets`)."""
    from .runner import run_jobs

    for name in ("papermill", "traitlets"):  # they would repeat what is said here
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    notebooks = _find_notebooks(notebooks_dir, only)
    if str(output_dir) == ".":
        raise click.ClickException("--output-dir must be a folder of its own, got the current one")
    jobs = _plan(list(dict.fromkeys(datasets)) or ["boston"], notebooks, dict(given))
    try:
        all_went_well = run_jobs(jobs, output_dir)
    except KeyboardInterrupt:
        click.echo("\nInterrupted: the same command picks up where this one stopped.", err=True)
        sys.exit(130)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    if not all_went_well:
        sys.exit(1)


def _find_notebooks(folder: Path | None, only: Sequence[str]) -> list[Path]:
    """The numbered notebooks in order: of a folder, of the repository or of the installed package."""
    package = Path(__file__).resolve().parent
    candidates = [folder.resolve()] if folder else [package.parent / "notebooks", package / "notebooks"]
    found = next((paths for c in candidates if (paths := sorted(c.glob(NUMBERED)))), [])
    if not found:
        places = " or ".join(map(str, candidates))
        raise click.ClickException(f"no notebook named like 00_name.ipynb in {places}; see --notebooks-dir")
    numbers = {number.zfill(2) if number else "(empty)" for number in only}
    missing = numbers - {path.name[:2] for path in found}
    if missing:
        raise click.ClickException(
            f"no notebook has the number {', '.join(sorted(missing))}; there are\n  "
            + "\n  ".join(path.stem for path in found)
        )
    return [path for path in found if not numbers or path.name[:2] in numbers]


def _plan(datasets: Sequence[str], notebooks: Sequence[Path], given: dict[str, str]) -> list[Any]:
    """Check datasets and parameters for every notebook, before anything runs or is written."""
    from .data import DATASET_NAMES
    from .notebook import check_parameters
    from .report import align
    from .runner import Job

    for dataset in datasets:
        if dataset not in DATASET_NAMES:
            raise click.ClickException(f"unknown dataset {dataset!r}; known are {', '.join(DATASET_NAMES)}")
    if "dataset" in given:
        raise click.ClickException(f"give the dataset as an argument: dmls2r run {given['dataset']}")

    known = {path: _inspect(path) for path in notebooks}
    unknown = [name for name in given if not any(name in parameters for parameters in known.values())]
    if unknown:
        rows: dict[str, list[str]] = {}
        for parameter in itertools.chain(*(parameters.values() for parameters in known.values())):
            name, default = parameter["name"], repr(parameter["default"])
            row = rows.setdefault(name, [name, parameter["type"], default, parameter["help"]])
            if default not in row[2].split(" or "):  # notebooks may differ
                row[2] += f" or {default}"
        raise click.ClickException(
            f"unknown parameter {', '.join(unknown)}; known are\n  "
            + "\n  ".join(align([["name", "type", "default", ""], *rows.values()]))
        )

    jobs = []
    for dataset, path in itertools.product(datasets, notebooks):
        injected = {
            name: _convert(known[path][name], text)
            for name, text in {"dataset": dataset, **given}.items()
            if name in known[path]
        }
        parameters = {name: p["default"] for name, p in known[path].items()} | injected
        if "dataset" in parameters:
            try:
                check_parameters(**parameters)
            except (TypeError, ValueError) as error:
                raise click.ClickException(f"{dataset}, {path.stem}: {error}") from error
        jobs.append(Job(dataset, path, injected, parameters))
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


def _convert(parameter: dict[str, Any], text: str) -> Any:
    try:
        return TYPES.get(parameter["type"], click.STRING).convert(text, None, None)
    except click.BadParameter as error:
        raise click.ClickException(
            f"{parameter['name']} must be of type {parameter['type']}: {error.message}"
        ) from error
