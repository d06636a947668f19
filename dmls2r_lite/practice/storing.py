"""A fitted model in one file, with what has to be known of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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
from ..foundation.checks import RangeScaler, check_table, last_step
from ..foundation.files import replacing, versions
from ..foundation.parameters import COUNT, RULES, ParameterError, Rule, check_rules, demand, number, shown
from .intervals import ConformalRegressor
from .packing import as_in_fit, pack, read_versions, unpack

N_PROBES = 8  # rows for which a model is asked when it is saved, and again when it is loaded
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TEXT = Rule(
    "printable text of at most 2000 characters",
    lambda value: isinstance(value, str) and len(value) <= 2000 and value.replace("\n", "").isprintable(),
)
NAMES = Rule(  # of columns, which may hold spaces of any kind
    "text of at most 100,000 characters without control characters",
    lambda value: isinstance(value, str) and len(value) <= 100_000 and not CONTROL.search(value),
)
TEXTS = Rule(
    f"a dict of {NAMES.allowed}",
    lambda value: isinstance(value, dict) and all(map(NAMES.fits, [*value, *value.values()])),
)
HINT = (
    "; that has this package's estimators and, of scikit-learn, linear and ridge models, trees, forests, "
    "neighbours, Gaussian processes and SVR, alone, in a Pipeline or averaged. Put one of them in its place, "
    "save the one that your class holds, leave out what predictions do without (callback=None), or keep the "
    "model as code, with joblib.dump"
)
_ERROR = number("a finite number of 0 or more", lambda value: value >= 0).or_none()
_RULES = {
    **dict.fromkeys(["data", "target", "unit", "verdict"], TEXT),
    "missing_values": NAMES,
    **dict.fromkeys(["versions", "column_types"], TEXTS),
    **dict.fromkeys(["expected_error", "error_margin"], _ERROR),
    **dict.fromkeys(["lowest", "highest"], number("a finite number", lambda value: True).or_none()),
    "n_labeled": COUNT.or_none(),
    "n_unlabeled": RULES["n_unlabeled"].or_none(),
    "coverage": RULES["coverage"].or_none(),
    "model": Rule("a regressor", lambda value: isinstance(value, BaseEstimator) and is_regressor(value)),
    "card": Rule("a Card", lambda value: isinstance(value, Card)),
    "preprocessor": Rule(
        "a ColumnTransformer, or a Pipeline that begins with one",
        lambda value: isinstance(_of_columns(value), ColumnTransformer | None),
    ),
}


class _Checked:
    def __post_init__(self) -> None:
        check_rules(vars(self), rules=_RULES)


@dataclass(frozen=True)
class Card(_Checked):
    """What somebody who is given a model has to know.

    Attributes
    ----------
    data, target, unit : str
        What it learned from, the column that it estimates, and that column's unit.
    n_labeled, n_unlabeled : int, optional
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

    data: str = "a table"
    target: str = "a target"
    n_labeled: int | None = None
    n_unlabeled: int | None = None
    unit: str = ""
    expected_error: float | None = None
    error_margin: float | None = None
    coverage: float | None = None
    verdict: str = ""
    lowest: float | None = None
    highest: float | None = None

    def __str__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        kinds = {"labeled rows": self.n_labeled, "without a label": self.n_unlabeled}
        rows = " and ".join(f"{n} {kind}" for kind, n in kinds.items() if n is not None)
        lines = [f"Estimates {self.target}{unit}, learned from {self.data}{rows and f': {rows}'}."]
        if (error := self.expected_error) is not None:
            margin = "" if self.error_margin is None else f" ± {self.error_margin:.3g}"
            lines.append(f"Expected mean absolute error on new rows: {error:.3g}{margin}{unit}.")
        if self.coverage is not None:
            lines.append(f"Its intervals are made to hold {self.coverage:.0%} of the targets.")
        return "\n".join([*lines, *filter(None, [self.verdict])])


