"""What happens around a training: checks, scaling, seeds, early stopping, several models at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from torch import Tensor, nn

from .foundation.checks import blocks_alike, check_targets, is_labeled, make_scaler
from .foundation.descent import Hook
from .foundation.networks import as_columns, find_device, probe_encoder, probe_head, seeded_torch, usual_torch
from .foundation.parameters import ParameterError, check_not_above, demand, shown
from .model import LinearPairHead, SiameseNetwork, make_encoder
from .training import TrainingSet, train_side_by_side

Labeled = tuple[ArrayLike, ArrayLike]  # X and y


def fit_side_by_side(
    models: Sequence[Any], training_sets: Sequence[Labeled], validation: Sequence[Labeled | None] = ()
) -> list[Any]:
    """Fit several models at once, in a fraction of the time: for example one for each seed of a study.

    Parameters
    ----------
    models : sequence of DMLS2RRegressor
        With the same parameters, except `random_state`.
    training_sets : sequence of (X, y)
        One for each model, see `DMLS2RRegressor.fit`; all with the same number of labels.
    validation : sequence of (X, y) or None, optional
        Samples to measure each model on after every epoch.

    Returns
    -------
    list of DMLS2RRegressor
        The models. Each is what `fit` alone would have made of it, to rounding.

    Raises
    ------
    TypeError, ValueError
        As in `fit`, or if parameters or numbers of labels differ.
    """
    n, m = len(models), len(training_sets)
    demand(n == m > 0, f"models and training_sets must be as many, 1 or more, got {n} and {m}")
    validation = validation or [None] * n
    demand(len(validation) == n, f"validation must be as many as models, {n}, got {len(validation)}")
    for pair in training_sets:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        demand(is_pair, f"training_sets must hold pairs (X, y), got {shown(pair)}")
    if len(set(map(id, models))) < n or len(set(map(type, models))) > 1:
        raise ParameterError(f"models must be different ones of one class, got {list(models)}")
    for model in models[1:]:
        for name, value in models[0].get_params(deep=False).items():
            is_own = name in ("random_state", "encoder", "head")
            if not is_own and not _is_same(value, other := getattr(model, name)):
                raise ParameterError(f"{name} must be the same in all models, got {value!r} and {other!r}")
    if len(models) > 1 and models[0].early_stopping is not None:  # each trains for as long as it chooses
        everyone = zip(models, training_sets, validation, strict=True)
        return [fit_side_by_side([model], [one], [samples])[0] for model, one, samples in everyone]
    before = [dict(vars(model)) for model in models]
    try:
        _train(models, training_sets, validation)
    except BaseException as error:
        for model, kept in zip(models, before, strict=True):
            if not (isinstance(model.warm_start, bool | np.bool_) and model.warm_start):
                kept.pop("networks_", None)  # no old network predicts, and none that is half trained
            model.__dict__ = kept
        if "more than 1 value per channel" in str(error):
            wanted = "pair_batch_size and anchor_batch_size must leave no batch of one"
            got = f"{models[0].pair_batch_size} and {models[0].anchor_batch_size}"
            raise ParameterError(f"{wanted}, which BatchNorm cannot take, got {got}") from error
        raise
    return list(models)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two parameters are equal; callables that were copied are."""
    if value is other or type(value) is not type(other):
        return value is other
    if isinstance(value, str | int | float | tuple | list) or is_dataclass(value):
        return bool(value == other)
    try:
        return joblib.hash(value) == joblib.hash(other)
    except Exception:  # what cannot be pickled cannot be compared
        return False


@usual_torch()
def _train(
    models: Sequence[Any], training_sets: Sequence[Labeled], validation: Sequence[Labeled | None]
) -> None:
    """Check everything, then make networks, train them and keep what they have become."""
    first = models[0]
    checked = [_check(model, X, y) for model, (X, y) in zip(models, training_sets, strict=True)]
    with ExitStack() as opened:
        parts = [_begin(model, X, y, opened) for model, (X, y) in zip(models, checked, strict=True)]
        networks, data, seeds, states = zip(*itertools.chain(*parts), strict=True)
        steps, watched = first._steps()[: first.n_epochs_], zip(models, validation, strict=True)
        hooks = [_watch(model, *samples) for model, samples in watched if samples is not None]
        hooks += [] if first.callback is None else [first.callback]
        options = {name: getattr(first, name) for name in ("learning_rate", "optimizer_state")}
        histories = train_side_by_side(
            networks, data, steps, seeds=seeds, hooks=hooks, rng_states=states, **options
        )
    for place, (model, (X, y)) in enumerate(zip(models, checked, strict=True)):
        n = len(model.networks_)
        _end(model, X, y, histories[place * n : (place + 1) * n])


