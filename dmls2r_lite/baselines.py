"""What DML-S2R is compared with: COREG and MSSR, as in the paper, and two plain relatives of step 1."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import RegressorMixin, clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .estimators import SemiSupervisedRegressor, seeded_torch
from .model import make_encoder
from .training import pairs_from_numbers

TIE = 1e-10  # candidates with the same neighbours tie; rounding must not decide, the first one wins
PAIRS_PER_BLOCK = 2**16


class COREGRegressor(SemiSupervisedRegressor):
    """Co-training of two k-nearest-neighbour regressors (COREG).

    Each regressor has a metric and a growing labeled set of its own. In each round it looks through
    a pool of unlabeled samples for the one that, labeled with its own estimate, would lower its
    squared error on that sample's labeled neighbours the most, and gives it with that estimate to
    the *other* regressor. The prediction is the mean of the two.

    Parameters
    ----------
    n_neighbors : int, default=3
        Of both regressors; there must be as many labels.
    p : sequence of 2 floats, default=(2, 5)
        Exponents of the regressors' Minkowski metrics.
    pool_size : int, default=100
        Unlabeled samples to choose from; refilled at random after each round.
    max_rounds : int, default=100
        It ends earlier if neither regressor finds a candidate that lowers its error.
    random_state : int, RandomState instance or None, default=None
        Of the pool.

    Attributes
    ----------
    regressors_ : list of 2 KNeighborsRegressor
    picks_ : pandas.DataFrame
        A row per pick: `round`, `chosen_by` (0 or 1; the other regressor got it), `row` of the
        training set, `target` (the estimate), `drop` in squared error.

    Notes
    -----
    Features are compared as they are: scale them first.

    References
    ----------
    Zhi-Hua Zhou and Ming Li (2005): Semi-supervised regression with co-training. IJCAI.

    Examples
    --------
    >>> from dmls2r_lite.baselines import COREGRegressor
    >>> from dmls2r_lite.data import load_dataset, split_dataset
    >>> split = split_dataset(load_dataset("toy"), n_labeled=20, n_unlabeled=200, seed=0)
    >>> model = COREGRegressor(random_state=0).fit(split.X_train, split.y_train)
    >>> model.predict(split.X_test).shape
    (180,)
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        *,
        p: Sequence[float] = (2, 5),
        pool_size: int = 100,
        max_rounds: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.p = p
        self.pool_size = pool_size
        self.max_rounds = max_rounds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> COREGRegressor:
        """Train on labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row.

        Returns
        -------
        COREGRegressor
            Itself.

        Raises
        ------
        TypeError, ValueError
            If an argument or parameter is of the wrong type or out of range.
        """
        X, y = self._validate_training_set(X, y)
        check_scalar(self.pool_size, "pool_size", numbers.Integral, min_val=1)
        check_scalar(self.max_rounds, "max_rounds", numbers.Integral, min_val=0)
        if len(self.p) != 2 or not min(self.p) >= 1:
            raise ValueError(f"p must be 2 exponents of 1 or more, got {self.p!r}")
        labeled, unlabeled = np.flatnonzero(np.isfinite(y)), np.flatnonzero(np.isnan(y))
        _check_neighbors(self.n_neighbors, len(labeled))

        waiting = check_random_state(self.random_state).permutation(len(unlabeled))
        pool, waiting = waiting[: self.pool_size], waiting[self.pool_size :]
        learners = [_CoLearner(X[labeled], y[labeled], X[unlabeled], self.n_neighbors, p) for p in self.p]
        picks = []
        for round_ in range(self.max_rounds):
            chosen = []
            for number, learner in enumerate(learners):
                place, target, drop = learner.choose(pool)
                if drop > 0:
                    chosen.append((number, pool[place], target, drop))
                    pool = np.delete(pool, place)
            if not chosen:
                break
            for number, sample, target, drop in chosen:
                learners[1 - number].add(sample, target)
                picks.append((round_, number, unlabeled[sample], target, drop))
            missing = self.pool_size - len(pool)
            pool, waiting = np.concatenate([pool, waiting[:missing]]), waiting[missing:]
        self.picks_ = pd.DataFrame(picks, columns=["round", "chosen_by", "row", "target", "drop"])
        self.regressors_ = [
            KNeighborsRegressor(self.n_neighbors, p=p).fit(learner.X, learner.y)
            for p, learner in zip(self.p, learners, strict=True)
        ]
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets: the mean of the two regressors.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = self._validate_rows(X)
        return np.mean([regressor.predict(X) for regressor in self.regressors_], axis=0)


