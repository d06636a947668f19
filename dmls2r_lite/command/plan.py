"""What a run is to do, checked before anything is run or written, and before anything heavy is imported."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import click
from click.types import convert_type

from ..data.catalog import DATASETS
from ..data.unpacking import is_path, table_name
from ..foundation.files import versions
from ..foundation.parameters import check_rules, demand
from .keeping import digest
from .options import check_names

NUMBERED = "[0-9][0-9]_*.ipynb"


@dataclass(frozen=True)
class Job:
    """One notebook for one dataset.

    Attributes
    ----------
    folder : Path
        For its results; named like the dataset.
    source : str
        The name of the dataset, or the path of a file.
    notebook : Path
    injected, parameters : dict
        The parameters that replace the notebook's defaults, and all of them.
    target : str
        With its unit.
    note : str
        What was done to the table.
    doubts : sequence of str
        What somebody should know of the table, in sentences.
    """

    folder: Path
    source: str
    notebook: Path
    injected: dict[str, Any]
    parameters: dict[str, Any]
    target: str = ""
    note: str = ""
    doubts: Sequence[str] = ()

    @property
    def dataset(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def name(self) -> str:
        """Of the notebook."""
        return self.notebook.stem

    @cached_property
    def fingerprint(self) -> str:
        """Of all that decides what comes out: parameters, table, notebook, package and versions."""
        status = os.stat(self.source) if self.source != self.dataset else None
        table = (status.st_size, status.st_mtime_ns) if status else None
        package = Path(__file__).parents[1]
        files = [path for ending in ("py", "csv", "toml") for path in sorted(package.rglob(f"*.{ending}"))]
        texts = [path.read_text(encoding="utf-8") for path in (self.notebook, *files)]
        return digest([self.parameters, table, texts, versions()])

    @property
    def given(self) -> dict[str, Any]:
        """Parameters that the user has chosen."""
        return {name: self.injected[name] for name in self.injected if name not in ("dataset", "output_dir")}


def find_notebooks(folder: Path | None = None, only: Iterable[str] = ()) -> list[Path]:
    """The numbered notebooks in order: of a folder, of the repository or of the installed package."""
    package = Path(__file__).resolve().parents[1]
    candidates = [folder.resolve()] if folder else [package.parent / "notebooks", package / "notebooks"]
    found = next((paths for c in candidates if (paths := sorted(c.glob(NUMBERED)))), [])
    places = " or ".join(map(str, candidates))
    demand(found, f"no notebook named like 00_name.ipynb in {places}; see --notebooks-dir")
    numbered, wanted = {path.stem[:2]: path for path in found}, [number.zfill(2) for number in only]
    check_names("notebook", wanted, numbered)
    return [path for number, path in numbered.items() if not wanted or number in wanted]


def read_parameters(path: Path) -> dict[str, Any]:
    """What a notebook's cell of parameters assigns, by name."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        source = "".join(line for cell in tagged for line in cell["source"])
        assigned = re.findall(r"^(\w+) *(?::[^=]+)?=(.+)", source, re.MULTILINE)
        return {name: ast.literal_eval(value.strip()) for name, value in assigned}
    except Exception as error:  # a file can be broken in many ways
        raise ValueError(f"cannot read the parameters of {path}: {error!r}") from error


def plan(
    datasets: Sequence[str], notebooks: Sequence[Path], given: Mapping[str, str], output_dir: Path
) -> list[Job]:
    """A job for each notebook on each dataset.

    Parameters
    ----------
    datasets : sequence of str
        Names or paths.
    notebooks : sequence of Path
    given : mapping of str to str
        Parameters, as typed.
    output_dir : Path
        Has, or will have, a folder per dataset.

    Raises
    ------
    OSError, ValueError
        If a notebook or table cannot be read, or something given is not allowed for one of them.
    """
    for name, instead in {"dataset": "an argument: dmls2r run", "output_dir": "--output-dir"}.items():
        demand(name not in given, f"give the {name} as {instead} {given.get(name)}")
    known = {path: read_parameters(path) for path in notebooks}
    check_names("parameter", given, {name: "" for defaults in known.values() for name in defaults})
    jobs = []
    for folder, source in _find_sources(datasets, output_dir).items():
        texts = {**given, "dataset": source, "output_dir": str(folder.resolve())}
        for path, defaults in known.items():
            injected = {key: _convert(key, texts[key], defaults[key]) for key in texts if key in defaults}
            jobs.append(Job(folder, source, path, injected, defaults | injected))
    return _check(jobs)


def _find_sources(datasets: Sequence[str], output_dir: Path) -> dict[Path, str]:
    """The datasets by their folders: as they are called, or their absolute paths."""
    sources: dict[Path, str] = {}
    for dataset in datasets:
        name = source = dataset
        if dataset not in DATASETS:
            if not is_path(dataset):
                check_names("dataset", [dataset], [*DATASETS, "or the path of a file"])
            name, source = table_name(dataset), os.path.abspath(dataset)
        if (other := sources.setdefault(output_dir / name, source)) != source:
            raise ValueError(f"{other} and {source} would both be written to {output_dir / name}")
    return sources


def _convert(name: str, text: str, default: Any) -> Any:
    """What is typed for a parameter, as a value of its default's type."""
    try:
        return convert_type(None, default)(text)
    except click.BadParameter as error:
        raise ValueError(f"{name}: {error.message}") from error


def _check(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with what their tables say, once their parameters are as they must be."""
    checked: list[Job] = []
    try:
        for job in jobs:  # alone first: what is wrong by itself is refused before tables are read
            check_rules(job.parameters)
        from ..data.datasets import load_dataset
        from ..teaching.notebook import check_parameters

        load = cache(load_dataset)  # once for all notebooks, and anew in the next run
        for job in jobs:
            if "dataset" in job.parameters:
                needs_targets = "needs_targets=True" in job.notebook.read_text(encoding="utf-8")
                data = check_parameters(**job.parameters, needs_targets=needs_targets, load=load)
                if job.source != job.dataset and job.dataset not in {known.dataset for known in checked}:
                    click.echo(f"{Path(job.source).name}: {data.note}", err=True)
                job = replace(job, target=data.target_label, note=data.note, doubts=data.doubts)
            checked.append(job)
    except (TypeError, ValueError, OSError) as error:
        raise ValueError(f"{job.dataset}, {job.name}: {error}") from error
    return checked
