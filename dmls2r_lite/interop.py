"""Where targets that are not known, and sets that are mined, meet the tools of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_absolute_error
from sklearn.utils import check_random_state
from torch import Tensor

from .base import is_labeled
from .losses import MetricBatch, MetricLoss
from .parameters import check_rules


class LabeledKFold:
    """Folds for scikit-learn's `cross_val_score`, `GridSearchCV` and the like.

    Labeled rows are dealt into folds; rows whose target is NaN are in every training set and in no
    test set, so that any scorer will do.

    Parameters
    ----------
    n_splits : int, default=5
        2 or more; as many as there are labels is leave-one-out.
    random_state : int, RandomState or Generator instance or None, default=None
        Of the order in which labeled rows are dealt.

    Examples
    --------
    >>> import numpy as np
    >>> from dmls2r_lite.interop import LabeledKFold
    >>> y = np.array([1.0, np.nan, 2.0, np.nan])
    >>> [(train.tolist(), test.tolist()) for train, test in LabeledKFold(2, random_state=0).split(y, y)]
    [([0, 1, 3], [2]), ([1, 2, 3], [0])]
    """

    def __init__(
        self,
        n_splits: int = 5,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        check_rules({"n_splits": n_splits})
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: ArrayLike, y: ArrayLike, groups: object = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to train on and labeled rows to test on, for each fold.

        Raises
        ------
        ValueError
            If there are fewer labels than folds.
        """
        labels = np.flatnonzero(is_labeled(np.asarray(y, dtype=float)))
        if len(labels) < self.n_splits:
            raise ValueError(
                f"n_splits must not exceed the number of labels, {len(labels)}, got {self.n_splits}"
            )
        rng = self.random_state
        if not isinstance(rng, np.random.Generator):  # which scikit-learn's check does not take
            rng = check_random_state(rng)
        dealt = rng.permutation(labels)
        rows = np.arange(len(np.asarray(y)))
        for fold in np.array_split(dealt, self.n_splits):
            yield np.setdiff1d(rows, fold), np.sort(fold)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Number of folds."""
        return self.n_splits


def score_labeled(estimator: RegressorMixin, X: Any, y: ArrayLike) -> float:
    """A scorer for scikit-learn: minus the mean absolute error on rows whose target is known.

    Raises
    ------
    ValueError
        If no target is known.
    """
    y = np.asarray(y, dtype=float)
    rows = np.flatnonzero(is_labeled(y))
    if len(rows) == 0:
        raise ValueError("y must hold at least one target that is not NaN, got none")
    X_labeled = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
    return -float(mean_absolute_error(y[rows], estimator.predict(X_labeled)))


def to_indices_tuple(positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mined sets as pytorch-metric-learning's `indices_tuple`: pairs of an anchor and a sample.

    Parameters
    ----------
    positives, negatives : Tensor of int64, shape (N, k)
        From `mine` or `mine_positives_negatives`.

    Returns
    -------
    anchors, positives, anchors, negatives : Tensor of int64, shape (N k,)
        Give the anchors' codes as `embeddings` and those of the unlabeled samples as `ref_emb`.
    """
    anchors = torch.arange(len(positives), device=positives.device)[:, None]
    return (
        anchors.expand_as(positives).flatten(),
        positives.flatten(),
        anchors.expand_as(negatives).flatten(),
        negatives.flatten(),
    )


def metric_loss_from(loss: Callable[..., Tensor]) -> MetricLoss:
    """Let a loss of pytorch-metric-learning drive step 2: `DMLS2RRegressor(metric_loss=...)`.

    Parameters
    ----------
    loss : callable
        ``loss(embeddings, indices_tuple=..., ref_emb=...)``, such as an instance of one of that
        library's pair or triplet losses.
    """

    def metric_loss(batch: MetricBatch) -> Tensor:
        n, k, _ = batch.positives.shape
        numbers = torch.arange(2 * n * k, device=batch.anchors.device).view(2, n, k)
        samples = torch.cat([batch.positives, batch.negatives]).flatten(0, 1)
        return loss(batch.anchors, indices_tuple=to_indices_tuple(*numbers), ref_emb=samples)

    return metric_loss
