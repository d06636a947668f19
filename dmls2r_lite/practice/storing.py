"""A fitted model in one file, with what has to be known of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..data.preparing import _to_numbers as to_numbers
from ..foundation.files import replacing
from ..foundation.parameters import COUNT, SHARE, ParameterError, Rule, count, number
from .packing import pack, read_parts, tell, unpack, write_parts

PACKAGES = ("dmls2r-lite", "numpy", "pandas", "scikit-learn", "torch")
N_PROBES = 8  # rows for which a model is asked when it is saved, and again when it is loaded
TEXT = Rule(
    "printable text of at most 2000 characters",
    lambda value: isinstance(value, str) and len(value) <= 2000 and value.replace("\n", "").isprintable(),
)
_ERROR = number("a finite number of 0 or more", lambda value: value >= 0).or_none()
_TARGET = number("a finite number", lambda value: True).or_none()
_CARD_RULES = {
    **dict.fromkeys(["data", "target", "unit", "verdict"], TEXT),
    **dict.fromkeys(["expected_error", "error_margin"], _ERROR),
    **dict.fromkeys(["lowest", "highest"], _TARGET),
    "n_labeled": COUNT,
    "n_unlabeled": count(0),
    "coverage": SHARE.or_none(),
}


@dataclass(frozen=True)
class Card:
    """What somebody who is given a model has to know.

    Attributes
    ----------
    data, target, unit : str
        What it learned from, the column that it estimates, and that column's unit.
    n_labeled, n_unlabeled : int
        N and M.
    expected_error, error_margin : float, optional
        Mean absolute error to be expected on new rows, and how far off that number may be.
    coverage : float, optional
        Nominal share of targets within the model's intervals.
    lowest, highest : float, optional
        Labels.
    verdict : str
        What comparing it with other models said.

    Raises
    ------
    ParameterError
        If one of these is of another kind.
    """

    data: str
    target: str
    n_labeled: int
    n_unlabeled: int
    unit: str = ""
    expected_error: float | None = None
    error_margin: float | None = None
    coverage: float | None = None
    verdict: str = ""
    lowest: float | None = None
    highest: float | None = None

    def __post_init__(self) -> None:
        for name, rule in _CARD_RULES.items():
            if not rule.fits(value := getattr(self, name)):
                raise ParameterError(f"{name} of a card must be {rule.allowed}, got {str(value)[:100]!r}")

    def __str__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        lines = [
            f"Estimates {self.target}{unit}, learned from {self.data}: "
            f"{self.n_labeled} labeled rows and {self.n_unlabeled} without a label."
        ]
        if (error := self.expected_error) is not None:
            margin = "" if self.error_margin is None else f" ± {self.error_margin:.3g}"
            lines.append(f"Expected mean absolute error on new rows: {error:.3g}{margin}{unit}.")
        if self.coverage is not None:
            lines.append(f"Its intervals are made to hold {self.coverage:.0%} of the targets.")
        return "\n".join([*lines, *filter(None, [self.verdict])])


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
        How columns of a file are to be read, see `data.reading.read`.
    missing_values : str
        What stands for a missing value there, see `load_dataset`.
    """

    model: Any
    card: Card
    preprocessor: Any
    versions: dict[str, str]
    column_types: dict[str, str]
    missing_values: str

    @property
    def columns(self) -> dict[str, str]:
        """Columns that it needs and what each holds, see `describe_columns`; empty if fitted on an array."""
        if self.preprocessor is None:
            return dict.fromkeys(map(str, getattr(self.model, "feature_names_in_", ())), "number")
        first = _of_columns(self.preprocessor)
        kinds = {
            name: kind for kind, _, names in first.transformers_ if kind != "remainder" for name in names
        }
        return {name: kinds[name] for name in first.feature_names_in_ if name in kinds}

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
        coverage = self.card.coverage if coverage is None else coverage
        return _predict_interval(self.model, self._prepare(features), coverage)

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
            twice = ", ".join(X.columns[X.columns.duplicated()])
            raise ParameterError(f"features must have each column once; twice: {twice}")
        if self.preprocessor is None:
            X = to_numbers(X)
            if gaps := ", ".join(X.columns[X.isna().any()]):
                raise ParameterError(
                    f"features must have no gaps, as nothing fills them here; got some in {gaps}"
                )
            return X
        # What took no part in training may be absent, but the transformer wants its place.
        X = X.reindex(columns=_of_columns(self.preprocessor).feature_names_in_)
        return _named(self.model, np.asarray(self.preprocessor.transform(X)))


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
    if preprocessor is None and any(isinstance(p, ColumnTransformer) for p in model.get_params().values()):
        raise ParameterError(  # within a model it would be given numbers, whatever a table's columns hold
            "model must be fitted on the numbers that its ColumnTransformer gives, and not hold it: fit that "
            "one first, and give it as preprocessor"
        )
    if preprocessor is not None:
        if not isinstance(_of_columns(preprocessor), ColumnTransformer):
            raise ParameterError(
                "preprocessor must be a ColumnTransformer or a Pipeline that begins with one, "
                f"got {type(preprocessor).__name__}"
            )
        check_is_fitted(preprocessor)
    column_types = dict(column_types or {})
    _check_texts("column_types must hold", *column_types, *column_types.values())
    _check_texts("missing_values must be", missing_values)
    stored = StoredModel(model, card, preprocessor, _versions(), column_types, missing_values)
    packed = pack(model, preprocessor)
    try:
        probe = _probe(stored)
    except ValueError as error:
        raise ParameterError(f"model cannot be stored: {error}") from error
    text = {
        "versions": stored.versions,
        "card": asdict(card),
        "column_types": column_types,
        "missing_values": missing_values,
        "probe": [answers.tolist() for answers in probe],
    }
    with replacing(path) as unfinished:
        write_parts(unfinished, text, packed)
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
        If it is no such file, damaged, of another version of this format, or not to be trusted.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return _load(path)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def _load(path: Path, when_saved: bool = False) -> StoredModel:
    """`load_model`, with messages that go on after the name of the file."""
    text, packed = read_parts(path)
    versions: dict[str, str] = {}
    try:
        column_types, missing_values = text["column_types"], text["missing_values"]
        texts = {name: text["versions"][name] for name in PACKAGES}
        _check_texts("it must hold", *texts.values(), *column_types, *column_types.values(), missing_values)
        versions = texts
        card = Card(**text["card"])
        model, preprocessor = unpack(packed)
        if not (_is_model(model) and isinstance(_of_columns(preprocessor), ColumnTransformer | None)):
            raise ValueError("it holds no model, or no preprocessor")
        stored = StoredModel(model, card, preprocessor, versions, column_types, missing_values)
        for now, then in zip(_probe(stored), map(np.array, text["probe"]), strict=True):
            with np.errstate(invalid="ignore"):
                gaps = np.where(now == then, 0, np.abs(now - then))  # infinite ones may be equal
            size = np.abs(then[np.isfinite(then)]).max(initial=0)
            # On another processor a few may differ by more: where neighbours tie, for example.
            if not np.quantile(gaps, 1 if when_saved else 0.5) <= size * (1e-9 if when_saved else 1e-6):
                raise ValueError("it predicts what it did not before")
    except Exception as error:  # where somebody has meddled with a file, anything may go wrong
        here = _versions()
        others = [f"{name} {version}" for name, version in versions.items() if version != here[name]]
        advice = f"; it was made with {', '.join(others)}, which may be why" if others else ""
        raise ValueError(f"cannot be made a model again: {tell(error)}{advice}") from error
    return stored


