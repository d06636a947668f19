"""The datasets that have a name: where they come from, and what is known of them unread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from . import uci


@dataclass(frozen=True)
class KnownDataset:
    """What is known about a dataset without reading it.

    Attributes
    ----------
    n_rows, n_features : int
        After `load_dataset`.
    target, unit : str
        The target that the dataset is known for, and its unit.
    source, licence, note : str
    n_unlabeled : int
        See `Dataset`.
    load : callable
        Returns the whole table, target included.
    units : dict
        Of other columns that may serve as the target.
    """

    n_rows: int
    n_features: int
    target: str
    unit: str
    source: str
    licence: str
    note: str
    load: Callable[[str | Path | None], pd.DataFrame]
    n_unlabeled: int = 200
    units: Mapping[str, str] = field(default_factory=dict)


def _boston(data_dir: str | Path | None) -> pd.DataFrame:
    with resources.files(__package__).joinpath("files/boston.csv").open() as file:
        return pd.read_csv(file, dtype=float)


def _diabetes(data_dir: str | Path | None) -> pd.DataFrame:
    from sklearn.datasets import load_diabetes  # takes a second, which the catalog itself need not

    bunch = load_diabetes(as_frame=True, scaled=False)
    return bunch.data.assign(progression=bunch.target)


def _friedman(data_dir: str | Path | None) -> pd.DataFrame:
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(n_samples=1500, n_features=10, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(1, 11)]).assign(y=y)


def _toy(data_dir: str | Path | None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(400, 2)), columns=["x1", "x2"])
    return X.assign(y=3 * X["x1"] ** 2 + 2 * X["x2"] + rng.normal(scale=0.1, size=len(X)))


def _superconductivity(data_dir: str | Path | None) -> pd.DataFrame:
    return uci.read_superconductivity(_uci_content("superconductivity", data_dir))


def _air_quality(data_dir: str | Path | None) -> pd.DataFrame:
    return uci.read_air_quality(_uci_content("air_quality", data_dir))


def _uci_content(name: str, data_dir: str | Path | None) -> bytes:
    return uci.read(name, uci.find(name, data_dir) or uci.fetch(name))


UG_PER_M3 = "µg/m³"
DATASETS: dict[str, KnownDataset] = {
    "boston": KnownDataset(
        n_rows=506,
        n_features=13,
        target="MEDV",
        unit="1000 USD",
        source="Harrison and Rubinfeld (1978), through StatLib",
        licence="none stated; public for decades",
        note=(
            "Median house values of 506 census tracts around Boston in 1970; 16 are capped at 50. "
            "Column B is computed from the share of Black residents, on the assumption that house "
            "prices follow segregation; scikit-learn removed the set for that reason. "
            "It is here because the paper used it; drop_columns can leave the column out."
        ),
        load=_boston,
    ),
    "superconductivity": KnownDataset(
        n_rows=21263,
        n_features=81,
        target="critical_temp",
        unit="K",
        source="Hamidieh (2018), UCI dataset 464, doi:10.24432/C53P47",
        licence="CC BY 4.0",
        note=(
            "Critical temperatures of 21263 superconductors and 81 statistics of the elements that they are "
            "made of. 66 rows repeat others in all columns."
        ),
        load=_superconductivity,
        n_unlabeled=1000,
    ),
    "air_quality": KnownDataset(
        n_rows=9357,
        n_features=14,
        target="C6H6(GT)",
        unit=UG_PER_M3,
        source="De Vito et al. (2008), UCI dataset 360, doi:10.24432/C59K5F",
        licence="CC BY 4.0; UCI adds: for research only",
        note=(
            "Hourly readings of five cheap sensors beside a road in Italy and of an analyser, from March "
            "2004 to April 2005; the target is, according to UCI, the analyser's benzene. The file has -200 "
            "for a missing value."
        ),
        load=_air_quality,
        n_unlabeled=1000,
        units={
            "Date": "days", "Time": "hours", "CO(GT)": "mg/m³", "NMHC(GT)": UG_PER_M3, "NOx(GT)": "ppb",
            "NO2(GT)": UG_PER_M3, "T": "°C", "RH": "%", "AH": "g/m³",
        },
    ),
    "diabetes": KnownDataset(
        n_rows=442,
        n_features=10,
        target="progression",
        unit="points",
        source="Efron, Hastie, Johnstone and Tibshirani (2004), through scikit-learn",
        licence="none stated; part of scikit-learn",
        note="A measure of diabetes progression of 442 patients one year after ten measurements.",
        load=_diabetes,
    ),
    "friedman": KnownDataset(
        n_rows=1500,
        n_features=10,
        target="y",
        unit="units",
        source="Friedman (1991), generated by scikit-learn",
        licence="none needed",
        note=(
            "y = 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5 + noise of standard deviation 1; "
            "x6 to x10 do nothing. No model can have a mean absolute error below 0.80, the noise's."
        ),
        load=_friedman,
    ),
    "toy": KnownDataset(
        n_rows=400,
        n_features=2,
        target="y",
        unit="units",
        source="generated here",
        licence="none needed",
        note="y = 3 x1^2 + 2 x2 + noise of standard deviation 0.1: two columns, for pictures.",
        load=_toy,
    ),
}  # fmt: skip
SENTINEL = -200.0  # of a missing value in air_quality
