"""`dmls2r predict`: every row once, with the model's estimate."""

import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge

from dmls2r_lite.command.cli import main
from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.data.reading import read_cells, read_table
from dmls2r_lite.practice import packing
from dmls2r_lite.practice.storing import Card, load_model, save_model

CARD = Card("sales", "price", 30, 10, unit="EUR", expected_error=2.5, error_margin=0.25, coverage=0.9)


class Surely(RegressorMixin, BaseEstimator):
    """A model with intervals."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.estimator_ = Ridge().fit(X, y)
        return self

    def predict(self, X):
        return self.estimator_.predict(X)

    def predict_interval(self, X, coverage=0.8):
        return self.predict(X)[:, None] + coverage * np.array([-1, 1])


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 40
    return pd.DataFrame(
        {
            "size": rng.uniform(10, 20, n).round(2),
            "day": (pd.Timestamp(2024, 1, 1) + pd.to_timedelta(rng.integers(0, 90, n), "D")).strftime(
                "%Y-%m-%d"
            ),
            "code": rng.choice(["1", "x", "y"], n),
            "hour": rng.choice(["08:30", "17:45"], n),
            "is_new": rng.choice([True, False], n),
            "price": rng.uniform(1, 9, n).round(1),
        }
    )


@pytest.fixture
def model(table, tmp_path, monkeypatch):
    """The path of a model; the current folder is a fresh one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(packing, "CLASSES", packing.CLASSES | {"Surely": __name__})
    table.to_csv("train.csv", index=False)
    read = read_table("train.csv")
    y = read.pop("price")
    preprocessor = make_preprocessor(read).fit(read)
    fitted = Surely().fit(preprocessor.transform(read).to_numpy(), y)
    save_model(fitted, "model.dmls2r", CARD, preprocessor=preprocessor)
    os.remove("train.csv")
    return "model.dmls2r"


def predict(*arguments):
    return CliRunner().invoke(main, ["predict", *map(str, arguments)])


def run(model, table, **options):
    table.to_csv("new.csv", index=False, **options)
    result = predict(model, "new.csv")
    assert result.exit_code == 0, result.output
    return result, read_cells("new_predictions.csv")


def test_a_table_with_its_target(model, table):
    result, written = run(model, table)
    assert result.stdout.splitlines() == [
        "Estimates price [EUR], learned from sales: 30 labeled rows and 10 without a label.",
        "Expected mean absolute error on new rows: 2.5 ± 0.25 [EUR].",
        "Its intervals are made to hold 90% of the targets.",
        "new_predictions.csv: 40 rows of new.csv with estimates",
    ]
    assert result.stderr == "kept, but not used by the model: price\n"
    assert [*written] == [*table, "prediction", "low", "high"]
    pd.testing.assert_frame_equal(written[[*table]], read_cells("new.csv"))
    expected = load_model(model).predict(read_table("new.csv"))
    numbers = written[["prediction", "low", "high"]].astype(float).to_numpy()
    np.testing.assert_allclose(numbers, expected[:, None] + [0, -0.9, 0.9], rtol=1e-14)
    assert sorted(os.listdir()) == ["model.dmls2r", "new.csv", "new_predictions.csv"]


def test_rows_alone_are_estimated_as_among_others(model, table):
    """Also where a column of one row looks like one of another kind: 1 is a text here, not a number."""
    _, together = run(model, table)
    for row in range(6):
        os.remove("new_predictions.csv")
        _, alone = run(model, table.drop(columns="price").iloc[[row], ::-1])
        assert float(alone["prediction"][0]) == pytest.approx(float(together["prediction"][row]), rel=1e-12)


def test_gaps_new_categories_and_empty_rows(model, table):
    table = table.astype({"is_new": object}).assign(more="a, b")
    table.loc[1, ["size", "code"]] = np.nan
    table.loc[2, [*table.columns[:5]]] = np.nan
    table.loc[[3, 4, 5, 6, 7], "code"] = ["p", "q", "r", "s", "p"]
    result, written = run(model, table)
    assert result.stderr.splitlines() == [
        "kept, but not used by the model: price, more",
        "rows without a value in any column that the model needs, which have no estimate: 1",
        "size: 1 without a value, filled as in training",
        "code: 1 without a value, filled as in training",
        "code: 5 with what the training did not have ('p', 'q', 'r', ...), taken for something rare",
    ]
    assert len(written) == 40
    assert (written["prediction"] == "").tolist() == [row == 2 for row in range(40)]
    assert (written["more"] == "a, b").all()


