"""The two UCI files: from a folder, the user's cache or a download, and always verified."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
import platformdirs
from filelock import FileLock

BASE_URL = "https://archive.ics.uci.edu/static/public/"
FOLDER_VARIABLE = "DMLS2R_DATA"


@dataclass(frozen=True)
class UCIFile:
    """A table at UCI.

    Attributes
    ----------
    address : str
        Of the zip file, below `BASE_URL`.
    inner : str
        Name of the table in the zip file.
    sha256 : str
        Of the inner file: a zip file's own can differ.
    is_genuine : callable
        Says of the content of a file with another hash whether it holds the same table.
    """

    address: str
    inner: str
    sha256: str
    is_genuine: Callable[[bytes], bool]

    @property
    def zip_name(self) -> str:
        """As UCI spells it."""
        return self.address.rpartition("/")[2]


def read_superconductivity(content: bytes) -> pd.DataFrame:
    """The table as published: 81 features and `critical_temp` in K."""
    return pd.read_csv(io.BytesIO(content), dtype=float)


def read_air_quality(content: bytes) -> pd.DataFrame:
    """The table as published, -200 for a missing value, less its blank rows and columns.

    `Date` becomes days since the first day, `Time` the hour of the day.
    """
    table = pd.read_csv(io.BytesIO(content), sep=";", decimal=",")
    table = table.dropna(how="all").dropna(axis=1, how="all").reset_index(drop=True)
    days = pd.to_datetime(table["Date"], format="%d/%m/%Y")
    table["Date"] = (days - days.min()).dt.days
    table["Time"] = pd.to_datetime(table["Time"], format="%H.%M.%S").dt.hour
    return table.astype(float)


def _is_air_quality(content: bytes) -> bool:
    """Header, number of rows and totals, for copies with other line ends, for example."""
    header = "Date;Time;CO(GT);PT08.S1(CO);NMHC(GT);C6H6(GT);PT08.S2(NMHC);NOx(GT);PT08.S3(NOx);NO2(GT);"
    if not content.decode("utf-8-sig", errors="replace").startswith(header):
        return False
    try:
        table = read_air_quality(content)
        totals = table[["C6H6(GT)", "NOx(GT)", "T"]].sum()
    except (ValueError, KeyError):
        return False
    return len(table) == 9357 and np.allclose(totals, [17457.2, 1577749.0, 91495.6], rtol=1e-6)


FILES = {
    "superconductivity": UCIFile(
        address="464/superconductivty+data.zip",
        inner="train.csv",
        sha256="4dfb6e3a1f6ffd969e5a5e42f093c4800d1e2a6c8b1e309f8fcd9f23d86952f3",
        is_genuine=lambda content: False,
    ),
    "air_quality": UCIFile(
        address="360/air+quality.zip",
        inner="AirQualityUCI.csv",
        sha256="13277ae5d8581e80b7be09d47c7d3d06fe9b8e957078f2cf6e859f955e62f996",
        is_genuine=_is_air_quality,
    ),
}


def cache_folder() -> Path:
    """Where downloads are kept: the user's cache folder."""
    return platformdirs.user_cache_path("dmls2r-lite")


def find(name: str, data_dir: str | Path | None = None) -> Path | None:
    """The file of a dataset, if it is in `data_dir`, in the folder DMLS2R_DATA or in the cache.

    Raises
    ------
    NotADirectoryError
        If `data_dir` or DMLS2R_DATA names something that is not a folder.
    """
    file = FILES[name]
    given = {"data_dir": data_dir, FOLDER_VARIABLE: os.environ.get(FOLDER_VARIABLE)}
    folders = {argument: Path(folder) for argument, folder in given.items() if folder}
    for argument, folder in folders.items():
        if not folder.is_dir():
            raise NotADirectoryError(f"{argument} must name a folder, got {folder}")
    for folder in [*folders.values(), cache_folder()]:
        for candidate in (folder / file.zip_name, folder / file.inner):
            if candidate.is_file():
                return candidate
    return None


def fetch(name: str) -> Path:
    """Download a dataset's zip file into the cache, unless it is there.

    Raises
    ------
    ConnectionError
        If it cannot be had; says how to get it by hand.
    ValueError
        If what came is not that dataset; it is not kept.
    """
    import pooch  # at import tqdm warns where ipywidgets is missing

    file, cache = FILES[name], cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / file.zip_name
    with FileLock(cache / ".lock"):
        if kept.exists():
            return kept
        unfinished = cache / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a download that was killed
        pooch.get_logger().setLevel("ERROR")
        downloads = pooch.create(
            path=unfinished,
            base_url=BASE_URL,
            urls={file.zip_name: BASE_URL + file.address},
            registry={file.zip_name: None},
            retry_if_failed=2,
        )
        try:
            downloaded = Path(downloads.fetch(file.zip_name, progressbar=True))
            read(name, downloaded)
            os.replace(downloaded, kept)
        except OSError as error:  # those of requests are among them
            raise ConnectionError(
                f"cannot download the dataset {name}: get {BASE_URL}{file.address} with a browser, put it "
                f"into a folder, and name that folder in the environment variable {FOLDER_VARIABLE} "
                f"({textwrap.shorten(str(error), 120)})"
            ) from None
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return kept


def read(name: str, path: Path) -> bytes:
    """The inner file of a dataset, from its zip file or as it is.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else.
    """
    file = FILES[name]
    content = path.read_bytes()
    if path.name == file.zip_name:
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(file.inner)
        except (BadZipFile, KeyError, EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is damaged or holds no {file.inner}: remove it ({error})") from error
    if hashlib.sha256(content).hexdigest() != file.sha256 and not file.is_genuine(content):
        raise ValueError(f"{path} does not hold the dataset {name} as UCI publishes it: remove it")
    return content
