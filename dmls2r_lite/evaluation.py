"""Trials over many seeds, and what may be concluded from them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import bootstrap, wilcoxon
from sklearn.base import RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from .baselines import MLPRegressor, PairwiseDifferenceRegressor
from .data import Dataset, split_dataset
from .estimators import SemiSupervisedRegressor


def plain_models() -> dict[str, RegressorMixin]:
    """Models that learn from labeled samples only, to hold a method against.

    Nothing is tuned on test samples. The median ignores the features; the others are 3 nearest
    neighbours weighted by distance, ridge regression with built-in cross-validation, support vector
    regression and a Gaussian process (RBF and white noise) on a target scaled to variance 1, a random
    forest, extra trees, and two relatives of step 1: `MLPRegressor` and extra trees on pairs
    (`PairwiseDifferenceRegressor`).
    Where the scaling of features matters there are two: on features as they are given (a split is
    min-max scaled), and standardised. Ridge, support vector regression and the Gaussian process
    are standardised unless their name says "min-max".
    """

    def standardised(model: RegressorMixin) -> RegressorMixin:
        return make_pipeline(StandardScaler(), model)

    def nearest() -> RegressorMixin:
        return KNeighborsRegressor(n_neighbors=3, weights="distance")

    def ridge() -> RegressorMixin:
        return RidgeCV(np.logspace(-3, 3, 13))

    def support_vectors() -> RegressorMixin:
        return TransformedTargetRegressor(SVR(), transformer=StandardScaler())

    def gaussian_process() -> RegressorMixin:
        return GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True)

    return {
        "median": DummyRegressor(strategy="median"),
        "3-NN": nearest(),
        "3-NN standardised": standardised(nearest()),
        "ridge": standardised(ridge()),
        "ridge min-max": ridge(),
        "SVR": standardised(support_vectors()),
        "SVR min-max": support_vectors(),
        "Gaussian process": standardised(gaussian_process()),
        "Gaussian process min-max": gaussian_process(),
        "random forest": RandomForestRegressor(),
        "extra trees": ExtraTreesRegressor(),
        "MLP": MLPRegressor(),
        "extra trees on pairs": PairwiseDifferenceRegressor(),
    }


def run_trials(
    dataset: Dataset,
    methods: Mapping[str, RegressorMixin],
    n_labeled: Sequence[int],
    n_unlabeled: int,
    seeds: Sequence[int],
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Fit every method on every split and measure it on the rest.

    For one seed all methods see the same split and, where they have a `random_state`, start from
    it. A `SemiSupervisedRegressor` is given labeled and unlabeled samples, any other the labeled.

    Parameters
    ----------
    dataset : Dataset
    methods : mapping of str to estimator
        Estimators are cloned, never fitted.
    n_labeled : sequence of int
        Values of N.
    n_unlabeled : int
        M.
    seeds : sequence of int
    n_jobs : int, optional
        Processes, as in joblib. A trial runs on one thread, so results are the same for any number.

    Returns
    -------
    pandas.DataFrame
        A row per trial: `dataset`, `method`, `n_labeled`, `seed`, `mae` and `rmse` on the test
        set in the target's unit, `fit_seconds`, `predict_seconds`, `n_unlabeled`, `n_test`.
    """
    cells = [(n, seed, name) for n in n_labeled for seed in seeds for name in methods]
    trials = Parallel(n_jobs=n_jobs)(
        delayed(run_trial)(dataset, name, methods[name], n, n_unlabeled, seed) for n, seed, name in cells
    )
    return pd.DataFrame(trials)


