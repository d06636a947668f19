"""From a file to the bytes of the one table in it, within limits of memory, and from these to text.

That is UTF-8 where they are that, else the encoding that makes the most of them.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import itertools
import lzma
import os
import re
import unicodedata
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from ..foundation.parameters import demand

MAX_BYTES, CHUNK = 2**30, 2**20  # of a file, and of what is unpacked from it; of what is read at once
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".parquet", ".xlsx")
_OPENERS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
PACKINGS = (*_OPENERS, ".zip")
_ENDING = re.compile(rf"({'|'.join(SUFFIXES)})?({'|'.join(PACKINGS)})?\Z".replace(".", r"\."), re.IGNORECASE)
_DAMAGE = (BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError, NotImplementedError, RuntimeError)
_UTF_32, _UTF_16 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WESTERN = ("cp1252", "cp1251", "koi8_r", "cp866", "cp850", "cp1250", "cp1253")  # the likeliest first
_EAST_ASIAN = ("gb18030", "big5", "cp932", "cp949")
_SYMBOLS = "°µ²³¹€£$–—“”‘’„«»№±×·§…®©™½¼¾‰º¡¿¥"
_EAST_ASIAN_SCRIPTS = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"}


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
        wanted = f"must end in {', '.join(SUFFIXES)}, perhaps with {', '.join(PACKINGS)} after it"
        raise ValueError(f"{wanted}; save another kind of spreadsheet as CSV first")
    with open(path, "rb") as file:
        stream: Any = file
        try:
            if packing == ".zip":
                archive = ZipFile(file)
                names = [name for name in archive.namelist() if "__MACOSX" not in name and name[-1:] != "/"]
                tables = [name for name in names if name.lower().endswith(SUFFIXES)]
                if len(tables) != 1 or tables[0].lower().endswith(".xlsx"):
                    raise ValueError(f"must hold one table, got {', '.join(names) or 'none'}")
                name, stream = tables[0].lower(), archive.open(tables[0])
            elif packing:
                name, stream = name.removesuffix(packing), _OPENERS[packing](file)
            chunks = iter(partial(stream.read, CHUNK), b"")
            content = b"".join(itertools.islice(chunks, MAX_BYTES // CHUNK + 1))
        except _DAMAGE as error:
            raise ValueError(f"is damaged, cut off or not what its name says: {error}") from error
    demand(len(content) <= MAX_BYTES, "holds more than 1 GiB, which is too much for a table here")
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


def decode(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, and what was assumed of its encoding.

    Raises
    ------
    ValueError
        If it is no text, UTF-8 or UTF-16 that is damaged, or in no encoding that makes sense.
    """
    encoding = "utf-16" if content.startswith(_UTF_16) else "utf-8-sig"  # which may lack its mark
    encoding = "utf-32" if content.startswith(_UTF_32) else encoding  # that starts like the one of UTF-16
    demand(encoding != "utf-8-sig" or b"\0" not in content, "is not what its name says: it is not text")
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError as error:
        text = content.decode("utf-8", errors="replace")
        is_utf8 = sum(char > "\x7f" for char in text) > 3 * text.count("\ufffd")
        if encoding != "utf-8-sig" or is_utf8 or content.startswith(codecs.BOM_UTF8):
            raise ValueError(f"is damaged or cut off at byte {error.start}: {error.reason}") from error
    legacy = _guess(content)
    if legacy is None:
        raise ValueError("is in no encoding that is known here: save it as UTF-8")
    text = content.decode(legacy)
    example = re.search(r"[^\s,;|\"]*[^\x00-\x7f][^\s,;|\"]*", text)
    return text, (
        f"the file is not in UTF-8 and was read as {legacy}, as in {example and example[0][:30]!r}; "
        "if texts look wrong, save it as UTF-8",
    )


def _guess(content: bytes) -> str | None:
    """The encoding under which all words look like words, or charset-normalizer's guess."""
    from charset_normalizer import from_bytes  # of no use to almost all files

    fitting = {}
    for encoding in _WESTERN + _EAST_ASIAN:
        with suppress(UnicodeDecodeError):
            text = re.sub(r"(?<=\d)\xa0", " ", content.decode(encoding))  # between thousands
            words = set(re.findall(r"[^\x00-\x7f](?:[^\s,;|\"]*[^\x00-\x7f])?", text))
            if sum(map(_looks_like_words, words)) >= 0.9 * len(words):
                # Cyrillic encodings take each other's small letters for capitals.
                fitting[encoding] = sum(char.islower() for word in words for char in word if char > "\x7f")
    likeliest = max(fitting, key=lambda encoding: (encoding == "cp1252", fitting[encoding]), default=None)
    n_foreign = len(content) - len(content.decode("ascii", errors="ignore"))
    if likeliest and (likeliest not in _EAST_ASIAN or n_foreign < 8):
        return likeliest
    best = from_bytes(content, cp_isolation=[*fitting]).best()
    return best.encoding if best else likeliest


def _looks_like_words(text: str) -> bool:
    """Whether a text from its first foreign character to its last one has letters of one script, in order."""
    if not all(char.isalpha() or char in _SYMBOLS for char in text if char > "\x7f"):
        return False
    if re.search(
        rf"[^\W\x00-\x7f][{_SYMBOLS}](?<![’–·µº])|(?<![’–·µº“‘„«°²³¿¡])[{_SYMBOLS}][^\W\x00-\x7fµ]", text
    ):
        return False
    for part in re.findall(r"[^\W\d_]+", text):
        scripts = {
            unicodedata.name(char, "?").split()[0] for char in part if char.isalpha() and char not in "µº"
        }
        if len(scripts) > 1 and not scripts <= _EAST_ASIAN_SCRIPTS:
            return False
        if scripts == {"LATIN"} and re.search(r"[^\x00-\x7f]{3}", part):
            return False
        if part not in (part.lower(), part.upper(), part.capitalize()):
            return False
    return True
