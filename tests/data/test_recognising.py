"""What real tables hold is read as what it is, or refused with a word on what to do."""

import bz2
import gzip
import lzma
import os
import re
import zipfile
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from dmls2r_lite.data.datasets import load_dataset
from dmls2r_lite.data.numerals import look_like_codes
from dmls2r_lite.data.reading import expand_columns, read, read_cells, read_table, table_name


@pytest.fixture
def write(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def column(*values, name="a", separator=";"):
    """A table with a column of these values beside one of letters."""
    return "\n".join([f"{name}{separator}b", *(f'"{value}"{separator}x' for value in values)]) + "\n"


class TestNumbers:
    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize(
        "values", [("1.234", "2.345", "950"), ("1,234", "2,345", "950"), ("1 234", "95", "7")]
    )
    def test_thousands_that_may_be_decimals_are_refused(self, write, values, separator):
        with pytest.raises(
            ValueError, match=f"'{values[0]}' in column 'a' may have a decimal mark or a thousands"
        ):
            read(write(column(*values, separator=separator)))

    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    def test_another_column_does_not_decide_about_thousands(self, write, separator):
        text = (
            separator.join(["a", "b"])
            + "\n"
            + "".join(f'"1.{row}23"{separator}"{row},5"\n' for row in range(1, 5))
        )
        with pytest.raises(ValueError, match=r"'1.123' in column 'a' may have a decimal mark or a thousands"):
            read(write(text))

    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (("1,234.5", "2,345", "950"), [1234.5, 2345, 950]),
            (("1.234,5", "2.345", "950"), [1234.5, 2345, 950]),
            (("1,234,567", "2,345", "0.5"), [1234567, 2345, 0.5]),
            (("1 234,5", "2 345", "950"), [1234.5, 2345, 950]),
            (("1'234.5", "2'345", "-950"), [1234.5, 2345, -950]),
            (("1\xa0234\xa0567", "2", "9,5"), [1234567, 2, 9.5]),
            (("1.234", "0.5", "2"), [1.234, 0.5, 2]),
            (("1,234", "0,5", "2"), [1.234, 0.5, 2]),
            (("1.234e3", ".5", "-2."), [1234, 0.5, -2]),
            (("١٢٫٥", "٣", "٤"), [12.5, 3, 4]),
            (("１２．５", "３", "－４".replace("－", "-")), [12.5, 3, -4]),
        ],
    )
    def test_marks_that_are_clear(self, write, values, expected, separator):
        reading = read(write(column(*values, separator=separator)))
        assert reading.table["a"].tolist() == expected
        assert reading.columns.loc["a", ["taken_for", "guessed"]].tolist() == ["number", False]

    @pytest.mark.parametrize("others", [("1.5", "2.5"), ("1.5", "0,25")])
    def test_columns_that_disagree(self, write, others):
        with pytest.raises(
            ValueError,
            match=r"mixes ways to write numbers: '8,0' in column 'a', '1.5' in column 'b': write all",
        ):
            read(write(f'a,b,c\n"8,0",{others[0]},x\n"9,0","{others[1]}",y\n"7,0",3,z\n'))

    def test_a_mark_that_only_another_column_shows_is_told(self, write):
        reading = read(write("a;b\n1.234;0.5\n2.345;1.5\n3.456;2.5\n"))
        assert reading.table["a"].tolist() == [1.234, 2.345, 3.456]
        assert reading.columns["guessed"].tolist() == [True, False]
        assert reading.columns["rule"]["a"] == "numbers, '.' before decimals (assumed: as in other columns)"

    def test_a_mark_can_be_told(self, write):
        path = write("rooms;price\n1;950\n2;1,100\n3;1,250\n4;1,400\n5;\n6;\n")
        with pytest.raises(ValueError, match="column_types='price=number'"):
            load_dataset(path, target="price")
        assert read_table(path, column_types="price=number")["price"].tolist()[:3] == [950, 1.1, 1.25]

    @pytest.mark.parametrize(
        "values",
        [
            ("02090", "10115", "80331"),
            ("007", "8", "12"),
            ("90071992547409931", "90071992547409932", "1"),
            ("9007199254740993", "9007199254740992", "9007199254740994"),
            ("1.9", "1.10", "1.11", "2.1", "2.10"),
            ("2.9", "2.10", "3.1"),
        ],
    )
    def test_codes_are_texts(self, write, values):
        reading = read(write(column(*values)))
        assert reading.table["a"].tolist() == list(values)
        assert reading.columns["taken_for"]["a"] == "text"
        assert "kept as texts" in reading.columns["rule"]["a"]
        assert read_table(write(column(*values)), column_types={"a": "number"})["a"].tolist() == [
            *map(float, values)
        ]

    @pytest.mark.parametrize(
        "values",
        [
            ("1.0", "2.5", "3.0"),
            ("1.50", "2.25", "3.10"),
            ("0.110", "1.10", "12.0"),  # as many digits as are significant
            ("1.5", "1.50", "2.25", "3.75"),
            ("0.5", "10", "1.05", "2.10"),
            ("1", "2", "10"),
            ("0", "0.0", "0.10", "100"),
        ],
    )
    def test_decimals_are_no_codes(self, write, values):
        assert read(write(column(*values))).table["a"].tolist() == [*map(float, values)]

    def test_decimals_with_leading_zeros_are_told(self, write):
        reading = read(write(column("010,5", "007,25", "100,0")))
        assert reading.table["a"].tolist() == [10.5, 7.25, 100]
        rule, guessed = reading.columns.loc["a", ["rule", "guessed"]]
        assert rule == "numbers, 010,5 among them (assumed: no codes), decimal comma"
        assert guessed

    def test_one_number_written_twice_is_told(self, write):
        reading = read(write(column("1.5", "1.50", "2.25", "3.75")))
        assert reading.columns["rule"]["a"] == "numbers, 1.50 is the same as 1.5 (assumed: no codes)"
        assert reading.columns["guessed"]["a"]
        assert not read(write(column("5", "5.0", "5.00", "6"))).columns["guessed"]["a"]

    def test_decimals_are_hardly_ever_taken_for_codes(self):
        rng = np.random.default_rng(0)
        wrong = 0
        for _ in range(1000):
            values = rng.lognormal(1, 1, rng.integers(3, 40))
            digits = rng.integers(0, 3, len(values))
            wrong += look_like_codes([f"{value:.{n}f}" for value, n in zip(values, digits, strict=True)])
        assert wrong <= 10


