"""Where unknown targets, mined sets and fitted networks meet the tools of other libraries."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, TransformerMixin
from sklearn.metrics import mean_absolute_error
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from .base import check_numbers, is_labeled
from .losses import MetricBatch, MetricLoss
from .model import LinearPairHead, SiameseNetwork
from .parameters import ParameterError, check_not_above, check_rules

if TYPE_CHECKING:
    from .estimators import DMLS2RRegressor


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
        is_generator = isinstance(random_state, np.random.Generator)
        check_rules({"n_splits": n_splits, "random_state": None if is_generator else random_state})
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
        labels = np.flatnonzero(is_labeled(np.asarray(check_numbers("y", y), dtype=float)))
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
    values = np.asarray(groups, dtype=object)  # else an unknown one among texts is the text 'nan'
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
    y = np.asarray(check_numbers("y", y), dtype=float)
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


class FoldedRegressor(nn.Module):
    """A fitted `DMLS2RRegressor` without labeled rows: from raw features to estimates in the target's unit.

    With the paper's head eq. 4 is (g(x) - h(x)) / 2 plus a constant, so one linear layer on the encoder
    does the work of head, antisymmetrisation and all anchors. `to_torch` makes it.

    Parameters
    ----------
    networks : list of torch.nn.Module
        Each maps scaled rows to scaled estimates (n, t).
    x_scaling, y_scaling : Tensor of shape (2, n_features) and (2, t)
        What is 0 for the networks, and what is one unit more.
    is_vector : bool
        Whether estimates are vectors (n, t); else they are numbers (n,).
    """

    def __init__(
        self, networks: list[nn.Module], x_scaling: Tensor, y_scaling: Tensor, is_vector: bool
    ) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.x_scaling = nn.Parameter(x_scaling, requires_grad=False)  # so that float() turns it too
        self.y_scaling = nn.Parameter(y_scaling, requires_grad=False)
        self.is_vector = is_vector

    def forward(self, x: Tensor) -> Tensor:
        """Estimates, shape (n,) or (n, t), of rows in the precision of the weights."""
        x = (x - self.x_scaling[0]) / self.x_scaling[1]
        total = torch.zeros_like(self.y_scaling[0])
        for network in self.networks:
            total = total + network(x)
        y = total / len(self.networks) * self.y_scaling[1] + self.y_scaling[0]
        return y if self.is_vector else y.squeeze(-1)


def to_torch(model: DMLS2RRegressor) -> FoldedRegressor:
    """A module that estimates what a fitted model does, for PyTorch without this package.

    `torch.export` and TorchScript take it, as far as they take the encoder.

    Parameters
    ----------
    model : DMLS2RRegressor
        With the paper's head, `LinearPairHead`. It stays as it is.

    Returns
    -------
    torch.nn.Module
        Maps raw features, (n, n_features) in float64, to estimates; `module.float()` makes it take float32.
        On the device of the model.

    Raises
    ------
    ParameterError
        If the head is of one's own: it may need all pairs.
    """
    if not hasattr(model, "n_networks"):
        raise ParameterError(f"model must be a DMLS2RRegressor, got {model!r}")
    check_is_fitted(model)
    for network in model.networks_:
        if type(network.head) is not LinearPairHead:
            raise ParameterError(
                f"head must be a LinearPairHead, got {type(network.head).__name__}, which may need all pairs"
            )
    with torch.no_grad():
        networks = [_fold(network, model._x_labeled, model._y_labeled) for network in model.networks_]
    x_scaling, y_scaling = map(_zero_and_unit, (model.feature_scaler_, model.target_scaler_))
    is_vector = model._y_labeled.ndim == 2
    return FoldedRegressor(networks, model._tensor(x_scaling), model._tensor(y_scaling), is_vector).eval()


def _fold(network: SiameseNetwork, x_labeled: Tensor, y_labeled: Tensor) -> nn.Module:
    """The encoder, and a layer that gives (g - h) / 2 + c."""
    head = network.head
    weight_g, weight_h = head.linear.weight.chunk(2, dim=1)
    layer = nn.utils.skip_init(nn.Linear, weight_g.shape[1], len(weight_g)).to(head.linear.weight)
    layer.weight.copy_((weight_g - weight_h) / 2)
    code = head.activation(network.encoder(x_labeled.to(layer.weight.dtype)))
    y = y_labeled.reshape(len(y_labeled), -1)
    layer.bias.copy_((y - code @ layer.weight.mT).mean(dim=0))  # the head's own bias cancels
    return copy.deepcopy(nn.Sequential(network.encoder, head.activation, layer)).requires_grad_(False)


def _zero_and_unit(scaler: TransformerMixin) -> np.ndarray:
    """What a scaler makes 0, and the difference that it makes 1."""
    if isinstance(scaler, MinMaxScaler):
        return np.stack([scaler.data_min_, 1 / scaler.scale_])
    if isinstance(scaler, StandardScaler):
        return np.stack([scaler.mean_, scaler.scale_])
    return np.array([[0.0], [1.0]])  # there is none
