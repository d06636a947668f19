"""A submission apart from all others: its code in a process of its own, and shut in where possible."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from . import checks
from .remote import Peer, Remote, Stopped

PACKAGE = Path(__file__).parents[1]
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/etc/alternatives")
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "NBGRADER_EXECUTION")  # of the environment
_START = 120  # seconds that the imports of a process may take


def shut_in(folder: Path, course: Path, disk: int) -> list[str]:
    """The beginning of a command that bubblewrap runs without network, and with nothing in reach but Python.

    Parameters
    ----------
    folder : Path
        What the command may read besides.
    course : Path
        What it may not read, whatever that lies in.
    disk : int
        Bytes that it may write, in memory, to /tmp.
    """
    python = [Path(sys.prefix), Path(sys.base_prefix)]
    python += [Path(place) for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    if not any(PACKAGE.is_relative_to(place) for place in python):
        python.append(PACKAGE)
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/dev/shm"):
        command += ["--size", str(disk), "--tmpfs", place]
    for place in _SYSTEM:
        command += ["--ro-bind-try", place, place]
    for path in sorted({place.absolute() for place in python if place.is_dir()}):
        command += ["--ro-bind", str(path), str(path)]
    for path in (PACKAGE / "notebooks", course):  # the solutions are in both
        if path.is_dir() and any(path.is_relative_to(place) for place in [*python, *map(Path, _SYSTEM)]):
            command += ["--tmpfs", str(path), "--remount-ro", str(path)]
    command += ["--ro-bind", str(folder), str(folder), "--remount-ro", "/", "--remount-ro", "/dev"]
    return [*command, "--setenv", "HOME", "/tmp", "--chdir", "/tmp"]


def can_shut_in() -> bool:
    """Whether bubblewrap is there, may do its work, and Python runs in it."""
    if not shutil.which("bwrap"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = [*shut_in(Path(folder), Path(folder), 2**20), sys.executable, "-c", "import encodings"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Submission:
    """The cells of a student, executed one by one in a process of their own.

    Where a cell or a function does not end in time, or ends Python, the process is started anew, and the
    cells before are executed again without that one.

    Parameters
    ----------
    folder : str
        Files that were handed in: they are copied to where the code runs. Its parent is for temporary files.
    course : str
        Nothing in it can be read, if `is_shut_in`.
    is_shut_in : bool
        Whether to use bubblewrap.
    seconds : float
        For what happens between two calls of `begin`.
    memory, disk : int
        Bytes: of memory for the process, and of the largest file.
    max_stops : int
        After so many, nothing is executed any more.
    """

    def __init__(
        self,
        folder: str,
        course: str,
        *,
        is_shut_in: bool,
        seconds: float,
        memory: int,
        disk: int,
        max_stops: int,
    ) -> None:
        self._files, self._course = Path(folder), Path(course)
        self._is_shut_in, self._seconds = is_shut_in, seconds
        self._limits = [str(memory), str(disk)]
        self._stops_left = max_stops
        self._stopped: dict[str, str] = {}
        self._history: list[tuple[Any, ...]] = []
        self._n_cells = 0
        self._process, self._peer = self._start()

    def _start(self) -> tuple[subprocess.Popen, Peer]:
        # -P: modules that were handed in come after ours
        command = [sys.executable, "-P", "-m", f"{__package__}.remote", str(self._files), *self._limits]
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment |= {"PYTHONPATH": str(PACKAGE.parent), "MPLBACKEND": "agg"}
        if self._is_shut_in:
            command = [*shut_in(self._files, self._course, int(self._limits[1])), *command]
        else:
            environment |= {"HOME": str(self._files.parent), "TMPDIR": str(self._files.parent)}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._files,
            env=environment,
            start_new_session=True,
        )
        assert process.stdin
        assert process.stdout
        peer = Peer(process.stdout, process.stdin)
        peer.limit(_START)
        peer.ask("run", "")
        return process, peer

    def begin(self) -> None:
        """Start the clock for what follows."""
        self._peer.limit(self._seconds)

    def run(self, source: str) -> None:
        """Execute a cell, and print what it prints, or why it was stopped."""
        try:
            self._keep("run", source)
        except Stopped as error:
            print(f"Stopped: {error}")

    def define(self, source: str) -> None:
        """Let the student's cells know what a cell of ours defines, and what its checks have found."""
        with contextlib.suppress(Stopped):
            self._keep("define", source, tuple(checks.results().items()))

    def _keep(self, *message: Any) -> None:
        self._n_cells += 1
        self.ask(f"cell {self._n_cells}", *message)
        self._history.append(message)

    def answer(self, name: str) -> Remote:
        """A student's function, whenever it is defined."""
        return Remote(_Answers(self), name)

    def ask(self, name: str, *message: Any) -> Any:
        """Send a request to the process, on behalf of a cell or a function."""
        __tracebackhide__ = True
        if name in self._stopped:
            raise Stopped(self._stopped[name])
        if self._process.poll() is not None:
            self._start_again()
        try:
            return self._peer.ask(*message)
        except Stopped as error:
            self._stopped[name] = str(error)
            self.close()
            raise

    def _start_again(self) -> None:
        while self._stops_left > 0:
            self._stops_left -= 1
            self._process, self._peer = self._start()
            self._peer.limit(self._seconds)
            for place, message in enumerate(self._history):
                try:
                    self._peer.ask(*message)
                except Stopped:
                    self.close()
                    del self._history[place]
                    break
            else:
                self._peer.limit(self._seconds)
                return
        raise Stopped("not executed: too much before it did not end")

    def close(self) -> None:
        """End the process, and what it has started, as far as it is still its child."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self._process.kill()
        self._process.wait()


class _Answers:
    """A peer that lasts, whichever process does the work."""

    def __init__(self, submission: Submission) -> None:
        self._submission = submission

    def ask(self, kind: str, key: Any, *content: Any) -> Any:
        __tracebackhide__ = True
        return self._submission.ask(str(key), kind, key, *content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._submission._peer, name)


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """End all processes that were started inside, on Linux also those that hide from who started them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become children of ours
    before = set(psutil.Process().children())
    try:
        yield
    finally:
        for _ in range(50):  # while one that is about to end starts another
            left = [child for child in psutil.Process().children(recursive=True) if child not in before]
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=5)
            if not left:
                break


