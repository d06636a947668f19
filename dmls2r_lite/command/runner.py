"""Notebooks through papermill: run, skip what is done, keep what went wrong, lose nothing."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, ClassVar, NamedTuple

import click
import joblib
import nbformat
from filelock import FileLock, Timeout
from jupyter_client import AsyncKernelManager
from papermill import PapermillExecutionError, execute_notebook
from papermill.iorw import local_file_io_cwd

from ..foundation.files import leftovers, replacing, write_whole
from .pages import (
    collect_results,
    format_results,
    is_ours,
    link_pages,
    make_index,
    read_record,
    recommend,
    to_html,
)
from .tables import align

PACKAGES = ("torch", "numpy", "pandas", "scikit-learn", "dmls2r-lite")
NO_START = "Kernel died before replying to kernel_info"
SECONDS_BETWEEN_LINES = 60
MOST_AT_ONCE = 4  # notebooks: each has a kernel of some 500 MB


@dataclass(frozen=True)
class Job:
    """One notebook for one dataset.

    Attributes
    ----------
    dataset : str
        Its name, also that of its folder.
    source : str
        The same, or the path of a file.
    target : str
        With its unit.
    notebook : Path
    injected : dict
        The parameters that replace the notebook's defaults.
    parameters : dict
        All parameters of the notebook.
    note : str
        What was done to the table.
    doubts : sequence of str, default=()
        What somebody should know of the table, in sentences.
    """

    dataset: str
    source: str
    target: str
    notebook: Path
    injected: dict[str, Any]
    parameters: dict[str, Any]
    note: str = ""
    doubts: Sequence[str] = ()

    @property
    def name(self) -> str:
        """Of the notebook."""
        return self.notebook.stem

    def fingerprint(self) -> str:
        """Of all that decides what comes out: parameters, notebook, package and versions."""
        cells = nbformat.read(self.notebook, as_version=4).cells
        files = [path for path in Path(__file__).parents[1].rglob("*") if path.suffix in (".py", ".csv")]
        code = [path.read_text(encoding="utf-8") for path in sorted(files)]
        status = os.stat(self.source) if self.source != self.dataset else None
        table = (status.st_size, status.st_mtime_ns) if status else None
        text = [(cell.cell_type, cell.source) for cell in cells]
        return _digest([self.parameters, text, code, versions(), table])


class Kernel(AsyncKernelManager):
    """A kernel of which several run at once: it takes its share of the cores, and any thread may end it."""

    started: ClassVar[set[Kernel]] = set()
    n_threads: ClassVar[int] = 1

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        """Start it."""
        self.started.add(self)
        environment = {"OMP_NUM_THREADS": str(self.n_threads), **os.environ}
        # Outputs come as messages; what would reach the terminal is the noise of a kernel being ended.
        await super().start_kernel(env=environment, stderr=DEVNULL, **options)

    def kill(self) -> None:
        """End it at once."""
        process = getattr(self.provisioner, "process", None)
        if process is not None:
            process.kill()


class Executed(NamedTuple):
    """A notebook with its outputs, and what went wrong."""

    notebook: nbformat.NotebookNode
    fingerprint: str
    seconds: float
    failure: Exception | None


def run_jobs(jobs: Sequence[Job], output_dir: Path) -> bool:
    """Run the jobs and write notebooks, HTML, results and the index page.

    Parameters
    ----------
    jobs : sequence of Job
    output_dir : Path
        Gets a folder per dataset, and ``index.html``.

    Returns
    -------
    bool
        Whether all notebooks ran to their end.
    """
    folders = {job.dataset: output_dir / job.dataset for job in jobs}
    sources = dict.fromkeys((job.dataset, job.source) for job in jobs)
    for (name, source), (other_name, other) in itertools.combinations(sources, 2):
        if name == other_name:
            raise click.ClickException(f"{source} and {other} would both be written to {output_dir / name}")
    with ExitStack() as locks:
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                locks.enter_context(FileLock(folder / ".lock", timeout=0))
            except Timeout as error:
                raise click.ClickException(
                    f"another run is writing to {folder}: wait for it, or give another --output-dir"
                ) from error
            for leftover in _ours_unfinished(folder, jobs):  # of a run that was killed
                leftover.unlink(missing_ok=True)
        index = output_dir / "index.html"
        if not is_ours(index):
            _keep_foreign(index)
        records = {
            dataset: _open_record(folder, [job for job in jobs if job.dataset == dataset])
            for dataset, folder in folders.items()
        }
        to_run = []
        for job in jobs:
            if job.name in records[job.dataset]["notebooks"]:
                click.echo(f"{job.dataset}  {job.name} ... done before", err=True)
            else:
                to_run.append(job)
        for job, executed in locks.enter_context(closing(_execute_all(to_run, folders))):
            folder, record = folders[job.dataset], records[job.dataset]
            record["notebooks"][job.name] = _write_notebook(job, folder, executed)
            _write_record(folder, record)
        for dataset, folder in folders.items():
            written = {entry["html"] for entry in records[dataset]["notebooks"].values()}
            for name, page in link_pages(folder, records[dataset], jobs[0].notebook.parent).items():
                path = folder / name
                if name not in written and not is_ours(path):
                    _keep_foreign(path)
                path.parent.mkdir(exist_ok=True)
                write_whole(path, page)
            records[dataset]["complete"] = True
            _write_record(folder, records[dataset])
        with FileLock(output_dir / ".lock"):
            for leftover in leftovers(index):
                leftover.unlink(missing_ok=True)
            write_whole(output_dir / "index.html", make_index(output_dir))

    entries = [(job, records[job.dataset]["notebooks"][job.name]) for job in jobs]
    rows = [("dataset", "notebook", "status", "seconds", "results")]
    for job, entry in entries:
        results = format_results(entry["results"], at_most=3)
        rows.append((job.dataset, job.name, entry["status"], f"{entry['seconds']:.1f}", results))
    click.echo("\n" + "\n".join(align(rows)))
    for job, entry in entries:
        if lines := recommend(folders[job.dataset], entry["results"]):
            click.echo("\n".join(["", f"{job.dataset}: absolute error of {job.target} to expect", *lines]))
    for dataset, doubts in {job.dataset: job.doubts for job in jobs if job.doubts}.items():
        click.echo("\n".join(["", f"{dataset}: before you trust this, look at", *(f"- {d}" for d in doubts)]))
    click.echo(f"\nAll results: {output_dir / 'index.html'}")
    return all(entry["status"] == "ok" for _, entry in entries)


def _open_record(folder: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """What results.json says, less the notebooks that are to run (again)."""
    path = folder / "results.json"
    old = read_record(path)
    if old is None:
        _keep_foreign(path)
        old = {"notebooks": {}, "complete": True, "source": jobs[0].source}
    if old["source"] != jobs[0].source:
        raise click.ClickException(f"{folder} has the results of {old['source']}: give another --output-dir")

    def is_done(job: Job) -> bool:
        entry = old["notebooks"].get(job.name, {"status": "unknown"})
        return (
            not old["complete"]
            and entry["status"] == "ok"
            and entry["fingerprint"] == job.fingerprint()
            and (folder / entry["path"]).exists()
            and (folder / entry["html"]).exists()
            and not is_edited(folder / entry["path"])
        )

    to_run = {job.name for job in jobs if not is_done(job)}
    return {
        "dataset": jobs[0].dataset,
        "source": jobs[0].source,
        "target": jobs[0].target,
        "note": jobs[0].note,
        "complete": False,  # until the whole run is
        "versions": versions(),
        "notebooks": {name: entry for name, entry in old["notebooks"].items() if name not in to_run},
    }


def _execute_all(
    jobs: Sequence[Job], folders: dict[str, Path]
) -> Generator[tuple[Job, Executed], None, None]:
    """Execute notebooks, as many at once as there are cores, and give each when it is done.

    The last begin first: later lessons take longer, and a long one at the end would leave cores idle.
    """
    at_once = min(len(jobs), joblib.cpu_count(), MOST_AT_ONCE) or 1
    Kernel.n_threads = joblib.cpu_count() // at_once
    click.echo(f"notebooks to run: {len(jobs)}, {at_once} at a time", err=True)
    with local_file_io_cwd(), ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(_execute, job, folders[job.dataset]): job for job in reversed(jobs)}
        left: set[Future[Executed]] = set(running)
        said = time.monotonic()
        try:
            while left:  # Windows notices an interrupt only between waits
                done, left = wait(left, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running[future], future.result()
                    said = time.monotonic()
                if left and time.monotonic() - said >= SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    names = sorted(running[future].name for future in left if future.running())
                    click.echo(f"still running: {', '.join(names)}", err=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in left):  # a kernel may be about to start
                for kernel in list(Kernel.started):
                    kernel.kill()
                wait(left, timeout=0.1)
            Kernel.started.clear()


def _execute(job: Job, folder: Path, tries: int = 3) -> Executed:
    unfinished = _unfinished(job, folder)
    fingerprint = job.fingerprint()
    failure: Exception | None = None
    start = time.perf_counter()
    try:
        nb = execute_notebook(
            papermill_path(job.notebook),
            papermill_path(unfinished),
            job.injected,
            kernel_name="python3",
            progress_bar=False,
            resources={"metadata": {"path": str(job.notebook.parent)}},  # where it runs, as in JupyterLab
            kernel_manager_class=Kernel,
            extra_arguments=["--log-level=CRITICAL"],  # the kernel's log would appear in this terminal
        )
    except OSError:
        raise
    except Exception as error:  # a notebook can fail in many ways: the others shall run
        if NO_START in str(error) and tries > 1:  # of kernels begun at once two may have got one port
            return _execute(job, folder, tries - 1)
        try:
            failure, nb = error, nbformat.read(unfinished, as_version=4)
        except Exception:  # it could not be written to its end
            raise OSError(f"{unfinished} could not be written: is the disk full? ({error})") from error
    return Executed(nb, fingerprint, round(time.perf_counter() - start, 2), failure)


def _unfinished(job: Job, folder: Path) -> Path:
    return folder.resolve() / f".unfinished-{job.name}.ipynb"


def _write_notebook(job: Job, folder: Path, executed: Executed) -> dict[str, Any]:
    """Write a notebook and its HTML, say how it went, and return its entry in results.json."""
    nb, fingerprint, seconds, failure = executed
    name = f"{job.name}.partial" if failure else job.name
    path, html = folder / f"{name}.ipynb", folder / f"{name}.html"
    if not path.exists():
        _keep_foreign(html)
    course = [path.stem for path in sorted(job.notebook.parent.glob("[0-9][0-9]_*.ipynb"))]
    write_whole(html, to_html(nb, name, course, _about(job), job.note))
    moved_to = _move_aside(path) if is_edited(path) else None
    nb.metadata["dmls2r_lite"] = {"digest": _digest_outputs(nb)}
    nb.metadata["papermill"]["output_path"] = str(path)
    with replacing(path) as unfinished:
        nbformat.write(nb, unfinished)
    _unfinished(job, folder).unlink(missing_ok=True)
    entry: dict[str, Any] = {
        "status": "failed" if failure else "ok",
        "path": path.name,
        "html": html.name,
        "seconds": seconds,
        "given": {k: v for k, v in job.injected.items() if k not in ("dataset", "output_dir")},
        "parameters": job.parameters,
        "fingerprint": fingerprint,
        "results": collect_results(nb),
    }
    if failure is None:
        click.echo(f"{job.dataset}  {job.name} ... {seconds:.1f} s", err=True)
        earlier = folder / f"{job.name}.partial.ipynb"
        if not is_edited(earlier):
            earlier.unlink(missing_ok=True)
            earlier.with_suffix(".html").unlink(missing_ok=True)
    else:
        if isinstance(failure, PapermillExecutionError):
            entry["cell"] = failure.exec_count
            entry["error"] = f"{failure.ename}: {failure.evalue}"
        else:  # the kernel died, for example: no cell has the error, the last that was started is to blame
            started = [cell for cell in nb.cells if cell.metadata.get("papermill", {}).get("start_time")]
            entry["cell"] = sum(cell.cell_type == "code" for cell in started)
            entry["error"] = f"{type(failure).__name__}: {failure}"
        click.echo(f"{job.dataset}  {job.name} ... failed after {seconds:.1f} s", err=True)
        click.echo(f"    cell [{entry['cell']}]: {entry['error'].splitlines()[0]}\n    see {path}", err=True)
    if moved_to:
        click.echo(f"    {path.name} had been edited: that version is now {moved_to}", err=True)
    return entry


def _about(job: Job) -> str:
    """What a page says about its run."""
    parts = []
    if "dataset" in job.parameters:  # the notebook on images has none
        parts.append(f"This run is on {job.dataset}." + (f" Target: {job.target}." if job.target else ""))
    given = {key: value for key, value in job.injected.items() if key not in ("dataset", "output_dir")}
    if given:
        parts.append(f"Given: {format_results(given)}.")
    return " ".join(parts)


def is_edited(path: Path) -> bool:
    """Whether a file differs from the notebook that was written there (or never was written by us)."""
    if not path.exists():
        return False
    try:
        nb = nbformat.read(path, as_version=4)
    except Exception:  # not even a notebook any more
        return True
    return nb.metadata.get("dmls2r_lite", {}).get("digest") != _digest_outputs(nb)


def _digest_outputs(nb: nbformat.NotebookNode) -> str:
    """Of what a reader can change, in a form that opening and saving in JupyterLab leaves alone."""
    content = []
    for cell in nb.cells:
        outputs = [
            (output.get("text"), sorted(v for v in output.get("data", {}).values() if isinstance(v, str)))
            for output in cell.get("outputs", [])
        ]
        content.append((cell.cell_type, cell.source, outputs))
    return _digest(content)


def _ours_unfinished(folder: Path, jobs: Sequence[Job]) -> list[Path]:
    endings = (".ipynb", ".html", ".partial.ipynb", ".partial.html")
    names = [f"{job.name}{ending}" for job in jobs for ending in endings]
    written = [found for name in (*names, "results.json") for found in leftovers(folder / name)]
    return [*written, *(_unfinished(job, folder) for job in jobs)]


def _keep_foreign(path: Path) -> None:
    """Move a file aside that stands where one of ours is to be written, and say so."""
    if path.exists():
        click.echo(f"{path} is not of this program: it is now {_move_aside(path)}", err=True)


def _move_aside(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}.edited-{n}{path.suffix}") for n in itertools.count(1))
    return path.rename(next(name for name in names if not name.exists()))


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    record["notebooks"] = dict(sorted(record["notebooks"].items()))
    write_whole(folder / "results.json", json.dumps(record, indent=2, allow_nan=False) + "\n")


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def papermill_path(path: Path) -> str:
    """A path for papermill, which fills in what stands between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