def _check(model: Any, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check data and parameters, before any work."""
    X_checked, y_checked = model._validate_training_set(X, y)
    if model.warm_start and (networks := getattr(model, "networks_", None)):
        wanted = f"n_networks must stay {len(networks)} for a warm start"
        demand(model.n_networks == len(networks), f"{wanted}, got {model.n_networks}")
        _check_width("y", y_checked, model)
    model._device = find_device(model.device)
    if _mines(model) and model.metric_step is None:
        check_not_above("k", model.k, model.n_unlabeled_, "the number of unlabeled samples")
    if model.early_stopping is not None and model.n_labeled_ < 3:
        raise ParameterError(f"early_stopping needs 3 labels or more, got {model.n_labeled_}")
    return X_checked, y_checked


def _check_width(name: str, y: np.ndarray, model: Any) -> None:
    """Raise ParameterError unless each target has the shape of those that a model was given before."""
    shape, wanted = tuple(model._y_labeled.shape[1:]), f"{name} must have targets of shape"
    demand(y.shape[1:] == shape, f"{wanted} {shape} as in fit, got {y.shape[1:]}")


def _mines(model: Any) -> bool:
    return model.n_unlabeled_ > 0 and model.schedule != "pairwise_only"


def _begin(model: Any, X: np.ndarray, y: np.ndarray, opened: ExitStack) -> list[tuple[Any, ...]]:
    """Scale, and make networks: each with what to train it on, its seed and the state of PyTorch's generator.

    The generator is seeded until `opened` ends.
    """
    start_from = getattr(model, "networks_", None) if model.warm_start else None
    labeled = is_labeled(y)
    y_columns = y[labeled].reshape(model.n_labeled_, -1)
    if start_from is None:
        model.feature_scaler_ = make_scaler(model.feature_scaling).fit(as_columns(X))
        model.target_scaler_ = make_scaler(model.target_scaling).fit(y_columns)
    model.n_epochs_ = _choose_n_epochs(model, X, y) if model.early_stopping else len(model._steps())
    X_scaled = model._scale_features(X)
    y_scaled = model.target_scaler_.transform(y_columns).reshape(y[labeled].shape)
    model._x_labeled, model._y_labeled = model._tensor(X_scaled[labeled]), model._tensor(y_scaled)
    x_unlabeled = model._tensor(X_scaled[~labeled], torch.float32)
    data = TrainingSet(model._x_labeled.float(), model._y_labeled.float(), x_unlabeled)
    rng, parts = check_random_state(model.random_state), []
    for place in range(int(model.n_networks)):
        seed = opened.enter_context(seeded_torch(rng, model._device))
        made = copy.deepcopy(start_from[place]) if start_from else _make_network(model, data.x_labeled[:2])
        parts.append((made.float().to(model._device), data, seed, torch.get_rng_state()))
    model.networks_ = [network for network, *_ in parts]
    return parts


def _make_network(model: Any, x: Tensor) -> SiameseNetwork:
    """Build the network for samples like the two in `x`."""
    before_relu = model.metric_space == "before_relu" and model.encoder is None
    encoder, head = copy.deepcopy(model.encoder), copy.deepcopy(model.head)
    if encoder is None:
        encoder = make_encoder(x.shape[1], model.hidden_sizes, final_relu=not before_relu)
    if _mines(model) and not any(weight.requires_grad for weight in encoder.parameters()):
        raise ParameterError(f"encoder must have weights to train in step 2, got {encoder!r}")
    z, target_shape = probe_encoder(encoder.float(), x.cpu()), model._y_labeled.shape[1:]
    if head is None:
        head = LinearPairHead(z.shape[-1], nn.ReLU() if before_relu else None, *target_shape)
    probe_head(head.float(), z, target_shape)
    return SiameseNetwork(encoder, head)


def _end(model: Any, X: np.ndarray, y: np.ndarray, histories: Sequence[pd.DataFrame]) -> None:
    """Keep what was trained, in float64."""
    for network in model.networks_:
        network.double().eval()  # a callback may have called train()
    if len(histories) > 1:
        histories = [history.assign(network=number) for number, history in enumerate(histories)]
    model.history_ = pd.concat(histories, ignore_index=True)
    model.n_iter_ = int(model.history_["epoch"].max())
    n_codes = model.network_.encoder(model._x_labeled[:1]).shape[-1]
    model._n_features_out = n_codes * len(model.networks_)
    model.transduction_ = model._predict(X[~is_labeled(y)])


def _choose_n_epochs(model: Any, X: np.ndarray, y: np.ndarray) -> int:
    """Train without some labels, watch the error on them, and take the epoch where it is lowest."""
    labels = np.flatnonzero(is_labeled(y))
    n_folds = len(labels) if model.early_stopping == "leave_one_out" else min(len(labels), 5)
    if n_folds < len(labels):
        seed = check_random_state(model.random_state).randint(2**31 - 1)
        labels = np.random.default_rng(seed).permutation(labels)
    folds = np.array_split(labels, n_folds)
    if model.early_stopping == "held_out":
        folds = [labels[: max(1, len(labels) // 5)]]
    alone = {"early_stopping": None, "warm_start": False, "callback": None}
    curves = []
    for places in blocks_alike(folds, X.size):  # networks side by side have as many labels
        part = [folds[place] for place in places]
        hidden = [(X, np.where(np.isin(np.arange(len(y)), fold), np.nan, y.T).T) for fold in part]
        models = [clone(model).set_params(**alone) for _ in part]
        fit_side_by_side(models, hidden, [(X[fold], y[fold]) for fold in part])
        for one, fold in zip(models, part, strict=True):
            curves.append(one.history_.groupby("epoch")["validation_mae"].mean() * len(fold))
    model.validation_ = pd.concat(curves, axis=1).sum(axis=1) / sum(map(len, folds))
    return int(model.validation_.idxmin())


def _watch(model: Any, X: ArrayLike, y: ArrayLike) -> Hook:
    """A hook that measures the error of a model's networks on samples left out of the training."""
    rows, are_vectors = model._validate_rows(X, "X_validation"), model._y_labeled.ndim > 1
    known = check_targets(y, len(rows), "y_validation", at_least=len(rows), may_be_vectors=are_vectors)
    _check_width("y_validation", known, model)

    def hook(network: SiameseNetwork, row: dict[str, Any]) -> None:
        if any(network is own for own in model.networks_):
            row["validation_mae"] = float(np.abs(model._predict(rows, [network]) - known).mean())

    return hook
