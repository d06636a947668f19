"""Files that are whole or not there, and workers that end with whom they work for."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

UNWRITTEN = "could not be written:"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a file to write, which takes the place of `path` when that is done.

    Whoever looks sees what was there before, or the whole new file, which has the user's usual permissions.

    Raises
    ------
    OSError
        If it cannot be written. What was there before is kept.
    """
    unfinished = path.with_name(f".unfinished-{os.getpid()}-{path.name}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as error:
        if UNWRITTEN in str(error):
            raise  # it is about another file, and says so
        kept = "what was there before is kept" if path.exists() else "there is no such file now"
        raise type(error)(f"{path} {UNWRITTEN} {error.strerror or error}; {kept}") from error
    finally:
        with suppress(OSError):  # where the folder has gone, or may not be written to any more
            unfinished.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text so that whoever looks sees what was there before, or all of it; see `replacing`."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def add_whole(path: Path, lines: bytes, heading: bytes) -> None:
    """Add whole lines to a file, or none of them; it begins with `heading`.

    Two programs that write into one file cannot mix theirs. A line that was cut off, when its program was
    killed, stays what it is: the next one begins below it.

    Raises
    ------
    OSError
        If they cannot be written. The lines before are kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.stem}.lock")):
        before = path.read_bytes() if path.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with replacing(path) as unfinished:
            unfinished.write_bytes((before or heading) + lines)


def ending_with(parent: int, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function in a worker, which from then on ends when its parent does, also where that is killed.

    Parameters
    ----------
    parent : int
        Number of the process that hands out the work. In itself, and elsewhere than in its own workers, the
        function is called and nothing else.
    function : callable
    """
    global _watched
    if os.getppid() == parent != os.getpid() and _watched != parent:
        _watched = parent
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    return function(*arguments, **options)


_watched = 0


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
