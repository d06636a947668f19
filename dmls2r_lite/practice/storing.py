"""A fitted model in one file, with what has to be known of it."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..data.preparing import _to_numbers as to_numbers
from ..foundation.files import replacing
from ..foundation.parameters import ParameterError
from .cards import TEXT, Card
from .packing import Packer, Unpacker

FORMAT, VERSION = "dmls2r model", 1
NAMES = ("model.json", "numbers.bin")  # of the parts of a file
MAX_JSON = 2**25  # bytes
PACKAGES = ("dmls2r-lite", "numpy", "pandas", "scikit-learn", "torch")
N_PROBES = 8  # rows for which a model is asked when it is saved, and again when it is loaded


@dataclass(frozen=True)
class StoredModel:
    """A fitted model as `load_model` gives it.

    Attributes
    ----------
    model : estimator
    card : Card
    preprocessor : transformer or None
    versions : dict
        Of what it was made with.
    column_types : dict
        How columns of a file are to be read, see `read_table`.
    missing_values : str
        What stands for a missing value there, see `load_dataset`.
    """

    model: Any
    card: Card
    preprocessor: Any
    versions: dict[str, str]
    column_types: dict[str, str] = field(default_factory=dict)
    missing_values: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """The columns that it needs, and what each holds (see `describe_columns`); empty if it was fitted
        on an array."""
        if self.preprocessor is None:
            return dict.fromkeys(map(str, getattr(self.model, "feature_names_in_", ())), "number")
        parts = _of_columns(self.preprocessor).transformers_
        kinds = {name: kind for kind, _, names in parts if kind != "remainder" for name in names}
        return {name: kinds[name] for name in self._names_in_training() if name in kinds}

    def _names_in_training(self) -> list[str]:
        return list(_of_columns(self.preprocessor).feature_names_in_)

    def predict(self, features: pd.DataFrame | ArrayLike) -> np.ndarray:
        """Estimates for rows with the columns of the training, in any order, among others.

        Raises
        ------
        ValueError
            If a column is missing, or holds another kind of values than in training.
        """
        return self.model.predict(self._prepare(features))

    def unseen_categories(self, features: pd.DataFrame) -> pd.DataFrame:
        """`column`, `value` and `rows` of texts that the training did not have: rare ones to the model."""
        found = []
        for kind, part, names in _of_columns(self.preprocessor).transformers_ if self.preprocessor else ():
            if kind == "category" and len(names):
                texts = part[0].transform(features[names])
                for name, known in zip(names, part[-1].categories_, strict=True):
                    counts = texts[name].dropna().value_counts()
                    found += [(name, value, n) for value, n in counts.items() if value not in set(known)]
        return pd.DataFrame(found, columns=["column", "value", "rows"])

    def predict_interval(
        self, features: pd.DataFrame | ArrayLike, coverage: float | None = None
    ) -> np.ndarray | None:
        """Low and high ends (n, 2) of the model's intervals, None if it gives none.

        Without a `coverage` it is the card's.
        """
        return self.intervals(self._prepare(features), coverage)

    def intervals(self, X: Any, coverage: float | None = None) -> np.ndarray | None:
        """The same for the model's features."""
        if not hasattr(self.model, "predict_interval"):
            return None
        coverage = self.card.coverage if coverage is None else coverage
        given = {} if coverage is None else {"coverage": coverage}
        return self.model.predict_interval(X, **given)

    def _prepare(self, features: pd.DataFrame | ArrayLike) -> Any:
        columns = self.columns
        if not columns:
            return features
        if not isinstance(features, pd.DataFrame):
            raise ParameterError(f"features must be a frame with the columns {', '.join(columns)}")
        missing = [name for name in columns if name not in features]
        if missing:
            raise ParameterError(
                f"features must have all columns of the training; missing: {', '.join(missing)}"
            )
        X = features[list(columns)]
        if X.shape[1] > len(columns):
            raise ParameterError(
                f"features must have each column once; twice: {', '.join(X.columns[X.columns.duplicated()])}"
            )
        if self.preprocessor is None:
            X = to_numbers(X)
            if (gaps := X.isna().any()).any():
                names = ", ".join(X.columns[gaps])
                raise ParameterError(
                    f"features must have no gaps, as nothing fills them here; got some in {names}"
                )
        else:
            # What took no part in training may be absent, but the transformer wants its place.
            X = self.preprocessor.transform(X.reindex(columns=self._names_in_training()))
        return X if isinstance(X, pd.DataFrame) and self._knows_names() else self.named(np.asarray(X))

    def named(self, X: np.ndarray) -> Any:
        """The model's features, as a frame if it was fitted on one."""
        return pd.DataFrame(X, columns=self.model.feature_names_in_) if self._knows_names() else X

    def _knows_names(self) -> bool:
        return hasattr(self.model, "feature_names_in_")


