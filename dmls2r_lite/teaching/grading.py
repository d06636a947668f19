"""Submissions executed by nbgrader, in a kernel that nothing but its own points can suffer from."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
from jupyter_client import AsyncKernelClient, AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.session import Session
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, OverwriteCells
from traitlets import Enum, Integer

_PACKAGE = Path(__file__).parents[1]
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/etc/alternatives")
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "NBGRADER_EXECUTION")  # of the environment
_HOME = Path("/tmp")  # in bubblewrap: memory, not the folder of that name outside
_LONGEST_OUTPUT = 2**24  # characters, of all cells
_GRACE = 10  # seconds beyond a cell's limit, to interrupt it and to unpack what it has said

_Converted = tuple[NotebookNode, dict[str, Any]]


class RestoreCells(OverwriteCells):
    """Make cells what the release says they are, and put back locked ones that were changed or lost."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> _Converted:
        """As nbgrader's, once nothing is left of what a submission says of its cells but their names."""
        about, folders = resources["nbgrader"], CourseDirectory(parent=self)
        release = folders.format_path(folders.release_directory, ".", about["assignment"])
        released = nbformat.read(Path(release, f"{about['notebook']}.ipynb"), as_version=4)
        lost = {name: cell for cell in released.cells if (name := _name(cell))}
        nb = nbformat.v4.upgrade(nb)
        for cell in reversed(nb.cells):  # of several with one name the last one counts
            known = lost.pop(_name(cell), None)
            cell.metadata = known.metadata if known else NotebookNode()
        locked = [cell for cell in lost.values() if cell.metadata.nbgrader.locked]
        for cell in locked:
            self.log.warning("Cell %s was deleted: it is put back", _name(cell))
        tests = [cell for cell in locked if cell.metadata.nbgrader.grade]
        nb.cells = [*(cell for cell in locked if cell not in tests), *nb.cells, *tests]  # imports come first
        return super().preprocess(nb, resources)


def _name(cell: NotebookNode) -> str:
    mark = cell.metadata.get("nbgrader")
    return str(mark.get("grade_id", "")) if isinstance(mark, dict) else ""


