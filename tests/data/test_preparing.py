"""Columns become numbers, mistakes are named."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

from dmls2r_lite.data.preparing import MAX_CATEGORIES, describe_columns, make_preprocessor
from dmls2r_lite.data.reading import read

MESSY = """\
sold;size;district;garden;heating;id;notes;empty;country;price
03.05.2021;71,5;North;yes;gas;1001;;;AT;"210,5"
17.05.2021;;North;no;;1002;;;AT;
;55,0;South;no;gas;1003;;;AT;"189,9"
30.06.2021;93,25;East;yes;wood;1004;;;AT;301
"""


class TestDescription:
    def test_by_hand(self, write):
        described = describe_columns(read(write(MESSY)).table)
        assert described["treatment"].tolist() == [
            "days since 1970, missing: the median",
            "kept, missing: the median",
            "3 columns of 0 and 1",
            "2 columns of 0 and 1",
            "3 columns of 0 and 1, missing: a category of its own",
            "kept",
            "left out: no value in any row",
            "left out: no value in any row",
            "left out: the same in every row",
            "kept, missing: the median",
        ]
        assert described.loc["heating", ["kind", "missing", "distinct"]].tolist() == ["category", 1, 2]
        assert (described["warning"] == "").all()

    def test_columns_that_differ_in_every_row(self):
        n = 50
        rng = np.random.default_rng(0)
        names, when = [f"person {i}" for i in range(n)], pd.date_range("2020", periods=n)
        columns = {"id": np.arange(n) + 1000.0, "measured": rng.normal(size=n), "name": names, "when": when}
        described = describe_columns(pd.DataFrame(columns))
        assert "different in every row: kept, though perhaps an identifier" in described["warning"]["id"]
        assert "50 different texts in 50 rows" in described["warning"]["name"]
        assert described["treatment"]["name"] == "left out: text that hardly repeats"
        assert (described["warning"][["measured", "when"]] == "").all()

    def test_a_hundred_thousand_categories(self):
        n = 10**5
        few_rows = pd.DataFrame({"c": [f"c{i}" for i in range(n)], "x": np.zeros(n)})
        assert "100000 different texts" in describe_columns(few_rows)["warning"]["c"]
        many_rows = pd.concat([few_rows] * 3, ignore_index=True)
        treatment = describe_columns(many_rows)["treatment"]["c"]
        assert treatment == f"20 columns of 0 and 1, one of them for the {n - 19} rarest"
        assert make_preprocessor(many_rows).fit_transform(many_rows).shape == (3 * n, 20)


class TestPreprocessor:
    @pytest.fixture
    def train(self):
        frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 10.0], "color": ["red", "blue", "red", np.nan]})
        when = ["1970-01-02 00:00", "1970-01-04 00:00", None, "1970-01-03 12:00"]
        frame = frame.assign(flag=[True, False, True, True], when=pd.to_datetime(when))
        return frame.assign(clock=pd.to_timedelta([1, 2, 3, 6], unit="h"), same=5.0)

    def test_by_hand(self, train):
        X = make_preprocessor(train).fit_transform(train)
        assert list(X) == [
            "x", "when", "clock", "color=blue", "color=red", "color: missing", "flag=False", "flag=True",
        ]  # fmt: skip
        assert X["x"].tolist() == [1, 3, 3, 10]  # the median of 1, 3, 10
        assert X["when"].tolist() == [1, 3, 2.5, 2.5]
        assert X["clock"].tolist() == [1, 2, 3, 6]
        assert X["color=red"].tolist() == [1, 0, 1, 0]
        assert X["color: missing"].tolist() == [0, 0, 0, 1]
        assert X["flag=True"].tolist() == [1, 0, 1, 1]

    def test_new_rows(self, train):
        fitted = make_preprocessor(train).fit(train)
        new = pd.DataFrame({"color": ["green", "red"], "x": [None, "7"], "unknown": [1, 2]})
        new["flag"], new["clock"] = [None, "True"], pd.to_timedelta([None, "4h"])
        new["when"] = ["1970-01-11", None]  # as text, as somebody may type it
        X = fitted.transform(new)
        assert X["x"].tolist() == [3, 7]
        assert X["when"].tolist() == [10, 2.5]
        assert X["clock"].tolist() == [2.5, 4]
        assert X.filter(like="color").to_numpy().tolist() == [[0, 0, 0], [0, 1, 0]]
        assert X.filter(like="flag").to_numpy().tolist() == [[0, 0], [0, 1]]
        assert_frame_equal(pickle.loads(pickle.dumps(fitted)).transform(new), X)

        written = train.assign(when="31.01.1970", flag=["true", "FALSE", " True", "False"], color=" red ")
        X = fitted.transform(pd.concat([written, written[:1]]))  # as in a file
        assert X["when"].tolist() == [30] * 5
        assert X["flag=True"].tolist() == [1, 0, 1, 0, 1]
        assert X["color=red"].tolist() == [1] * 5
        zoned = train.assign(when=pd.to_datetime(["1970-01-11 01:00+01:00"] * 4))
        assert fitted.transform(zoned)["when"].tolist() == [10] * 4

    @pytest.mark.parametrize("values", [["1", "2", "2.5"], [1, 2.0, 2.5], [np.nan, 2, 2.5], ["1 ", 2, "2.5"]])
    @pytest.mark.parametrize("trained", [["1", "2", "2.5", "2"], ["1.0", "2.0", "2.5", "2.0"]])
    def test_a_category_is_the_same_in_any_type(self, trained, values):
        train = pd.DataFrame({"c": pd.Series(trained, dtype=object)})
        X = make_preprocessor(train).fit(train).transform(pd.DataFrame({"c": values}))
        expected = np.eye(3) * pd.notna(values)[:, None]
        assert X.to_numpy().tolist() == expected.tolist()

    @pytest.mark.parametrize("text", ["-01:00:00", "-1 days +23:00:00", pd.Timedelta("-1h"), "-PT1H"])
    def test_times_in_any_form(self, train, text):
        fitted = make_preprocessor(train).fit(train)
        X = fitted.transform(train.assign(clock=[text, None, text, text]))
        assert X["clock"].tolist() == [-1, 2.5, -1, -1]

    def test_names_never_repeat(self):
        frame = pd.DataFrame({"a": ["x", "y", None], "a=x": [1.0, 0.0, 2.0], "a: missing": [1.0, 2.0, 3.0]})
        assert make_preprocessor(frame).fit_transform(frame).columns.is_unique

    def test_wrong_new_rows(self, train):
        fitted = make_preprocessor(train).fit(train)
        times, numbers = [("clock", 3.5, "times")], [("x", pd.Timestamp(2020, 1, 1), "numbers")]
        times += [("clock", "5", "times")]  # nanoseconds, to pandas
        dates = [("when", 3, "dates"), ("when", "soon", "dates"), ("when", "03/04/2020", "dates")]
        for column, value, kind in [*dates, *times, *numbers, ("x", "many", "numbers")]:
            with pytest.raises(ValueError, match=f"column '{column}' must hold {kind}, as in training"):
                fitted.transform(train.assign(**{column: value}))
        with pytest.raises(ValueError, match=r"columns are missing: \{'x'\}"):
            fitted.transform(train.drop(columns="x"))

    def test_rare_categories_share_a_column(self):
        counts = {f"c{i:02}": 30 - i for i in range(25)}
        frame = pd.DataFrame({"c": [name for name, count in counts.items() for _ in range(count)]})
        X = make_preprocessor(frame).fit_transform(frame)
        assert X.shape[1] == MAX_CATEGORIES
        shared = X.iloc[:, -1]
        assert shared.sum() == sum(sorted(counts.values())[: 25 - 19])
        unseen = make_preprocessor(frame).fit(frame).transform(pd.DataFrame({"c": ["new"]}))
        assert unseen.iloc[0, -1] == 1

    @given(st.lists(st.none() | st.floats(-1e9, 1e9), min_size=4, max_size=20), st.integers(2, 4))
    def test_never_leaves_a_gap(self, values, n_train):
        frame = pd.DataFrame({"x": values, "c": [str(v)[:2] for v in values]}).astype({"x": float})
        X = make_preprocessor(frame).fit(frame[:n_train]).transform(frame)
        assert len(X) == len(frame)
        assert np.isfinite(X.to_numpy(dtype=float)).all()
        known = frame["x"][:n_train].dropna()
        if "x" in X and frame["x"].isna().any():
            filled = known.median() if len(known) else 0
            assert_allclose(X["x"][frame["x"].isna()], filled)
