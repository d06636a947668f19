"""The notebooks on a table of one's own: semicolons, decimal commas, a date, categories, gaps."""

import shutil

import numpy as np
import pandas as pd
import pytest
from notebook_runs import (
    FEWER,
    PATHS,
    check_run,
    each_notebook,
    run_notebooks,
    texts_of,
)

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
    arguments = [str(messy), *FEWER, *ARGUMENTS, "-p", "n_seeds", "6", "-p", "method", "ridge"]
    return run_notebooks(PATHS, arguments, tmp_path_factory.mktemp("runs"))


@each_notebook
def test_runs(path, finished):
    nb = check_run(path, finished)
    if "dataset: str" in path.read_text():  # the others make their own data, here with 10 labels too
        texts = texts_of(nb)
        assert "price" in texts
        assert "MEDV" not in texts
        assert "1000 USD" not in texts


def test_predictions_have_every_row_once_and_nothing_is_lost(messy, finished, tmp_path):
    (notebook,) = (path for path in PATHS if path.name[:2] == "05")
    output_dir = shutil.copytree(finished, tmp_path / "runs")

    def run_again(method):
        run_notebooks([notebook], [str(messy), *ARGUMENTS, "-p", "method", method], output_dir)
        check_run(notebook, output_dir)
        return pd.read_csv(output_dir / "messy" / "predictions.csv")

    table = pd.read_csv(messy, sep=";", decimal=",")
    predictions = pd.read_csv(output_dir / "messy" / "predictions.csv")
    assert predictions["row"].tolist() == list(range(1, N_ROWS + 1))
    assert predictions["size"].equals(table["size"])
    assert predictions["price"].equals(table["price"])
    assert np.isfinite(predictions[["predicted price", "predicted price: spread"]]).all(axis=None)
    held_out = predictions["predicted price: held out"]
    assert (held_out == table["price"].notna()).all()
    error = (predictions["predicted price"] - table["price"])[held_out].abs().mean()
    assert error < (table["price"] - table["price"].median()).abs().mean() / 2

    pd.testing.assert_frame_equal(run_again("ridge"), predictions)
    folder = output_dir / "messy"
    assert [path.name for path in folder.glob("*.csv")] == ["predictions.csv"]
    run_again("extra trees")
    kept = pd.read_csv(folder / "predictions.earlier-1.csv")
    pd.testing.assert_frame_equal(kept, predictions)
