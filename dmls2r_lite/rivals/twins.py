"""Plain relatives of step 1: the same network without pairs, and pairs without the network, on trees."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from torch import Tensor, nn

from ..foundation.checks import SemiSupervisedRegressor, check_regressor, is_labeled, make_scaler
from ..foundation.descent import check_weights, descend, make_adam
from ..foundation.networks import as_columns, probe_encoder, seeded_torch, usual_torch
from ..foundation.parameters import demand
from ..foundation.scores import pairs_from_numbers
from ..foundation.side_by_side import SideBySide, separate
from ..model import make_encoder

Begun = tuple[nn.Module, Iterator[tuple[Tensor, ...]]]
PAIRS_PER_BLOCK = 2**16
MAX_LOSS = 100.0  # of the last step, in squared ranges of the targets: beyond it nothing was learned


class BatchTrainedRegressor(SemiSupervisedRegressor):
    """Base of rivals that are one network, trained batch by batch: alone, or several side by side.

    A subclass has `learning_rate` and `random_state`, and three methods. ``_begin(X, y, seed)`` gives a
    network, and for each gradient step samples, once or more, and what the loss is told of them. ``_loss``
    takes the outputs for a batch's samples, and what it is told of them, and gives a scalar.
    ``_end(X, y, losses)`` makes use of what was trained; the losses are those of all steps.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """As that of all estimators here."""
        self.fit_side_by_side([self], [(X, y)])
        return self

    @staticmethod
    @usual_torch()
    def fit_side_by_side(
        models: Sequence[Any], training_sets: Sequence[tuple[ArrayLike, ArrayLike]]
    ) -> list[Any]:
        """Fit several models at once: each is what `fit` alone would have made of it, to rounding.

        Parameters
        ----------
        models : sequence of estimators
            Of one class, with the same parameters, except `random_state`.
        training_sets : sequence of (X, y)
            One for each.

        Returns
        -------
        list of estimators
            The models.
        """
        checked = [m._validate_training_set(*one) for m, one in zip(models, training_sets, strict=True)]
        if len({(is_labeled(y).sum(), is_labeled(y).all()) for _, y in checked}) > 1:
            return [model.fit(*one) for model, one in zip(models, training_sets, strict=True)]  # other steps
        begun, states = [], []
        for model, (X, y) in zip(models, checked, strict=True):
            with seeded_torch(model.random_state) as seed:
                begun.append(model._begin(X, y, seed))
                states.append(torch.get_rng_state())
        networks, batches = zip(*begun, strict=True)
        side = SideBySide(networks, states)
        side.train()
        of_one, rate = models[0]._loss, models[0].learning_rate

        def loss(network: nn.Module, of_outputs: Callable[..., Tensor], *batch: Tensor) -> Tensor:
            return of_outputs(*map(network, batch[:-1]), batch[-1])

        adam, together = make_adam(side.trained, rate), side.each(of_one, can_map=True)
        with side.drawing_as(0):  # one alone draws as outside
            losses = descend(side.losses(loss, batches, [of_one] * len(models), together), adam)
        separate(networks)
        for model, (X, y), own, network in zip(models, checked, losses.T, networks, strict=True):
            check_weights(network, rate)
            network.eval().double()  # so that a prediction does not depend on the rows predicted beside it
            model._end(X, y, own)
        return list(models)


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
    _at_least = {"batch_size": 2}  # an encoder with BatchNorm takes no batch of one  # noqa: RUF012

    hidden_sizes: Sequence[int] = (100, 100)
    _: KW_ONLY
    encoder: nn.Module | None = None
    n_epochs: int = 30
    learning_rate: float = 1e-3
    batch_size: int = 32
    max_steps_per_epoch: int = 100
    random_state: int | np.random.RandomState | None = None

    def _begin(self, X: np.ndarray, y: np.ndarray, seed: int) -> Begun:
        labeled, self.target_scaler_ = is_labeled(y), make_scaler("minmax")
        scaled = self.target_scaler_.fit_transform(as_columns(y[labeled]))
        x, targets = (torch.as_tensor(part, dtype=torch.float32) for part in (X[labeled], scaled))
        encoder = copy.deepcopy(self.encoder)
        if encoder is None:
            encoder = make_encoder(X.shape[1], self.hidden_sizes)
        n_codes = probe_encoder(encoder.float(), x[:2]).shape[1]
        self.network_ = nn.Sequential(encoder, nn.Linear(n_codes, targets.shape[1])).float()
        rng, n = np.random.default_rng(seed), len(x)
        steps_per_epoch = min(-(-n * (n - 1) // int(self.batch_size)), self.max_steps_per_epoch)

        def batches() -> Iterator[tuple[Tensor, ...]]:
            for _ in range(self.n_epochs * steps_per_epoch):
                batch = rng.integers(n, size=self.batch_size)
                yield x[batch], targets[batch]

        return self.network_, batches()

    def _loss(self, estimated: Tensor, targets: Tensor) -> Tensor:
        return (estimated - targets).square().mean()

    def _end(self, X: np.ndarray, y: np.ndarray, losses: Tensor) -> None:
        off = f"estimates are off by {losses[-1].sqrt():.3g} times the range of the targets"
        demand(losses[-1] <= MAX_LOSS, f"training diverged: {off}; scale X, by a StandardScaler for example")

    def _predict(self, X: np.ndarray) -> np.ndarray:
        y = self.target_scaler_.inverse_transform(_apply(self.network_, X))
        return y if y.shape[1] > 1 else y[:, 0]


class _OfAnySize:
    """scikit-learn's trees take a variance below 2e-16, of farads for example, for none, and do not split.

    So they are given targets divided by a power of two, which rounds nothing, and their leaves are multiplied
    by it.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """As scikit-learn's."""
        parent: Any = super()
        y = np.asarray(y)
        is_known = y.size and y.dtype.kind in "iuf" and np.isfinite(y).all()
        unit = float(2.0 ** np.frexp(np.ptp(y))[1]) if is_known and np.ptp(y) else 1.0
        parent.fit(X, y if unit == 1 else y / unit, sample_weight)
        for tree in self.estimators_:  # type: ignore[attr-defined]
            tree.tree_.value[:] *= unit
        return self


class ExtraTrees(_OfAnySize, ExtraTreesRegressor):
    """scikit-learn's `ExtraTreesRegressor`, for targets of any size."""


class RandomForest(_OfAnySize, RandomForestRegressor):
    """scikit-learn's `RandomForestRegressor`, for targets of any size."""


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
