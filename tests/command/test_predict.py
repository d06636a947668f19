"""`dmls2r predict`: every row once, with the model's estimate, read as the table was that it learned from."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from dmls2r_lite.command.cli import main
from dmls2r_lite.data import reading
from dmls2r_lite.data.preparing import make_preprocessor
from dmls2r_lite.foundation.checks import make_scaler
from dmls2r_lite.practice.intervals import ConformalRegressor
from dmls2r_lite.practice.storing import Card, load_model, save_model

FEATURES = ["size", "day", "code", "hour", "is_new"]
OF_CARD = {"unit": "EUR", "expected_error": 2.5, "error_margin": 0.25, "coverage": 0.9}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 40
    days = pd.Timestamp(2024, 1, 1) + pd.to_timedelta(rng.integers(0, 90, n), "D")
    columns = {
        "size": rng.uniform(10, 20, n).round(2),
        "day": days.strftime("%Y-%m-%d"),
        "code": rng.choice(["1", "x", "y"], n),
        "hour": rng.choice(["08:30", "17:45"], n),
        "is_new": rng.choice([True, False], n),
        "price": rng.uniform(1, 9, n).round(1),
    }
    return pd.DataFrame(columns)


@pytest.fixture
def save(table, folder):
    """Train and store a model."""

    def save(drop_columns=(), column_types=None, missing_values="", estimator=None, **of_card):
        table.to_csv("train.csv", index=False)
        read = reading.read("train.csv", drop_columns).table
        y = read.pop("price")
        preprocessor = make_pipeline(make_preprocessor(read), make_scaler("minmax"))
        model = (estimator or Ridge()).fit(preprocessor.fit_transform(read), y)
        how = {"column_types": column_types, "missing_values": missing_values, "overwrite": True}
        card = Card("sales", "price", 30, 10, **of_card)
        save_model(model, "model.dmls2r", card, preprocessor=preprocessor, **how)
        os.remove("train.csv")
        return "model.dmls2r"

    return save


def predict(*arguments):
    return CliRunner().invoke(main, ["predict", *arguments])


def run(model, table, *arguments, name="new.csv", **options):
    """What is said, and the table that is written."""
    if name.endswith("parquet"):
        table.to_parquet(name)
    else:
        table.to_csv(name, index=False, **options)
    output = Path(f"{name.split('.')[0]}_predictions.csv")
    output.unlink(missing_ok=True)
    result = predict(model, name, *arguments)
    assert result.exit_code == 0, result.output
    return result, reading.read_source(output).cells


def test_a_table_with_its_target(save, table):
    model = save(estimator=ConformalRegressor(Ridge(), cv=3), **OF_CARD)
    result, written = run(model, table)
    assert result.stdout.splitlines() == [
        "Estimates price [EUR], learned from sales: 30 labeled rows and 10 without a label.",
        "Expected mean absolute error on new rows: 2.5 ± 0.25 [EUR].",
        "Its intervals are made to hold 90% of the targets.",
        "new_predictions.csv: 40 rows of new.csv with estimates",
    ]
    assert result.stderr == "kept, but not used by the model: price\n"
    assert [*written] == [*table, "prediction", "low", "high"]
    pd.testing.assert_frame_equal(written[[*table]], reading.read_source("new.csv").cells)
    stored, features = load_model(model), reading.read("new.csv").table
    numbers = written[["prediction", "low", "high"]].astype(float).to_numpy()
    np.testing.assert_allclose(numbers[:, 0], stored.predict(features), rtol=1e-14)
    np.testing.assert_allclose(numbers[:, 1:], stored.predict_interval(features), rtol=1e-14)
    assert sorted(os.listdir()) == ["model.dmls2r", "new.csv", "new_predictions.csv"]


def test_rows_are_estimated_as_among_others_and_in_other_files(save, table):
    """Also where a column of one row looks like one of another kind: 1 is a text here, not a number."""
    model = save()
    expected = run(model, table)[1]["prediction"].astype(float)
    for row in range(6):
        alone = run(model, table.drop(columns="price").iloc[[row], ::-1])[1]
        assert float(alone["prediction"][0]) == pytest.approx(expected[row], rel=1e-12)
    with_commas = run(model, table, sep=";", decimal=",")[1]
    np.testing.assert_allclose(reading.read("new_predictions.csv").table["prediction"], expected, rtol=1e-14)
    assert with_commas["size"][0] == str(table["size"][0]).replace(".", ",")
    for name in ("typed.parquet", "packed.csv.gz"):
        assert run(model, table, name=name)[1]["prediction"].astype(float).tolist() == expected.tolist()
    thousands = run(model, table.assign(size=[f"{1000 * value:,.1f}" for value in table["size"]]))[1]
    plain = run(model, table.assign(size=1000 * table["size"]))[1]
    np.testing.assert_allclose(thousands["prediction"].astype(float), plain["prediction"].astype(float))
    assert thousands["size"][0] == f"{1000 * table['size'][0]:,.1f}"


def test_gaps_new_categories_and_empty_rows(save, table):
    table = table.astype({"is_new": object}).assign(more="a, b")
    table.loc[1, ["size", "code"]] = np.nan
    table.loc[2, [*table.columns[:5]]] = np.nan
    table.loc[[3, 4, 5, 6, 7], "code"] = ["p", "q", "r", "s", "p"]
    result, written = run(save(), table)
    assert result.stderr.splitlines() == [
        "kept, but not used by the model: price, more",
        "rows without a value in any column that the model needs, which have no estimate: 1",
        "size: 1 without a value, filled as in training",
        "code: 1 without a value, filled as in training",
        "code: 5 with what the training did not have ('p', 'q', 'r', ...), taken for something rare",
    ]
    assert (written["prediction"] == "").tolist() == [row == 2 for row in range(40)]
    assert (written["more"] == "a, b").all()


def test_rows_unlike_those_of_the_training(save, table):
    table = table.astype({"is_new": object})
    table.loc[0, "size"], table.loc[1, "day"], table.loc[2, "code"] = -999, "2030-01-01", "X"
    table.loc[3, ["size", "day", "hour"]] = np.nan
    lines = run(save(), table)[0].stderr.splitlines()
    assert "rows without any number, date or time, whose estimates are rough guesses: 1" in lines
    far = "farther from all values of the training than those are apart: size (1 row), day (1 row). Mistyped"
    assert [line[: len(far)] for line in lines].count(far) == 1
    assert "code: 1 with what the training did not have ('X' for 'x'), taken for something rare" in lines


@pytest.mark.parametrize(
    ("kind", "mark", "other"), [("decimal point", ".", ","), ("decimal comma", ",", ".")]
)
def test_a_mark_that_may_be_either_is_that_of_the_training(save, table, kind, mark, other):
    expected = run(save(), table.assign(size="1.06"))[1]["prediction"].tolist()
    model = save(column_types={"size": kind})
    estimates = run(model, table.assign(size=f"1{mark}060"))[1]["prediction"]
    assert estimates.str.replace(",", ".").tolist() == expected
    table.assign(size=f"1{other}060").to_csv("other.csv")
    assert "may have a decimal mark or a thousands separator" in predict(model, "other.csv").stderr


def test_a_row_by_itself_and_a_column_that_counts_rows_here(save, table):
    """What a cell means is known from the training: NA is missing among codes, too."""
    table["code"] = np.array(["US", "DE", "FRA", None])[np.arange(40) % 4]
    table.insert(0, "Unnamed: 0", np.random.default_rng(0).permutation(40))
    model, new = save(), table.drop(columns="Unnamed: 0").fillna("NA").iloc[[3, 0, 1]]
    result, written = run(model, new.reset_index(drop=True).reset_index(names=""))
    assert "code: 1 without a value, filled as in training" in result.stderr
    assert "training did not have" not in result.stderr
    with_others = run(model, table.fillna("NA").iloc[[3, 0, 1, 2]].assign(**{"Unnamed: 0": range(4)}))[1]
    found, expected = written["prediction"].astype(float), with_others["prediction"].astype(float)
    np.testing.assert_allclose(found, expected[:3], rtol=1e-12)


def test_decimals_are_written_as_in_columns_that_are_not_used(save, table):
    run(save("size"), table.drop(columns="price").assign(size="1,5"), sep=";")
    written = reading.read("new_predictions.csv")
    assert written.table["size"].tolist() == [1.5] * 40
    assert written.columns.loc[["size", "prediction"], "taken_for"].tolist() == ["number"] * 2


def test_names_that_the_table_has_too(save, table):
    table = table.assign(prediction=1, prediction_="x")
    assert [*run(save(), table)[1]] == [*table, "prediction__"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hour": None, "code": None}, "new.csv lacks columns that are needed: code, hour"),
        ({"size": None, "Size": 1.5}, "lacks columns that are needed: size; did you mean Size?"),
        ({"size": "1,060"}, "decimal mark or a thousands separator: write numbers without the latter\n"),
        ({"size": "large"}, "column 'size' must hold numbers, got 'large' (line 2)"),
        ({"day": 1.5}, "column 'day' must hold dates, got '1.5' (line 2)"),
        ({"hour": "2024-01-01"}, "column 'hour' must hold times, got '2024-01-01'"),
        (dict.fromkeys(FEATURES, np.nan), "must hold 1 rows or more with values"),
        ({}, "new.csv must hold 1 rows or more with values below the line of names, got 0"),
    ],
)
def test_other_tables_are_refused(save, table, change, message):
    model = save(estimator=ConformalRegressor(Ridge(), cv=3))
    table = table.assign(**change) if change else table[:0]
    lacking = [name for name, value in change.items() if value is None]
    table.drop(columns=lacking).to_csv("new.csv", index=False)
    result = predict(model, "new.csv")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "column_types" not in result.stderr  # which cannot be given here
    assert sorted(os.listdir()) == ["model.dmls2r", "new.csv"]


def test_other_arguments_are_refused(save, table):
    model = save()
    table.to_csv("new.csv", index=False)
    card = Card("sales", "price", 30, 10)
    save_model(Ridge().fit([[0.0], [1.0]], [0, 1]), "array.dmls2r", card)
    save_model(Ridge().fit(table[["size"]], table[["size", "price"]]), "both.dmls2r", card)
    for arguments, message in [
        (["none", "new.csv"], "there is no file none"),
        (["new.csv", "new.csv"], "new.csv is no model that `save_model` wrote"),
        ([model, "none.csv"], "there is no file none.csv"),
        ([model, model], "must end in .csv, .tsv, .txt"),
        ([model, "new.csv", "--output", "a.txt"], "--output must end in .csv, got a.txt"),
        ([model, "new.csv", "--output", "new.csv"], "new.csv exists: move it, or name another file"),
        ([model, "new.csv", "--output", "no/a.csv"], "there is no folder no"),
        ([model, "new.csv", "--clip"], "the model does not know the range of its labels"),
        (["array.dmls2r", "new.csv"], "knows no columns by name"),
        (["both.dmls2r", "new.csv"], "the model estimates 2 numbers a row"),
    ]:
        result = predict(*arguments)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert message in result.stderr
    assert "new_predictions.csv" not in os.listdir()


def test_order_of_day_and_month(save, table):
    few = ["code", "hour", "is_new"]
    table = table[["size"]].assign(day="03/02/2024")
    expected = {
        order: run(save(few), table.assign(day=day))[1]["prediction"].tolist()
        for order, day in {"day first": "2024-02-03", "month first": "2024-03-02"}.items()
    }
    assert expected["day first"] != expected["month first"]
    assert "day: dates, day first (assumed: no date shows it); else" in run(save(few), table)[0].stderr
    for order, estimates in expected.items():
        result, written = run(save(few, {"day": order, "size": "number"}), table)
        assert written["prediction"].tolist() == estimates
        assert "assumed" not in result.stderr
    table.assign(day="30/01/2024").to_csv("new.csv", index=False)
    refused = predict(save(few, {"day": "month first"}), "new.csv", "--output", "other.csv")
    assert "must hold dates with the month first" in refused.output


def test_values_that_stand_for_a_missing_one(save, table):
    model = save(missing_values="-999")
    gaps, codes = table.copy(), table.copy()
    gaps.loc[:5, "size"], codes.loc[:5, "size"] = np.nan, -999.0
    result, written = run(model, codes)
    assert written["prediction"].tolist() == run(model, gaps)[1]["prediction"].tolist()
    assert "size: 6 without a value, filled as in training" in result.stderr


def test_estimates_beyond_the_labels(save, table):
    model = save(estimator=ConformalRegressor(Ridge(), cv=3), lowest=4.0, highest=4.5)
    result, found = run(model, table)
    found = found["prediction"].astype(float)
    n_beyond = (~found.between(4, 4.5)).sum()
    assert n_beyond > 0
    assert f"estimates beyond the range of the labels, 4 to 4.5: {n_beyond} (--clip would" in result.stderr
    result, clipped = run(model, table, "--clip")
    assert f"4 to 4.5: {n_beyond} (moved to its ends)" in result.stderr
    clipped = clipped[["low", "prediction", "high"]].astype(float)
    np.testing.assert_allclose(clipped["prediction"], np.clip(found, 4, 4.5))
    assert (clipped.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)  # an interval holds its estimate