@contextlib.contextmanager
def unchanged(folder: Path, changed: list[Path], but: Sequence[Path] = ()) -> Iterator[None]:
    """Put all files of a folder back as they were at the beginning.

    Parameters
    ----------
    folder : Path
    changed : list of Path
        What had to be put back is added to it.
    but : sequence of Path
        What in the folder may change.
    """
    before = _contents(folder, but)
    try:
        yield
    finally:
        for parent, _, _ in os.walk(folder):
            os.chmod(parent, 0o700 | os.stat(parent).st_mode)
        after = _contents(folder, but)
        changed += [
            path for path in before.keys() | after.keys() if before.get(path, 0) != after.get(path, 0)
        ]
        for path in sorted(changed):
            for place in (*reversed(path.parents), path):  # what should be a folder may be a link
                is_folder = place.is_dir() and not place.is_symlink()
                if place.is_relative_to(folder) and os.path.lexists(place) and not is_folder:
                    place.unlink()
            if path.is_dir():
                shutil.rmtree(path)
        for path in sorted(set(changed) & before.keys()):
            content = before[path]
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir(exist_ok=True)
            elif isinstance(content, str):
                path.symlink_to(content)
            else:
                path.write_bytes(content)


def _contents(folder: Path, but: Sequence[Path]) -> dict[Path, bytes | str | None]:
    """Files by their bytes, links by where they lead, folders by None."""
    found: dict[Path, bytes | str | None] = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if Path(parent, name) not in but]
        for path in {Path(parent, name) for name in [*folders, *files]}.difference(but):
            if path.is_symlink():
                found[path] = os.readlink(path)
            elif path.is_dir():
                found[path] = None
            else:
                found[path] = path.read_bytes() if path.is_file() else b""  # if not, a pipe, for example
    return found
