"""Where targets that are not known, and sets that are mined, meet the tools of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_absolute_error
from sklearn.utils import check_random_state
from torch import Tensor

from .base import is_labeled
from .losses import MetricBatch, MetricLoss
from .parameters import ParameterError, check_not_above, check_rules


class LabeledKFold:
    """Folds for scikit-learn's `cross_val_score`, `GridSearchCV` and the like.

    Labeled rows are dealt into folds, with `groups` whole groups of them; rows whose target is NaN are in
    every training set and in no test set, so that any scorer will do.

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
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to train on and labeled rows to test on, for each fold.

        Parameters
        ----------
        X : array-like
            Not looked at.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            NaN for an unlabeled row.
        groups : array-like of shape (n_samples,), optional
            What rows belong together, such as a patient, batch or site. Labeled rows of one group come into
            one fold; unlabeled rows stay in every training set.

        Raises
        ------
        ParameterError
            If there are fewer labels, or groups of labels, than folds, or `groups` has another length.
        """
        labels = np.flatnonzero(is_labeled(np.asarray(y, dtype=float)))
        check_not_above("n_splits", self.n_splits, len(labels), "the number of labels")
        rng = self.random_state
        if not isinstance(rng, np.random.Generator):  # which scikit-learn's check does not take
            rng = check_random_state(rng)
        rows = np.arange(len(np.asarray(y)))
        if groups is None:
            folds = np.array_split(rng.permutation(labels), self.n_splits)
        else:
            folds = _deal_groups(labels, groups, len(rows), self.n_splits, rng)
        for fold in folds:
            yield np.setdiff1d(rows, fold), np.sort(fold)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Number of folds."""
        return self.n_splits


def _deal_groups(
    labels: np.ndarray,
    groups: ArrayLike,
    n_rows: int,
    n_splits: int,
    rng: np.random.RandomState | np.random.Generator,
) -> list[np.ndarray]:
    """Deal whole groups: the largest first, each into the fold with the fewest labels so far."""
    values = np.asarray(groups)
    if values.shape != (n_rows,):
        raise ParameterError(
            f"groups must have a value for each of the {n_rows} rows, got shape {values.shape}"
        )
    numbers, names = pd.factorize(values, use_na_sentinel=True)
    of_label = numbers[labels]
    if (of_label < 0).any():
        raise ParameterError(
            f"groups must be known for every labeled row, got none for row {labels[of_label.argmin()]}"
        )
    sizes = np.bincount(of_label, minlength=len(names))
    present = rng.permutation(np.flatnonzero(sizes))
    if len(present) < n_splits:
        raise ParameterError(
            f"groups must be at least as many among labeled rows as folds, {n_splits}, got {len(present)}"
        )
    folds: list[list[int]] = [[] for _ in range(n_splits)]
    for group in present[np.argsort(-sizes[present], kind="stable")]:
        min(folds, key=len).extend(labels[of_label == group])
    return [np.array(fold) for fold in folds]


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