def save_model(
    model: Any,
    path: str | Path,
    card: Card,
    *,
    preprocessor: ColumnTransformer | Pipeline | None = None,
    column_types: Mapping[str, str] | None = None,
    missing_values: str = "",
    overwrite: bool = False,
) -> None:
    """Write a fitted model into one file, from which `load_model` makes it anew.

    The file holds no code: a model made of anything but classes that are known here, or with functions or
    modules of one's own, is refused. It holds what the model learned from, as far as predictions need that:
    the labeled rows, for many models. A state of randomness (`random_state` may be one) is not kept.

    Parameters
    ----------
    model : estimator
        Fitted: `DMLS2RRegressor`, COREG, MSSR, those of `plain_models`, and what averages them or adds
        intervals.
    path : str or Path
        ``model.dmls2r``, for example.
    card : Card
    preprocessor : transformer, optional
        Fitted, and what turned a table into the features that the model was fitted on: from
        `make_preprocessor`, or a Pipeline that begins with one. Without it the model takes its features as
        they are.
    column_types, missing_values : mapping and str, optional
        How the columns of a file are to be read by `dmls2r predict`: those of the `Dataset` that the model
        learned from. Default: by their kinds alone.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.

    Raises
    ------
    ParameterError
        If something cannot be stored, or there is a file.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from dmls2r_lite.data import load_dataset
    >>> from dmls2r_lite.data.preparing import make_preprocessor
    >>> from dmls2r_lite.practice.storing import Card, load_model, save_model
    >>> data = load_dataset("boston")
    >>> preprocessor = make_preprocessor(data.features).fit(data.features)
    >>> model = RidgeCV().fit(preprocessor.transform(data.features), data.target)
    >>> card = Card(data.name, "MEDV", n_labeled=506, n_unlabeled=0, unit=data.unit)
    >>> save_model(model, "model.dmls2r", card, preprocessor=preprocessor)
    >>> load_model("model.dmls2r").predict(data.features[:2]).round(1)
    array([30., 25.])
    """
    path = Path(path)
    if not isinstance(card, Card):
        raise ParameterError(f"card must be a Card, got {type(card).__name__}")
    if path.is_dir() or (path.exists() and not overwrite):
        raise ParameterError(f"path must name a new file, unless overwrite=True, but {path} exists")
    if not _is_model(model):
        raise ParameterError(f"model must be a regressor, got {type(model).__name__}")
    check_is_fitted(model)
    parts = model.get_params().values()
    if preprocessor is None and any(isinstance(part, ColumnTransformer) for part in parts):
        raise ParameterError(  # within a model it would be given numbers, whatever a table's columns hold
            "model must be fitted on the numbers that its ColumnTransformer gives, and not hold it: fit that "
            "one first, and give it as preprocessor"
        )
    if preprocessor is not None:
        if not _is_preprocessor(preprocessor):
            raise ParameterError(
                "preprocessor must be a ColumnTransformer or a Pipeline that begins with one, "
                f"got {type(preprocessor).__name__}"
            )
        check_is_fitted(preprocessor)
    column_types = dict(column_types or {})
    if wrong := [text for text in (*column_types, *column_types.values()) if not TEXT.fits(text)]:
        raise ParameterError(f"column_types must hold {TEXT.allowed}, got {str(wrong[0])[:100]!r}")
    if not TEXT.fits(missing_values):
        raise ParameterError(f"missing_values must be {TEXT.allowed}, got {str(missing_values)[:100]!r}")
    stored = StoredModel(model, card, preprocessor, _versions(), column_types, missing_values)
    packer = Packer()
    text = {
        "format": FORMAT,
        "version": VERSION,
        "versions": stored.versions,
        "card": asdict(card),
        "column_types": column_types,
        "missing_values": missing_values,
        "preprocessor": packer.pack(preprocessor, "preprocessor"),
        "model": packer.pack(model),
    }
    rows = np.random.default_rng(0).uniform(size=(N_PROBES, _n_features(model)))
    try:
        text["probe"] = packer.pack([rows, *_probe(stored, rows)])
    except ValueError as error:
        raise ParameterError(f"model cannot be stored: {error}") from error
    # A card may hold NumPy's numbers.
    content = json.dumps(text, allow_nan=False, default=np.generic.item).encode()
    if len(content) > MAX_JSON:
        raise ParameterError(f"model must have fewer parts, {MAX_JSON} bytes of them, got {len(content)}")
    with replacing(path) as unfinished:
        with ZipFile(unfinished, "w") as archive:
            for name, part in zip(NAMES, (content, bytes(packer.bytes)), strict=True):
                # Without the time of day: the same model gives the same bytes.
                archive.writestr(ZipInfo(name), part, ZIP_DEFLATED, compresslevel=1)
        try:
            _load(unfinished, when_saved=True)  # so that no file is left which cannot be read
        except ValueError as error:
            raise ParameterError(f"model cannot be stored: read again, it {error}") from error