class TestWords:
    @pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
    @pytest.mark.parametrize(
        "word",
        ["n.d.", "<0.5", "8 mm", "(5)", "5-", "–5", "k.A.", "below detection", "#DIV/0!", "10 %", "unknown"],
    )
    def test_words_among_numbers_are_named_at_any_share(self, write, word, share):
        n = 20
        values = [str(row + 10) for row in range(n)]
        values[1 : 1 + round(share * n)] = [word] * round(share * n)
        with pytest.raises(ValueError, match=re.escape(f"seems to hold numbers, but has '{word}' (row 2)")):
            read(write(column(*values)))

    def test_the_target_too(self, write):
        path = write("a,y\n1,11\n2,19\n3,31\n4,n.d.\n5,n.d.\n6,n.d.\n7,n.d.\n")
        with pytest.raises(
            ValueError, match=r"'y' seems to hold numbers, but has 'n.d.' \(row 4\); write plain"
        ):
            load_dataset(path, target="y")

    def test_half_a_feature(self, write):
        path = write("a,b,y\n7.7,1,11\nn.d.,2,19\n4.3,3,31\nn.d.,4,42\n5.0,5,\nn.d.,6,\n")
        with pytest.raises(ValueError, match=r"'a' seems to hold numbers, but has 'n.d.' \(row 2\)"):
            load_dataset(path, target="y")

    @pytest.mark.parametrize(
        "values", [("8 mm", "9 mm", "8.5 mm"), ("8mm", "9mm", "10mm"), ("5 €", "6 €", "7 €")]
    )
    def test_units_in_cells(self, write, values):
        with pytest.raises(ValueError, match=rf"seems to hold numbers, but has '{values[0]}'.*\(row 1\)"):
            read(write(column(*values)))

    def test_codes_of_numbers_and_names_can_be_used(self, write):
        path = write("gen,a,y\nCheck,1,3\n101,2,4\n102,3,5\n101,4,6\nCheck,5,\n102,6,\n")
        with pytest.raises(ValueError, match=r"has 'Check' \(row 1\).*column_types='gen=category'"):
            load_dataset(path, target="y")
        data = load_dataset(path, target="y", column_types="gen=category")
        assert data.features["gen"].tolist() == ["Check", "101", "102", "101", "Check", "102"]

    @pytest.mark.parametrize(
        "values",
        [
            ("12a", "12b", "14", "x y"),
            ("18-24", "25-34", "65+"),
            ("A1", "B2", "C3"),
            ("yes", "no", "unknown"),
            ("1st floor", "2nd floor", "attic"),
        ],
    )
    def test_texts(self, write, values):
        reading = read(write(column(*values)))
        assert reading.table["a"].tolist() == list(values)
        assert reading.columns["taken_for"]["a"] == "text"

    def test_numbers_among_texts_are_told(self, write):
        reading = read(write(column("1", "x", "y", "z", "1")))
        assert reading.columns.loc["a", ["rule", "guessed"]].tolist() == [
            "texts; 1 of 4 look like numbers",
            True,
        ]

    def test_na_among_codes_of_countries(self, write):
        reading = read(write(column("AT", "NA", "DE", "NA")))
        assert reading.table["a"].tolist() == ["AT", "NA", "DE", "NA"]
        assert "NA is one of them" in reading.columns["rule"]["a"]
        assert reading.columns["guessed"]["a"]
        other = read(write(column("Wien", "NA", "Graz")))
        assert other.table["a"].isna().tolist() == [False, True, False]
        assert other.columns["rule"]["a"] == "texts; NA for missing"