def test_decimal_commas(model, table):
    _, expected = run(model, table)
    os.remove("new_predictions.csv")
    _, written = run(model, table, sep=";", decimal=",")
    again = read_table("new_predictions.csv")
    np.testing.assert_allclose(again["prediction"], expected["prediction"].astype(float), rtol=1e-14)
    assert written["size"][0] == str(table["size"][0]).replace(".", ",")


def test_thousands_are_no_decimal_commas(model, table):
    _, expected = run(model, table.assign(size=1000 * table["size"]))
    os.remove("new_predictions.csv")
    _, written = run(model, table.assign(size=[f"{1000 * value:,.1f}" for value in table["size"]]))
    np.testing.assert_allclose(written["prediction"].astype(float), expected["prediction"].astype(float))
    assert written["size"][0] == f"{1000 * table['size'][0]:,.1f}"


def test_order_of_day_and_month_is_told(model, table):
    dates = pd.to_datetime(table["day"]).dt.strftime("%d/%m/%Y")
    result, _ = run(model, table.assign(day="03/02/2024"))
    assert "day: dates, day first (assumed: no date shows it)" in result.stderr
    os.remove("new_predictions.csv")
    result, _ = run(model, table.assign(day=dates))
    assert "assumed" not in result.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop(columns=["hour", "code"]),
            "new.csv must have the columns of the training, but lacks code, hour",
        ),
        (
            lambda t: t.assign(size="large"),
            "column 'size' must hold numbers, as in the training, got 'large' (row 1)",
        ),
        (lambda t: t.assign(day=1.5), "column 'day' must hold dates, as in the training, got '1.5' (row 1)"),
        (
            lambda t: t.assign(hour="2024-01-01"),
            "column 'hour' must hold times, as in the training, got '2024-01-01'",
        ),
        (lambda t: t.assign(low=1), "new.csv has a column named low already: rename it"),
        (lambda t: t[:0], "new.csv must hold a row below the line of names, got none"),
        (
            lambda t: t.assign(**dict.fromkeys(t, np.nan)),
            "no row has a value in any column that the model needs",
        ),
    ],
)
def test_other_tables_are_refused(model, table, change, message):
    change(table).to_csv("new.csv", index=False)
    result = predict(model, "new.csv")
    assert result.exit_code == 1
    assert message in result.stderr
    assert sorted(os.listdir()) == ["model.dmls2r", "new.csv"]


def test_other_arguments_are_refused(model, table):
    table.to_csv("new.csv", index=False)
    for arguments, message in [
        (["none", "new.csv"], "there is no file none"),
        (["new.csv", "new.csv"], "new.csv is no model that `save_model` wrote"),
        ([model, "none.csv"], "there is no file none.csv"),
        ([model, model], "must end in .csv, .tsv, .txt"),
        ([model, "new.csv", "--output", "a.txt"], "--output must end in .csv, got a.txt"),
        (
            [model, "new.csv", "--output", "new.csv"],
            "new.csv exists: move it, or name another file with --output",
        ),
        ([model, "new.csv", "--output", "no/a.csv"], "there is no folder no"),
    ]:
        result = predict(*arguments)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert message in result.stderr
    save_model(Ridge().fit([[0.0], [1.0]], [0, 1]), "array.dmls2r", CARD)
    assert "it knows no columns by name" in predict("array.dmls2r", "new.csv").stderr
    both = Ridge().fit(table[["size"]], table[["size", "price"]])
    save_model(both, "both.dmls2r", CARD)
    assert "the model estimates 2 numbers for each row" in predict("both.dmls2r", "new.csv").stderr
    assert "new_predictions.csv" not in os.listdir()


