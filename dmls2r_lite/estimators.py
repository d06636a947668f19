"""The scikit-learn face of the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from torch import Tensor, nn

from .fitting import fit_side_by_side
from .foundation.checks import Scaling
from .foundation.descent import Hook
from .foundation.networks import RowsThroughNetworks, in_precision_of
from .foundation.scores import MiningMode
from .losses import MetricLoss, RankedListLoss
from .miner import Miner
from .model import SiameseNetwork
from .training import SCHEDULES, MetricStep, PairwiseStep, Schedule, Step, plan


@dataclass(eq=False, repr=False)
class DMLS2RRegressor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowsThroughNetworks):
    """Semi-supervised deep metric regression with alternate learning (DML-S2R).

    Step 1 learns target differences of labeled pairs (eq. 1 and 2), step 2 pulls and pushes unlabeled samples
    that step 1 finds similar or dissimilar to a labeled one (Algorithm 1, eq. 3). Defaults are the paper's
    values where it gives them; the others are the reading of it that notebook 03 compares with alternatives.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(100, 100)
        Neurons of each hidden layer of the default encoder.
    encoder, head : torch.nn.Module, optional
        Used in place of the default ones, from copies of their present weights. The encoder maps rows, or
        whatever shape samples have, for example (n, channels, height, width), to (n, n_codes). For the
        head see `SiameseNetwork`.
    metric_space : {"after_relu", "before_relu"}, default="after_relu"
        Whether codes are taken after or before the last ReLU of the default encoder.
    feature_scaling, target_scaling : {"minmax", "standard", "none"}, default="minmax"
        Of each column of all rows (where a sample has more than one dimension, one scale for all values),
        and of the targets of labeled rows; that is undone in everything that is returned.
    schedule : str or callable, default="alternate"
        Order of the steps: a name in `dmls2r_lite.training.SCHEDULES`, or a function that is given `n_epochs`
        and returns "pairwise", "metric" or "joint" in order.
    n_epochs : int, default=30
        Epochs in all (the paper's 30): "alternate" and "sequential" divide them over both steps, where an odd
        one is of step 1, "pairwise_only" gives them all to step 1, and each "joint" one is of both.
    learning_rate, optimizer_state
        See `dmls2r_lite.training.train_side_by_side`.
    pair_batch_size, anchor_batch_size, max_steps_per_epoch
        See `dmls2r_lite.training.PairwiseStep` and `dmls2r_lite.training.MetricStep`.
    k, miner, metric_loss, embedding
        See `dmls2r_lite.training.MetricStep`; the default loss is the ranked list loss.
    metric_step : Step, optional
        In place of all of step 2: a `dmls2r_lite.training.Step`, such as those of `dmls2r_lite.rivals.newer`.
    boundary, margin, temperature, weighting, weight_gradient
        See `dmls2r_lite.losses.ranked_list_loss`.
    device : str, default="auto"
        "auto" takes a CUDA device if there is one; else any name that PyTorch knows.
    early_stopping : {"held_out", "cross_validation", "leave_one_out"}, optional
        Choose after how many of these epochs to stop: by the mean absolute error on a fifth of the
        labels left out of a training of its own, on each fifth in turn, or on each label in turn (as many
        trainings as labels). Then all labels are trained with for so many epochs.
    warm_start : bool, default=False
        Whether another `fit` goes on with the network and the scaling of the last one, on the same columns.
    callback : callable, optional
        ``callback(network, row)`` after each epoch with its row of the history.
    n_networks : int, default=1
        Networks to train side by side, from different initial weights. Estimates are their mean.
    random_state : int, RandomState instance or None, default=None
        Of the initial weights and the order of pairs and anchors.

    Attributes
    ----------
    networks_, network_ : list of SiameseNetwork, and the first of them
        In float64, so that a prediction does not depend on the rows beside it.
    history_ : pandas.DataFrame
        A row per epoch, see `dmls2r_lite.training.train`; of several networks one after the other,
        with their number as `network`.
    transduction_ : numpy.ndarray of shape (n_unlabeled,) or (n_unlabeled, n_targets)
        Estimates for the unlabeled rows of the training set, in their order.
    feature_scaler_, target_scaler_ : scikit-learn transformers
    n_labeled_, n_unlabeled_, n_epochs_, n_iter_ : int
        Of rows; epochs in all, as the schedule gives or early stopping chose, and those before an interrupt.
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

    hidden_sizes: Sequence[int] = (100, 100)
    _: KW_ONLY
    encoder: nn.Module | None = None
    head: nn.Module | None = None
    metric_space: Literal["after_relu", "before_relu"] = "after_relu"
    feature_scaling: Scaling = "minmax"
    target_scaling: Scaling = "minmax"
    schedule: str | Schedule = "alternate"
    n_epochs: int = 30
    learning_rate: float = 1e-3
    optimizer_state: Literal["shared", "separate"] = "shared"
    pair_batch_size: int | None = 32
    anchor_batch_size: int | None = None
    max_steps_per_epoch: int = 100
    k: int = 5
    miner: MiningMode | Miner = "absolute"
    metric_loss: MetricLoss | None = None
    metric_step: Step | None = None
    embedding: Literal["unit", "raw"] = "unit"
    boundary: float = 1.2
    margin: float = 0.4
    temperature: float = 10.0
    weighting: Literal["ranked_list", "literal"] = "ranked_list"
    weight_gradient: bool = False
    device: str = "auto"
    early_stopping: Literal["held_out", "cross_validation", "leave_one_out"] | None = None
    warm_start: bool = False
    callback: Hook | None = None
    n_networks: int = 1
    random_state: int | np.random.RandomState | None = None

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
            Targets, NaN for an unlabeled row. Without such rows epochs of step 2 are skipped.
        X_validation, y_validation : array-like, optional
            Labeled samples whose mean absolute error goes into each row of the history. They do not take part
            in the training.

        An argument or parameter of the wrong type or out of range is a TypeError or ValueError, and so is a
        training that diverges.
        """
        if (X_validation is None) != (y_validation is None):
            raise ValueError("X_validation and y_validation must be given together")
        given = None if X_validation is None or y_validation is None else (X_validation, y_validation)
        return fit_side_by_side([self], [(X, y)], [given])[0]

    fit_side_by_side = staticmethod(fit_side_by_side)

    def _predict(self, X: np.ndarray, networks: Sequence[SiameseNetwork] = ()) -> np.ndarray:
        def estimate(network: SiameseNetwork, x: Tensor) -> Tensor:
            return network.predict(x, *(part.to(x.dtype) for part in (self._x_labeled, self._y_labeled)))

        return self._unscaled(self._by_blocks(X, estimate, networks))

    def predict_each(self, X: ArrayLike) -> np.ndarray:
        """Estimates of each network, an array (n_samples, n_networks); `predict` gives their mean."""
        rows = self._validate_rows(X)
        return np.stack([self._predict(rows, [network]) for network in self.networks_], axis=1)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Place samples in the metric space: the codes that step 2 compares, of all networks side by side.

        Rows (n_samples, n_features) become an array of shape (n_samples, n_codes).
        """
        unit_norm = self.embedding == "unit"
        return self._by_blocks(
            self._validate_rows(X),
            lambda network, x: network.embed(x, unit_norm),
            join=lambda codes: torch.cat(codes, dim=-1),
        )

    def pairwise_difference(self, X_a: ArrayLike, X_b: ArrayLike) -> np.ndarray:
        """Estimate y_a - y_b for every row of `X_a` with every row of `X_b` (eq. 1), in the target's unit.

        Of rows (n_a, n_features) and (n_b, n_features) the shape is (n_a, n_b) or (n_a, n_b, n_targets).
        """
        x_b = self._tensor(self._scale_features(self._validate_rows(X_b, "X_b")))

        def differences(network: SiameseNetwork, x_a: Tensor) -> Tensor:
            return network.difference_matrix(x_a, in_precision_of(network, x_b))

        scaled = self._by_blocks(self._validate_rows(X_a, "X_a"), differences)
        return self._unscaled(scaled) - self._unscaled(np.zeros((1, *self._y_labeled.shape[1:])))

    @property
    def network_(self) -> SiameseNetwork:
        """The network; of several the first."""
        return self.networks_[0]

    def _steps(self) -> list[Step]:
        """The epochs of the training, in order."""
        pairwise = PairwiseStep(self.pair_batch_size, self.max_steps_per_epoch)
        names = ("boundary", "margin", "temperature", "weighting", "weight_gradient")
        loss = self.metric_loss or RankedListLoss(**{name: getattr(self, name) for name in names})
        sizes = (self.anchor_batch_size, self.max_steps_per_epoch)
        metric = self.metric_step or MetricStep(self.k, self.miner, loss, self.embedding, *sizes)
        schedule = SCHEDULES[self.schedule] if isinstance(self.schedule, str) else self.schedule
        return plan(schedule, self.n_epochs, pairwise, metric)