class TestDates:
    def test_first_of_the_month_in_american(self, write):
        reading = read(write("month,y\n" + "".join(f"{month:02}/01/2020,{month}\n" for month in range(1, 7))))
        assert reading.table["month"].dt.day.tolist() == [1, 2, 3, 4, 5, 6]
        assert reading.columns.loc["month", ["taken_for", "rule", "written", "read", "guessed"]].tolist() == [
            "date",
            "dates, day first (assumed: no date shows it)",
            "01/01/2020 | 02/01/2020 | 03/01/2020",
            "2020-01-01 | 2020-01-02 | 2020-01-03",
            True,
        ]

    def test_an_american_column_does_not_turn_dotted_ones(self, write):
        reading = read(write("a,b,c\n" + "01/31/2024,02.05.2024,03/04/2024\n" * 3))
        assert reading.table.iloc[0].dt.month.tolist() == [1, 5, 3]
        assert reading.columns["rule"].tolist() == [
            "dates, month first",
            "dates, day first (assumed: no date shows it)",
            "dates, month first (assumed: as in column a)",
        ]
        assert reading.columns["guessed"].tolist() == [False, True, True]

    def test_columns_that_disagree_show_nothing_about_others(self, write):
        reading = read(write("a,b,c\n" + "01/31/2024,31/01/2024,03/04/2024\n" * 3))
        assert reading.table["c"].dt.month.tolist() == [4] * 3
        assert reading.columns["guessed"].tolist() == [False, False, True]

    def test_zones_in_some_rows_only(self, write):
        dates = ["2020-01-01T12:00:00+02:00", "2020-01-01T12:00:00", "2020-01-01T12:00:00Z"]
        with pytest.raises(
            ValueError, match="'a' must hold dates that all have a time zone, or none of them"
        ):
            read(write(column(*dates)))

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (("12-Jan-2021", "1-Feb-2021", "28-Dec-2020"), ["2021-01-12", "2021-02-01", "2020-12-28"]),
            (("12 January 2021", "1 May 2021"), ["2021-01-12", "2021-05-01"]),
            (("Jan 12, 2021", "May 1, 2021"), ["2021-01-12", "2021-05-01"]),
            (("01/31/2020 3:15 PM", "02/01/2020 12:05 AM"), ["2020-01-31 15:15", "2020-02-01 00:05"]),
            (("2021-01-12 23:00", "2021-02-01"), ["2021-01-12 23:00", "2021-02-01"]),
            (("2021/01/12", "2021/02/01"), ["2021-01-12", "2021-02-01"]),
        ],
    )
    def test_dates(self, write, values, expected):
        reading = read(write(column(*values)), min_rows=2)
        assert reading.table["a"].tolist() == [*map(pd.Timestamp, expected)]
        assert not reading.columns["guessed"]["a"]

    def test_seasons_are_no_months(self, write):
        reading = read(write(column("2005-06", "2006-07", "2007-08")))
        assert reading.table["a"].tolist() == ["2005-06", "2006-07", "2007-08"]
        assert reading.columns["rule"]["a"] == "texts: 2005-06 is a season of two years (assumed: no month)"
        assert reading.columns["guessed"]["a"]
        months = read_table(write(column("2005-06", "2006-07", "2007-08")), column_types="a=date")
        assert months["a"].dt.month.tolist() == [6, 7, 8]
        assert read(write(column("2011-12", "2012-13", "2013-14"))).columns["taken_for"]["a"] == "text"

    def test_a_ratio_may_be_no_time(self, write):
        reading = read(write("dilution,y\n1:10,3\n1:20,4\n1:40,5\n1:50,\n"))
        rule, read_as, guessed = reading.columns.loc["dilution", ["rule", "read", "guessed"]]
        assert rule == "hours:minutes, 1:10 is 1 h 10 min (assumed: no ratio, no minutes:seconds)"
        assert read_as == "1 h 10 min | 1 h 20 min | 1 h 40 min"
        assert guessed

    @pytest.mark.parametrize(
        ("values", "hours", "guessed"),
        [
            (("8:30", "17:45"), [8.5, 17.75], False),
            (("08:30", "07:45"), [8.5, 7.75], False),
            (("8:30:36", "7:45:00"), [8.51, 7.75], False),
            (("8:30 AM", "12:15 am", "5:45 PM"), [8.5, 0.25, 17.75], False),
            (("36:30", "48:00"), [36.5, 48], True),
            (("2:10", "3:10"), [2 + 1 / 6, 3 + 1 / 6], True),
        ],
    )
    def test_times(self, write, values, hours, guessed):
        reading = read(write(column(*values)), min_rows=2)
        assert (reading.table["a"] / pd.Timedelta("1h")).tolist() == pytest.approx(hours)
        assert reading.columns.loc["a", ["taken_for", "guessed"]].tolist() == ["time", guessed]

    @pytest.mark.parametrize("values", [("59:30", "1:02:10"), ("8:30", "9:15 PM"), ("13:30 PM", "9:15 PM")])
    def test_times_of_two_kinds(self, write, values):
        with pytest.raises(ValueError, match="column 'a' must hold times that all"):
            read(write(column(*values)), min_rows=2)


