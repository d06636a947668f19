"""Files that are whole or not there, what they are made with, and workers that end with this process."""

from __future__ import annotations

import os
import platform
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

UNWRITTEN = "could not be written:"
PACKAGES = ("dmls2r-lite", "numpy", "pandas", "scikit-learn", "torch")  # that results depend on


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


def clear(folder: Path, names: str) -> None:
    """Remove what processes that were killed have left half written, of files whose names match a pattern."""
    for unfinished in filter(Path.is_file, folder.glob(".unfinished-*")):
        if re.fullmatch(rf"\.unfinished-\d+-({names})", unfinished.name):
            unfinished.unlink()


def versions() -> dict[str, str]:
    """Of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in PACKAGES}


def ending_with_us() -> dict[str, Any]:
    """Options of joblib's `Parallel`: its workers watch from their start, and end when this process does."""
    return {"initializer": _end_with, "initargs": (os.getpid(),)}


def _end_with(parent: int) -> None:
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