class ExecuteAll(Execute):
    """Execute a submission in a kernel that ends with all it has started, and is shut in by bubblewrap.

    Without bubblewrap, what the submission has changed in the course is put back.
    """

    memory = Integer(4 * 2**30, help="bytes that a process of a submission may use").tag(config=True)
    disk = Integer(2**28, help="bytes that a submission may write").tag(config=True)
    in_what = "what to shut submissions in; auto: bubblewrap where it works"
    sandbox = Enum(["auto", "bubblewrap", "none"], "auto", help=in_what).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any], km: Any = None) -> _Converted:
        """Execute a notebook; what is left of it when its kernel ends counts as failed."""
        about, self._index, self._room = resources["nbgrader"], -1, _LONGEST_OUTPUT
        self.on_notebook_start = self._begin
        with contextlib.ExitStack() as after:
            place = Path(after.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
            kernel = self._prepare(Path(resources["metadata"]["path"]).resolve(), place, after)
            metadata = {**resources["metadata"], "path": str(place)}
            try:
                super().preprocess(nb, {**resources, "metadata": metadata}, kernel)
            except (CellTimeoutError, DeadKernelError):
                text = "its kernel has ended or does not respond: this cell and all after it count as failed"
                self.log.error("%s, %s: %s", about["student"], about["assignment"], text)
                for cell in nb.cells[self._index :]:
                    if cell.cell_type == "code":
                        cell.outputs = [nbformat.v4.new_output("error", ename="Stopped", evalue=text)]
        return nb, resources

    def _prepare(self, handed_in: Path, place: Path, after: contextlib.ExitStack) -> AsyncKernelManager:
        """A kernel to be, with folders in a new ``place``; ``after`` gets what is to be done later."""
        is_shut_in = self.sandbox != "none" and _can_shut_in()
        if self.sandbox == "bubblewrap" and not is_shut_in:
            raise RuntimeError("bubblewrap is missing here, or may not do its work: see ExecuteAll.sandbox")
        course = Path(CourseDirectory(parent=self).root).resolve()
        sockets, home = place / "sockets", _HOME if is_shut_in else place
        sockets.mkdir()
        kernel, before = AsyncKernelManager(client_factory=_Client, session=_Session()), list[str]()
        if is_shut_in:
            before = _shut_in(course, handed_in, sockets, self.disk)
            kernel.connection_file, kernel.transport = str(sockets / "kernel.json"), "ipc"
        else:
            _warn(self.log)
            after.enter_context(_put_back(course, self.log))
            after.enter_context(_nothing_left())
            shutil.copytree(handed_in, home / "files", symlinks=True)
        command = [*before, sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        kernel._kernel_spec = KernelSpec(argv=command)  # whatever kernels are installed
        self._handed_in, self._sockets = home / "files", sockets
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(_PACKAGE.parent)}
        self._options = {"env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._options["cleanup_kc"] = True  # end it
        # By itself it would end with its parent, whose number is another one in bubblewrap; that sees to it.
        self._options["independent"] = is_shut_in
        if os.name != "nt":
            self._options["preexec_fn"] = functools.partial(_limit, self.memory, self.disk)
        return kernel

    def _begin(self, notebook: NotebookNode) -> None:
        """Let a kernel that is ready see what was handed in, but no more the folder that we can see, too.

        One that is deleted takes no new files: it cannot be used to fill the disk.
        """
        shutil.rmtree(self._sockets)
        self.kc.execute(f"import os\n\nos.chdir({str(self._handed_in)!r})\ndel os", silent=True)

    def setup_kernel(self, **options: Any) -> Any:
        """Start the kernel, with options of `subprocess.Popen`."""
        return super().setup_kernel(**options, **self._options)

    def preprocess_cell(self, cell: NotebookNode, resources: dict[str, Any], index: int) -> _Converted:
        """Execute one cell. Its warnings are left out: nbgrader takes them for failures."""
        self._index = index
        self.kc.session.deadline = time.monotonic() + (self._get_timeout(cell) or math.inf) + _GRACE
        cell, resources = super().preprocess_cell(cell, resources, index)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        return cell, resources

    def process_message(self, msg: dict[str, Any], cell: NotebookNode, cell_index: int) -> Any:
        """Keep what a kernel says, if there is not too much of it."""
        self._room -= len(str(msg["content"]))
        is_kept = self._room > 0 or msg["msg_type"] == "status"
        return super().process_message(msg, cell, cell_index) if is_kept else None


class _Client(AsyncKernelClient):
    """One that cannot be flooded."""

    def _context_default(self) -> Any:
        context = super()._context_default()
        context.maxmsgsize, context.rcvhwm = _LONGEST_OUTPUT, 20  # bytes of a message, and how many may wait
        return context


class _Session(Session):
    """One that unpacks messages within a cell's time only: one after the other they hold up all else."""

    deadline = math.inf

    def deserialize(self, *message: Any, **options: Any) -> dict[str, Any]:
        """As Jupyter's, or CellTimeoutError after the deadline."""
        if time.monotonic() > self.deadline:
            raise CellTimeoutError("a cell and what it says take longer than it may")
        return super().deserialize(*message, **options)


def _limit(memory: int, disk: int) -> None:
    import resource

    for kind, most in {"DATA": memory, "FSIZE": disk, "CORE": 0}.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (most, most))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the kernel, not for bubblewrap


@functools.cache  # once a run
def _warn(log: logging.Logger) -> None:
    log.warning(
        "Without bubblewrap a submission may read, send and change whatever you may, such as the solutions, "
        "other submissions and your own files: only what it changes in this course is put back."
    )


def _shut_in(course: Path, handed_in: Path, sockets: Path, disk: int) -> list[str]:
    """The beginning of a command that reads Python and what was handed in, and writes to memory only.

    Jupyter starts it in a session of its own: it has no terminal to write to.
    """
    python = {Path(sys.prefix), Path(sys.base_prefix), _PACKAGE}
    python |= {Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")}
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for place in _SYSTEM:
        command += ["--ro-bind-try", place, place]
    for place in (str(_HOME), "/dev/shm", str(course)):  # the course may lie in one of the above
        command += ["--size", str(disk), "--tmpfs", place]
    for path in sorted(python):
        command += ["--ro-bind-try", str(path), str(path)]
    for path in handed_in.iterdir():
        command += ["--ro-bind", str(path), str(_HOME / "files" / path.name)]
    command += ["--dir", str(_HOME / "files"), "--bind", str(sockets), str(sockets), "--chdir", "/"]
    for place in ("/", "/dev", str(course)):
        command += ["--remount-ro", place]
    return command


@functools.cache
def _can_shut_in() -> bool:
    if not shutil.which("bwrap"):
        return False
    with tempfile.TemporaryDirectory() as name:
        command = [*_shut_in(Path("/course"), Path(name), Path(name), 2**20), sys.executable, "-c", ""]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def _nothing_left() -> Iterator[None]:
    """End all processes that were started inside, on Linux also those that hide from who started them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become children of ours
    before = set(psutil.Process().children(recursive=True))
    try:
        yield
    finally:
        for _ in range(50):  # while one that is about to end starts another
            left = set(psutil.Process().children(recursive=True)) - before
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=5)
            if not left:
                break


@contextlib.contextmanager
def _put_back(course: Path, log: logging.Logger) -> Iterator[None]:
    """Make all files of a course what they were at the beginning, but for nbgrader's log."""
    before = _contents(course)
    try:
        yield
    finally:
        after = _contents(course)
        paths = sorted({*before, *after} - {course / ".nbgrader.log"})  # what holds others comes first
        changed = [path for path in paths if before.get(path) != after.get(path)]
        for path in changed:
            if after.get(path) == ("mkdir",):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path in changed:
            if path in before:
                make, *content = before[path]
                getattr(path, make)(*content)
        if changed:
            log.warning("Put back: %s", ", ".join(map(str, changed)))


def _contents(folder: Path) -> dict[Path, tuple[Any, ...]]:
    """By which method of its path each thing is made, and of what. All can be read afterwards."""
    found: dict[Path, tuple[Any, ...]] = {}
    folder.chmod(0o700 | folder.stat().st_mode)
    for path in folder.iterdir():
        if path.is_symlink():
            found[path] = "symlink_to", os.readlink(path)
        elif path.is_dir():
            found |= {path: ("mkdir",), **_contents(path)}
        else:
            path.chmod(0o400 | path.stat().st_mode)
            found[path] = "write_bytes", path.read_bytes() if path.is_file() else b""  # else a pipe
    return found
