"""Notebooks through nbclient: run, skip what is done, keep what went wrong, lose nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import click
import joblib
import nbformat
from filelock import FileLock, Timeout
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal
from nbconvert.preprocessors import ClearOutputPreprocessor
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from ..foundation.files import clear, versions
from . import pages
from .keeping import OURS, UNMARKED, is_ours, put, read_record
from .options import align
from .plan import NUMBERED, Job

NO_START = "Kernel died before replying to kernel_info"
MOST_AT_ONCE = 4  # notebooks: each has a kernel of some 500 MB


def run_jobs(jobs: Sequence[Job], output_dir: Path) -> bool:
    """Run the jobs and write notebooks, HTML, results and the index page.

    Parameters
    ----------
    jobs : sequence of Job
    output_dir : Path
        Gets ``index.html``; the folders of the jobs lie in it.

    Returns
    -------
    bool
        Whether all notebooks ran to their end.
    """
    of_folder = {job.folder: [other for other in jobs if other.folder == job.folder] for job in jobs}
    with ExitStack() as stack:
        for folder in of_folder:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(FileLock(folder / ".lock", timeout=0))
            except Timeout as error:
                advice = "wait for it, or give another --output-dir"
                raise ValueError(f"another run is writing to {folder}: {advice}") from error
            clear(folder, OURS)
        records = {folder: _open_record(folder, its_jobs) for folder, its_jobs in of_folder.items()}
        to_run = [job for job in jobs if job.name not in records[job.folder]["notebooks"]]
        for job in jobs:
            if job not in to_run:
                click.echo(f"{job.dataset}  {job.name} ... done before", err=True)
        for job, entry in stack.enter_context(closing(_run_all(to_run))):
            records[job.folder]["notebooks"][job.name] = entry
            _write_record(job.folder, records[job.folder])
        for folder, record in records.items():
            for page, html in pages.link_pages(folder, record, jobs[0].notebook.parent).items():
                put(folder / page, html)
            _write_record(folder, record | {"complete": True})
        with FileLock(output_dir / ".lock"):
            clear(output_dir, OURS)
            put(output_dir / "index.html", pages.make_index(output_dir))

    entries = [(job, records[job.folder]["notebooks"][job.name]) for job in jobs]
    rows = [("dataset", "notebook", "status", "seconds", "results")]
    for job, entry in entries:
        results = pages.format_results(entry["results"], at_most=3)
        rows.append((job.dataset, job.name, entry["status"], f"{entry['seconds']:.1f}", results))
    click.echo("\n" + "\n".join(align(rows)))
    for job, entry in entries:
        if lines := pages.recommend(job.folder, entry["results"]):
            click.echo("\n".join(["", f"{job.dataset}: absolute error of {job.target} to expect", *lines]))
    for name, doubts in {job.dataset: job.doubts for job in jobs if job.doubts}.items():
        click.echo("\n".join(["", f"{name}: before you trust this, look at", *(f"- {d}" for d in doubts)]))
    click.echo(f"\nAll results: {output_dir / 'index.html'}")
    return all(entry["status"] == "ok" for _, entry in entries)


def _open_record(folder: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """What results.json says, less the notebooks that are to run (again)."""
    first = jobs[0]
    old = read_record(folder / "results.json") or {"source": first.source, "notebooks": {}, "complete": True}
    if old["source"] != first.source:
        raise ValueError(f"{folder} has the results of {old['source']}: give another --output-dir")
    notebooks = dict(old["notebooks"])
    for job in jobs:
        entry = notebooks.pop(job.name, {"fingerprint": ""})
        # What it is of is what is there before anything runs.
        is_valid = job.fingerprint == entry["fingerprint"] and entry["status"] == "ok" and not old["complete"]
        if is_valid and is_ours(folder / entry["path"]) and (folder / entry["html"]).exists():
            notebooks[job.name] = entry
    about = {name: getattr(first, name) for name in ("dataset", "source", "target", "note", "doubts")}
    return about | {"versions": versions(), "complete": False, "notebooks": notebooks, "written_by": UNMARKED}


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    record = record | {"notebooks": dict(sorted(record["notebooks"].items()))}
    put(folder / "results.json", json.dumps(record, indent=2, allow_nan=False) + "\n")


def _run_all(jobs: Sequence[Job]) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    """Run notebooks, as many at once as there are cores, and give the entry of each when it is done.

    The last begin first: later lessons take longer, and a long one at the end would leave cores idle.
    """
    at_once = min(len(jobs), joblib.cpu_count(), MOST_AT_ONCE) or 1
    environment = {"OMP_NUM_THREADS": str(joblib.cpu_count() // at_once)}
    if at_once > 1:  # the cores are taken: processes of a notebook would only wait for each other
        environment["JOBLIB_MULTIPROCESSING"] = "0"
    environment |= os.environ
    click.echo(f"notebooks to run: {len(jobs)}, {at_once} at a time", err=True)
    clients = [(job, _client_of(job)) for job in reversed(jobs)]
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(_execute, job, client, environment): (job, client) for job, client in clients}
        left = set(running)
        try:
            while left:  # Windows notices an interrupt only between waits
                done, left = wait(left, timeout=1, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    yield running[future][0], _write_notebook(*running[future], *future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(left, timeout=0.1).not_done:  # a kernel may be about to start
                for _, client in clients:
                    if process := getattr(getattr(client.km, "provisioner", None), "process", None):
                        process.kill()


def _client_of(job: Job) -> NotebookClient:
    """What will run a notebook, with the parameters of the job in it."""
    # Where a run fails, nothing of an earlier one may stand below.
    nb, _ = ClearOutputPreprocessor().preprocess(load_notebook_node(str(job.notebook)), {})
    return NotebookClient(
        parameterize_notebook(nb, job.injected, kernel_name="python3") if job.injected else nb,
        kernel_name="python3",
        resources={"metadata": {"path": str(job.notebook.parent), "name": job.name}},  # as in JupyterLab
        raise_on_iopub_timeout=True,
        extra_arguments=["--log-level=CRITICAL"],  # the kernel's log would appear in this terminal
    )


def _execute(job: Job, client: NotebookClient, environment: dict[str, str]) -> tuple[float, str]:
    """Run a notebook; return the seconds that it took, and what went wrong."""
    click.echo(f"{job.dataset}  {job.name} begins", err=True)
    start = time.perf_counter()
    for _ in range(3):  # of kernels begun at once two may have got one port
        error = ""
        try:
            # Outputs come as messages; what would reach the terminal is the noise of a kernel being ended.
            with client.setup_kernel(env=environment, stderr=DEVNULL):
                for index, cell in enumerate(client.nb.cells):
                    client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
                client.set_widgets_metadata()
        except (CellControlSignal, RuntimeError) as failure:  # in a cell, or of the kernel
            name = getattr(failure, "ename", type(failure).__name__)
            error = f"{name}: {getattr(failure, 'evalue', failure)}"
        if NO_START not in error:
            break
    return round(time.perf_counter() - start, 2), error


def _write_notebook(job: Job, client: NotebookClient, seconds: float, error: str) -> dict[str, Any]:
    """Write a notebook and its HTML, say how it went, and return its entry in results.json."""
    nb, earlier = client.nb, job.folder / f"{job.name}.partial.ipynb"
    path = earlier if error else job.folder / f"{job.name}.ipynb"
    html = path.with_suffix(".html")
    about = [f"This run is on {job.dataset}."] if "dataset" in job.parameters else []
    about += [f"Target: {job.target}."] if job.target else []
    about += [f"Given: {pages.format_results(job.given)}."] if job.given else []
    about += [f"Before you trust this, look at: {'; '.join(job.doubts)}."] if job.doubts else []
    course = [path.stem for path in sorted(job.notebook.parent.glob(NUMBERED))]
    put(html, pages.to_html(nb, path.stem, course, " ".join(about), job.note))
    nb.metadata["dmls2r_lite"] = UNMARKED
    put(path, nbformat.writes(nb) + "\n")
    click.echo(f"{job.dataset}  {job.name} ... {'failed after ' * bool(error)}{seconds:.1f} s", err=True)
    entry: dict[str, Any] = {
        "status": "failed" if error else "ok",
        "path": path.name,
        "html": html.name,
        "seconds": seconds,
        "given": job.given,
        "parameters": job.parameters,
        "fingerprint": job.fingerprint,
        "results": pages.collect_results(nb),
    }
    if error:
        cell = client.code_cells_executed  # the last that was begun
        click.echo(f"    cell [{cell}]: {error.splitlines()[0]}\n    see {path}", err=True)
        entry |= {"cell": cell, "error": error}
    elif is_ours(earlier):
        earlier.unlink()
        earlier.with_suffix(".html").unlink(missing_ok=True)
    return entry