class MSSRRegressor(SemiSupervisedRegressor):
    """Metric-learning based semi-supervised regression (MSSR): a reconstruction.

    A Siamese network learns with a contrastive loss from similar and dissimilar pairs; targets are
    the mean of the nearest labeled samples in the space that it learns. Two labeled samples are
    similar if their targets differ little, an unlabeled and a labeled one if their features do. The
    original's code is not public: this follows what the DML-S2R paper says about it in its
    introduction, and every choice beyond that is a parameter.

    Parameters
    ----------
    hidden_sizes : sequence of int, default=(100, 100)
        Neurons of each hidden layer of the encoder.
    n_neighbors : int, default=3
        Labeled neighbours that predict; there must be as many labels.
    similar_targets : float, default=0.3
        Share of the pairs of labeled samples that count as similar: those with the least difference.
    similar_features : float, default=0.3
        The same of the pairs of an unlabeled and a labeled sample, by their Euclidean distance.
    margin : float, default=1.0
        Of the contrastive loss.
    n_epochs : int, default=30
    learning_rate : float, default=0.001
        Of Adam.
    pair_batch_size : int, default=32
        Labeled pairs of a gradient step, and as many mixed ones.
    max_steps_per_epoch : int, default=100
        An epoch goes once through the pairs of labeled samples, but takes no more steps than these.
    random_state : int, RandomState instance or None, default=None
        Of the initial weights and the order of pairs.

    Attributes
    ----------
    encoder_ : torch.nn.Module
    regressor_ : KNeighborsRegressor
        In the learned space.
    losses_ : list of float
        Mean loss of each epoch.

    Notes
    -----
    Features are compared as they are: scale them first.

    References
    ----------
    Zell, Sumbul and Demir (2022), introduction, on Liu and Chen (2020).
    """

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (100, 100),
        *,
        n_neighbors: int = 3,
        similar_targets: float = 0.3,
        similar_features: float = 0.3,
        margin: float = 1.0,
        n_epochs: int = 30,
        learning_rate: float = 1e-3,
        pair_batch_size: int = 32,
        max_steps_per_epoch: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_neighbors = n_neighbors
        self.similar_targets = similar_targets
        self.similar_features = similar_features
        self.margin = margin
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.pair_batch_size = pair_batch_size
        self.max_steps_per_epoch = max_steps_per_epoch
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> MSSRRegressor:
        """Train on labeled and unlabeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row.

        Returns
        -------
        MSSRRegressor
            Itself.

        Raises
        ------
        TypeError, ValueError
            If an argument or parameter is of the wrong type or out of range.
        """
        X, y = self._validate_training_set(X, y)
        labeled = np.isfinite(y)
        _check_neighbors(self.n_neighbors, int(labeled.sum()))
        _check_counts(self, "n_epochs", "pair_batch_size", "max_steps_per_epoch")
        _check_above_zero(self, "margin", "learning_rate")
        for name in ("similar_targets", "similar_features"):
            check_scalar(getattr(self, name), name, numbers.Real, min_val=0, max_val=1)
        with seeded_torch(self.random_state) as seed:
            self.encoder_ = make_encoder(X.shape[1], self.hidden_sizes)
        self.losses_ = self._train(X[labeled], y[labeled], X[~labeled], np.random.default_rng(seed))
        self.encoder_.double()  # so that a prediction does not depend on the rows predicted beside it
        self.regressor_ = KNeighborsRegressor(self.n_neighbors).fit(
            _apply(self.encoder_, X[labeled]), y[labeled]
        )
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets: the mean of the nearest labeled samples in the learned space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.regressor_.predict(_apply(self.encoder_, self._validate_rows(X)))

    def _train(
        self, X_labeled: np.ndarray, y: np.ndarray, X_unlabeled: np.ndarray, rng: np.random.Generator
    ) -> list[float]:
        x = torch.as_tensor(np.vstack([X_labeled, X_unlabeled]), dtype=torch.float32)
        n, m = len(X_labeled), len(X_unlabeled)
        first, second = np.triu_indices(n, k=1)
        differences = np.abs(y[first] - y[second])
        similar = differences <= np.quantile(differences, self.similar_targets)
        distances = cdist(X_unlabeled, X_labeled)
        similar_mixed = distances <= np.quantile(distances, self.similar_features) if m else distances
        optimizer = torch.optim.Adam(self.encoder_.parameters(), lr=self.learning_rate)
        size, losses = self.pair_batch_size, []
        for _ in range(self.n_epochs):
            order = rng.permutation(len(first))[: size * self.max_steps_per_epoch]
            of_epoch = []
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                a, b, is_similar = first[batch], second[batch], similar[batch]
                if m:
                    u, i = rng.integers(m, size=size), rng.integers(n, size=size)
                    a, b = np.append(a, n + u), np.append(b, i)
                    is_similar = np.append(is_similar, similar_mixed[u, i])
                z_a, z_b = self.encoder_(x[a]), self.encoder_(x[b])
                loss = contrastive_loss(z_a, z_b, torch.from_numpy(is_similar), self.margin)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                of_epoch.append(loss.item())
            losses.append(float(np.mean(of_epoch)))
        return losses


