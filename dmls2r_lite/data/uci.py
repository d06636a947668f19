"""The two UCI files: from a folder, the user's cache or a download, and always verified."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import textwrap
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

import platformdirs

# What data needs is imported where data is loaded, so that `dmls2r datasets` is fast.

if TYPE_CHECKING:
    import pandas as pd

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
        Of the lines of the inner file, with newlines between them: copies may have other line ends.
    """

    address: str
    inner: str
    sha256: str

    @property
    def zip_name(self) -> str:
        """As UCI spells it."""
        return self.address.rpartition("/")[2]


FILES = {
    "superconductivity": UCIFile(
        "464/superconductivty+data.zip",
        "train.csv",
        "d48d1420b7a7458c1a913c0bd49c3c2d666db7ccbdfb6eb1ba5ca1fdfc46bed3",
    ),
    "air_quality": UCIFile(
        "360/air+quality.zip",
        "AirQualityUCI.csv",
        "dd00f9fa1a56019f6ab4ee462f04a3a9637a600a2ebc9503b8eeb8cfd29880ff",
    ),
}


def load(name: str, data_dir: str | Path | None = None) -> pd.DataFrame:
    """The table of a dataset as published, from a file or a download; see `find` and `fetch`.

    Of Air Quality without its blank rows and columns; `Date` becomes days since the first day, `Time` the
    hour of the day.
    """
    import pandas as pd

    content = io.BytesIO(read(name, find(name, data_dir) or fetch(name)))
    if name == "superconductivity":
        return pd.read_csv(content, dtype=float)
    table = pd.read_csv(content, sep=";", decimal=",")
    table = table.dropna(how="all").dropna(axis=1, how="all").reset_index(drop=True)
    days = pd.to_datetime(table["Date"], format="%d/%m/%Y")
    table["Date"] = (days - days.min()).dt.days
    table["Time"] = pd.to_datetime(table["Time"], format="%H.%M.%S").dt.hour
    return table.astype(float)


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
    places = [*folders.values(), cache_folder()]
    candidates = (folder / inner for folder in places for inner in (file.zip_name, file.inner))
    return next(filter(Path.is_file, candidates), None)


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
    from filelock import FileLock

    file, cache = FILES[name], cache_folder()
    url, kept = BASE_URL + file.address, cache / file.zip_name
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / ".lock"):
        if kept.exists():
            return kept
        folder = cache / ".unfinished"
        shutil.rmtree(folder, ignore_errors=True)  # of a download that was killed
        pooch.get_logger().setLevel("ERROR")
        downloads = pooch.create(folder, BASE_URL, registry={file.address: None}, retry_if_failed=2)
        try:
            downloaded = Path(downloads.fetch(file.address, progressbar=True))
            read(name, downloaded)
            os.replace(downloaded, kept)
        except OSError as error:  # those of requests are among them
            raise ConnectionError(
                f"cannot download the dataset {name}: get {url} with a browser, put it "
                f"into a folder, and name that folder in the environment variable {FOLDER_VARIABLE} "
                f"({textwrap.shorten(str(error), 120)})"
            ) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
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
    if hashlib.sha256(b"\n".join(content.splitlines())).hexdigest() != file.sha256:
        raise ValueError(f"{path} does not hold the dataset {name} as UCI publishes it: remove it")
    return content