@threadpool_limits.wrap(limits=1)  # more threads round differently, and small fits gain nothing
def run_trial(
    dataset: Dataset,
    name: str,
    method: RegressorMixin,
    n_labeled: int,
    n_unlabeled: int,
    seed: int,
    max_test_rows: int | None = None,
) -> dict[str, Any]:
    """One row of `run_trials`, for the method of that name.

    Parameters
    ----------
    dataset, name, method, n_labeled, n_unlabeled, seed
        See `run_trials`.
    max_test_rows : int, optional
        Measure on the first so many rows of the test set, whose order is random: for slow methods.
    """
    split = split_dataset(dataset, n_labeled, n_unlabeled, seed)
    X_test, y_test = split.X_test[:max_test_rows], split.y_test[:max_test_rows]
    start = time.perf_counter()
    with warnings.catch_warnings():
        # A Gaussian process on ten samples says so for almost every split; its errors show it anyway.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit_with_seed(method, split.X_train, split.y_train, seed)
    fitted = time.perf_counter()
    predicted = model.predict(X_test)
    return {
        "dataset": dataset.name,
        "method": name,
        "n_labeled": n_labeled,
        "seed": seed,
        "mae": mean_absolute_error(y_test, predicted),
        "rmse": root_mean_squared_error(y_test, predicted),
        "fit_seconds": fitted - start,
        "predict_seconds": time.perf_counter() - fitted,
        "n_unlabeled": n_unlabeled,
        "n_test": len(y_test),
    }


def fit_with_seed(method: RegressorMixin, X: pd.DataFrame, y: pd.Series, seed: int) -> RegressorMixin:
    """Fit a copy of an estimator: on all rows if it is a `SemiSupervisedRegressor`, else on the labeled.

    Parameters
    ----------
    method : estimator
    X : pandas.DataFrame of shape (n_samples, n_features)
    y : pandas.Series of shape (n_samples,)
        NaN for an unlabeled row.
    seed : int
        Becomes every `random_state` that the estimator has.
    """
    model = clone(method)
    model.set_params(**{key: seed for key in model.get_params() if key.endswith("random_state")})
    if isinstance(model, SemiSupervisedRegressor):
        return model.fit(X, y)
    return model.fit(X[y.notna()], y[y.notna()])


