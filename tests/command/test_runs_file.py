"""The notebooks on a table of one's own: semicolons, decimal commas, a date, categories, gaps."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from notebook_runs import each_notebook_with_a_dataset, run_notebook, texts_of

from dmls2r_lite.command import cli

N_ROWS, N_EMPTY = 120, 80


@pytest.fixture
def messy(tmp_path):
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
    path = tmp_path / "messy.csv"
    table.to_csv(path, sep=";", decimal=",", index=False)
    return path


@each_notebook_with_a_dataset
def test_runs(path, messy, tmp_path):
    nb = run_notebook(path, [str(messy), "-p", "target", "price", "-p", "n_labeled", "10"], tmp_path / "runs")
    texts = texts_of(nb)
    assert "price" in texts
    assert "MEDV" not in texts
    assert "1000 USD" not in texts


class TestPredictions:
    def run(self, path, output_dir, *more):
        command = ["run", str(path), "--only", "05", "-p", "target", "price", "-p", "n_repeats", "2", *more]
        result = CliRunner().invoke(cli.main, [*command, "--output-dir", str(output_dir)])
        assert result.exit_code == 0, result.output
        return pd.read_csv(output_dir / "messy" / "predictions.csv")

    def test_every_row_once_and_nothing_lost(self, messy, tmp_path):
        table = pd.read_csv(messy, sep=";", decimal=",")
        predictions = self.run(messy, tmp_path / "runs", "-p", "method", "ridge")
        assert predictions["row"].tolist() == list(range(1, N_ROWS + 1))
        assert predictions["size"].equals(table["size"])
        assert predictions["price"].equals(table["price"])
        assert np.isfinite(predictions[["predicted price", "predicted price: spread"]]).all(axis=None)
        held_out = predictions["predicted price: held out"]
        assert (held_out == table["price"].notna()).all()
        error = (predictions["predicted price"] - table["price"])[held_out].abs().mean()
        assert error < (table["price"] - table["price"].median()).abs().mean() / 2

        again = self.run(messy, tmp_path / "runs", "-p", "method", "ridge")
        pd.testing.assert_frame_equal(again, predictions)
        folder = tmp_path / "runs" / "messy"
        assert [path.name for path in folder.glob("*.csv")] == ["predictions.csv"]
        self.run(messy, tmp_path / "runs", "-p", "method", "extra trees")
        kept = pd.read_csv(folder / "predictions.earlier-1.csv")
        pd.testing.assert_frame_equal(kept, predictions)
