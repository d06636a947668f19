"""Files of results: written whole, known again, and never over what somebody else has put or changed."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import click

from ..foundation.files import write_whole

MARK = re.compile(r"dmls2r-lite [0-9a-f]{64}")
OURS = r"index\.html|results\.json|\d\d_\w+(\.partial)?\.(ipynb|html)"  # names of what a run writes
UNMARKED = f"dmls2r-lite {0:064}"  # stands in a text where `put` writes what the rest of it is known by


def digest(value: Any) -> str:
    """Of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def put(path: Path, text: str) -> None:
    """Write a file that holds `UNMARKED`; one there that is not just as it was written is moved aside first.

    Raises
    ------
    OSError
        If it cannot be written. What was there before is kept.
    """
    if path.exists() and not is_ours(path):
        names = (path.with_name(f"{path.stem}.edited-{n}{path.suffix}") for n in itertools.count(1))
        kept = path.rename(next(name for name in names if not name.exists()))
        click.echo(f"{path} had been edited, or is not of this program: it is now {kept}", err=True)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, _mark(text))


def is_ours(path: Path) -> bool:
    """Whether a file is as `put` has written it."""
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    return bool(MARK.search(text)) and _mark(text) == text


def read_record(path: Path) -> dict[str, Any]:
    """What `put` has written into a results.json; nothing if there is none, or it was changed."""
    return dict(json.loads(path.read_text("utf-8"))) if is_ours(path) else {}


def _mark(text: str) -> str:
    lines = MARK.sub(UNMARKED, text).splitlines()  # how they end depends on the system
    return MARK.sub(f"dmls2r-lite {digest(lines)}", text)