def predict_held_out(
    X: pd.DataFrame,
    y: pd.Series,
    methods: Mapping[str, RegressorMixin],
    n_repeats: int,
    seed: int = 0,
    n_folds: int = 5,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Estimate errors where labels are few: leave some labels out, predict them, and repeat.

    In each repeat the labeled rows are dealt into folds at random. The rows of a fold lose their
    target, as if it were not known, all methods are fitted, and predict them. So each labeled row is
    predicted once in a repeat, by a model that has not seen its target.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features)
        Numbers, scaled as the methods need it.
    y : pandas.Series of shape (n_samples,)
        NaN for an unlabeled row; 3 other values at least.
    methods : mapping of str to estimator
    n_repeats : int
    seed : int, default=0
        Of the first repeat, for folds and methods; it counts up from there.
    n_folds : int, default=5
        As many as there are labels, if these are fewer.
    n_jobs : int, optional
        Processes, as in joblib.

    Returns
    -------
    pandas.DataFrame
        A row per method, repeat and labeled row: `method`, `repeat`, `row` (of the index of X),
        `target`, `prediction`.

    Raises
    ------
    ValueError
        If there are fewer than 3 labels.
    """
    labeled = np.flatnonzero(y.notna())
    if len(labeled) < 3:
        raise ValueError(f"y must hold at least 3 targets that are not NaN, got {len(labeled)}")
    folds = [
        (repeat, labeled[np.sort(fold)])
        for repeat in range(n_repeats)
        for fold in np.array_split(
            np.random.default_rng(seed + repeat).permutation(len(labeled)), min(n_folds, len(labeled))
        )
    ]
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_predict_fold)(X, y, name, method, fold, repeat, seed + repeat)
        for repeat, fold in folds
        for name, method in methods.items()
    )
    return pd.concat(parts, ignore_index=True)


@threadpool_limits.wrap(limits=1)
def _predict_fold(
    X: pd.DataFrame, y: pd.Series, name: str, method: RegressorMixin, fold: np.ndarray, repeat: int, seed: int
) -> pd.DataFrame:
    hidden = y.copy()
    hidden.iloc[fold] = np.nan
    prediction = fit_with_seed(method, X, hidden, seed).predict(X.iloc[fold])
    return pd.DataFrame(
        {
            "method": name,
            "repeat": repeat,
            "row": X.index[fold],
            "target": y.iloc[fold].to_numpy(),
            "prediction": prediction,
        }
    )


def summarize(trials: pd.DataFrame) -> pd.DataFrame:
    """Mean MAE over seeds of one dataset with its standard error, a row per method and a column per N.

    Returns
    -------
    pandas.DataFrame
        Index `method` in order of first appearance; columns (`mean` or `standard_error`, N).

    Raises
    ------
    ValueError
        If a method, N and seed occur twice.
    """
    _check_unique(trials)
    by_cell = trials.groupby(["method", "n_labeled"], sort=False)["mae"]
    table = by_cell.agg(mean="mean", standard_error="sem").unstack("n_labeled")
    return table.reindex(trials["method"].unique())


def compare(trials: pd.DataFrame, method: str, reference: str, seed: int = 0) -> pd.DataFrame:
    """Paired differences of MAE, `method` minus `reference`, on the same splits.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `run_trials`; both methods must have run on the same seeds.
    method, reference : str
    seed : int, default=0
        Of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        A row per N: `mean_difference` (below 0: `method` is better), `low` and `high` (95 %
        bootstrap interval of the mean), `p_value` (Wilcoxon signed-rank, two-sided), `n_seeds`,
        `n_better` (seeds in which `method` is better).

    Raises
    ------
    ValueError
        If a method is not in the trials, a method, N and seed occur twice, or the seeds differ or are
        fewer than 2.
    """
    for name in (method, reference):
        if name not in set(trials["method"]):
            raise ValueError(f"no trial of method {name!r}; there are {', '.join(trials['method'].unique())}")
    trials = trials[trials["method"].isin([method, reference])]
    _check_unique(trials)
    wide = trials.pivot(index=["n_labeled", "seed"], columns="method", values="mae")
    differences = wide[method] - wide[reference]
    if differences.isna().any() or differences.groupby("n_labeled").size().min() < 2:
        raise ValueError(f"{method!r} and {reference!r} must have run on the same 2 or more seeds")
    rows = {}
    for n_labeled, values in differences.groupby("n_labeled"):
        if np.ptp(values) == 0:
            low = high = values.iloc[0]
        else:
            low, high = bootstrap((values,), np.mean, rng=seed, method="percentile").confidence_interval
        rows[n_labeled] = {
            "mean_difference": values.mean(),
            "low": low,
            "high": high,
            "p_value": wilcoxon(values).pvalue if values.any() else 1.0,
            "n_seeds": len(values),
            "n_better": int((values < 0).sum()),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("n_labeled")


def compare_cells(trials: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """`compare` on every dataset, with p values corrected for the number of cells.

    A cell is a dataset with one N. Only seeds on which both have run take part, and cells with 2 or more.

    Parameters
    ----------
    trials : pandas.DataFrame
        From `run_trials`, for one or more datasets.
    method, reference : str

    Returns
    -------
    pandas.DataFrame
        Index (`dataset`, `n_labeled`); the columns of `compare` and `p_holm`.
    """
    trials = trials[trials["method"].isin([method, reference])]
    trials = trials[trials.groupby(["dataset", "n_labeled", "seed"])["method"].transform("nunique") == 2]
    trials = trials[trials.groupby(["dataset", "n_labeled"])["seed"].transform("nunique") >= 2]
    if trials.empty:
        raise ValueError(f"{method!r} and {reference!r} have not run on the same 2 or more seeds of any cell")
    parts = {name: compare(part, method, reference) for name, part in trials.groupby("dataset", sort=False)}
    table = pd.concat(parts, names=["dataset"])
    return table.assign(p_holm=holm(table["p_value"]))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct p values for their number, so that *any* false alarm has a probability of alpha at most.

    Parameters
    ----------
    p_values : array-like of shape (n,)

    Returns
    -------
    numpy.ndarray of shape (n,)

    References
    ----------
    Holm (1979): A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6.
    """
    p = np.asarray(p_values, dtype=float)
    order = p.argsort()
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return corrected


def _check_unique(trials: pd.DataFrame) -> None:
    repeated = trials[trials.duplicated(["method", "n_labeled", "seed"])]
    if len(repeated):
        first = repeated.iloc[0]
        raise ValueError(
            "trials must hold each method, N and seed of one dataset once, "
            f"got {first['method']!r} with N = {first['n_labeled']} and seed {first['seed']} twice"
        )


def paper_tables() -> pd.DataFrame:
    """MAE as printed in the paper: `table` (1 to 4), `dataset`, `method`, `n_labeled`, `mae`."""
    with resources.files(__package__).joinpath("datasets/paper_tables.csv").open() as file:
        return pd.read_csv(file)