class TestKinds:
    def test_every_kind_can_be_told(self, write):
        rows = [
            "1,10115,01/02/2020,1,1.10,1:10",
            "2,80331,03/04/2020,2,1.2,1:20",
            "3,20095,05/06/2020,3,1.3,1:30",
        ]
        text = "\n".join(["gen,zip,when,y,code,t", *rows])
        reading = read(write(text), column_types="gen=category, zip = text,when=date, code=number, t=text")
        assert reading.columns["taken_for"].tolist() == [
            "category",
            "text",
            "date",
            "number",
            "number",
            "text",
        ]
        assert reading.table["zip"].tolist() == ["10115", "80331", "20095"]
        assert reading.table["code"].tolist() == [1.1, 1.2, 1.3]
        assert reading.table["t"].tolist() == ["1:10", "1:20", "1:30"]
        assert read_table(write(text), column_types={"t": "time"})["t"][0] == pd.Timedelta("70min")

    def test_kinds_of_files_with_types(self, tmp_path):
        path = tmp_path / "t.parquet"
        pd.DataFrame(
            {"n": [1.0, 2.0, None], "d": ["2020-01-02", "2020-01-03", None], "b": [True, False, True]}
        ).to_parquet(path)
        table = read_table(path, column_types="n=text, d=date, b=number")
        assert table["n"].tolist()[:2] == ["1", "2"]
        assert table["d"][0] == pd.Timestamp(2020, 1, 2)
        assert table["b"].tolist() == [1, 0, 1]
        pd.DataFrame({"id": [2**53, 2**53 + 1, 1]}).to_parquet(path)
        assert read_table(path)["id"].tolist() == ["9007199254740992", "9007199254740993", "1"]

    def test_names_with_commas_and_equals_signs(self, write):
        path = write('"a, b",c=d,y\n1,2,3\n4,5,6\n7,8,9\n')
        kinds = read(path, column_types="a, b=text, c=d=category").columns["taken_for"]
        assert kinds.tolist() == ["text", "category", "number"]

    @pytest.mark.parametrize(
        ("kinds", "message"),
        [
            (
                "a=numbr",
                "column_types must give a column one of number, category, text, date, time, as in 'zip=text",
            ),
            ("a=text, b=float", "got b=float"),
            ({"a": None}, "got a=None"),
            ("a", "got a="),
            ("bb=text", "column_types must name a column of t.csv (a, b), got 'bb'; did you mean b?"),
            ({"c": "text"}, "column_types must name a column of t.csv (a, b), got 'c'"),
            ("b=number", "column 'b' must hold numbers, as column_types says, got 'x' (row 1)"),
            ("b=date", "column 'b' must hold dates, as column_types says, got 'x' (row 1)"),
            ("a=time", "column 'a' must hold times, as column_types says, got '1' (row 1)"),
        ],
    )
    def test_wrong_kinds(self, write, kinds, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            read(write("a,b\n1,x\n2,y\n3,z\n"), column_types=kinds)


class TestHeaders:
    @pytest.mark.parametrize(
        "text",
        [
            "M,0.45,0.36,15\nF,0.35,0.26,7\nM,0.53,0.42,9\nI,0.44,0.36,10\nF,0.33,0.25,8\n",
            "0,1,0\n1,1,1\n2,1,0\n3,1,1\n",
            "x,y,15\nx,z,7\nw,z,9\n",
            "red,2019,a\nred,2020,b\nblue,2020,c\n",
            "red,no\nred,yes\nblue,no\n",
        ],
    )
    def test_none_at_all(self, write, text):
        with pytest.raises(ValueError, match=r"t.csv must have the names of its columns in the first line"):
            read(write(text))

    @pytest.mark.parametrize(
        "names",
        [
            "country,2019,2020,2021",
            "country,2019,2020,name",
            "country,400.5,401,401.5",
            "a,b,c,2020",
        ],
    )
    def test_years_and_wavelengths_are_names(self, write, names):
        table = read_table(write(names + "\nAT,1,2,3\nDE,4,5,6\nCH,7,8,9\n"))
        assert ",".join(table) == names
        assert len(table) == 3

    @pytest.mark.parametrize(
        "text",
        ["a,b,y\nmm,kg,g\n1,2,3\n4,5,6\n7,8,9\n", "Site,,Lab,\na,b,c,y\n1,2,3,4\n5,6,7,8\n9,9,9,9\n"],
    )
    def test_a_second_line_of_names(self, write, text):
        with pytest.raises(
            ValueError, match=r"if the first rows belong to the names, or hold units, delete these"
        ):
            read(write(text))

    def test_repeated_groups_of_names(self, write):
        with pytest.raises(
            ValueError, match="more than one column named Lab: rename them, and leave one line of"
        ):
            read(write("Lab,Lab,y\na,b,y\n1,2,3\n4,5,6\n7,8,9\n"))

    def test_a_line_that_names_the_separator(self, write):
        reading = read(write("sep=;\na;b;y\n1;2;3\n4;5;6\n7;8;9\n"))
        assert reading.table.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
        assert reading.lines == [3, 4, 5]
        assert reading.assumed == ("the first line, sep=;, names the separator",)
        assert list(read_table(write('"sep=,"\r\na,b\r\n1,2\r\n3,4\r\n5,6\r\n'))) == ["a", "b"]

    @pytest.mark.parametrize(
        ("text", "names", "said"),
        [
            (
                "# logger 7, site A, spring\na,b,y\n1,2,3\n4,5,6\n7,8,9\n",
                ["a", "b", "y"],
                "the first line, which",
            ),
            (
                "# one\n# two, with, commas\n\na,b,y\n1,2,3\n4,5,6\n7,8,9\n",
                ["a", "b", "y"],
                "3 lines that start",
            ),
            ("#a,b,y\n1,2,3\n4,5,6\n7,8,9\n", ["a", "b", "y"], "the names are in the first line"),
            ("#a,b,y\nu,2:10,3\nv,5:11,6\nv,8:12,9\n", ["a", "b", "y"], "the names are in the first line"),
            ("#a|b, c|y\nu, v|x|3\nu|x|6\nu|x|9\n", ["a", "b, c", "y"], "the names are in"),
            ("# logger\n# a,b,y\n1,2,3\n4,5,6\n7,8,9\n", ["a", "b", "y"], "the first line, which"),
        ],
    )
    def test_comments(self, write, text, names, said):
        reading = read(write(text))
        assert list(reading.table) == names
        assert reading.table["y"].tolist() == [3, 6, 9]
        assert said in " ".join(reading.assumed)
        assert bool(said) == bool(reading.assumed)

    @pytest.mark.parametrize(
        "text",
        [
            "a b y\n1   2   3\n4   5   6\n7   8   9\n10  11  12\n",
            ' a  b  y\n1 2 3 \n 4 5 6\n7 8 9\n"10" 11 12\n',
        ],
    )
    def test_columns_separated_by_spaces(self, write, text):
        for name in ("t.txt", "t.dat", "t.data"):
            reading = read(write(text, name))
            assert reading.table.to_numpy().tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
            assert reading.assumed == ("columns are separated by spaces",)

    def test_names_with_commas_and_patterns_are_left_out(self, write):
        path = write('a,"strength (MPa, day 28)",lab_1,lab_2,y\n1,2,3,4,5\n4,5,6,7,8\n7,8,9,1,2\n3,1,2,3,4\n')
        name = "strength (MPa, day 28)"
        for left_out in (name, [name], f"{name}, lab_*", f"lab_?,{name}"):
            data = load_dataset(path, left_out, target="y")
            assert name not in data.features
            assert ("lab_1" in data.features) == ("lab" not in str(left_out))
        with pytest.raises(ValueError, match="drop_columns must not name the target, got y"):
            load_dataset(path, "a, [a-z]", target="y")

    def test_names_come_before_patterns(self):
        assert expand_columns("t", "a*", ["a*", "ab"]) == ["a*"]
        assert expand_columns("t", ["a?", "b", "a*"], ["ab", "b", "ac"]) == ["ab", "ac", "b"]
        with pytest.raises(
            ValueError, match="a column of t \\(size, y\\), got 'sizes'; did you mean size\\?"
        ):
            expand_columns("t", "sizes", ["size", "y"])

    @pytest.mark.parametrize("name", ["'t Hof", "'n", "d'or"])
    def test_names_with_an_apostrophe(self, write, name):
        assert list(read_table(write(f"{name},b\n1,2\n3,4\n5,6\n"))) == [name, "b"]

    def test_commas_in_names_and_numbers_of_a_file_with_semicolons(self, write):
        table = read_table(write("strength (MPa, day 28);y\n1,5;2\n2,5;3\n4,5;4\n"))
        assert list(table) == ["strength (MPa, day 28)", "y"]
        assert table["y"].tolist() == [2, 3, 4]
        with pytest.raises(
            ValueError, match=r"columns may be separated by (commas or by bars|bars or by commas)"
        ):
            read(write("a|b,c\nx|y,z\nu|v,w\np|q,r\n"))


class TestEncodings:
    @pytest.mark.parametrize(
        ("encoding", "text"),
        [
            ("cp1252", "größe;µg/m³\nmäßig;1\ngroß;2\nklein;3\n"),
            ("cp850", "größe;y\nmäßig;1\ngroß;2\nklein;3\n"),
            ("cp1251", "город;цена\nМосква;1\nТверь;2\nОмск;3\n"),
            ("koi8_r", "город;цена\nМосква;1\nТверь;2\nОмск;3\n"),
            ("cp866", "город;цена\nМосква;1\nТверь;2\nОмск;3\n"),
            ("cp1253", "πόλη;τιμή\nΑθήνα;1\nΠάτρα;2\nΒόλος;3\n"),
            ("cp1250", "miasto;cena\nŁódź;1\nKraków;2\nGdańsk;3\n"),
            ("gb18030", "温度;a;y\n1;2;3\n4;5;6\n7;8;9\n"),
            ("gb18030", "城市;价格\n北京;1\n上海;2\n广州;3\n"),
            ("big5", "城市;價格\n臺北;1\n高雄;2\n臺南;3\n"),
            ("cp932", "都市;価格\n東京;1\n大阪;2\n京都;3\n"),
            ("cp949", "도시;가격\n서울;1\n부산;2\n대구;3\n"),
        ],
    )
    def test_legacy_ones_are_read_and_told(self, write, encoding, text):
        reading = read(write(text.encode(encoding)))
        assert ";".join(reading.table) == text.splitlines()[0]
        (said,) = reading.assumed
        assert said.startswith("the file is not in UTF-8 and was read as ")
        assert f"was read as {encoding}," in said
        assert "if texts look wrong, save it as UTF-8" in said

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    def test_unicode_needs_no_guess(self, write, encoding):
        reading = read(write("größe;цена\n1;2\n3;4\n5;6\n".encode(encoding)))
        assert list(reading.table) == ["größe", "цена"]
        assert reading.assumed == ()

    def test_no_encoding_at_all(self, write):
        rng = np.random.default_rng(0)
        content = bytes(rng.integers(128, 256, 300, dtype=np.uint8))
        with pytest.raises(ValueError, match=r"encoding|cannot be read|names"):
            read(write(b"a,b\n" + content + b"\n"))


CSV = "a,b\n" + "1,2\n3,4\n5,6\n" * 100


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("t.csv.gz", gzip.compress),
            ("t.csv.bz2", bz2.compress),
            ("t.csv.xz", lzma.compress),
            ("t.DATA.XZ", lzma.compress),
        ],
    )
    def test_packed(self, write, name, pack, monkeypatch):
        content = pack(CSV.encode())
        assert read_table(write(content, name))["b"].sum() == 1200
        assert table_name(name) == "t"
        with pytest.raises(ValueError, match="is damaged, cut off or"):
            read(write(content[:-15], name))
        monkeypatch.setattr("dmls2r_lite.data.unpacking.MAX_BYTES", 200)
        with pytest.raises(ValueError, match="holds more than 1 GiB, which is too much"):
            read(write(content, name))

    def test_bombs(self, tmp_path, monkeypatch):
        path = tmp_path / "t.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("t.csv", CSV * 100)
        monkeypatch.setattr("dmls2r_lite.data.unpacking.MAX_BYTES", 10**4)
        assert path.stat().st_size < 10**4
        with pytest.raises(ValueError, match="holds more than 1 GiB, which is too much"):
            read(path)
        for name in ("t.xlsx", "t.csv"):
            path.rename(tmp_path / name) if name == "t.xlsx" else (tmp_path / name).write_text(CSV * 100)
            with pytest.raises(ValueError, match="holds more than 1 GiB, which is too much"):
                read(tmp_path / name)

    @pytest.mark.skipif(os.name == "nt", reason="has no such files")
    def test_special_files(self, tmp_path):
        fifo, device, loop, nothing = (
            tmp_path / f"{name}.csv" for name in ("fifo", "device", "loop", "nothing")
        )
        os.mkfifo(fifo)
        device.symlink_to("/dev/zero")
        loop.symlink_to(loop)
        nothing.symlink_to(tmp_path / "none")
        for path, message in {
            fifo: "must be a regular file, not a pipe or a device",
            device: "must be a regular file, not a pipe or a device",
            loop: "is not the path of a file",
            tmp_path / ("n" * 300 + ".csv"): "is not the path of a file",
            tmp_path / "a\0b.csv": "is not the path of a file",
        }.items():
            with pytest.raises(ValueError, match=message):
                read(path)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            read(nothing)

    def test_spreadsheets(self, tmp_path):
        pytest.importorskip("python_calamine")
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        first, second = book.active, book.create_sheet("lab 2")
        first.title = "site"
        for sheet, last in ((first, 2.5), (second, "n.d.")):
            sheet.append(["zip", "when", "a", "n", 2020])
            for row, value in enumerate([1.234, None, last]):
                sheet.append(["02090", datetime(2021, 1, row + 1), value, row, "1,5"])
        path = tmp_path / "t.xlsx"
        book.save(path)
        with pytest.raises(
            ValueError, match=r"one of its sheets \(site, lab 2\), as in 't.xlsx::site', got none"
        ):
            read(path)
        with pytest.raises(ValueError, match=r"\(site, lab 2\), as in 't.xlsx::site', got Lab"):
            read(f"{path}::Lab")
        with pytest.raises(ValueError, match=r"'a' seems to hold numbers, but has 'n.d.' \(row 3\)"):
            read(f"{path}::lab 2")
        reading = read(f"{path}::site")
        assert reading.columns["taken_for"].tolist() == ["text", "date", "number", "number", "number"]
        assert reading.table["a"].tolist()[::2] == [1.234, 2.5]
        assert reading.table["2020"].tolist() == [1.5] * 3
        assert reading.assumed == ("sheet site of 2 is read",)
        assert reading.lines == [2, 3, 4]
        assert table_name(f"{path}::lab 2") == "t_lab 2"
        assert read_cells(f"{path}::site")["zip"].tolist() == ["02090"] * 3

    def test_a_bad_cell_at_the_end_of_a_long_column_is_refused_in_linear_time(self, write):
        n = 10**5
        rng = np.random.default_rng(0)
        numbers = rng.normal(size=n).astype(str)
        path = write("a,b\n" + "".join(f"{number},1\n" for number in numbers) + "n.d.,1\n")
        with pytest.raises(ValueError, match=rf"'a' seems to hold numbers, but has 'n.d.' \(row {n + 1}\)"):
            read(path)
