"""What happens around a training: checks, scaling, seeds, early stopping, several models at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor, nn

from .foundation.checks import SemiSupervisedRegressor, check_numbers, is_labeled, make_scaler, seeded_torch
from .foundation.parameters import ParameterError, check_not_above, check_rules, shown
from .hooks import Hook, check_weights, show_progress, watch
from .model import LinearPairHead, SiameseNetwork, make_encoder
from .probing import check_encoder_given, has_batch_norm, probe_encoder, probe_head
from .training import TrainingSet, train_side_by_side

if TYPE_CHECKING:
    from .estimators import DMLS2RRegressor


ROWS_PER_BLOCK = 2**16
MAX_VALUES = 2 * 10**7  # of the features of all folds that are fitted side by side: they are copied


class RowsThroughNetworks(SemiSupervisedRegressor):
    """Scaling, and rows that go through the networks block by block: what every estimate needs."""

    networks_: list[SiameseNetwork]
    _any_shape = True

    def predict_each(self, X: ArrayLike) -> np.ndarray:
        """Estimates of each network, an array (n_samples, n_networks); `predict` gives their mean."""
        check_is_fitted(self)
        rows = self._validate_rows(X)
        return np.stack([self._predict(rows, [network]) for network in self.networks_], axis=1)

    def _predict(
        self, X: np.ndarray, networks: Sequence[SiameseNetwork] = (), rows: np.ndarray | None = None
    ) -> np.ndarray:
        def predict(x: Tensor, network: SiameseNetwork) -> Tensor:
            return network.predict(x, *(part.to(x.dtype) for part in (self._x_labeled, self._y_labeled)))

        return self._unscaled(self._mean(X, predict, networks, rows))

    def _mean(
        self,
        X: np.ndarray,
        function: Callable[[Tensor, SiameseNetwork], Tensor],
        networks: Sequence[SiameseNetwork] = (),
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """The mean over networks of what a function gives for scaled rows of X."""
        networks = networks or self.networks_
        return self._by_blocks(
            X,
            lambda x: torch.stack(
                [function(in_precision_of(network, x), network) for network in networks]
            ).mean(0),
            rows,
        )

    def _by_blocks(
        self, X: np.ndarray, function: Callable[[Tensor], Tensor], rows: np.ndarray | None = None
    ) -> np.ndarray:
        """What a function gives for scaled rows of X, some at a time."""
        n = len(X) if rows is None else len(rows)
        results = np.empty((n, *self._y_labeled.shape[1:]))
        with torch.no_grad():
            for start in range(0, n, ROWS_PER_BLOCK):
                part = slice(start, start + ROWS_PER_BLOCK)
                x = self._tensor(self._scale_features(X[part if rows is None else rows[part]]))
                block = function(x).cpu().double().numpy()
                if start == 0:  # one array from the start: a list of blocks would fragment the memory
                    results = np.empty((n, *block.shape[1:]))
                results[part] = block
        return results

    def _tensor(self, values: np.ndarray, dtype: torch.dtype = torch.float64) -> Tensor:
        writable = np.require(values, requirements=["C", "W"])  # else PyTorch refuses or warns
        return torch.as_tensor(writable, dtype=dtype, device=self._device)

    def _scale_features(self, X: np.ndarray) -> np.ndarray:
        return self.feature_scaler_.transform(as_columns(X)).reshape(X.shape)

    def _unscaled(self, y: np.ndarray) -> np.ndarray:
        n_targets = self.target_scaler_.n_features_in_
        return (
            self.target_scaler_.inverse_transform(y.reshape(-1, n_targets)).reshape(y.shape) if y.size else y
        )


def in_precision_of(network: SiameseNetwork, x: Tensor) -> Tensor:
    """Samples in float32 while a network is trained, then in float64."""
    weight = next(network.parameters(), None)
    return x if weight is None else x.to(weight.dtype)


def fit_side_by_side(
    models: Sequence[DMLS2RRegressor],
    training_sets: Sequence[tuple[ArrayLike, ArrayLike]],
    X_validation: ArrayLike | None = None,
    y_validation: ArrayLike | None = None,
) -> list[DMLS2RRegressor]:
    """Fit several models at once, in a fraction of the time: for example one for each seed of a study.

    Parameters
    ----------
    models : sequence of DMLS2RRegressor
        With the same parameters, except `random_state`.
    training_sets : sequence of (X, y)
        One for each model, see `DMLS2RRegressor.fit`; all with the same number of labels.
    X_validation, y_validation : array-like, optional
        See there.

    Returns
    -------
    list of DMLS2RRegressor
        The models. Each is what `fit` alone would have made of it, to rounding.

    Raises
    ------
    TypeError, ValueError
        As in `fit`, or if parameters or numbers of labels differ.
    """
    if (X_validation is None) != (y_validation is None):
        raise ValueError("X_validation and y_validation must be given together")
    given = None if X_validation is None or y_validation is None else (X_validation, y_validation)
    return _fit(models, training_sets, [given] * len(models))


def _fit(
    models: Sequence[DMLS2RRegressor],
    training_sets: Sequence[tuple[ArrayLike, ArrayLike]],
    validation: Sequence[tuple[ArrayLike, ArrayLike] | None],
) -> list[DMLS2RRegressor]:
    """`fit_side_by_side`, with samples to measure each model on."""
    if not len(models) == len(training_sets) > 0:
        raise ParameterError(
            f"models and training_sets must be as many, 1 or more, got {len(models)} and {len(training_sets)}"
        )
    first = models[0]
    for model in models[1:]:
        for name, value in model.get_params(deep=False).items():
            if name != "random_state" and not _is_same(value, other := getattr(first, name)):
                raise ParameterError(f"{name} must be the same in all models, got {other!r} and {value!r}")
    if len(set(map(id, models))) < len(models) or len({type(model) for model in models}) > 1:
        raise ParameterError(f"models must be different ones of one class, got {list(models)}")
    if len(models) > 1 and first.early_stopping is not None:  # each trains for as long as it chooses
        for model, one, samples in zip(models, training_sets, validation, strict=True):
            _fit([model], [one], [samples])
        return list(models)
    before = [dict(vars(model)) for model in models]
    try:
        checked, histories = _train(models, training_sets, validation)
    except BaseException:
        for model, kept in zip(models, before, strict=True):
            if _goes_on(model):
                model.__dict__ = kept
            else:
                model.__dict__.pop("networks_", None)  # half trained
        raise
    for place, (model, (X, y)) in enumerate(zip(models, checked, strict=True)):
        n = len(model.networks_)
        _end(model, X, y, histories[place * n : (place + 1) * n])
    return list(models)


def _train(
    models: Sequence[DMLS2RRegressor],
    training_sets: Sequence[tuple[ArrayLike, ArrayLike]],
    validation: Sequence[tuple[ArrayLike, ArrayLike] | None],
) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[pd.DataFrame]]:
    """Check everything, then make and train `networks_`; the checked sets and the histories are returned."""
    first = models[0]
    checked = [_check(model, X, y) for model, (X, y) in zip(models, training_sets, strict=True)]
    with ExitStack() as seeding:
        begun = [_begin(model, X, y, seeding) for model, (X, y) in zip(models, checked, strict=True)]
        steps = first._steps()
        networks = [network for model in models for network in model.networks_]
        hooks: list[Hook] = [] if first.callback is None else [first.callback]
        hooks += [show_progress(len(steps) * len(networks))] if first.progress else []
        watched = {
            id(network): _watch_error(model, *samples)
            for model, samples in zip(models, validation, strict=True)
            if samples is not None
            for network in model.networks_
        }
        if watched:
            hooks.insert(0, lambda network, row: watched[id(network)](network, row))
        histories = train_side_by_side(
            networks,
            [data for data, states in begun for _ in states],
            steps,
            seeds=[seed for model in models for seed in model._seeds],
            learning_rate=first.learning_rate,
            optimizer_state=first.optimizer_state,
            hooks=hooks,
            rng_states=[state for _, states in begun for state in states],
        )
    for network in networks:
        check_weights(network, first.learning_rate)
    return checked, histories


def _is_same(value: Any, other: Any) -> bool:
    """Whether two parameters are equal; modules and callables that were copied are."""
    if value is other or type(value) is not type(other):
        return value is other
    if isinstance(value, str | int | float | tuple | list) or is_dataclass(value):
        return bool(value == other)
    if isinstance(value, nn.Module):
        weights = [list(module.state_dict().values()) for module in (value, other)]
        return repr(value) == repr(other) and all(map(torch.equal, *weights))
    try:
        return joblib.hash(value) == joblib.hash(other)
    except Exception:  # what cannot be pickled cannot be compared
        return False


def _begin(
    model: DMLS2RRegressor, X: np.ndarray, y: np.ndarray, seeding: ExitStack
) -> tuple[TrainingSet, list[Tensor]]:
    """Scale, and make `networks_`, each from a seed of its own.

    What to train on, and for each network the state of PyTorch's generator, are returned. The generator
    is seeded until `seeding` ends.
    """
    start_from = getattr(model, "networks_", None)  # there is none unless this is a warm start
    labeled = is_labeled(y)
    y_columns = y[labeled].reshape(model.n_labeled_, -1)
    if start_from is None:
        model.feature_scaler_ = make_scaler(model.feature_scaling).fit(as_columns(X))
        model.target_scaler_ = make_scaler(model.target_scaling).fit(y_columns)
    model.n_epochs_ = model.n_epochs if model.early_stopping is None else _choose_n_epochs(model, X, y)
    X_scaled = model._scale_features(X)
    y_scaled = model.target_scaler_.transform(y_columns).reshape(y[labeled].shape)
    model._x_labeled, model._y_labeled = model._tensor(X_scaled[labeled]), model._tensor(y_scaled)
    x_unlabeled = model._tensor(X_scaled[~labeled], torch.float32)
    data = TrainingSet(model._x_labeled.float(), model._y_labeled.float(), x_unlabeled)
    rng, networks, states = check_random_state(model.random_state), [], []
    model._seeds = []
    for place in range(int(model.n_networks)):
        model._seeds.append(seeding.enter_context(seeded_torch(rng, model._device)))
        network = (
            copy.deepcopy(start_from[place]) if start_from else _make_network(model, data.x_labeled[:2].cpu())
        )
        networks.append(network.float().to(model._device))
        states.append(torch.get_rng_state())
    model.networks_ = networks
    return data, states


def _end(model: DMLS2RRegressor, X: np.ndarray, y: np.ndarray, histories: Sequence[pd.DataFrame]) -> None:
    """Keep what was trained, in float64."""
    for network in model.networks_:
        network.double().eval()  # a callback may have called train()
    if len(histories) > 1:
        histories = [history.assign(network=number) for number, history in enumerate(histories)]
    model.history_ = pd.concat(histories, ignore_index=True)
    model.n_iter_ = int(model.history_["epoch"].max())
    n_codes = model.network_.encoder(model._x_labeled[:1]).shape[-1]
    model._n_features_out = n_codes * len(model.networks_)
    model.transduction_ = model._predict(X, rows=np.flatnonzero(~is_labeled(y)))


def _choose_n_epochs(model: DMLS2RRegressor, X: np.ndarray, y: np.ndarray) -> int:
    """Train without some labels, watch the error on them, and take the epoch where it is lowest."""
    labels = np.flatnonzero(is_labeled(y))
    n_folds = len(labels) if model.early_stopping == "leave_one_out" else min(len(labels), 5)
    if n_folds < len(labels):
        seed = check_random_state(model.random_state).randint(2**31 - 1)
        labels = np.random.default_rng(seed).permutation(labels)
    folds = sorted(np.array_split(labels, n_folds), key=len)
    if model.early_stopping == "held_out":
        folds = [labels[: max(1, len(labels) // 5)]]
    alone = {"early_stopping": None, "warm_start": False, "callback": None, "progress": False}
    at_once, curves = max(1, MAX_VALUES // X.size), []
    for _, alike in itertools.groupby(folds, len):  # networks side by side have as many labels
        left_out = list(alike)
        for start in range(0, len(left_out), at_once):
            part = left_out[start : start + at_once]
            hidden = [(X, np.where(np.isin(np.arange(len(y)), fold), np.nan, y.T).T) for fold in part]
            models = [clone(model).set_params(**alone) for _ in part]
            _fit(models, hidden, [(X[fold], y[fold]) for fold in part])
            for one, fold in zip(models, part, strict=True):
                by_network = ["network", "epoch"] if "network" in one.history_ else ["epoch"]
                of_each = one.history_.groupby(by_network)["validation_mae"].last()
                curves.append(of_each.groupby("epoch").mean() * len(fold))
    model.validation_ = pd.concat(curves, axis=1).sum(axis=1) / sum(map(len, folds))
    return int(model.validation_.idxmin())


def _make_network(model: DMLS2RRegressor, x: Tensor) -> SiameseNetwork:
    """Build the network for samples like the two in `x`."""
    before_relu = model.metric_space == "before_relu"
    if model.encoder is None:
        encoder: nn.Module = make_encoder(x.shape[1], model.hidden_sizes, final_relu=not before_relu)
    else:
        encoder = copy.deepcopy(model.encoder)
    encoder = encoder.float()
    if _mines(model) and not any(weight.requires_grad for weight in encoder.parameters()):
        raise ParameterError(f"encoder must have weights to train in step 2, got {encoder!r}")
    z = probe_encoder(encoder, x)
    if model.head is None:
        relu = nn.ReLU() if before_relu and model.encoder is None else None
        n_targets = model._y_labeled.shape[1] if model._y_labeled.ndim == 2 else None
        head: nn.Module = LinearPairHead(z.shape[-1], relu, n_targets)
    else:
        head = copy.deepcopy(model.head)
    network = SiameseNetwork(encoder, head).float()
    probe_head(network, z, model._y_labeled.shape[1:])
    return network


def _goes_on(model: DMLS2RRegressor) -> bool:
    """Whether this is a warm start; what is not allowed, and may have no truth value, is none."""
    return isinstance(model.warm_start, bool | np.bool_) and bool(model.warm_start)


def _mines(model: DMLS2RRegressor) -> bool:
    return model.n_unlabeled_ > 0 and model.schedule != "pairwise_only"


def _check(model: DMLS2RRegressor, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check data and parameters, before any work."""
    if not _goes_on(model):
        model.__dict__.pop("networks_", None)  # whatever fails from here on, no old network predicts
    X, y = model._validate_training_set(X, y)
    check_encoder_given(model.encoder, X)
    labeled = is_labeled(y)
    model.n_labeled_, model.n_unlabeled_ = int(labeled.sum()), int((~labeled).sum())
    check_rules(model.get_params(deep=False))
    if len(getattr(model, "networks_", [])) not in (0, model.n_networks):
        raise ParameterError(
            f"n_networks must stay {len(model.networks_)} for a warm start, got {model.n_networks}"
        )
    model._device = _find_device(model.device)
    if _mines(model) and model.metric_step is None:
        check_not_above("k", model.k, model.n_unlabeled_, "the number of unlabeled samples")
    if model.early_stopping is not None and model.n_labeled_ < 3:
        raise ParameterError(f"early_stopping needs 3 labels or more, got {model.n_labeled_}")
    n_labeled = model.n_labeled_
    for part, size, n, is_used in (
        ("encoder", "anchor_batch_size", n_labeled, _mines(model) and model.schedule != "joint"),
        ("head", "pair_batch_size", n_labeled * (n_labeled - 1), True),
    ):
        module, batch_size = getattr(model, part), getattr(model, size)
        batch_size = batch_size and int(batch_size)  # NumPy's narrow ones overflow
        normalizes = module is not None and has_batch_norm(module)
        is_last_drawn = (batch_size and -(-n // batch_size) <= model.max_steps_per_epoch) or batch_size == 1
        if normalizes and is_used and is_last_drawn and n % batch_size == 1 % batch_size:
            raise ParameterError(
                f"{size} must not leave a batch of one, which the {part}'s BatchNorm cannot take: got "
                f"{batch_size} for {n}; try {batch_size + 1}"
            )
    return X, y


def _watch_error(model: DMLS2RRegressor, X: ArrayLike, y: ArrayLike) -> Hook:
    """A hook that measures the error on samples left out of the training."""
    X = model._validate_rows(X)
    y = np.asarray(check_array(check_numbers("y_validation", y), ensure_2d=False, dtype=np.float64))
    y = column_or_1d(y) if model._y_labeled.ndim == 1 else y
    check_consistent_length(X, y)
    return watch(lambda network: float(np.abs(model._predict(X, [network]) - y).mean()))


def as_columns(X: np.ndarray) -> np.ndarray:
    """What a scaler of features is given: columns, or one of all values where samples are no rows."""
    return X if X.ndim == 2 else X.reshape(-1, 1)


def _find_device(name: str | torch.device) -> torch.device:
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    reason = "no name"
    if isinstance(name, str | torch.device):
        try:
            device = torch.device(name)
            torch.zeros(1, device=device).item()  # which the meta device cannot
            return device
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            reason = shown(str(error))
    raise ParameterError(
        f"device must be 'auto' or one that PyTorch can use here, got {shown(name)} ({reason})"
    )
