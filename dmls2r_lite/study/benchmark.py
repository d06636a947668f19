"""The paper's experiments over many seeds, with the controls that it lacks.

``run_benchmark(folder)`` runs them and ``read_trials(folder)`` reads them, see
`dmls2r_lite.study.trials.Study`. ``shipped_trials()`` gives those that come with the package: the full
benchmark on the report seeds. All have a row per `dataset`, `method`, `n_labeled` and `seed`, with the test
`mae` and `rmse` in the target's unit, `fit_seconds`, `predict_seconds`, `n_unlabeled`, `n_test`, `versions`
and `finished` (UTC).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sklearn.base import RegressorMixin

from ..data.datasets import Dataset
from .trials import AS_PUBLISHED, N_LABELED, Rows, Study, read_shipped, run_seeds

BENCHMARK_DATASETS = ("boston", "superconductivity", AS_PUBLISHED, "air_quality")
HALF = "step 1, half the epochs"  # both steps without step 2: its epochs are left out
PLACEBOS = (HALF, "placebo null", "placebo random", "placebo swapped")  # of what step 2 adds
MAX_TEST_ROWS = {"extra trees on pairs": 2000}  # every test row makes 2 N pairs


def control_arms() -> dict[str, RegressorMixin]:
    """DML-S2R, step 1, and both steps with one thing changed, to find out why step 2 does what it does.

    First placebos of step 2 (see `dmls2r_lite.rivals.placebos`) and the other ways to combine the steps; then
    both steps, step 1 and placebos where step 1 is under-trained (all pairs in one batch: a gradient step an
    epoch), and in the literal reading of the paper (only samples are scaled, batches of 8). All train for as
    many epochs in all, but `HALF`. With an Adam for each step the null placebo would be `HALF`, to the bit.
    """
    from ..estimators import DMLS2RRegressor
    from ..rivals.placebos import mine_random, mine_swapped, null_loss

    arms: dict[str, dict[str, Any]] = {
        "DML-S2R": {},
        "step 1": {"schedule": "pairwise_only"},
        HALF: {"schedule": "pairwise_only", "n_epochs": DMLS2RRegressor.n_epochs // 2},
        "placebo null": {"metric_loss": null_loss},
        "placebo random": {"miner": mine_random},
        "placebo swapped": {"miner": mine_swapped},
        "joint": {"schedule": "joint"},
        "sequential": {"schedule": "sequential"},
        "sequential (step 2 first)": {"schedule": "sequential_metric_first"},
    }
    for setting, changed in (
        ("one batch", {"pair_batch_size": None}),
        ("literal", {"target_scaling": "none", "pair_batch_size": 8}),
    ):
        for name in ("DML-S2R", "step 1", HALF, "placebo null", "placebo random"):
            arms[f"{name} ({setting})"] = {**arms[name], **changed}
    return {name: DMLS2RRegressor(**changed) for name, changed in arms.items()}


def all_methods() -> dict[str, RegressorMixin]:
    """Every method of the benchmark, by name."""
    from ..rivals.coreg import COREGRegressor
    from ..rivals.mssr import MSSRRegressor
    from ..rivals.plain import plain_models

    return {**control_arms(), "COREG": COREGRegressor(), "MSSR": MSSRRegressor(), **plain_models()}


def _sizes(dataset: str, method: str) -> Sequence[int]:
    # Table 1 has 100 labels too.
    in_table_1 = method.removesuffix(" (literal)") in ("DML-S2R", "step 1", *PLACEBOS)
    has_100 = dataset == "superconductivity" and in_table_1
    return (*N_LABELED, 100) if has_100 else N_LABELED


def _measure(dataset: Dataset, name: str, method: RegressorMixin, n: int, seeds: Sequence[int]) -> Rows:
    return run_seeds(dataset, name, method, n, dataset.n_unlabeled, seeds, MAX_TEST_ROWS.get(name))


TRIALS = Study(
    name="trials",
    key=("dataset", "method", "n_labeled", "seed"),
    measured=("mae", "rmse", "fit_seconds", "predict_seconds", "n_unlabeled", "n_test"),
    datasets=BENCHMARK_DATASETS,
    methods=all_methods,
    measure=_measure,
    sizes=_sizes,
)
run_benchmark, read_trials, shipped_trials = TRIALS.run, TRIALS.read, partial(read_shipped, TRIALS.name)
