"""Notebooks through papermill: run, skip what is done, keep what went wrong, lose nothing."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, ClassVar

import click
import joblib
import nbformat
from filelock import FileLock, Timeout
from jupyter_client import AsyncKernelManager
from papermill import PapermillExecutionError, execute_notebook
from papermill.iorw import local_file_io_cwd

from ..foundation.files import write_whole
from . import pages
from .options import align
from .plan import NUMBERED, Job, digest, versions

NO_START = "Kernel died before replying to kernel_info"
SECONDS_BETWEEN_LINES = 60
MOST_AT_ONCE = 4  # notebooks: each has a kernel of some 500 MB


class Kernel(AsyncKernelManager):
    """A kernel of which several run at once: it takes its share of the cores, and any thread may end it."""

    started: ClassVar[list[Kernel]] = []
    environment: ClassVar[dict[str, str]] = {}

    async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
        """Start it."""
        self.started.append(self)
        # Outputs come as messages; what would reach the terminal is the noise of a kernel being ended.
        await super().start_kernel(env=self.environment | os.environ, stderr=DEVNULL, **options)


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
    with ExitStack() as stack:
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(FileLock(folder / ".lock", timeout=0))
            except Timeout as error:
                advice = "wait for it, or give another --output-dir"
                raise ValueError(f"another run is writing to {folder}: {advice}") from error
            _clear(folder)  # after a run that was killed
        records = {
            name: _open_record(folder, [job for job in jobs if job.dataset == name])
            for name, folder in folders.items()
        }
        to_run = [job for job in jobs if job.name not in records[job.dataset]["notebooks"]]
        for job in jobs:
            if job not in to_run:
                click.echo(f"{job.dataset}  {job.name} ... done before", err=True)
        for job, entry in stack.enter_context(closing(_run_all(to_run, folders))):
            records[job.dataset]["notebooks"][job.name] = entry
            _write_record(folders[job.dataset], records[job.dataset])
        for name, folder in folders.items():
            for page, html in pages.link_pages(folder, records[name], jobs[0].notebook.parent).items():
                (folder / page).parent.mkdir(exist_ok=True)
                _put(folder / page, html)
            _write_record(folder, records[name] | {"complete": True})
            _clear(folder)
        with FileLock(output_dir / ".lock"):
            _clear(output_dir)
            _put(output_dir / "index.html", pages.make_index(output_dir))

    entries = [(job, records[job.dataset]["notebooks"][job.name]) for job in jobs]
    rows = [("dataset", "notebook", "status", "seconds", "results")]
    for job, entry in entries:
        results = pages.format_results(entry["results"], at_most=3)
        rows.append((job.dataset, job.name, entry["status"], f"{entry['seconds']:.1f}", results))
    click.echo("\n" + "\n".join(align(rows)))
    for job, entry in entries:
        if lines := pages.recommend(folders[job.dataset], entry["results"]):
            click.echo("\n".join(["", f"{job.dataset}: absolute error of {job.target} to expect", *lines]))
    for name, doubts in {job.dataset: job.doubts for job in jobs if job.doubts}.items():
        click.echo("\n".join(["", f"{name}: before you trust this, look at", *(f"- {d}" for d in doubts)]))
    click.echo(f"\nAll results: {output_dir / 'index.html'}")
    return all(entry["status"] == "ok" for _, entry in entries)


def _open_record(folder: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """What results.json says, less the notebooks that are to run (again)."""
    first = jobs[0]
    new: dict[str, Any] = {"source": first.source, "notebooks": {}, "complete": True}
    old = pages.read_record(folder / "results.json") or new
    if old["source"] != first.source:
        raise ValueError(f"{folder} has the results of {old['source']}: give another --output-dir")
    notebooks = dict(old["notebooks"])
    for job in jobs:
        entry = notebooks.pop(job.name, {"status": "not run"})
        fingerprint = job.fingerprint  # of what is there before anything runs
        is_valid = entry["status"] == "ok" and entry["fingerprint"] == fingerprint
        is_there = is_valid and _is_as_written(folder / entry["path"]) and (folder / entry["html"]).exists()
        if is_there and not old["complete"]:
            notebooks[job.name] = entry
    about = {"dataset": first.dataset, "target": first.target, "note": first.note, "versions": versions()}
    return new | about | {"complete": False, "notebooks": notebooks}


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    record = record | {"notebooks": dict(sorted(record["notebooks"].items()))}
    _put(folder / "results.json", json.dumps(record, indent=2, allow_nan=False) + "\n")


def _run_all(
    jobs: Sequence[Job], folders: dict[str, Path]
) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    """Run notebooks, as many at once as there are cores, and give the entry of each when it is done.

    The last begin first: later lessons take longer, and a long one at the end would leave cores idle.
    """
    at_once = min(len(jobs), joblib.cpu_count(), MOST_AT_ONCE) or 1
    Kernel.environment = {"OMP_NUM_THREADS": str(joblib.cpu_count() // at_once)}
    if at_once > 1:  # the cores are taken: processes of a notebook would only wait for each other
        Kernel.environment["JOBLIB_MULTIPROCESSING"] = "0"
    click.echo(f"notebooks to run: {len(jobs)}, {at_once} at a time", err=True)
    with local_file_io_cwd(), ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(_execute, job, folders[job.dataset]): job for job in reversed(jobs)}
        left = set(running)
        said = time.monotonic()
        try:
            while left:  # Windows notices an interrupt only between waits
                done, left = wait(left, timeout=1, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    job = running[future]
                    yield job, _write_notebook(job, folders[job.dataset], *future.result())
                    said = time.monotonic()
                if left and time.monotonic() - said >= SECONDS_BETWEEN_LINES:
                    said = time.monotonic()
                    names = sorted(running[future].name for future in left if future.running())
                    click.echo(f"still running: {', '.join(names)}", err=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(left, timeout=0.1).not_done:  # a kernel may be about to start
                for kernel in Kernel.started:
                    if process := getattr(kernel.provisioner, "process", None):
                        process.kill()
            Kernel.started.clear()


def _execute(job: Job, folder: Path, tries: int = 3) -> tuple[nbformat.NotebookNode, float, Exception | None]:
    """A notebook with its outputs, the seconds that it took, and what went wrong."""
    unfinished = folder.resolve() / f".unfinished-{job.name}.ipynb"
    start = time.perf_counter()
    failure: Exception | None = None
    try:
        nb = execute_notebook(
            _as_it_is(job.notebook),
            _as_it_is(unfinished),
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
    return nb, round(time.perf_counter() - start, 2), failure


def _as_it_is(path: Path) -> str:
    """A path for papermill, which fills in what stands between braces."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _write_notebook(
    job: Job, folder: Path, nb: nbformat.NotebookNode, seconds: float, failure: Exception | None
) -> dict[str, Any]:
    """Write a notebook and its HTML, say how it went, and return its entry in results.json."""
    earlier = folder / f"{job.name}.partial.ipynb"
    path = earlier if failure else folder / f"{job.name}.ipynb"
    html = path.with_suffix(".html")
    about = [f"This run is on {job.dataset}."] if "dataset" in job.parameters else []
    about += [f"Target: {job.target}."] if job.target else []
    about += [f"Given: {pages.format_results(job.given)}."] if job.given else []
    course = [path.stem for path in sorted(job.notebook.parent.glob(NUMBERED))]
    page = pages.to_html(nb, path.stem, course, " ".join(about), job.note)
    nb.metadata["dmls2r_lite"] = {"digest": _digest_cells(nb)}
    _put(html, page)
    _put(path, nbformat.writes(nb) + "\n")
    entry: dict[str, Any] = {
        "status": "failed" if failure else "ok",
        "path": path.name,
        "html": html.name,
        "seconds": seconds,
        "given": job.given,
        "parameters": job.parameters,
        "fingerprint": job.fingerprint,
        "results": pages.collect_results(nb),
    }
    how = f"failed after {seconds:.1f} s" if failure else f"{seconds:.1f} s"
    click.echo(f"{job.dataset}  {job.name} ... {how}", err=True)
    if failure is None:
        if _is_as_written(earlier):
            earlier.unlink()
            earlier.with_suffix(".html").unlink(missing_ok=True)
        return entry
    if isinstance(failure, PapermillExecutionError):
        cell, error = failure.exec_count, f"{failure.ename}: {failure.evalue}"
    else:  # the kernel died, for example: no cell has the error, the last that was started is to blame
        started = [cell for cell in nb.cells if cell.metadata.get("papermill", {}).get("start_time")]
        cell = sum(cell.cell_type == "code" for cell in started)
        error = f"{type(failure).__name__}: {failure}"
    click.echo(f"    cell [{cell}]: {error.splitlines()[0]}\n    see {path}", err=True)
    return entry | {"cell": cell, "error": error}


def _digest_cells(nb: nbformat.NotebookNode) -> str:
    """Of what a reader can change; saving in JupyterLab leaves it alone."""
    return digest([(cell.cell_type, cell.source) for cell in nb.cells])


def _clear(folder: Path) -> None:
    for unfinished in folder.glob(".unfinished-*"):
        unfinished.unlink()


def _put(path: Path, text: str) -> None:
    """Write a file; what somebody else has put or changed there is moved aside first."""
    if path.exists() and not _is_as_written(path):
        names = (path.with_name(f"{path.stem}.edited-{n}{path.suffix}") for n in itertools.count(1))
        kept = path.rename(next(name for name in names if not name.exists()))
        click.echo(f"{path} had been edited, or is not of this program: it is now {kept}", err=True)
    write_whole(path, text)


def _is_as_written(path: Path) -> bool:
    """Whether a file is one of ours, and a notebook has not been edited since."""
    if path.suffix == ".html":
        return pages.is_ours(path)
    if path.suffix == ".json":
        return pages.read_record(path) is not None
    try:
        nb = nbformat.read(path, as_version=4)
    except Exception:  # there is none, or it is broken
        return False
    return nb.metadata.get("dmls2r_lite") == {"digest": _digest_cells(nb)}
