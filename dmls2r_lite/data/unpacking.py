"""From a file to the bytes of the one table in it, within limits of time and memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

MAX_BYTES = 2**30  # of a file, and of what is unpacked from it
_TOO_MUCH = "holds more than 1 GiB, which is too much for a table here"
TEXTS = (".csv", ".tsv", ".txt", ".dat", ".data")
SUFFIXES = (*TEXTS, ".parquet", ".xlsx")
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}
PACKINGS = (*_OPENERS, ".zip")
_MAGIC = {
    rb"PK(\x03\x04|\x05\x06)": "zip",
    rb"\x1f\x8b": "gzip",
    rb"BZh\d(1AY&SY|\x17rE8P\x90)": "bzip2",
    rb"\xfd7zXZ\0": "xz",
    rb"PAR1": "Parquet",
    rb"\xd0\xcf\x11\xe0": "old Excel",
}
_EXPECTED = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".xz": "xz",
    ".zip": "zip",
    ".xlsx": "zip",
    ".parquet": "Parquet",
}


def unpack(path: Path) -> tuple[str, bytes]:
    """Name, in small letters, and content of the table in a file: of itself, or of the only one in it.

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If its name does not say that it is a table, or it is not what its name says, damaged, larger than
        `MAX_BYTES`, no regular file or changed while it was read.
    """
    name = path.name.lower()
    _check_kind(path)
    _check_name(path, name)
    content = _read_bytes(path)
    packed = name.endswith(PACKINGS)
    kind = next((kind for magic, kind in _MAGIC.items() if re.match(magic, content)), "text")
    expected = _EXPECTED.get(path.suffix.lower(), "text")
    if kind != expected and not (packed and content == b""):
        raise ValueError(f"{path} is not what its name says: by its first bytes it is a {kind} file")
    try:
        if kind == "zip":
            with ZipFile(io.BytesIO(content)) as archive:
                if not name.endswith(".xlsx"):
                    return _unzip(path, archive)
                _check_sheets(path, archive)
        if packed:
            stem, ending = os.path.splitext(name)
            return stem, _read_within_limit(path, _OPENERS[ending](io.BytesIO(content)))
    except (
        BadZipFile,
        EOFError,
        zlib.error,
        lzma.LZMAError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{path} is damaged or cut off: {error}") from error
    return name, content


def strip_suffixes(name: str) -> str:
    """A file's name without what says how it is written."""
    name = re.sub("|".join(rf"{re.escape(ending)}$" for ending in PACKINGS), "", name, flags=re.IGNORECASE)
    return re.sub("|".join(rf"{re.escape(ending)}$" for ending in SUFFIXES), "", name, flags=re.IGNORECASE)


def _check_name(path: Path, name: str) -> None:
    stem = name
    for ending in PACKINGS:
        stem = stem.removesuffix(ending)
    if not (stem.endswith(SUFFIXES) or name.endswith(".zip")) or (stem != name and stem.endswith(".xlsx")):
        raise ValueError(
            f"{path} must end in {', '.join(SUFFIXES)}, perhaps with {', '.join(PACKINGS)} after it; "
            "save another kind of spreadsheet as CSV first"
        )


def _check_kind(path: Path) -> None:
    """Refuse what is no regular file before it is opened: opening a pipe would wait for its writer."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:  # a link to itself, a name that is too long or holds a zero
        raise ValueError(f"{str(path)[:200]!r} is not the path of a file: {error}") from error
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"dataset must be a file, but {path} is a folder")
    if not stat.S_ISREG(kind):
        raise ValueError(f"{path} must be a regular file, not a pipe or a device")


def _read_bytes(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            content = _read_within_limit(path, file)
            after = os.fstat(file.fileno())
    except PermissionError as error:
        raise PermissionError(f"{path} may not be read: permission denied") from error
    if (before.st_size, before.st_mtime_ns) != (len(content), after.st_mtime_ns):
        raise ValueError(f"{path} changed while it was read: try again when nothing writes to it")
    return content


def _read_within_limit(path: Path, stream: IO[bytes]) -> bytes:
    chunks, size = [], 0
    while chunk := stream.read(2**20):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise ValueError(f"{path} {_TOO_MUCH}")
    return b"".join(chunks)


def _unzip(path: Path, archive: ZipFile) -> tuple[str, bytes]:
    names = [name for name in archive.namelist() if not name.endswith("/")]
    for name in names:
        if name.startswith("/") or ".." in re.split(r"[/\\]", name) or re.match(r"[a-zA-Z]:", name):
            raise ValueError(f"{path} holds {name!r}, which would lie outside of its folder: not read")
    tables = [name for name in names if name.lower().endswith(SUFFIXES) and "__MACOSX" not in name]
    if len(tables) != 1 or tables[0].lower().endswith(".xlsx"):
        raise ValueError(f"{path} must hold one table, got {', '.join(names) or 'none'}")
    with archive.open(tables[0]) as stream:
        return tables[0].lower(), _read_within_limit(path, stream)


def _check_sheets(path: Path, archive: ZipFile) -> None:
    """Refuse a spreadsheet that is damaged or too large when it is unpacked."""
    if sum(packed.file_size for packed in archive.infolist()) > MAX_BYTES:
        raise ValueError(f"{path} {_TOO_MUCH}")
    if damaged := archive.testzip():
        raise BadZipFile(f"bad content of {damaged}")