def test_a_model_without_preprocessor_or_intervals(model, table):
    save_model(Ridge().fit(table[["size"]], table["price"]), "plain.dmls2r", Card("sales", "price", 30, 0))
    table.to_csv("new.csv", index=False)
    result = predict("plain.dmls2r", "new.csv", "--output", "out.csv")
    assert result.exit_code == 0, result.output
    assert [*read_cells("out.csv")] == [*table, "prediction"]


class TestHowAFileIsRead:
    """As the table was that the model learned from."""

    @pytest.fixture
    def save(self, table, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

        def save(column_types, missing_values="", **of_card):
            table.to_csv("train.csv", index=False)
            read = read_table("train.csv", ["code", "hour", "is_new"])
            y = read.pop("price")
            preprocessor = make_preprocessor(read).fit(read)
            fitted = Ridge().fit(preprocessor.transform(read).to_numpy(), y)
            card = Card("sales", "price", 30, 10, **of_card)
            how = {"column_types": column_types, "missing_values": missing_values}
            save_model(fitted, "model.dmls2r", card, preprocessor=preprocessor, overwrite=True, **how)
            return "model.dmls2r"

        return save

    def estimate(self, model, table):
        result, written = run(model, table)
        os.remove("new_predictions.csv")
        return result, written["prediction"].astype(float).tolist()

    def test_order_of_day_and_month(self, save, table):
        table = table[["size"]].assign(day="03/02/2024")
        expected = {
            "day first": self.estimate(save({}), table.assign(day="2024-02-03"))[1],
            "month first": self.estimate(save({}), table.assign(day="2024-03-02"))[1],
        }
        assert expected["day first"] != expected["month first"]
        for order, estimates in expected.items():
            model = save({"day": order, "size": "number"})
            assert load_model(model).column_types == {"day": order, "size": "number"}
            result, found = self.estimate(model, table)
            assert found == pytest.approx(estimates)
            assert "assumed" not in result.stderr
        table.assign(day="30/01/2024").to_csv("new.csv", index=False)
        refused = predict(save({"day": "month first"}), "new.csv")
        assert "must hold dates with the month first" in refused.output

    def test_values_that_stand_for_a_missing_one(self, save, table):
        model = save({}, missing_values="-999")
        table = table[["size", "day"]]
        gaps, codes = table.copy(), table.copy()
        gaps.loc[:5, "size"], codes.loc[:5, "size"] = np.nan, -999.0
        result, found = self.estimate(model, codes)
        assert found == self.estimate(model, gaps)[1]
        assert "size: 6 without a value, filled as in training" in result.stderr

    def test_estimates_beyond_the_labels(self, save, table):
        model = save({}, lowest=1.0, highest=4.0)
        result, found = self.estimate(model, table)
        n_beyond = sum(not 1 <= estimate <= 4 for estimate in found)
        assert n_beyond > 0
        assert f"estimates beyond the range of the labels, 1 to 4: {n_beyond} (--clip would" in result.stderr
        table.to_csv("new.csv", index=False)
        result = predict(model, "new.csv", "--clip")
        assert f"1 to 4: {n_beyond} (moved to its ends)" in result.stderr
        clipped = read_cells("new_predictions.csv")["prediction"].astype(float)
        np.testing.assert_allclose(clipped, np.clip(found, 1, 4))
        os.remove("new_predictions.csv")
        assert "does not know the range" in predict(save({}), "new.csv", "--clip").output

    def test_what_cannot_be_stored(self, save):
        with pytest.raises(ValueError, match="column_types must hold printable text"):
            save({"day": 3})
        with pytest.raises(ValueError, match="missing_values must be printable text"):
            save({}, missing_values=-999)


def test_an_interval_holds_a_clipped_estimate(model, table):
    stored = load_model(model)
    low = float(np.median(stored.predict(read_table_of(table))))
    card = replace(CARD, lowest=low, highest=low + 0.01)
    save_model(stored.model, "narrow.dmls2r", card, preprocessor=stored.preprocessor)
    table.to_csv("new.csv", index=False)
    assert predict("narrow.dmls2r", "new.csv", "--clip").exit_code == 0
    written = read_cells("new_predictions.csv")[["low", "prediction", "high"]].astype(float)
    assert written["prediction"].between(low, low + 0.01).all()
    assert (written.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def read_table_of(table):
    table.to_csv("all.csv", index=False)
    return read_table("all.csv")
