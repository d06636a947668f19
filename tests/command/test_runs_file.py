"""The notebooks on a table of one's own: semicolons, decimal commas, a date, categories, gaps."""

import shutil

import numpy as np
import pandas as pd
import pytest
from notebook_runs import (
    PATHS,
    check_run,
    each_notebook,
    run_notebooks,
    texts_of,
)
from numpy.testing import assert_allclose

from dmls2r_lite.data.reading import read_table
from dmls2r_lite.practice.storing import load_model

N_ROWS, N_EMPTY = 120, 90
ARGUMENTS = ["-p", "target", "price", "-p", "n_labeled", "10", "-p", "n_repeats", "2"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "sold": pd.date_range("2021-01-05", periods=N_ROWS, freq="5D").strftime("%d.%m.%Y"),
            "size": rng.uniform(20, 140, N_ROWS).round(2),
            "district": rng.choice(["north", "south", "east"], N_ROWS),
            "heating": rng.choice(["gas", "oil"], N_ROWS),
            "garden": rng.choice([True, False], N_ROWS),
        }
    )
    table["price"] = (table["size"] * 2.5 + rng.normal(0, 10, N_ROWS) + 40 * table["garden"]).round(1)
    for column in ("size", "heating", "sold"):
        table.loc[rng.random(N_ROWS) < 0.1, column] = None
    table.loc[rng.permutation(N_ROWS)[:N_EMPTY], "price"] = None
    path = tmp_path_factory.mktemp("table") / "messy.csv"
    table.to_csv(path, sep=";", decimal=",", index=False)
    return path


@pytest.fixture(scope="module")
def finished(messy, tmp_path_factory):
    arguments = [str(messy), *ARGUMENTS, "-p", "n_seeds", "6", "-p", "n_epochs", "3", "-p", "method", "ridge"]
    return run_notebooks(PATHS, arguments, tmp_path_factory.mktemp("runs"))


@each_notebook
def test_runs(path, finished):
    nb = check_run(path, finished)
    if "dataset: str" in path.read_text():  # the others make their own data, here with 10 labels too
        texts = texts_of(nb)
        assert "price" in texts
        assert "MEDV" not in texts
        assert "1000 USD" not in texts


def test_what_is_taken_home(messy, finished, tmp_path, capsys):
    """Every row once with an interval, rows to label next, a model; and nothing is lost by another run."""
    (notebook,) = (path for path in PATHS if path.name[:2] == "05")
    output_dir = shutil.copytree(finished, tmp_path / "runs")
    folder = output_dir / "messy"

    def run_again(method):
        capsys.readouterr()
        run_notebooks([notebook], [str(messy), *ARGUMENTS, "-p", "method", method], output_dir)
        check_run(notebook, output_dir)
        return pd.read_csv(folder / "predictions.csv"), capsys.readouterr().out

    table = pd.read_csv(messy, sep=";", decimal=",")
    predictions = pd.read_csv(folder / "predictions.csv")
    assert predictions["line"].tolist() == list(range(2, N_ROWS + 2))
    assert predictions["size"].equals(table["size"])
    assert predictions["price"].equals(table["price"])
    estimate = predictions["predicted price"]
    assert (predictions["low"] < predictions["high"]).all()
    assert estimate.between(predictions["low"], predictions["high"]).mean() > 0.95
    is_labeled = table["price"].notna()
    assert (predictions["predicted price: held out"] == is_labeled).all()
    error = (estimate - table["price"])[is_labeled].abs().mean()
    assert error < (table["price"] - table["price"].median()).abs().mean() / 2
    inside = table["price"].between(predictions["low"], predictions["high"])[is_labeled]
    assert 0.6 < inside.mean() <= 1

    to_label = pd.read_csv(folder / "label_next.csv")
    assert to_label["price"].isna().all()
    assert to_label["line"].nunique() == len(to_label) == 10
    stored = load_model(folder / "model.dmls2r")
    assert stored.card.n_labeled == is_labeled.sum()
    features = read_table(messy, ["price"])
    assert_allclose(stored.predict(features)[~is_labeled], estimate[~is_labeled])
    assert_allclose(
        stored.predict_interval(features)[~is_labeled], predictions.loc[~is_labeled, ["low", "high"]]
    )

    again, printed = run_again("ridge")
    pd.testing.assert_frame_equal(again, predictions)
    names = ["label_next.csv", "models.csv", "predictions.csv"]
    assert sorted(path.name for path in folder.glob("*.csv")) == names
    assert [path.name for path in folder.glob("*.dmls2r")] == ["model.dmls2r"]
    lines = printed.splitlines()
    start = next(place for place, line in enumerate(lines) if "absolute error of price to expect" in line)
    shown = [line.strip().removeprefix("->").strip().split("  ")[0] for line in lines[start + 1 :]]
    assert {"average", "DML-S2R", "step 1", "extra trees", "extra trees on pairs"} <= set(shown)
    assert sum(line.startswith("->  ") for line in lines) == 1
    assert f"Label these next: {folder / 'label_next.csv'}" in lines
    run_again("extra trees")
    pd.testing.assert_frame_equal(pd.read_csv(folder / "predictions.earlier-1.csv"), predictions)
    assert_allclose(
        load_model(folder / "model.earlier-1.dmls2r").predict(features)[~is_labeled], estimate[~is_labeled]
    )
