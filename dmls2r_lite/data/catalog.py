"""The datasets that have a name: what is known of them unread, and the files of the two that are at UCI.

Those come from a folder, the user's cache or a download, and are always verified.
"""

from __future__ import annotations

import hashlib
import io
import os
import textwrap
import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import platformdirs

# What reads tables is imported where they are loaded, so that `dmls2r datasets` is fast.

FILES = resources.files(__package__).joinpath("files")
BASE_URL = "https://archive.ics.uci.edu/static/public/"
FOLDER_VARIABLE = "DMLS2R_DATA"


@dataclass(frozen=True)
class KnownDataset:
    """What is known about a dataset without reading it.

    Attributes
    ----------
    name : str
    n_rows, n_features : int
        After `load_dataset`.
    target, unit : str
        The target that the dataset is known for, and its unit.
    source, licence, note : str
    n_unlabeled : int
        See `Dataset`.
    units : dict
        Of other columns that may serve as the target.
    missing : dict
        What `load_dataset` does with -200, where it stands for a missing value, by its `missing`.
    address : str
        Of the zip file at UCI, below `BASE_URL`; empty if it is not from there.
    inner : str
        Name of the table in the zip file.
    sha256 : str
        Of the lines of the inner file, with newlines between them: copies may have other line ends.
    """

    name: str
    n_rows: int
    n_features: int
    target: str
    unit: str
    source: str
    licence: str
    note: str
    n_unlabeled: int = 200
    units: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    inner: str = ""
    sha256: str = ""

    @property
    def zip_name(self) -> str:
        """As UCI spells it."""
        return self.address.rpartition("/")[2]


_FACTS = tomllib.loads(FILES.joinpath("datasets.toml").read_text(encoding="utf-8"))
DATASETS = {name: KnownDataset(name, **facts) for name, facts in _FACTS.items()}
FROM_UCI = [name for name, known in DATASETS.items() if known.address]


def cache_folder() -> Path:
    """Where downloads are kept: the user's cache folder."""
    return platformdirs.user_cache_path("dmls2r-lite")


def find(name: str) -> Path | None:
    """The file of a dataset from UCI, if it is in the folder DMLS2R_DATA or in the cache.

    Raises
    ------
    NotADirectoryError
        If DMLS2R_DATA names something that is not a folder.
    """
    known, folders = DATASETS[name], [cache_folder()]
    if given := os.environ.get(FOLDER_VARIABLE):
        if not os.path.isdir(given):
            raise NotADirectoryError(f"{FOLDER_VARIABLE} must name a folder, got {given}")
        folders.insert(0, Path(given))
    candidates = (folder / inner for folder in folders for inner in (known.zip_name, known.inner))
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

    zip_name, url = DATASETS[name].zip_name, BASE_URL + DATASETS[name].address
    pooch.get_logger().setLevel("ERROR")
    cache = pooch.create(
        cache_folder(), "", registry={zip_name: None}, urls={zip_name: url}, retry_if_failed=2
    )
    try:
        path = Path(cache.fetch(zip_name, progressbar=True))
    except OSError as error:  # those of requests are among them
        raise ConnectionError(
            f"cannot download the dataset {name}: get {url} with a browser, put it "
            f"into a folder, and name that folder in the environment variable {FOLDER_VARIABLE} "
            f"({textwrap.shorten(str(error), 120)})"
        ) from None
    try:
        read_content(name, path)
    except ValueError:
        path.unlink()
        raise
    return path


def read_content(name: str, path: Path) -> bytes:
    """The inner file of a dataset from UCI, from its zip file or as it is.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else.
    """
    known, content = DATASETS[name], path.read_bytes()
    if path.name == known.zip_name:
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(known.inner)
        except (BadZipFile, KeyError, EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is damaged or holds no {known.inner}: remove it ({error})") from error
    if hashlib.sha256(b"\n".join(content.splitlines())).hexdigest() != known.sha256:
        raise ValueError(f"{path} does not hold the dataset {name} as UCI publishes it: remove it")
    return content
