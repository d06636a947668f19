"""How right the error to expect on chosen rows is: `python tests/benchmarks/expected_errors.py`.

The mean of held-out errors at rows that `choose_rows` names, plain and weighted as with ``chosen=True``, is
divided by the mean error on all other rows. Tables from UCI need the folder DMLS2R_DATA. Seeds from 100 on
are those to report.
"""

import os

import click
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.pipeline import make_pipeline

from dmls2r_lite import AveragedRegressor, choose_rows
from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.foundation.checks import make_scaler
from dmls2r_lite.practice.errors import nearest_shares
from dmls2r_lite.practice.folds import fit_with_seed, predict_held_out
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.trials import load_benchmark_dataset

N_ROWS = 300
OF_TUMOURS = ["mean texture", "mean smoothness", "mean compactness", "mean concavity", "mean symmetry"]


def made_tables(random: np.random.Generator) -> dict[str, pd.DataFrame]:
    """Tables whose last column is the target: noise alone, categories, skewed prices, a straight line."""
    X = pd.DataFrame(random.normal(size=(N_ROWS, 8))).add_prefix("x")
    noise = random.normal(size=N_ROWS)
    tables = {"line": X.assign(y=X @ random.normal(size=8) + 0.5 * random.normal(size=N_ROWS))}
    with_sites = X.assign(site=pd.Series(random.integers(0, 12, N_ROWS)).map("s{}".format))
    tables |= {"noise": with_sites.assign(y=noise), "skewed noise": with_sites.assign(y=np.exp(noise))}
    texts, y = X[["x0", "x1", "x2"]], X["x0"] + 0.5 * X["x1"] ** 2 + 0.3 * noise
    for n in (30, 8, 40):
        code = random.integers(0, n, N_ROWS)
        texts, y = texts.assign(**{f"of {n}": [f"t{i}" for i in code]}), y + random.normal(0, 0.8, n)[code]
    town = random.choice(39, N_ROWS, p=random.dirichlet(np.full(39, 0.4)))
    place = random.normal(0, 0.15, (39, 2))[town] + random.normal(0, 0.05, (N_ROWS, 2))
    beds = random.integers(1, 6, N_ROWS)
    size = np.exp(6.4 + 0.25 * beds + random.normal(0, 0.25, N_ROWS))
    price = size**0.75 * np.exp(random.normal(0, 0.35, 39)[town] + 0.25 * noise)
    homes = pd.DataFrame({"beds": beds, "size": size, "north": place[:, 0], "east": place[:, 1]})
    homes["baths"] = np.maximum(1, beds - random.integers(0, 3, N_ROWS))
    homes["town"] = [f"t{i}" for i in town]
    return tables | {"categories": texts.assign(y=y), "prices": homes.assign(y=price)}


def real_tables(random: np.random.Generator) -> dict[str, pd.DataFrame]:
    """A draw of rows of each, and of two of them also with noise added to the target, the last column."""
    wine, tumours = load_wine(as_frame=True).data, load_breast_cancer(as_frame=True).data
    tables = {"wine": wine.assign(y=wine.pop("alcohol")), "tumours": tumours[[*OF_TUMOURS, "worst area"]]}
    from_uci = ["superconductivity", "air_quality"] * ("DMLS2R_DATA" in os.environ)
    for name in ("boston", "friedman", "diabetes", "toy", *from_uci):
        data = load_benchmark_dataset(name)
        tables[name] = data.features.assign(y=data.target)
    draws = {name: table.iloc[random.permutation(len(table))[:N_ROWS]] for name, table in tables.items()}
    for name in ("boston", "friedman"):
        y = draws[name]["y"]
        draws[f"{name} and noise"] = draws[name].assign(y=y + y.std() * random.normal(size=len(y)))
    return draws


@click.command()
@click.option("--seeds", default="0-7", show_default=True)
@click.option("--average", is_flag=True, help="Also the average, which takes some minutes a seed.")
def main(seeds: str, average: bool) -> None:
    """Print estimate over truth: medians of each table and method, and how often it is how far off."""
    first, last = map(int, seeds.split("-"))
    methods = {name: plain_models()[name] for name in ("ridge", "extra trees")}
    methods |= {"average": AveragedRegressor()} if average else {}
    rows = []
    for seed in range(first, last + 1):
        random = np.random.default_rng(seed)
        for name, table in (made_tables(random) | real_tables(random)).items():
            table = table.reset_index(drop=True)
            columns, y = table.iloc[:, :-1], table.iloc[:, -1]
            prepare = make_pipeline(make_preprocessor(columns), make_scaler("minmax"))
            X = prepare.set_output(transform="pandas").fit_transform(columns)
            for n in (20, 50):
                is_labeled = np.isin(np.arange(len(X)), choose_rows(columns, n))
                known, others = y.where(is_labeled), y[~is_labeled]
                held_out = predict_held_out(X, known, methods, 1, seed)
                held_out["error"] = (held_out["prediction"] - held_out["target"]).abs()
                errors = held_out.pivot_table("error", index="row", columns="method")
                weighted = errors.T @ nearest_shares(X[is_labeled], X[~is_labeled])
                for method, of_method in methods.items():
                    predicted = fit_with_seed(of_method, X, known, seed).predict(X[~is_labeled])
                    true = np.abs(predicted - others).mean()
                    rows.append((name, n, method, errors[method].mean() / true, weighted[method] / true))
    ratios = pd.DataFrame(rows, columns=["table", "N", "method", "plain", "weighted"])
    estimates = ratios[["plain", "weighted"]]
    for key in ("table", ["method", "N"]):
        print(ratios.groupby(key)[["plain", "weighted"]].median().round(2), end="\n\n")
    print(estimates.quantile([0.1, 0.5, 0.9]).round(2))
    print("below 0.8:", (estimates < 0.8).mean().round(3).to_dict())
    print("from 0.8 to 1.25:", ((estimates >= 0.8) & (estimates <= 1.25)).mean().round(3).to_dict())


if __name__ == "__main__":
    main()
