"""Two plain relatives of step 1: the same network without pairs, and pairs without the network."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..foundation.checks import (
    SemiSupervisedRegressor,
    check_regressor,
    is_labeled,
    make_scaler,
    seeded_torch,
)
from ..foundation.probing import check_encoder_given, probe_encoder
from ..foundation.rows import as_columns
from ..foundation.scores import pairs_from_numbers
from ..model import make_encoder
from .batches import BatchTrainedRegressor, Training
from .trees import ExtraTrees

PAIRS_PER_BLOCK = 2**16


@dataclass(eq=False, repr=False)
class MLPRegressor(BatchTrainedRegressor):
    """The fair twin of step 1: same encoder, initial weights and optimizer, but no pairs.

    A linear layer on the encoder estimates the target itself. It takes as many gradient steps as
    step 1 takes on the same number of labels, each on as many labeled samples as step 1 has pairs.
    Unlabeled samples only take part in the scaling of features.

    Parameters
    ----------
    hidden_sizes, encoder, n_epochs, learning_rate, max_steps_per_epoch
        As in `DMLS2RRegressor`.
    batch_size : int, default=32
        `pair_batch_size` of the twin; labeled samples are drawn for it with replacement.
    random_state : int, RandomState instance or None, default=None
        Of the initial weights and the samples drawn.

    Attributes
    ----------
    network_ : torch.nn.Sequential
    target_scaler_ : MinMaxScaler

    Notes
    -----
    Features are taken as they are: scale them first.
    """

    _any_shape = True

    hidden_sizes: Sequence[int] = (100, 100)
    _: KW_ONLY
    encoder: nn.Module | None = None
    n_epochs: int = 30
    learning_rate: float = 1e-3
    batch_size: int = 32
    max_steps_per_epoch: int = 100
    random_state: int | np.random.RandomState | None = None

    def _begin(self, X: np.ndarray, y: np.ndarray) -> Training:
        check_encoder_given(self.encoder, X)
        labeled = is_labeled(y)
        self.target_scaler_ = make_scaler("minmax").fit(as_columns(y[labeled]))
        self._target_shape = y.shape[1:]
        x = torch.as_tensor(X[labeled], dtype=torch.float32)
        targets = torch.as_tensor(self.target_scaler_.transform(as_columns(y[labeled])), dtype=torch.float32)
        with seeded_torch(self.random_state) as seed:
            encoder = copy.deepcopy(self.encoder)
            if encoder is None:
                encoder = make_encoder(X.shape[1], self.hidden_sizes)
            n_codes = probe_encoder(encoder.float(), x[:2]).shape[1]
            self.network_ = nn.Sequential(encoder, nn.Linear(n_codes, targets.shape[1])).float()
            rng_state = torch.get_rng_state()
        rng, n = np.random.default_rng(seed), len(x)
        steps_per_epoch = min(-(-n * (n - 1) // int(self.batch_size)), self.max_steps_per_epoch)

        def batches() -> Iterator[tuple[Tensor, ...]]:
            for _ in range(self.n_epochs * steps_per_epoch):
                batch = rng.integers(n, size=self.batch_size)
                yield x[batch], targets[batch]

        def loss(estimated: Tensor, targets: Tensor) -> Tensor:
            return (estimated - targets).square().mean()

        return Training(self.network_, batches(), loss, n, rng_state)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        scaled = _apply(self.network_, X)
        return self.target_scaler_.inverse_transform(scaled).reshape(len(scaled), *self._target_shape)


@dataclass(eq=False, repr=False)
class PairwiseDifferenceRegressor(SemiSupervisedRegressor):
    """Pairwise modeling with any regressor in place of the Siamese network.

    The regressor learns y_i - y_j from (x_i, x_j, x_i - x_j) over all ordered pairs of labeled
    samples (eq. 1 and 2); a prediction is the mean over all of them as anchors (eq. 4). Unlabeled
    samples are not used.

    Parameters
    ----------
    estimator : estimator, optional
        Of differences; `ExtraTrees` if not given.
    random_state : int, RandomState instance or None, default=None
        Given to the default estimator.

    Attributes
    ----------
    estimator_ : estimator

    References
    ----------
    Tynes et al. (2021): Pairwise difference regression. J. Chem. Inf. Model. 61.
    """

    estimator: RegressorMixin | None = None
    _: KW_ONLY
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X: np.ndarray, y: np.ndarray) -> None:
        labeled = np.isfinite(y)
        self._X, self._y = X[labeled], y[labeled]
        n = len(self._y)
        i, j = (t.numpy() for t in pairs_from_numbers(torch.arange(n * (n - 1)), n))
        estimator = ExtraTrees(random_state=self.random_state) if self.estimator is None else self.estimator
        check_regressor("estimator", estimator)
        self.estimator_ = clone(estimator).fit(_pairs(self._X[i], self._X[j]), self._y[i] - self._y[j])

    def predict_each(self, X: ArrayLike) -> np.ndarray:
        """Estimates by each anchor, whose mean `predict` gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples, n_labeled)
            In the target's unit.
        """
        check_is_fitted(self)
        return np.concatenate(list(self._by_blocks(self._validate_rows(X))))

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([estimates.mean(axis=1) for estimates in self._by_blocks(X)])

    def _by_blocks(self, X: np.ndarray) -> Iterator[np.ndarray]:
        for block in np.array_split(X, -(-len(X) * len(self._y) // PAIRS_PER_BLOCK)):
            new, anchors = np.repeat(block, len(self._y), axis=0), np.tile(self._X, (len(block), 1))
            forth, back = (self.estimator_.predict(_pairs(*ab)) for ab in ((new, anchors), (anchors, new)))
            yield ((forth - back) / 2).reshape(len(block), -1) + self._y


def _pairs(X_a: np.ndarray, X_b: np.ndarray) -> np.ndarray:
    return np.hstack([X_a, X_b, X_a - X_b])


def _apply(network: nn.Module, X: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(torch.as_tensor(np.require(X, requirements=["C", "W"]), dtype=torch.float64)).numpy()
