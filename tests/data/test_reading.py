"""Tables of one's own: every dialect comes back equal, every column becomes numbers, mistakes are named."""

import gzip
import io
import pickle
import re
import zipfile
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from dmls2r_lite.data.preparing import MAX_CATEGORIES, describe_columns, make_preprocessor
from dmls2r_lite.data.reading import read_cells, read_table, table_name

MESSY = """\
sold;size;district;garden;heating;id;notes;empty;country;price
03.05.2021;71,5;North;yes;gas;1001;;;AT;"210,5"
17.05.2021;;North;no;;1002;;;AT;
;55,0;South;no;gas;1003;;;AT;"189,9"
30.06.2021;93,25;East;yes;wood;1004;;;AT;301
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


class TestDialects:
    def test_messy(self, write):
        table = read_table(write(MESSY))
        assert table["price"].tolist()[0::2] == [210.5, 189.9]
        assert table["size"].tolist()[:1] == [71.5]
        assert table["sold"][0] == pd.Timestamp(2021, 5, 3)
        assert table["sold"].isna().tolist() == [False, False, True, False]
        assert table["district"].tolist() == ["North", "North", "South", "East"]
        assert table.isna().sum()[["size", "heating", "empty", "price"]].tolist() == [1, 1, 4, 1]

    frames = st.integers(3, 12).flatmap(
        lambda n: st.fixed_dictionaries(
            {
                "a": st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=n, max_size=n),
                "b c": st.lists(st.integers(-(2**53), 2**53), min_size=n, max_size=n),
                "with gaps": st.lists(st.none() | st.floats(-1e6, 1e6, width=32), min_size=n, max_size=n),
                "date": st.lists(
                    st.none() | st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
                    min_size=n,
                    max_size=n,
                ),
            }
        )
    )

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        columns=frames,
        sep=st.sampled_from(",;\t|"),
        decimal=st.sampled_from(".,"),
        quoting=st.sampled_from([0, 1, 2]),
        encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
        line_end=st.sampled_from(["\n", "\r\n"]),
        packing=st.sampled_from(["", ".gz", ".zip"]),
    )
    def test_numbers_and_dates_come_back_equal(
        self, columns, sep, decimal, quoting, encoding, line_end, packing, tmp_path
    ):
        frame = pd.DataFrame(columns).astype({"a": float, "b c": float, "with gaps": float})
        frame["date"] = pd.to_datetime(frame["date"])
        text = frame.to_csv(index=False, sep=sep, decimal=decimal, quoting=quoting, lineterminator=line_end)
        content = text.encode(encoding)
        path = tmp_path / f"table.csv{packing}"
        if packing == ".gz":
            content = gzip.compress(content)
        path.write_bytes(content)
        if packing == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("folder/table.csv", content)
        try:
            read = read_table(path)
        except ValueError as error:
            assume("may have a decimal mark or a thousands" not in str(error))  # 1,125 and the like
            raise
        read["date"] = pd.to_datetime(read["date"])  # a column without any date has no kind
        assert_frame_equal(read, frame, check_dtype=False, check_exact=True)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        days=st.lists(st.dates(date(1900, 1, 1), date(2100, 1, 1)), min_size=3, max_size=9),
        mark=st.sampled_from(".-/"),
        clock=st.sampled_from(["", " %H:%M", " %H:%M:%S"]),
    )
    def test_dates_with_the_day_first(self, days, mark, clock, tmp_path):
        dates = pd.Series(pd.to_datetime(days)) + pd.Timedelta("13h")
        written = dates.dt.strftime(f"%d{mark}%m{mark}%Y{clock}")
        path = tmp_path / "dates.csv"
        pd.DataFrame({"when": written, "y": range(len(days))}).to_csv(path, index=False)
        expected = dates if clock else dates - pd.Timedelta("13h")
        assert_array_equal(read_table(path)["when"], expected)

    @pytest.mark.parametrize("sep", list(",;\t|"))
    def test_a_column_without_a_name_is_kept(self, write, sep):
        rows = [
            "",
            *(sep.join(row) for row in [("", "a", "b"), ("7", "1", "2"), ("8", "3", "4"), ("9", "5", "6")]),
        ]
        table = read_table(write("\n".join(rows)))
        assert table.to_numpy().tolist() == [[7, 1, 2], [8, 3, 4], [9, 5, 6]]

    def test_one_order_of_day_and_month_in_a_file(self, write):
        table = read_table(
            write("a,b\n01/31/2024,02/05/2024\n02/01/2024,03/04/2024\n02/20/2024,03/12/2024\n")
        )
        assert table["b"].dt.month.tolist() == [2, 3, 3]

    def test_a_column_that_only_counts_the_rows_is_left_out(self, write, tmp_path):
        assert list(read_table(write(",a,b\n0,5,1\n1,6,2\n2,7,3\n"))) == ["a", "b"]
        frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": 1.0})
        frame[frame["a"] != 2].to_parquet(tmp_path / "t.parquet")
        assert list(read_table(tmp_path / "t.parquet")) == ["a", "b"]
        frame.set_index("a").to_parquet(tmp_path / "named.parquet")
        assert list(read_table(tmp_path / "named.parquet")) == ["a", "b"]

    def test_a_decimal_mark_is_clear_from_other_numbers(self, write):
        assert read_table(write("a;b\n1.234;0.5\n2.345;1.5\n3.456;2.5\n"))["a"][0] == 1.234
        assert read_table(write("a\tb\n1,234\t0,5\n2,345\t1,5\n3,456\t2,5\n"))["a"][0] == 1.234

    def test_cells_as_they_are(self, write, tmp_path):
        cells = read_cells(write("id;x\n007;1,50\n9007199254740993;\n;\n8; a\n"))
        assert cells.to_numpy().tolist() == [["007", "1,50"], ["9007199254740993", ""], ["", ""], ["8", "a"]]
        pd.DataFrame({"id": [2**53 + 1, 2**53 + 3, 1]}).to_parquet(tmp_path / "t.parquet")
        assert read_cells(tmp_path / "t.parquet")["id"].tolist() == [2**53 + 1, 2**53 + 3, 1]

    def test_months(self, write):
        table = read_table(write("when,y\n2020-01,1\n2020-02,2\n2021-03,3\n"))
        assert table["when"].dt.month.tolist() == [1, 2, 3]

    def test_line_ends_of_old_macs_and_spaces_around_texts(self, write):
        table = read_table(write("a , b\rx ,1\r x,2 \rz,3\r"))
        assert list(table) == ["a", "b"]
        assert table["a"].tolist() == ["x", "x", "z"]
        assert table["b"].tolist() == [1, 2, 3]

    def test_month_first_where_day_first_cannot_be(self, write):
        table = read_table(write("when,y\n01/02/2020,1\n01/13/2020,2\n03/04/2020,3\n"))
        assert table["when"].dt.month.tolist() == [1, 1, 3]

    def test_dates_with_time_zones_are_in_utc(self, write):
        table = read_table(write("when,y\n2020-01-01T12:00:00+02:00,1\n2020-01-01T12:00:00Z,2\n,3\n"))
        assert table["when"].tolist()[:2] == [pd.Timestamp(2020, 1, 1, 10), pd.Timestamp(2020, 1, 1, 12)]

    @pytest.mark.parametrize("times", [["18:00", "7:30", "00:15"], ["18:00:00", "07:30:00", "00:15:00"]])
    def test_times_of_day(self, write, times):
        table = read_table(write("t;y\n" + "".join(f"{time};1\n" for time in times)))
        assert (table["t"] / pd.Timedelta("1h")).tolist() == [18, 7.5, 0.25]

    def test_quotes_of_both_kinds(self, write):
        for quote in "\"'":
            table = read_table(
                write(f"{quote}a{quote},{quote}b{quote}\n{quote}x, y{quote},1\n" + "z,2\n" * 2)
            )
            assert table["a"].tolist() == ["x, y", "z", "z"]

    def test_windows_encoding(self, write):
        table = read_table(write("größe;y\nmäßig;1\ngroß;2\nmäßig;3\n".encode("cp1252")))
        assert list(table) == ["größe", "y"]
        assert table["größe"][0] == "mäßig"

    @pytest.mark.parametrize("mark", ["", "NA", "NaN", "?", "-", ".", "null"])
    def test_marks_of_missing_values(self, write, mark):
        table = read_table(write(f"a,b\n1.5,x\n{mark},y\n2.5,{mark}\n"))
        assert table["a"].isna().tolist() == [False, True, False]
        assert table["b"].isna().tolist() == [False, False, True]

    def test_blank_rows_are_left_out_and_the_others_keep_their_number(self, write):
        table = read_table(write("a;b\n1;2\n;\n3;4\n5;6\n"))
        assert table.index.tolist() == [0, 2, 3]

    def test_trailing_separators_make_an_empty_column(self, write):
        table = read_table(write("a;b;\n1;2;\n3;4;\n5;6;\n"))
        assert table.isna().all().tolist() == [False, False, True]

    def test_fewer_commas_than_points(self, write):
        table = read_table(write('a,b\n"1,5",3\n"2,5",4\n"3,5",5\n'))
        assert table["a"].tolist() == [1.5, 2.5, 3.5]

    def test_parquet_has_all_kinds(self, tmp_path):
        frame = pd.DataFrame(
            {
                "i": pd.array([1, None, 3], dtype="Int64"),
                "f": np.array([1, 2, 3], dtype=np.float32),
                "b": [True, False, True],
                "maybe": pd.array([True, None, False], dtype="boolean"),
                "c": pd.Categorical(["x", "y", "x"]),
                "n": pd.Categorical([10, 20, 10]),
                "s": ["p", None, "q"],
                "d": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
                "day": [datetime(2020, 1, 1).date(), None, datetime(2020, 1, 3).date()],
                "z": pd.to_datetime(["2020-01-01 12:00"] * 3).tz_localize("Europe/Vienna"),
                "t": pd.to_timedelta([1, 2, None], unit="h"),
            }
        )
        path = tmp_path / "table.parquet"
        frame.to_parquet(path)
        table = read_table(path)
        kinds = describe_columns(table)["kind"]
        assert kinds.to_dict() == {
            "i": "number", "f": "number", "b": "category", "maybe": "category", "c": "category",
            "n": "number", "s": "category", "d": "date", "day": "date", "z": "date", "t": "time",
        }  # fmt: skip
        assert table["z"][0] == pd.Timestamp(2020, 1, 1, 11)
        X = make_preprocessor(table.assign(z=frame["d"])).fit_transform(table)
        assert np.isfinite(X.to_numpy(dtype=float)).all()


ROWS = "1,2\n3,4\n5,6\n"


def test_a_single_row_where_it_is_enough(write):
    table = read_table(write("a,b\n1,x\n"), min_rows=1)
    assert table.to_dict("records") == [{"a": 1.0, "b": "x"}]
    with pytest.raises(ValueError, match="must hold 2 rows or more"):
        read_table(write("a,b\n1,x\n"), min_rows=2)


class TestBadFiles:
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("t.csv", "a,b\n1,2\n", "must hold 3 rows or more below the line of names, got 1"),
            ("t.csv", "a,b\n", "must hold 3 rows or more below the line of names, got 0"),
            ("t.csv", "", "cannot be read as a table"),
            ("t.csv", "a,a,b\n1,2,3\n", "more than one column named a: rename"),
            ("t.csv", "1,2\n3,4\n5,6\n", "must have the names of its columns in the first line, got 1, 2"),
            ("t.csv", "a,b\n1,2\n3,4,5\n6,7\n", "2 names in the first line, but 3 values in row 2"),
            (
                "t.csv",
                "a,b\n1,2,3\n4,5,6\n7,8,9\n",
                "2 names in the first line, but 3 values in row 1",
            ),
            (
                "t.csv",
                "a,b\n1,inf\n3,4\n5,6\n",
                "column 'b' seems to hold numbers, but has 'inf' \\(row 1\\)",
            ),
            (
                "t.csv",
                "a;b\n1,5;2.5\n1,5;2.5\n2,5;3.5\n",
                "mixes ways to write numbers: '1,5' in column 'a', '2.5' in column 'b'",
            ),
            (
                "t.csv",
                "a;b\n1,5;1\n2.5;2\n3,5;3\n",
                "mixes ways to write numbers: '1,5' in column 'a', '2.5' in column 'a'",
            ),
            (
                "t.csv",
                "a,b\n" + "1,2\n" * 20 + "x,2\n",
                "column 'a' seems to hold numbers, but has 'x' \\(row 21\\)",
            ),
            ("t.csv", "a,b\n1,2\n2,3\n3,4\nTotal,9\n", "seems to hold numbers, but has 'Total' \\(row 4\\)"),
            (
                "t.csv",
                'a,b\n"1,234",2\n"2,345",4\n5,6\n',
                "'1,234' in column 'a' may have a decimal mark or",
            ),
            ("t.csv", "a;b\n1.234;2\n987;3\n12.500;4\n", "'1.234' in column 'a' may have a decimal mark or"),
            (
                "t.csv",
                "a;b\n31.12.45;2\n01.02.50;3\n15.03.67;4\n",
                "with years of four digits, got '31.12.45'",
            ),
            (
                "t.csv",
                'a,n\n1,x\n2,"y\n3,z\n4,"w\n5,v\n',
                "cannot be read as a table: ',' expected after '\"'",
            ),
            ("t.csv", "größe,n\n1,ä\n2,ö\n3,".encode() + b"\xe4\n", "is damaged or cut off at byte"),
            (
                "t.csv",
                "a;b\n1.234;2,5\n2.345;4,5\n7.111;6,5\n",
                "'1.234' in column 'a' may have a decimal mark",
            ),
            ("t.csv", "a,b\n10 %,2\n20 %,4\n30 %,6\n", "has '10 %', '20 %', '30 %' \\(row 1\\)"),
            ("t.csv", "a,b\n€ 10,2\n€ 20,4\n€ 30,6\n", "has '€ 10', '€ 20', '€ 30' \\(row 1\\)"),
            ("t.csv", "a,b\n−1.5,2\n−2,4\n3,6\n", "has '−1.5', '−2' \\(row 1\\)"),
            ("t.csv", "a,b\n1,2\n3,4\n5,6\n7\n", "2 names in the first line, but 1 values in row 4"),
            ("t.csv", "a,b\n01/02/2020,1\n2020-03-01,2\n05.06.2021,3\n", "'a' must hold dates in one order"),
            ("t.csv", "a,b\n31.02.2020,1\n01.03.2020,2\n05.06.2021,3\n", "must hold dates in one order"),
            ("t.csv", b"a,b\n\0\0\0\1,2", "not what its name says: it is not text"),
            ("t.csv", b"PK\3\4rest\0", "not what its name says: it is not text"),
            ("t.zip", "a,b\n" + ROWS, "is damaged, cut off or not what its name says"),
            ("t.csv.gz", "a,b\n" + ROWS, "is damaged, cut off or not what"),
            ("t.parquet", "a,b\n" + ROWS, "is not a Parquet file, or damaged"),
            ("t.parquet", b"PAR1 and nothing else", "is not a Parquet file, or damaged"),
            (
                "t.csv.gz",
                gzip.compress(b"a,b\n" + ROWS.encode() * 99, mtime=0)[:-20],
                "is damaged, cut off or",
            ),
            ("t.ods", b"PK\3\4rest", "must end in .csv.*; save another kind of spreadsheet as CSV"),
            ("t.xlsx", b"PK\3\4rest", "is damaged, cut off or"),
            ("t", "a,b\n" + ROWS, "must end in .csv"),
        ],
    )
    def test_one_clear_error(self, write, name, content, message):
        with pytest.raises(ValueError, match=message) as caught:
            read_table(write(content, name))
        assert name in str(caught.value)

    def test_zips(self, tmp_path):
        def pack(*names):
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                for name in names:
                    archive.writestr(name, "a,b\n" + ROWS * 50)
            return buffer.getvalue()

        path = tmp_path / "t.zip"
        for names, message in [
            (["a.csv", "b.csv"], "must hold one table, got a.csv, b.csv"),
            (["readme.md"], "must hold one table, got readme.md"),
            ([], "must hold one table, got none"),
        ]:
            path.write_bytes(pack(*names))
            with pytest.raises(ValueError, match=message):
                read_table(path)
        path.write_bytes(pack("t.csv")[:-40])
        with pytest.raises(ValueError, match="damaged, cut off"):
            read_table(path)
        path.write_bytes(pack("t.csv"))
        assert len(read_table(path)) == 150
        assert [other.name for other in tmp_path.iterdir()] == ["t.zip"]  # nothing was unpacked

    def test_paths(self, tmp_path, write):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing.csv"):
            read_table(tmp_path / "nothing.csv")
        with pytest.raises(IsADirectoryError, match=r"must be a file, but .* is a folder"):
            read_table(tmp_path)

    def test_no_permission(self, write, monkeypatch):
        path = write("a,b\n" + ROWS)

        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)  # root may read everything
        with pytest.raises(PermissionError, match=r"table.csv may not be read: permission denied"):
            read_table(path)

    def test_a_bad_column_can_be_left_out(self, write):
        path = write("a,b\n" + "1,2\n" * 20 + "x,2\n")
        assert list(read_table(path, ["a"])) == ["b"]
        with pytest.raises(ValueError, match=re.escape("drop_columns must name a column of table.csv (a, b)")):
            read_table(path, ["c"])


class TestDescription:
    def test_by_hand(self, write):
        described = describe_columns(read_table(write(MESSY)))
        treatments = described["treatment"].to_dict()
        assert treatments == {
            "sold": "days since 1970, missing: the median",
            "size": "kept, missing: the median",
            "district": "3 columns of 0 and 1",
            "garden": "2 columns of 0 and 1",
            "heating": "3 columns of 0 and 1, missing: a category of its own",
            "id": "kept",
            "notes": "left out: no value in any row",
            "empty": "left out: no value in any row",
            "country": "left out: the same in every row",
            "price": "kept, missing: the median",
        }
        assert described.loc["heating", ["kind", "missing", "distinct"]].tolist() == ["category", 1, 2]
        assert (described["warning"] == "").all()

    def test_columns_that_differ_in_every_row(self):
        n = 50
        rng = np.random.default_rng(0)
        described = describe_columns(
            pd.DataFrame(
                {
                    "id": np.arange(n) + 1000.0,
                    "measured": rng.normal(size=n),
                    "name": [f"person {i}" for i in range(n)],
                    "when": pd.date_range("2020", periods=n),
                }
            )
        )
        assert described["warning"]["id"] == "whole numbers, different in every row: perhaps an identifier"
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
        return pd.DataFrame(
            {
                "x": [1.0, np.nan, 3.0, 10.0],
                "color": ["red", "blue", "red", np.nan],
                "flag": [True, False, True, True],
                "when": pd.to_datetime(["1970-01-02 00:00", "1970-01-04 00:00", None, "1970-01-03 12:00"]),
                "clock": pd.to_timedelta([1, 2, 3, 6], unit="h"),
                "same": 5.0,
            }
        )

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
        new = pd.DataFrame(
            {
                "when": ["1970-01-11", None],  # as text, as somebody may type it
                "flag": [None, "True"],
                "color": ["green", "red"],
                "x": [None, "7"],
                "clock": pd.to_timedelta([None, "4h"]),
                "unknown": [1, 2],
            }
        )
        X = fitted.transform(new)
        assert X["x"].tolist() == [3, 7]
        assert X["when"].tolist() == [10, 2.5]
        assert X["clock"].tolist() == [2.5, 4]
        assert X.filter(like="color").to_numpy().tolist() == [[0, 0, 0], [0, 1, 0]]
        assert X.filter(like="flag").to_numpy().tolist() == [[0, 0], [0, 1]]
        assert_frame_equal(pickle.loads(pickle.dumps(fitted)).transform(new), X)

    def test_new_rows_written_as_in_a_file(self, train):
        fitted = make_preprocessor(train).fit(train)
        new = train.assign(when=["11.01.1970"] * 4, flag=["true", "FALSE", " True", "False"], color=" red ")
        X = fitted.transform(new)
        assert X["when"].tolist() == [10] * 4
        assert X["flag=True"].tolist() == [1, 0, 1, 0]
        assert X["color=red"].tolist() == [1] * 4
        zoned = train.assign(when=pd.to_datetime(["1970-01-11 01:00+01:00"] * 4))
        assert fitted.transform(zoned)["when"].tolist() == [10] * 4

    def test_names_never_repeat(self):
        frame = pd.DataFrame({"a": ["x", "y", None], "a=x": [1.0, 0.0, 2.0], "a: missing": [1.0, 2.0, 3.0]})
        assert make_preprocessor(frame).fit_transform(frame).columns.is_unique

    def test_wrong_new_rows(self, train):
        fitted = make_preprocessor(train).fit(train)
        for column, value, kind in [
            ("when", 3, "dates"),
            ("clock", 3.5, "times"),
            ("x", pd.Timestamp(2020, 1, 1), "numbers"),
        ]:
            with pytest.raises(ValueError, match=f"column '{column}' must hold {kind}, as in training"):
                fitted.transform(train.assign(**{column: value}))
        with pytest.raises(ValueError, match="column 'x' must hold numbers, as in training"):
            fitted.transform(train.assign(x="many"))
        with pytest.raises(ValueError, match="column 'when' must hold dates, as in training"):
            fitted.transform(train.assign(when="soon"))
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

    @given(
        values=st.lists(st.none() | st.floats(-1e9, 1e9), min_size=4, max_size=20),
        n_train=st.integers(2, 4),
    )
    def test_never_leaves_a_gap(self, values, n_train):
        frame = pd.DataFrame({"x": values, "c": [str(v)[:2] for v in values]}).astype({"x": float})
        X = make_preprocessor(frame).fit(frame[:n_train]).transform(frame)
        assert len(X) == len(frame)
        assert np.isfinite(X.to_numpy(dtype=float)).all()
        known = frame["x"][:n_train].dropna()
        if "x" in X and frame["x"].isna().any():
            filled = known.median() if len(known) else 0
            assert_allclose(X["x"][frame["x"].isna()], filled)


def test_names_of_tables():
    names = ["a.csv", "b.CSV.gz", "c d.v2.parquet", "e.zip", ".hidden.csv"]
    assert [table_name(name) for name in names] == ["a", "b", "c d.v2", "e", ".hidden"]
    for name in (".csv", "...csv", "index.html.csv"):
        with pytest.raises(ValueError, match="rename the file"):
            table_name(name)