@dataclass(frozen=True)
class StoredModel(_Checked):
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
        parts = [part for part in first.transformers_ if part[0] != "remainder"]
        kinds = {name: kind for kind, _, names in parts for name in names}
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
        """Texts that the training did not have, which are rare ones to the model.

        That is their `column`, `value` and `rows`, and what is `alike` but for capitals, if anything is.
        """
        found = []
        for kind, part, names in _of_columns(self.preprocessor).transformers_ if self.preprocessor else ():
            if kind == "category" and len(names):
                texts = part[0].transform(features[names])
                for name, known in zip(names, part[-1].categories_, strict=True):
                    alike = {str(value).casefold(): str(value) for value in known}
                    counts = texts[name].dropna().value_counts().drop(known, errors="ignore")
                    for value, n in counts.items():
                        found.append((name, value, n, alike.get(value.casefold(), "")))
        return pd.DataFrame(found, columns=["column", "value", "rows", "alike"])

    def far_values(self, features: pd.DataFrame) -> dict[str, int]:
        """In how many rows a column is farther from all values of the training than those are apart.

        Nothing is known of it unless the preprocessor is a `Pipeline` that scales them to [0, 1] in its
        second and last step.
        """
        steps = [step for _, step in getattr(self.preprocessor, "steps", ())]
        if len(steps) != 2 or not isinstance(steps[1], RangeScaler):
            return {}
        is_far = np.abs(np.asarray(self._prepare(features)) - 0.5) > 1.5
        counts: dict[str, int] = {}
        for kind, _, names in steps[0].transformers_:
            if kind in ("number", "date", "time"):
                n_rows = is_far[:, steps[0].output_indices_[kind]].sum(axis=0)
                counts |= {name: int(n) for name, n in zip(names, n_rows, strict=True) if n}
        return counts

    def predict_interval(
        self, features: pd.DataFrame | ArrayLike, coverage: float | None = None
    ) -> np.ndarray | None:
        """Low and high ends (n, 2) of each row's interval, see `ConformalRegressor`; None if it gives none.

        Without a `coverage` it is the card's, else 0.8.
        """
        if not hasattr(self.model, "predict_interval"):
            return None
        asked = next(share for share in (coverage, self.card.coverage, 0.8) if share is not None)
        return self.model.predict_interval(self._prepare(features), asked)

    def _prepare(self, features: Any) -> Any:
        if not (columns := list(self.columns)):
            return features
        missing = ", ".join(name for name in columns if name not in getattr(features, "columns", ()))
        demand(not missing, f"features must be a frame that has the columns {missing}")
        table = check_table("features", features[columns], may_have_gaps=True)
        if self.preprocessor is None:
            table = to_numbers(table)
            gaps = ", ".join(table.columns[table.isna().any()])
            demand(not gaps, f"features must have no gaps, as nothing fills them; got some in {gaps}")
            return table
        # What took no part in training may be absent, but the transformer wants its place.
        table = table.reindex(columns=_of_columns(self.preprocessor).feature_names_in_)
        return as_in_fit(self.model, np.asarray(self.preprocessor.transform(table)))


