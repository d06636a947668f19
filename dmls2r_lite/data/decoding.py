"""From bytes to text: UTF-8 where they are that, else the encoding that makes the most of them."""

from __future__ import annotations

import codecs
import re
import unicodedata
from pathlib import Path

from charset_normalizer import from_bytes

_BOMS = {  # the mark of UTF-32 starts with that of UTF-16
    "utf-8-sig": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_WESTERN = ("cp1252", "cp1251", "koi8_r", "cp866", "cp850", "cp1250", "cp1253")  # the likeliest first
_EAST_ASIAN = ("gb18030", "big5", "cp932", "cp949")
_SYMBOLS = "°µ²³¹€£$–—“”‘’„«»№±×·§…®©™½¼¾‰º¡¿¥"
_EAST_ASIAN_SCRIPTS = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"}


def decode(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text, and what was assumed of its encoding.

    Raises
    ------
    ValueError
        If it is no text, UTF-8 or UTF-16 that is damaged, or in no encoding that makes sense.
    """
    encoding = next((name for name, marks in _BOMS.items() if content.startswith(marks)), "utf-8")
    if encoding in ("utf-8", "utf-8-sig") and b"\0" in content:
        raise ValueError(f"{path} is not what its name says: it is not text")
    try:
        return content.decode(encoding), ()
    except UnicodeDecodeError as error:
        text = content.decode("utf-8", errors="replace")
        is_utf8 = sum(char > "\x7f" for char in text) > 3 * text.count("\ufffd")
        if encoding != "utf-8" or is_utf8:
            raise ValueError(f"{path} is damaged or cut off at byte {error.start}: {error.reason}") from error
    legacy = _guess(content)
    if legacy is None:
        raise ValueError(f"{path} is in no encoding that is known here: save it as UTF-8")
    text = content.decode(legacy)
    example = re.search(r"[^\s,;|\"]*[^\x00-\x7f][^\s,;|\"]*", text)
    return text, (
        f"the file is not in UTF-8 and was read as {legacy}, as in {example and example[0][:30]!r}; "
        "if texts look wrong, save it as UTF-8",
    )


def _guess(content: bytes) -> str | None:
    """The encoding under which all words look like words, or charset-normalizer's guess."""
    fitting = {}
    for encoding in _WESTERN + _EAST_ASIAN:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        words = set(re.findall(r"[^\x00-\x7f](?:[^\s,;|\"]*[^\x00-\x7f])?", text))
        if sum(map(_looks_like_words, words)) >= 0.9 * len(words):
            # Cyrillic encodings take each other's small letters for capitals.
            fitting[encoding] = sum(char.islower() for word in words for char in word if char > "\x7f")
    if "cp1252" in fitting:
        return "cp1252"
    likeliest = max(fitting, key=fitting.__getitem__, default=None)
    n_foreign = len(content) - len(content.decode("ascii", errors="ignore"))
    if likeliest and (likeliest not in _EAST_ASIAN or n_foreign < 8):
        return likeliest
    best = from_bytes(content[: 2**18], cp_isolation=[*fitting]).best()
    try:
        content.decode(best.encoding if best else "ascii")
    except UnicodeDecodeError:
        return likeliest
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
