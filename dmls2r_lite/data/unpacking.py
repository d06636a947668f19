"""From a file to the bytes of the one table in it, within limits of memory."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

MAX_BYTES, CHUNK = 2**30, 2**20  # of a file, and of what is unpacked from it; of what is read at once
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".xlsx")
_OPENERS: dict[str, Callable[[io.BytesIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
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
    too_much = ValueError(f"{path} holds more than 1 GiB, which is too much for a table here")
    if os.path.getsize(path) > MAX_BYTES:
        raise too_much
    content = path.read_bytes()
    if not packing:
        return name, content
    try:
        if packing == ".zip":
            archive = ZipFile(io.BytesIO(content))
            names = [inner for inner in archive.namelist() if not inner.endswith("/")]
            tables = [
                inner for inner in names if inner.lower().endswith(SUFFIXES) and "__MACOSX" not in inner
            ]
            if len(tables) != 1 or tables[0].lower().endswith(".xlsx"):
                raise ValueError(f"{path} must hold one table, got {', '.join(names) or 'none'}")
            name, stream = tables[0].lower(), archive.open(tables[0])
        else:
            name, stream = name.removesuffix(packing), _OPENERS[packing](io.BytesIO(content))
        chunks = iter(partial(stream.read, CHUNK), b"")
        content = b"".join(itertools.islice(chunks, MAX_BYTES // CHUNK + 1))
    except _DAMAGE as error:
        raise ValueError(f"{path} is damaged, cut off or not what its name says: {error}") from error
    if len(content) > MAX_BYTES:
        raise too_much
    return name, content


def split_sheet(path: str | Path) -> tuple[Path, str]:
    """The file of a table, and the name of a sheet in it, as in file.xlsx::name; "" if none is named."""
    found = re.fullmatch(r"(.*\.xlsx)::(.+)", str(path), re.IGNORECASE)
    return (Path(found[1]), found[2]) if found else (Path(path), "")


def table_name(path: str | Path) -> str:
    """The name of a file without what says how it is written; with that of a sheet, if one is named.

    Raises
    ------
    ValueError
        If it would be no name for a folder of results.
    """
    file, sheet = split_sheet(path)
    name = _ENDING.sub("", file.name, count=1) + (f"_{sheet}" if sheet else "")
    if name.strip(". ") == "" or name == "index.html":
        raise ValueError(f"rename the file {path}: a folder of results takes its name from it")
    return name


def is_path(name: str | Path) -> bool:
    """Whether a name that is not a dataset's is meant as a path."""
    # of long names os.path.exists makes no trouble
    return isinstance(name, Path) or bool(re.search(r"[./\\]", name)) or os.path.exists(name)
