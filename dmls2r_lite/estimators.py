"""The scikit-learn face of the method."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags, check_array, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor, nn

from .base import Scaling, SemiSupervisedRegressor, is_labeled, make_scaler, seeded_torch
from .losses import MetricLoss
from .miner import Miner, MiningMode, mine
from .model import LinearPairHead, SiameseNetwork, make_encoder
from .schedules import (
    SCHEDULES,
    Schedule,
)
from .training import Callback, train

ROWS_PER_BLOCK = 2**16


class DMLS2RRegressor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SemiSupervisedRegressor):
    """Semi-supervised deep metric regression with alternate learning (DML-S2R).

    Step 1 learns target differences of labeled pairs (eq. 1 and 2), step 2 pulls and pushes
    unlabeled samples that step 1 finds similar or dissimilar to a labeled one (Algorithm 1, eq. 3).
    Defaults are the paper's values where it gives them (two hidden layers of 100, k = 5, 30
    epochs, Adam at 0.001, min-max features); the others are the reading of it that notebook 03
    compares with its alternatives.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(100, 100)
        Neurons of each hidden layer of the default encoder.
    encoder : torch.nn.Module, optional
        Used in place of the default, from a copy of its present weights; maps (n, n_features), or
        whatever shape samples have, for example (n, channels, height, width), to (n, n_codes).
    head : torch.nn.Module, optional
        Used in place of `LinearPairHead`, likewise. See `SiameseNetwork`.
    metric_space : {"after_relu", "before_relu"}, default="after_relu"
        Whether codes are taken after or before the last ReLU of the default encoder.
    feature_scaling : {"minmax", "standard", "none"}, default="minmax"
        Fitted on labeled and unlabeled rows, for each column; where a sample has more than one
        dimension, one scale for all values.
    target_scaling : {"minmax", "standard", "none"}, default="minmax"
        Fitted on the labeled rows; undone in everything that is returned.
    schedule : str or callable, default="alternate"
        Order of the steps: "alternate", "alternate_pairwise_last", "pairwise_only", "joint", "sequential",
        "sequential_metric_first" (see `dmls2r_lite.training`), or a function that is given `n_epochs` and
        returns "pairwise", "metric" or "joint" in order.
    n_epochs, learning_rate, optimizer_state, pair_batch_size, anchor_batch_size, max_steps_per_epoch
        See `dmls2r_lite.training.train`.
    k : int, default=5
        Unlabeled samples in each of an anchor's two sets.
    miner : {"absolute", "signed"} or callable, default="absolute"
        The two modes of `dmls2r_lite.miner.mine_positives_negatives`, or a function in its place.
    metric_loss : callable, optional
        In place of the ranked list loss. See `dmls2r_lite.training.train` for both.
    embedding : {"unit", "raw"}, default="unit"
        Whether codes are scaled to length 1 in the metric space.
    boundary, margin, temperature, weighting, weight_gradient
        See `dmls2r_lite.losses.ranked_list_loss`.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one; else any name that PyTorch knows.
    early_stopping : {"held_out", "leave_one_out"}, optional
        Choose how many epochs to train, up to `n_epochs`: by the mean absolute error on a fifth of the
        labels left out of a training of its own, or on each label left out of one of its own (as many
        trainings as labels). Then all labels are trained with for so many epochs.
    warm_start : bool, default=False
        Whether another `fit` goes on with the network and the scaling of the last one.
    progress : bool, default=False
        Whether to show a progress bar.
    callback : callable, optional
        ``callback(network, row)`` is called after each epoch with its row of the history.
    random_state : int, RandomState instance or None, default=None
        Of the initial weights and the order of pairs and anchors.

    Attributes
    ----------
    network_ : SiameseNetwork
        In float64, so that a prediction does not depend on the rows predicted beside it.
    history_ : pandas.DataFrame
        A row per epoch and step, see `dmls2r_lite.training.train`.
    feature_scaler_, target_scaler_ : scikit-learn transformers
    n_labeled_, n_unlabeled_ : int
        N and M of the training set.
    n_epochs_ : int
        Epochs of each step: `n_epochs`, or what early stopping chose.
    validation_ : pandas.Series
        With early stopping: mean absolute error on labels left out, by epoch.

    Examples
    --------
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> from dmls2r_lite.estimators import DMLS2RRegressor
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> model = DMLS2RRegressor(random_state=0).fit(split.X_train, split.y_train)
    >>> model.predict(split.X_test).shape
    (180,)
    """

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (100, 100),
        *,
        encoder: nn.Module | None = None,
        head: nn.Module | None = None,
        metric_space: Literal["after_relu", "before_relu"] = "after_relu",
        feature_scaling: Scaling = "minmax",
        target_scaling: Scaling = "minmax",
        schedule: str | Schedule = "alternate",
        n_epochs: int = 30,
        learning_rate: float = 1e-3,
        optimizer_state: Literal["shared", "separate"] = "shared",
        pair_batch_size: int | None = 32,
        anchor_batch_size: int | None = None,
        max_steps_per_epoch: int = 100,
        k: int = 5,
        miner: MiningMode | Miner = "absolute",
        metric_loss: MetricLoss | None = None,
        embedding: Literal["unit", "raw"] = "unit",
        boundary: float = 1.2,
        margin: float = 0.4,
        temperature: float = 10.0,
        weighting: Literal["ranked_list", "literal"] = "ranked_list",
        weight_gradient: bool = False,
        device: str = "auto",
        early_stopping: Literal["held_out", "leave_one_out"] | None = None,
        warm_start: bool = False,
        progress: bool = False,
        callback: Callback | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.encoder = encoder
        self.head = head
        self.metric_space = metric_space
        self.feature_scaling = feature_scaling
        self.target_scaling = target_scaling
        self.schedule = schedule
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.optimizer_state = optimizer_state
        self.pair_batch_size = pair_batch_size
        self.anchor_batch_size = anchor_batch_size
        self.max_steps_per_epoch = max_steps_per_epoch
        self.k = k
        self.miner = miner
        self.metric_loss = metric_loss
        self.embedding = embedding
        self.boundary = boundary
        self.margin = margin
        self.temperature = temperature
        self.weighting = weighting
        self.weight_gradient = weight_gradient
        self.device = device
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.progress = progress
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_validation: ArrayLike | None = None,
        y_validation: ArrayLike | None = None,
    ) -> DMLS2RRegressor:
        """Train on labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Raw features, finite. With an `encoder` for it, samples may have any shape.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, NaN for an unlabeled row. Without unlabeled rows step 2 is skipped.
        X_validation, y_validation : array-like, optional
            Labeled samples whose mean absolute error goes into each row of the history. They do
            not take part in the training.

        Returns
        -------
        DMLS2RRegressor
            Itself.

        Raises
        ------
        TypeError, ValueError
            If an argument or parameter is of the wrong type or out of range, or training diverges.
        """
        start_from = getattr(self, "network_", None) if self.warm_start is True else None
        if start_from is None:
            self.__dict__.pop("network_", None)  # whatever fails from here on, no old network predicts
        X, y = self._validate_training_set(X, y, any_shape=True)
        if X.ndim > 2 and self.encoder is None:
            raise ValueError(f"encoder must be given for samples of shape {X.shape[1:]}, got None")
        labeled = is_labeled(y)
        self.n_labeled_, self.n_unlabeled_ = int(labeled.sum()), int((~labeled).sum())
        self._check_parameters()
        device = _find_device(self.device)
        if (X_validation is None) != (y_validation is None):
            raise ValueError("X_validation and y_validation must be given together")

        y_labeled = y[labeled]
        y_columns = y_labeled.reshape(len(y_labeled), -1)
        if start_from is None:
            self.feature_scaler_ = make_scaler(self.feature_scaling).fit(_columns(X))
            self.target_scaler_ = make_scaler(self.target_scaling).fit(y_columns)
        self.n_epochs_ = self.n_epochs if self.early_stopping is None else self._choose_n_epochs(X, y)

        def tensor(values: np.ndarray, dtype: torch.dtype = torch.float32) -> Tensor:
            writable = np.require(values, requirements="W")  # else PyTorch warns
            return torch.as_tensor(writable, dtype=dtype, device=device)

        X_scaled = self._scale_features(X)
        y_scaled = self.target_scaler_.transform(y_columns).reshape(y_labeled.shape)
        self._x_labeled, self._y_labeled = tensor(X_scaled[labeled]), tensor(y_scaled)
        with seeded_torch(self.random_state, device) as seed:
            first = tensor(X_scaled[:1]).cpu()
            network = copy.deepcopy(start_from) if start_from else self._make_network(first)
            self.network_ = network.float().to(device)
            validate = None
            if X_validation is not None:
                X_val = self._validate_rows(X_validation, any_shape=True)
                y_val = check_array(y_validation, ensure_2d=False, dtype=np.float64)
                y_val = column_or_1d(y_val) if y.ndim == 1 else y_val
                check_consistent_length(X_val, y_val)

                def validate(network: SiameseNetwork) -> float:
                    return float(np.abs(self._predict(X_val) - y_val).mean())

            try:
                self.history_ = self._train(self.network_, tensor(X_scaled[~labeled]), seed, validate)
            except BaseException:
                del self.network_  # half trained
                raise
        self.network_.double().eval()  # a callback may have called train()
        self._x_labeled = tensor(X_scaled[labeled], torch.float64)
        self._y_labeled = tensor(y_scaled, torch.float64)
        self._n_features_out = self.network_.encoder(self._x_labeled[:1]).shape[-1]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets from all labeled samples (eq. 4).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,) or (n_samples, n_targets)
            In the target's unit.
        """
        check_is_fitted(self)
        return self._predict(self._validate_rows(X, any_shape=True))

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Place samples in the metric space: the codes that step 2 compares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_codes)
        """
        check_is_fitted(self)
        return self._by_blocks(
            self._validate_rows(X, any_shape=True),
            lambda x: self.network_.embed(x, unit_norm=self.embedding == "unit"),
        )

    def pairwise_difference(self, X_a: ArrayLike, X_b: ArrayLike) -> np.ndarray:
        """Estimate y_a - y_b for every row of `X_a` with every row of `X_b` (eq. 1).

        Parameters
        ----------
        X_a : array-like of shape (n_a, n_features)
        X_b : array-like of shape (n_b, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_a, n_b) or (n_a, n_b, n_targets)
            In the target's unit.
        """
        check_is_fitted(self)
        x_b = self._scaled(self._validate_rows(X_b, any_shape=True))
        scaled = self._by_blocks(
            self._validate_rows(X_a, any_shape=True),
            lambda x_a: self.network_.difference_matrix(x_a, x_b),
        )
        return self._unscaled(scaled) - self._unscaled(np.zeros((1, *self._y_labeled.shape[1:])))

    def _train(
        self,
        network: SiameseNetwork,
        x_unlabeled: Tensor,
        seed: int,
        validate: Callable[[SiameseNetwork], float] | None,
    ) -> pd.DataFrame:
        return train(
            network,
            self._x_labeled,
            self._y_labeled,
            x_unlabeled,
            schedule=SCHEDULES[self.schedule] if isinstance(self.schedule, str) else self.schedule,
            n_epochs=self.n_epochs_,
            learning_rate=self.learning_rate,
            optimizer_state=self.optimizer_state,
            pair_batch_size=self.pair_batch_size,
            anchor_batch_size=self.anchor_batch_size,
            max_steps_per_epoch=self.max_steps_per_epoch,
            k=self.k,
            miner=self.miner if callable(self.miner) else partial(mine, mode=self.miner),
            metric_loss=self.metric_loss,
            embedding=self.embedding,
            boundary=self.boundary,
            margin=self.margin,
            temperature=self.temperature,
            weighting=self.weighting,
            weight_gradient=self.weight_gradient,
            seed=seed,
            validate=validate,
            callback=self.callback,
            progress=self.progress,
        )

    def _choose_n_epochs(self, X: np.ndarray, y: np.ndarray) -> int:
        """Train without some labels, watch the error on them, and take the epoch where it is lowest."""
        labels = np.flatnonzero(is_labeled(y))
        if len(labels) < 3:
            raise ValueError(f"early_stopping needs 3 labels or more, got {len(labels)}")
        left_out = labels[:, None]
        if self.early_stopping == "held_out":
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            shuffled = np.random.default_rng(seed).permutation(labels)
            left_out = shuffled[None, : max(1, len(labels) // 5)]
        curves = []
        for rows in left_out:
            hidden = y.copy()
            hidden[rows] = np.nan
            model = clone(self).set_params(
                early_stopping=None, warm_start=False, callback=None, progress=False
            )
            history = model.fit(X, hidden, X[rows], y[rows]).history_
            curves.append(history.groupby("epoch")["validation_mae"].last())
        self.validation_ = pd.concat(curves, axis=1).mean(axis=1)
        return int(self.validation_.idxmin())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _predict(self, X: np.ndarray) -> np.ndarray:
        scaled = self._by_blocks(X, lambda x: self.network_.predict(x, self._x_labeled, self._y_labeled))
        return self._unscaled(scaled)

    def _by_blocks(self, X: np.ndarray, function: Callable[[Tensor], Tensor]) -> np.ndarray:
        results = np.empty(0)
        with torch.no_grad():
            for start in range(0, len(X), ROWS_PER_BLOCK):
                rows = slice(start, start + ROWS_PER_BLOCK)
                block = function(self._scaled(X[rows])).cpu().double().numpy()
                if start == 0:  # one array from the start: a list of blocks would fragment the memory
                    results = np.empty((len(X), *block.shape[1:]))
                results[rows] = block
        return results

    def _scaled(self, X: np.ndarray) -> Tensor:
        like = self._x_labeled
        writable = np.require(self._scale_features(X), requirements="W")
        return torch.as_tensor(writable, dtype=like.dtype, device=like.device)

    def _scale_features(self, X: np.ndarray) -> np.ndarray:
        return self.feature_scaler_.transform(_columns(X)).reshape(X.shape)

    def _unscaled(self, y: np.ndarray) -> np.ndarray:
        n_targets = self.target_scaler_.n_features_in_
        return self.target_scaler_.inverse_transform(y.reshape(-1, n_targets)).reshape(y.shape)

    def _make_network(self, x: Tensor) -> SiameseNetwork:
        """Build the network for samples like the one in `x`."""
        before_relu = self.metric_space == "before_relu"
        if self.encoder is None:
            encoder: nn.Module = make_encoder(x.shape[1], self.hidden_sizes, final_relu=not before_relu)
        else:
            encoder = copy.deepcopy(self.encoder)
        encoder = encoder.float()
        if self.head is None:
            with torch.no_grad():
                n_codes = encoder.eval()(x).shape[-1]
            relu = nn.ReLU() if before_relu and self.encoder is None else None
            n_targets = self._y_labeled.shape[1] if self._y_labeled.ndim == 2 else None
            head: nn.Module = LinearPairHead(n_codes, relu, n_targets)
        else:
            head = copy.deepcopy(self.head)
        return SiameseNetwork(encoder, head).float()

    def _check_parameters(self) -> None:
        sizes, margin, boundary = self.hidden_sizes, self.margin, self.boundary
        sizes_fit = isinstance(sizes, Sequence) and len(sizes) > 0 and all(map(_is_count, sizes))
        self._require("hidden_sizes", sizes_fit, "a sequence of one or more integers of 1 or more")
        for name in ("n_epochs", "max_steps_per_epoch", "k"):
            self._require(name, _is_count(getattr(self, name)), "an integer of 1 or more")
        for name in ("pair_batch_size", "anchor_batch_size"):
            value = getattr(self, name)
            self._require(name, value is None or _is_count(value), "an integer of 1 or more, or None")
        for name in ("learning_rate", "boundary"):
            value = getattr(self, name)
            self._require(name, _is_finite(value) and value > 0, "a finite number above 0")
        margin_fits = _is_finite(margin) and 0 <= margin <= boundary
        self._require("margin", margin_fits, f"a number from 0 to boundary, {boundary}")
        self._require("temperature", _is_finite(self.temperature), "a finite number")
        for name in ("encoder", "head"):
            value = getattr(self, name)
            self._require(name, value is None or isinstance(value, nn.Module), "a torch.nn.Module or None")
        for name in ("callback", "metric_loss"):
            value = getattr(self, name)
            self._require(name, value is None or callable(value), "callable or None")
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            fits = value in allowed or (name in ("schedule", "miner") and callable(value))
            self._require(name, fits, f"one of {', '.join(map(repr, allowed))}")
        mines = self.n_unlabeled_ > 0 and self.schedule != "pairwise_only"
        if mines and self.k > self.n_unlabeled_:
            raise ValueError(
                f"k must not exceed the number of unlabeled samples, {self.n_unlabeled_}, got {self.k}"
            )

    def _require(self, name: str, fits: bool, allowed: str) -> None:
        if not fits:
            raise ValueError(f"{name} must be {allowed}, got {getattr(self, name)!r}")


_CHOICES: dict[str, Sequence[Any]] = {
    "metric_space": ("after_relu", "before_relu"),
    "feature_scaling": ("minmax", "standard", "none"),
    "target_scaling": ("minmax", "standard", "none"),
    "schedule": tuple(SCHEDULES),
    "optimizer_state": ("shared", "separate"),
    "miner": ("absolute", "signed"),
    "embedding": ("unit", "raw"),
    "weighting": ("ranked_list", "literal"),
    "weight_gradient": (False, True),
    "early_stopping": (None, "held_out", "leave_one_out"),
    "warm_start": (False, True),
}


def _columns(X: np.ndarray) -> np.ndarray:
    """What a scaler of features is given: columns, or one of all values where samples are no rows."""
    return X if X.ndim == 2 else X.reshape(-1, 1)


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(float(value))


def _find_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(
            f"device must be 'auto' or one that PyTorch can use here, got {name!r} ({error})"
        ) from None
    return device
