"""MSSR: similar and dissimilar pairs, then nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsRegressor
from torch import Tensor

from ..foundation.parameters import check_not_above
from ..model import make_encoder
from .twins import BatchTrainedRegressor, Begun, _apply


@dataclass(eq=False, repr=False)
class MSSRRegressor(BatchTrainedRegressor):
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

    _at_least = {"pair_batch_size": 1}  # all pairs at once, None, is for step 1  # noqa: RUF012

    hidden_sizes: Sequence[int] = (100, 100)
    _: KW_ONLY
    n_neighbors: int = 3
    similar_targets: float = 0.3
    similar_features: float = 0.3
    margin: float = 1.0
    n_epochs: int = 30
    learning_rate: float = 1e-3
    pair_batch_size: int = 32
    max_steps_per_epoch: int = 100
    random_state: int | np.random.RandomState | None = None

    def _begin(self, X: np.ndarray, y: np.ndarray, seed: int) -> Begun:
        check_not_above("n_neighbors", self.n_neighbors, int(np.isfinite(y).sum()), "the number of labels")
        self.encoder_ = make_encoder(X.shape[1], self.hidden_sizes)
        return self.encoder_, self._batches(X, y, seed)

    def _loss(self, z_a: Tensor, z_b: Tensor, is_similar: Tensor) -> Tensor:
        return contrastive_loss(z_a, z_b, is_similar, self.margin)

    def _end(self, X: np.ndarray, y: np.ndarray, losses: Tensor) -> None:
        labeled = np.isfinite(y)
        self.losses_ = [of_epoch.mean().item() for of_epoch in losses.chunk(self.n_epochs)]
        codes = _apply(self.encoder_, X[labeled])
        self.regressor_ = KNeighborsRegressor(self.n_neighbors).fit(codes, y[labeled])

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return self.regressor_.predict(_apply(self.encoder_, X))

    def _batches(self, X: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[Tensor, ...]]:
        rng, x = np.random.default_rng(seed), torch.as_tensor(X.copy(), dtype=torch.float32)
        labeled, unlabeled = np.flatnonzero(np.isfinite(y)), np.flatnonzero(np.isnan(y))
        n, m = len(labeled), len(unlabeled)
        first, second = (labeled[part] for part in np.triu_indices(n, k=1))
        differences = np.abs(y[first] - y[second])
        similar = differences <= np.quantile(differences, self.similar_targets)
        distances = cdist(X[unlabeled], X[labeled])
        similar_mixed = distances <= np.quantile(distances, self.similar_features) if m else distances
        size = int(self.pair_batch_size)
        for _ in range(self.n_epochs):
            order = rng.permutation(len(first))[: size * int(self.max_steps_per_epoch)]
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                a, b, is_similar = first[batch], second[batch], similar[batch]
                if m:
                    u, i = rng.integers(m, size=size), rng.integers(n, size=size)
                    a, b = np.append(a, unlabeled[u]), np.append(b, labeled[i])
                    is_similar = np.append(is_similar, similar_mixed[u, i])
                yield x[a], x[b], torch.from_numpy(is_similar)


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
    """
    d = torch.linalg.vector_norm(z_a - z_b, dim=1)
    return torch.where(is_similar, d, (margin - d).relu()).square().mean() / 2