def contrastive_loss(z_a: Tensor, z_b: Tensor, is_similar: Tensor, margin: float) -> Tensor:
    """Pull similar samples together, push the others to the margin (Hadsell, Chopra and LeCun 2006).

    The mean over pairs of d^2 / 2 for a similar pair and [margin - d]_+^2 / 2 for another, where d is
    the Euclidean distance of its codes.

    Parameters
    ----------
    z_a, z_b : Tensor of shape (n_pairs, n_codes)
    is_similar : Tensor of bool, shape (n_pairs,)
    margin : float

    Returns
    -------
    Tensor
        A scalar, in squared units of the distance.

    Raises
    ------
    ValueError
        If shapes do not fit or there is no pair.
    """
    if z_a.ndim != 2 or z_a.shape != z_b.shape or is_similar.shape != z_a.shape[:1] or len(z_a) == 0:
        raise ValueError(
            "z_a and z_b must have one shape (n_pairs, n_codes) and is_similar (n_pairs,), "
            f"got {tuple(z_a.shape)}, {tuple(z_b.shape)} and {tuple(is_similar.shape)}"
        )
    d = torch.linalg.vector_norm(z_a - z_b, dim=1)
    return torch.where(is_similar, d, (margin - d).relu()).square().mean() / 2


class MLPRegressor(SemiSupervisedRegressor):
    """The fair twin of step 1: same encoder, initial weights and optimizer, but no pairs.

    A linear layer on the encoder estimates the target itself. It takes as many gradient steps as
    step 1 takes on the same number of labels, each on as many labeled samples as step 1 has pairs.
    Unlabeled samples only take part in the scaling of features.

    Parameters
    ----------
    hidden_sizes, n_epochs, learning_rate, max_steps_per_epoch
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

    def __init__(
        self,
        hidden_sizes: Sequence[int] = (100, 100),
        *,
        n_epochs: int = 30,
        learning_rate: float = 1e-3,
        batch_size: int = 32,
        max_steps_per_epoch: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_sizes = hidden_sizes
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_steps_per_epoch = max_steps_per_epoch
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> MLPRegressor:
        """Train on the labeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row.

        Returns
        -------
        MLPRegressor
            Itself.

        Raises
        ------
        TypeError, ValueError
            If an argument or parameter is of the wrong type or out of range.
        """
        X, y = self._validate_training_set(X, y)
        _check_counts(self, "n_epochs", "batch_size", "max_steps_per_epoch")
        _check_above_zero(self, "learning_rate")
        labeled = np.isfinite(y)
        self.target_scaler_ = MinMaxScaler().fit(y[labeled, None])
        x = torch.as_tensor(X[labeled], dtype=torch.float32)
        target = torch.as_tensor(self.target_scaler_.transform(y[labeled, None]), dtype=torch.float32)
        with seeded_torch(self.random_state) as seed:
            encoder = make_encoder(X.shape[1], self.hidden_sizes)
            self.network_ = nn.Sequential(encoder, nn.Linear(self.hidden_sizes[-1], 1))
        optimizer = torch.optim.Adam(self.network_.parameters(), lr=self.learning_rate)
        rng, n = np.random.default_rng(seed), len(x)
        steps_per_epoch = min(-(-n * (n - 1) // self.batch_size), self.max_steps_per_epoch)
        for _ in range(self.n_epochs * steps_per_epoch):
            batch = rng.integers(n, size=self.batch_size)
            loss = (self.network_(x[batch]) - target[batch]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.network_.double()  # so that a prediction does not depend on the rows predicted beside it
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.target_scaler_.inverse_transform(_apply(self.network_, self._validate_rows(X))).ravel()


class PairwiseDifferenceRegressor(SemiSupervisedRegressor):
    """Pairwise modeling with any regressor in place of the Siamese network.

    The regressor learns y_i - y_j from (x_i, x_j, x_i - x_j) over all ordered pairs of labeled
    samples (eq. 1 and 2); a prediction is the mean over all of them as anchors (eq. 4). Unlabeled
    samples are not used.

    Parameters
    ----------
    estimator : estimator, optional
        Of differences; `ExtraTreesRegressor` if not given.
    random_state : int, RandomState instance or None, default=None
        Given to the default estimator.

    Attributes
    ----------
    estimator_ : estimator

    References
    ----------
    Tynes et al. (2021): Pairwise difference regression. J. Chem. Inf. Model. 61.
    """

    def __init__(
        self,
        estimator: RegressorMixin | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> PairwiseDifferenceRegressor:
        """Train on all ordered pairs of labeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Targets, NaN for an unlabeled row.

        Returns
        -------
        PairwiseDifferenceRegressor
            Itself.
        """
        X, y = self._validate_training_set(X, y)
        labeled = np.isfinite(y)
        self._X, self._y = X[labeled], y[labeled]
        n = len(self._y)
        i, j = (t.numpy() for t in pairs_from_numbers(torch.arange(n * (n - 1)), n))
        estimator = self.estimator or ExtraTreesRegressor(random_state=self.random_state)
        self.estimator_ = clone(estimator).fit(_pairs(self._X[i], self._X[j]), self._y[i] - self._y[j])
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Estimate targets from all labeled samples (eq. 4).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        numpy.ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = self._validate_rows(X)
        predictions = []
        for block in np.array_split(X, -(-len(X) * len(self._y) // PAIRS_PER_BLOCK)):
            new, anchors = np.repeat(block, len(self._y), axis=0), np.tile(self._X, (len(block), 1))
            forth, back = (self.estimator_.predict(_pairs(*ab)) for ab in ((new, anchors), (anchors, new)))
            estimates = ((forth - back) / 2).reshape(len(block), -1) + self._y
            predictions.append(estimates.mean(axis=1))
        return np.concatenate(predictions)


def _pairs(X_a: np.ndarray, X_b: np.ndarray) -> np.ndarray:
    return np.hstack([X_a, X_b, X_a - X_b])


def _apply(network: nn.Module, X: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(torch.as_tensor(np.require(X, requirements="W"))).numpy()


def _check_counts(estimator: SemiSupervisedRegressor, *names: str) -> None:
    for name in names:
        check_scalar(getattr(estimator, name), name, numbers.Integral, min_val=1)


def _check_above_zero(estimator: SemiSupervisedRegressor, *names: str) -> None:
    for name in names:
        check_scalar(getattr(estimator, name), name, numbers.Real, min_val=0, include_boundaries="neither")


def _check_neighbors(n_neighbors: int, n_labeled: int) -> None:
    check_scalar(n_neighbors, "n_neighbors", numbers.Integral, min_val=1)
    if n_neighbors > n_labeled:
        raise ValueError(f"n_neighbors must not exceed the number of labels, {n_labeled}, got {n_neighbors}")


class _CoLearner:
    """One of the two regressors. It keeps distances, so that no candidate needs a new fit."""

    def __init__(self, X: np.ndarray, y: np.ndarray, X_unlabeled: np.ndarray, k: int, p: float) -> None:
        self.X, self.y, self.X_unlabeled, self.k, self.p = X, y, X_unlabeled, k, p
        self.to_unlabeled = self._distances(X, X_unlabeled)
        between = self._distances(X, X)
        # Of each labeled sample: its k nearest labeled ones (itself among them), nearest first.
        self.neighbors = between.argsort(axis=1, kind="stable")[:, :k]
        self.neighbor_distances = np.take_along_axis(between, self.neighbors, axis=1)

    def _distances(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return cdist(a, b, "minkowski", p=self.p)

    def choose(self, pool: np.ndarray) -> tuple[int, float, float]:
        """Place in the pool of the best candidate, its estimated target, and the drop in squared error."""
        if len(pool) == 0:
            return -1, np.nan, 0.0
        distances = self.to_unlabeled[:, pool]
        near = distances.argsort(axis=0, kind="stable")[: self.k]  # (k, pool): each candidate's neighbours
        targets = self.y[near].mean(axis=0)
        before = self.y[self.neighbors].mean(axis=1)[near]
        # A candidate that is nearer than a neighbour's k-th neighbour takes its place.
        enters = np.take_along_axis(distances, near, axis=0) < self.neighbor_distances[near, -1]
        after = before + enters * (targets - self.y[self.neighbors[near, -1]]) / self.k
        drops = ((self.y[near] - before) ** 2 - (self.y[near] - after) ** 2).sum(axis=0)
        best = int((drops >= drops.max() * (1 - TIE)).argmax())
        return best, float(targets[best]), float(drops[best])

    def add(self, sample: int, target: float) -> None:
        """Add an unlabeled sample, by its number, with a target to the labeled set."""
        x, n = self.X_unlabeled[sample : sample + 1], len(self.y)
        to_new = self.to_unlabeled[:, sample]
        nearer = to_new < self.neighbor_distances[:, -1]
        distances = np.column_stack([self.neighbor_distances[nearer], to_new[nearer]])
        numbers_ = np.column_stack([self.neighbors[nearer], np.full(nearer.sum(), n)])
        order = distances.argsort(axis=1, kind="stable")[:, : self.k]
        self.neighbor_distances[nearer] = np.take_along_axis(distances, order, axis=1)
        self.neighbors[nearer] = np.take_along_axis(numbers_, order, axis=1)

        to_all = np.append(to_new, 0.0)  # the new one's own neighbours, itself included
        own = to_all.argsort(kind="stable")[: self.k]
        self.neighbors = np.vstack([self.neighbors, own])
        self.neighbor_distances = np.vstack([self.neighbor_distances, to_all[own]])
        self.to_unlabeled = np.vstack([self.to_unlabeled, self._distances(x, self.X_unlabeled)])
        self.X, self.y = np.vstack([self.X, x]), np.append(self.y, target)