def save_model(
    model: Any,
    path: str | Path,
    card: Card | None = None,
    *,
    preprocessor: ColumnTransformer | Pipeline | None = None,
    column_types: Mapping[str, str] | None = None,
    missing_values: str = "",
    overwrite: bool = False,
) -> None:
    """Write a fitted model into one file, from which `load_model` makes it anew.

    The file holds no code: a model made of anything but classes that are known here, or with functions or
    modules of one's own, is refused. It holds what the model learned from, as far as predictions need that:
    the labeled rows, for many models. A state of randomness (`random_state` may be one) is not kept, nor are
    the seconds in `history_`: equal models give equal bytes. What predictions do without may be removed
    before: ``model.set_params(callback=None)``, for example.

    Parameters
    ----------
    model : estimator
        Fitted: `DMLS2RRegressor`, COREG, MSSR, those of `plain_models`, and what averages them or adds
        intervals.
    path : str or Path
        ``model.dmls2r``, for example.
    card : Card, optional
        What is to be known of it; if not given, what the model knows: how many rows it learned from, and of a
        `ConformalRegressor` the error to expect.
    preprocessor : transformer, optional
        Fitted, and what turned a table into the features that the model was fitted on: from
        `make_preprocessor`, or a Pipeline that begins with one. Without it the model takes its features as
        they are.
    column_types, missing_values : mapping and str, optional
        How the columns of a file are to be read by `dmls2r predict`: those of the `Dataset` that the model
        learned from. Default: by their kinds alone.
    overwrite : bool, default=False
        Whether a file that is there may be replaced; of a link that is the file that it leads to.

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
    check_rules({"path": path, "overwrite": overwrite})
    path = Path(path)
    is_free = not path.exists() or (overwrite and not path.is_dir())
    demand(is_free, f"path must name a new file, unless overwrite=True, but {path} exists")
    card = _card_of(model) if card is None else card
    types: Any = {} if column_types is None else column_types
    stored = StoredModel(model, card, preprocessor, versions(), types, missing_values)
    check_is_fitted(model)
    if preprocessor is not None:
        check_is_fitted(preprocessor)
    elif any(isinstance(part, ColumnTransformer) for part in model.get_params().values()):
        # It would be given numbers, whatever a table's columns hold.
        raise ParameterError("model must not hold a ColumnTransformer: give that one as preprocessor")
    try:
        content = pack(stored.versions, vars(stored) | {"card": asdict(card), "probe": _probe(stored)})
        _restore(content, share=1)  # so that no file is left which cannot be read
    except Exception as error:  # pickling may fail in many ways
        hint = HINT if "not on the list" in str(error) else ""
        raise ParameterError(f"model cannot be stored: {error}{hint}") from error
    with replacing(path.resolve()) as unfinished:  # a link stays one, and what it leads to is replaced
        unfinished.write_bytes(content)


def load_model(path: str | Path) -> StoredModel:
    """Read a model that `save_model` wrote. No code is run that comes from the file.

    The file's digest must be that of its content: one that was damaged or changed is refused. Whoever also
    makes the digest anew can make a file that predicts anything: take models from those you trust to predict.
    The model must predict what it did when it was saved, for some rows of random numbers. So a file is also
    refused if the versions that are installed here make something else of it.

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
    check_rules({"path": path})
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path must be a file of `save_model`, but there is no file {path}")
    content, others = path.read_bytes(), []
    try:
        then = read_versions(content)
        others = [f"{name} {then[name]}" for name, here in versions().items() if then.get(name, here) != here]
        return _restore(content, share=0.5)
    except Exception as error:  # where somebody has meddled with a file, anything may go wrong
        advice = f"; it was made with {shown(', '.join(others))}, which may be why" if others else ""
        reason = f"{shown(str(error))}{advice}"
        raise ValueError(f"{path} is no model that `save_model` wrote, or not any more: {reason}") from error


def _restore(content: bytes, share: float) -> StoredModel:
    """A model from what a file holds, if it predicts what it did, at least that share of some rows."""
    found = unpack(content)
    probe = found.pop("probe")
    stored = StoredModel(**found | {"card": Card(**found["card"])})
    for now, then in zip(_probe(stored), probe, strict=True):
        # On another processor a few may differ: where neighbours tie, for example.
        is_same = np.isclose(now, then, rtol=0, atol=1e-6 * np.abs(then).max())
        demand(is_same.mean() >= share, "it predicts what it did not before")
    return stored


def _probe(stored: StoredModel) -> list[np.ndarray]:
    """What a model says to some rows of features, and to one of a table in which nothing is known."""
    demand(hasattr(stored.model, "n_features_in_"), "it has no n_features_in_, or begins with 'passthrough'")
    bare, n_features = replace(stored, preprocessor=None), min(stored.model.n_features_in_, 10**6)
    X = as_in_fit(stored.model, check_random_state(0).uniform(size=(N_PROBES, n_features)))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        answers = [bare.predict(X), bare.predict_interval(X)]
        if stored.preprocessor is not None:
            answers.append(stored.predict(pd.DataFrame(np.nan, [0], list(stored.columns))))
    found = [np.asarray(answer, dtype=float) for answer in answers if answer is not None]
    demand(all(np.isfinite(answer).all() for answer in found), "its predictions are not finite")
    return found


def _card_of(model: Any) -> Card:
    """What a model knows of itself."""
    model = last_step(model)
    known: dict[str, Any] = {name: getattr(model, f"{name}_", None) for name in ("n_labeled", "n_unlabeled")}
    is_plain = isinstance(model, ConformalRegressor) and model.normalizer is None
    return Card(**known, expected_error=float(model.errors_.mean()) if is_plain else None)


def _of_columns(preprocessor: Any) -> Any:
    """The part of a preprocessor that knows a table's columns."""
    return preprocessor.steps[0][1] if isinstance(preprocessor, Pipeline) else preprocessor
