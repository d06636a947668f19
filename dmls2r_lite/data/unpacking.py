"""From a file to the bytes of the one table in it, within limits of memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

MAX_BYTES = 2**30  # of a file, and of what is unpacked from it
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".xlsx")
_OPENERS: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
PACKINGS = (*_OPENERS, ".zip")
_ENDING = re.compile(rf"({'|'.join(SUFFIXES)})?({'|'.join(PACKINGS)})?\Z".replace(".", r"\."), re.IGNORECASE)
_DAMAGE = (BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, NotImplementedError, RuntimeError)


def unpack(path: Path) -> tuple[str, bytes]:
    """Name, in small letters, and content of the table in a file: of itself, or of the only one in it.

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If its name does not say that it is a table, or it is damaged, or larger than `MAX_BYTES`.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(f"dataset must be a file, but {path} is a folder")
    if not os.path.isfile(path):  # nor a pipe, whose writer nobody wants to wait for
        raise FileNotFoundError(f"there is no file {path}")
    name = path.name.lower()
    suffix, packing = next(_ENDING.finditer(name)).groups()
    if (not suffix and packing != ".zip") or (suffix == ".xlsx" and packing):
        raise ValueError(
            f"{path} must end in {', '.join(SUFFIXES)}, perhaps with {', '.join(PACKINGS)} after it; "
            "save another kind of spreadsheet as CSV first"
        )
    with open(path, "rb") as file:
        content = _read_within_limit(path, file)
    try:
        if packing in _OPENERS:
            with _OPENERS[packing](io.BytesIO(content)) as stream:
                return name.removesuffix(packing), _read_within_limit(path, stream)
        if packing or suffix == ".xlsx":
            with ZipFile(io.BytesIO(content)) as archive:
                if packing:
                    return _unzip(path, archive)
                if sum(sheet.file_size for sheet in archive.infolist()) > MAX_BYTES:
                    raise _too_much(path)
                if damaged := archive.testzip():
                    raise BadZipFile(f"bad content of {damaged}")
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged, cut off or not what its name says: {error}") from error
    return name, content


def strip_suffixes(name: str) -> str:
    """A file's name without what says how it is written."""
    return _ENDING.sub("", name, count=1)


def _read_within_limit(path: Path, stream: IO[bytes]) -> bytes:
    content = bytearray()
    while chunk := stream.read(2**20):
        content += chunk
        if len(content) > MAX_BYTES:
            raise _too_much(path)
    return bytes(content)


def _too_much(path: Path) -> ValueError:
    return ValueError(f"{path} holds more than 1 GiB, which is too much for a table here")


def _unzip(path: Path, archive: ZipFile) -> tuple[str, bytes]:
    names = [name for name in archive.namelist() if not name.endswith("/")]
    tables = [name for name in names if name.lower().endswith(SUFFIXES) and "__MACOSX" not in name]
    if len(tables) != 1 or tables[0].lower().endswith(".xlsx"):
        raise ValueError(f"{path} must hold one table, got {', '.join(names) or 'none'}")
    with archive.open(tables[0]) as stream:
        return tables[0].lower(), _read_within_limit(path, stream)