def load_model(path: str | Path) -> StoredModel:
    """Read a model that `save_model` wrote. No code is run that comes from the file.

    The model must predict what it did when it was saved, for some rows that are in the file too. So a file
    is also refused if the versions that are installed here make something else of it.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    StoredModel

    Raises
    ------
    OSError
        If there is no such file, or it may not be read.
    ValueError
        If it is no such file, damaged, of a later version of this format, or not to be trusted.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"a model is a file, but {path} is a folder")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return _load(path)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def _load(path: Path, when_saved: bool = False) -> StoredModel:
    """`load_model`, with messages that go on after the name of the file."""
    content, numbers = _read(path)
    try:
        text = json.loads(content)
        found = text["format"], text["version"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"is damaged, or no model: {_tell(error)}") from error
    if found[0] != FORMAT or type(found[1]) is not int:
        raise ValueError(f"is no model: its format is {_tell(found)}")
    if found[1] > VERSION:
        raise ValueError(
            f"is of version {found[1]} of the format; this dmls2r-lite knows {VERSION}: update it"
        )
    versions: dict[str, str] = {}
    try:
        versions = {name: value for name, value in text["versions"].items() if TEXT.fits(value)}
        unpacker = Unpacker(numbers)
        preprocessor, model, probe = (
            unpacker.unpack(text[name]) for name in ("preprocessor", "model", "probe")
        )
        _demand(_is_model(model), f"a {type(model).__name__} is no model")
        _demand(preprocessor is None or _is_preprocessor(preprocessor), "its preprocessor is none")
        column_types, missing_values = text.get("column_types", {}), text.get("missing_values", "")
        _demand(
            all(map(TEXT.fits, (*column_types, *column_types.values(), missing_values))), "it reads no file"
        )
        stored = StoredModel(
            model, Card(**text["card"]), preprocessor, versions, column_types, missing_values
        )
        rows, *expected = probe
        _demand(
            type(rows) is np.ndarray and rows.shape == (N_PROBES, _n_features(model)), "its probe is none"
        )
        for now, then in zip(_probe(stored, rows), expected, strict=True):
            _demand(now.shape == then.shape, "it predicts what it did not before")
            # On another processor a few may differ by more: where neighbours tie, for example.
            with np.errstate(invalid="ignore"):
                gaps = np.where(now == then, 0, np.abs(now - then))  # infinite ones may be equal
            gap = np.quantile(gaps, 1 if when_saved else 0.5)
            size = np.abs(then[np.isfinite(then)]).max(initial=0)
            _demand(gap <= size * (1e-9 if when_saved else 1e-6), "it predicts what it did not before")
        _demand(unpacker.read == len(numbers), "it holds numbers that belong to nothing")
    except Exception as error:  # where somebody has meddled with a file, anything may go wrong
        here = _versions()
        then = [f"{name} {versions[name]}" for name in here if versions.get(name, here[name]) != here[name]]
        advice = f"; it was made with {', '.join(then)}, which may be why" if then else ""
        raise ValueError(f"cannot be made a model again: {_tell(error)}{advice}") from error
    return stored


def _read(path: Path) -> list[bytes]:
    """The two parts of a file; no more is unpacked than a file of its size may hold."""
    content = path.read_bytes()
    damage = "is damaged or cut off" if content.startswith(b"PK") else "is no model that `save_model` wrote"
    try:
        archive = ZipFile(io.BytesIO(content))
        parts = archive.infolist()
    except Exception as error:  # of many kinds
        raise ValueError(f"{damage}: {_tell(error)}") from error
    names = [part.filename for part in parts]
    _demand(names == list(NAMES), "is no model: it is a zip of something else, or damaged")
    n_bytes = sum(part.file_size for part in parts)
    _demand(
        parts[0].file_size <= MAX_JSON
        and n_bytes <= 2**26 + 100 * len(content)
        and all(part.compress_type in (ZIP_STORED, ZIP_DEFLATED) for part in parts),
        f"is no model: unpacked it would be {n_bytes} bytes large",
    )
    try:
        return [archive.read(part) for part in parts]
    except Exception as error:
        raise ValueError(f"{damage}: {_tell(error)}") from error


def _probe(stored: StoredModel, rows: np.ndarray) -> list[np.ndarray]:
    """What a model says to some rows, and to one of a table in which nothing is known."""
    model, X = stored.model, stored.named(rows)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = [np.asarray(model.predict(X), dtype=float)]
        if stored.preprocessor is not None:
            nothing = pd.DataFrame(np.nan, index=[0], columns=list(stored.columns))
            estimates.append(np.asarray(stored.predict(nothing), dtype=float))
        ends = stored.intervals(X)
    intervals = [] if ends is None else [np.asarray(ends, dtype=float)]
    _demand(all(np.isfinite(part).all() for part in estimates), "its predictions are not finite")
    _demand(not any(np.isnan(part).any() for part in intervals), "its intervals are not numbers")
    return estimates + intervals  # of few residuals, intervals may be infinite


def _is_model(value: object) -> bool:
    return isinstance(value, BaseEstimator) and is_regressor(value)


def _n_features(model: Any) -> int:
    """How many features a model takes."""
    return int(model.n_features_in_)


def _of_columns(preprocessor: ColumnTransformer | Pipeline) -> ColumnTransformer:
    """The part of a preprocessor that knows a table's columns."""
    return preprocessor.steps[0][1] if isinstance(preprocessor, Pipeline) else preprocessor


def _is_preprocessor(value: object) -> bool:
    return isinstance(value, ColumnTransformer | Pipeline) and isinstance(
        _of_columns(value), ColumnTransformer
    )


def _versions() -> dict[str, str]:
    """Of the packages that a model is made with."""
    return {name: metadata.version(name) for name in PACKAGES}


def _demand(fits: bool, otherwise: str) -> None:
    if not fits:
        raise ValueError(otherwise)


def _tell(error: object) -> str:
    """An error in one line that is safe to print."""
    text = str(error) if isinstance(error, ValueError) else repr(error)
    return "".join(letter if letter.isprintable() else " " for letter in text[:300])