def _probe(stored: StoredModel) -> list[np.ndarray]:
    """What a model says to some rows of features, and to one of a table in which nothing is known."""
    model = stored.model
    n_features = min(model.n_features_in_, 10**6)  # whatever a file claims
    X = _named(model, check_random_state(0).uniform(size=(N_PROBES, n_features)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimates = [np.asarray(model.predict(X), dtype=float)]
        if stored.preprocessor is not None:
            nothing = pd.DataFrame(np.nan, index=[0], columns=list(stored.columns))
            estimates.append(np.asarray(stored.predict(nothing), dtype=float))
        ends = _predict_interval(model, X, stored.card.coverage)
    intervals = [] if ends is None else [np.asarray(ends, dtype=float)]
    if not all(np.isfinite(part).all() for part in estimates):
        raise ValueError("its predictions are not finite")
    if any(np.isnan(part).any() for part in intervals):  # of few residuals, they may be infinite
        raise ValueError("its intervals are not numbers")
    return estimates + intervals


def _named(model: Any, X: np.ndarray) -> Any:
    """A model's features, as a frame if it was fitted on one."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def _predict_interval(model: Any, X: Any, coverage: float | None) -> np.ndarray | None:
    if not hasattr(model, "predict_interval"):
        return None
    return model.predict_interval(X, **({} if coverage is None else {"coverage": coverage}))


def _is_model(value: object) -> bool:
    return isinstance(value, BaseEstimator) and is_regressor(value)


def _of_columns(preprocessor: Any) -> Any:
    """The part of a preprocessor that knows a table's columns."""
    return preprocessor.steps[0][1] if isinstance(preprocessor, Pipeline) else preprocessor


def _check_texts(what: str, *texts: object) -> None:
    if wrong := [text for text in texts if not TEXT.fits(text)]:
        raise ParameterError(f"{what} {TEXT.allowed}, got {str(wrong[0])[:100]!r}")


def _versions() -> dict[str, str]:
    """Of the packages that a model is made with."""
    return {name: metadata.version(name) for name in PACKAGES}
