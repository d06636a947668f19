"""What a column holds is read as what it is, or refused with a word on what to do; a guess is told."""

import re
from datetime import datetime
from decimal import Decimal
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dmls2r_lite.data.datasets import load_dataset, same_types
from dmls2r_lite.data.forms import look_like_codes
from dmls2r_lite.data.reading import read


@pytest.fixture
def read_column(write):
    """A column of these values, beside one of letters: what it is, its rule, whether that is a guess."""

    def read_column(*values, separator=";", **options):
        rows = [f"a{separator}b", *(f'"{value}"{separator}x' for value in values)]
        reading = read(write("\n".join(rows)), min_rows=1, **options)
        return (reading.table["a"].tolist(), *reading.columns.loc["a", ["taken_for", "rule", "guessed"]])

    return read_column


class TestNumbers:
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
            (("12 345", "1 100", "7"), [12345, 1100, 7]),
            (("12'345", "1'100", "7"), [12345, 1100, 7]),
            (("1.234", "0.5", "2"), [1.234, 0.5, 2]),
            (("1,234", "0,5", "2"), [1.234, 0.5, 2]),
            (("1.234e3", ".5", "-2."), [1234, 0.5, -2]),
            (("١٢٫٥", "٣", "٤"), [12.5, 3, 4]),
            (("１２．５", "３", "-４"), [12.5, 3, -4]),
        ],
    )
    def test_marks_that_are_clear(self, read_column, values, expected, separator):
        found, kind, _, guessed = read_column(*values, separator=separator)
        assert (found, kind, guessed) == (expected, "number", False)

    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("first", ["1.234", "1,234"])
    def test_thousands_that_may_be_decimals_are_refused(self, write, read_column, first, separator):
        with pytest.raises(ValueError, match=f"'{first}' in column 'a' may have a decimal mark or a thous"):
            read_column(first, "95", "7", separator=separator)
        rows = [f'"{row}.123"{separator}"{row},5"' for row in range(1, 5)]  # another column does not decide
        with pytest.raises(ValueError, match=r"'1.123' in column 'a' may have a decimal mark or a thousands"):
            read(write("\n".join([f"a{separator}b", *rows])))

    def test_columns_that_disagree(self, write):
        message = r"mixes ways to write numbers: '8,0' in column 'a', '1.5' in column 'b': write all"
        for other in ("2.5", "0,25"):
            with pytest.raises(ValueError, match=message):
                read(write(f'a,b,c\n"8,0",1.5,x\n"9,0","{other}",y\n"7,0",3,z\n'))

    @pytest.mark.parametrize("text", ["a;b\n1.234;0.5\n2.345;1.5\n", "a\tb\n1,234\t0,5\n2,345\t1,5\n"])
    def test_a_mark_that_only_another_column_shows_is_told(self, write, text):
        reading = read(write(text), min_rows=2)
        assert reading.table["a"].tolist() == [1.234, 2.345]
        assert reading.columns["guessed"].tolist() == [True, False]
        assert "before decimals (assumed: as in other columns)" in reading.columns["rule"]["a"]

    def test_a_mark_can_be_told(self, write):
        path = write("rooms;price\n1;950\n2;1,100\n3;1,250\n4;1,400\n5;\n6;\n")
        with pytest.raises(ValueError, match="column_types='price=number'"):
            load_dataset(path, target="price")
        assert read(path, column_types="price=number").table["price"].tolist()[:3] == [950, 1.1, 1.25]

    @pytest.mark.parametrize(
        "values", ["02090 10115", "007 8 12", "90071992547409931 1", "1.9 1.10 1.11 2.1 2.10", "2.9 2.10 3.1",
                   "3E12 5E1 301"],
    )  # fmt: skip
    def test_codes_are_texts(self, read_column, values):
        found, kind, rule, _ = read_column(*values.split())
        assert (found, kind) == (values.split(), "text")
        assert "kept as texts" in rule
        assert read_column(*values.split(), column_types="a=number")[0] == [*map(float, values.split())]

    @pytest.mark.parametrize(
        "values",
        ["1.0 2.5 3.0", "1.50 2.25 3.10", "0.110 1.10 12.0", "0.5 10 1.05 2.10", "1 2 10", "0 0.10 100",
         "1.5E3 2E5", "1e5 2"],
    )  # fmt: skip
    def test_decimals_are_no_codes(self, read_column, values):
        assert read_column(*values.split())[0] == [*map(float, values.split())]

    def test_decimals_are_hardly_ever_taken_for_codes(self):
        rng = np.random.default_rng(0)
        wrong = 0
        for _ in range(1000):
            values = rng.lognormal(1, 1, rng.integers(3, 40))
            digits = rng.integers(0, 3, len(values))
            wrong += look_like_codes([f"{value:.{n}f}" for value, n in zip(values, digits, strict=True)])
        assert wrong <= 10

    def test_what_may_be_a_code_is_told(self, read_column):
        rule = "numbers, 010,5 among them (assumed: no codes), decimal comma"
        assert read_column("010,5", "007,25", "100,0") == ([10.5, 7.25, 100], "number", rule, True)
        rule = "numbers, 1.50 is the same as 1.5 (assumed: no codes)"
        assert read_column("1.5", "1.50", "2.25", "3.75")[2:] == (rule, True)
        assert read_column("5", "5.0", "5.00", "6")[2:] == ("numbers", False)
        rule = "numbers, ' ' between thousands (assumed: no codes)"
        assert read_column("732 829 320", "552 100 554", "775 670 417")[2:] == (rule, True)
        rule = "numbers, ',' between thousands"
        assert read_column("5,234,974", "1,100,554", "3,670,417")[2:] == (rule, False)

    def test_infinite_ones_are_refused(self, read_column, tmp_path):
        with pytest.raises(ValueError, match=r"column 'a' must be finite, got 1e400 in line 3"):
            read_column("1", "1e400", "3")
        pd.DataFrame({"a": [1.0, np.inf, 3]}).to_parquet(tmp_path / "t.parquet")
        with pytest.raises(ValueError, match=r"column 'a' must be finite, got inf in line 2"):
            read(tmp_path / "t.parquet")


class TestWords:
    @pytest.mark.parametrize("n_words", [2, 10, 16])
    @pytest.mark.parametrize(
        "word",
        ["n.d.", "<0.5", "8 mm", "(5)", "5-", "–5", "k.A.", "below detection", "#DIV/0!", "10 %", "unknown"],
    )
    def test_words_among_numbers_are_named_at_any_share(self, read_column, word, n_words):
        values = [str(row + 10) for row in range(20)]
        values[1 : 1 + n_words] = [word] * n_words
        with pytest.raises(ValueError, match=re.escape(f"seems to hold numbers, but has '{word}' (line 3)")):
            read_column(*values)

    @pytest.mark.parametrize(
        "first", ["8 mm", "8mm", "5 €", "€ 10", "10 %", "−1.5", "5 years", "EUR 5", "ca. 5", "5 sq ft"]
    )  # fmt: skip
    def test_units_and_signs_in_all_cells(self, read_column, first):
        others = [first.replace("8", "9").replace("5", "7").replace("1", "2"), first.replace("8", "11")]
        with pytest.raises(ValueError, match=rf"seems to hold numbers, but has '{first}'.* \(line 2\)"):
            read_column(first, *others)

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("a,y\n1,11\n2,19\n3,31\n4,n.d.\n5,n.d.\n6,n.d.\n7,n.d.\n", r"'y' .* has 'n.d.' \(line 5\)"),
            ("a,y\n7.7,11\nn.d.,19\n4.3,31\nn.d.,42\n5.0,\nn.d.,\n", r"'a' .* has 'n.d.' \(line 3\)"),
            ("a,y\n" + "1,2\n" * 20 + "x,2\n", r"'a' .* has 'x' \(line 22\)"),
            ("a,y\n1,2\n3,inf\n5,6\n", r"'y' .* has 'inf' \(line 3\)"),
            ("a,y\n1,2\n2,3\n3,4\nTotal,9\n", r"'a' .* has 'Total' \(line 5\)"),
        ],
    )
    def test_in_target_and_features(self, write, text, where):
        with pytest.raises(ValueError, match=where):
            load_dataset(write(text), target="y")

    def test_codes_of_numbers_and_names_can_be_used(self, write):
        path = write("gen,a,y\nCheck,1,3\n101,2,4\n102,3,5\n101,4,6\nCheck,5,\n102,6,\n")
        with pytest.raises(ValueError, match=r"has 'Check' \(line 2\).*column_types='gen=category'"):
            load_dataset(path, target="y")
        data = load_dataset(path, target="y", column_types="gen=category")
        assert data.features["gen"].tolist() == ["Check", "101", "102", "101", "Check", "102"]

    @pytest.mark.parametrize(
        "values",
        ["12a,12b,14,x y", "18-24,25-34,65+", "A1,B2,C3", "yes,no,unknown", "2nd floor,2nd floor,attic"],
    )
    def test_texts(self, read_column, values):
        assert read_column(*values.split(","))[:2] == (values.split(","), "text")

    @pytest.mark.parametrize(
        "values",
        [
            ("0.5±0.1", "0.7±0.2"), ("120/80", "95/60"), ("5-10", "10-20"), ("5 ft 3 in", "6 ft 11 in"),
            ("pH 7.4", "pH 6"), ("01-févr-2021", "02-août-2021"), ("1:10.0", "2:11.1"), ("Aug-20", "Sep-21"),
            ("1990Q1", "1990Q2"), ("2021-W01", "2021-W02"), ("1 mai 21", "2 juin 21"), ("Q1 2020", "Q2 2020"),
            ("08h30", "14h05"),
        ],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:t.csv")
    def test_numbers_and_dates_in_other_forms_are_told(self, write, values):
        path = write("d;x;y\n" + "".join(f"{value};{row};{row}\n" for row, value in enumerate(values * 3)))
        rule = f"looks like numbers or dates in a form that is not read, such as {values[0]}; write plain"
        assert any(text.startswith(f"d: {rule}") for text in load_dataset(path, target="y").doubts)
        assert not any(rule in text for text in load_dataset(path, target="y", column_types="d=text").doubts)
        with pytest.raises(ValueError, match=r"holds .* in a form that is not read, such as") as caught:
            load_dataset(path, target="d")
        assert "column_types" not in str(caught.value)

    @pytest.mark.parametrize(
        "values", ["P1 P2 P12", "2-B 3-B", "50-00-0 7732-18-5", "1.2.3 1.10.2", "12a 13b 9a 9b", "A1 B22 C3"]
    )
    def test_names_are_no_numbers(self, read_column, values):
        assert "form" not in read_column(*values.split())[2]

    def test_all_columns_and_what_helps_the_target(self, write):
        rows = [f"{row} mm;{row + 1}.1.2020;{row}%" for row in range(9)]
        path = write("\n".join(["a;b;y", *rows, "1 mm;n.d.;3%"]))
        with pytest.raises(ValueError, match="seems to hold") as caught:
            load_dataset(path, target="y")
        a, b, y, advice, *_ = str(caught.value).split("; ")
        assert "column 'a' seems to hold numbers, but has '0 mm', '1 mm', '2 mm' (line 2)" in a
        assert b == "column 'b' seems to hold dates, but has 'n.d.' (line 11)"
        assert "column 'y' seems to hold" in y
        assert "say what it holds by column_types='a=category'" in advice
        with pytest.raises(
            ValueError, match=r"or nothing where there is none \(or name it in missing_values\)$"
        ):
            load_dataset(path, ["a", "b"], target="y")

    @pytest.mark.parametrize(
        ("values", "kind", "wrong"),
        [
            ("8:30,9:45,--", "time", "--"), ("2020-01-02,2021-01-03,missing,missing", "date", "missing"),
            ("01.02.2020,n.d.", "date", "n.d."), ("2.5 mm,n.d.,n.d.,n.d.", "number", "2.5 mm', 'n.d."),
        ],
    )  # fmt: skip
    def test_marks_among_other_values_are_named(self, read_column, values, kind, wrong):
        with pytest.raises(ValueError, match=f"seems to hold {kind}s, but has '{wrong}'"):
            read_column(*values.split(","))

    def test_guesses_are_told(self, read_column):
        rule = "texts; 1 of 4 look like numbers (assumed: names)"
        assert read_column("1", "x", "y", "z", "1")[2:] == (rule, True)
        rule = "texts, though all may stand for a missing value (assumed: names)"
        assert read_column("unknown", "unknown")[2:] == (rule, True)
        codes, _, rule, guessed = read_column("AT", "NA", "DE", "NA")
        assert codes == ["AT", "NA", "DE", "NA"]
        assert guessed
        assert "NA is one of them" in rule
        names, _, rule, guessed = read_column("Wien", "NA", "Graz")
        assert pd.isna(names[1])
        assert (rule, guessed) == ("texts; NA for missing", False)
        for kind, n_missing in {
            "text": 1,
            "category": 1,
            "category with NA": 0,
        }.items():  # whatever is beside
            codes, _, rule, guessed = read_column("AT", "NA", "DE", column_types=f"a={kind}")
            assert (pd.isna(codes).sum(), "; NA is one of them" in rule, guessed) == (
                n_missing,
                not n_missing,
                False,
            )

    @pytest.mark.parametrize("mark", ["", "NA", "NaN", "?", "-", ".", "null"])
    def test_marks_of_missing_values(self, write, mark):
        table = read(write(f"a,b\n1.5,x\n{mark},y\n2.5,{mark}\n")).table
        assert table["a"].isna().tolist() == [False, True, False]
        assert table["b"].isna().tolist() == [False, False, True]


class TestDates:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (("12-Jan-2021", "1-Feb-2021", "28-Dec-2020"), ["2021-01-12", "2021-02-01", "2020-12-28"]),
            (("12 January 2021", "1 May 2021"), ["2021-01-12", "2021-05-01"]),
            (("Jan 12, 2021", "May 1, 2021"), ["2021-01-12", "2021-05-01"]),
            (("01/31/2020 3:15 PM", "02/01/2020 12:05 AM"), ["2020-01-31 15:15", "2020-02-01 00:05"]),
            (("01/31/2020 3:15:09pm", "02/01/2020 12:05:00AM"), ["2020-01-31 15:15:09", "2020-02-01 00:05"]),
            (("2021-01-12 3:15 PM", "2021-02-01 12:05 AM"), ["2021-01-12 15:15", "2021-02-01 00:05"]),
            (("2021-01-12 23:00", "2021-02-01"), ["2021-01-12 23:00", "2021-02-01"]),
            (("2021/01/12", "2021/02/01"), ["2021-01-12", "2021-02-01"]),
            (("2020-01", "2021-03"), ["2020-01-01", "2021-03-01"]),
            (("20200101T120000Z", "20210301T0600Z"), ["2020-01-01 12:00", "2021-03-01 06:00"]),
            (("01/02/2020", "01/13/2020"), ["2020-01-02", "2020-01-13"]),
            (("2020-01-01T12:00:00+02:00", "2020-01-01T12:00:00Z"), ["2020-01-01 10:00", "2020-01-01 12:00"]),
            (
                ("2020-01-01 12:00:00+01", "2020-07-01 12:00:00.5+02"),
                ["2020-01-01 11:00", "2020-07-01 10:00:00.5"],
            ),
        ],
    )
    def test_dates(self, read_column, values, expected):
        found, kind, _, guessed = read_column(*values)
        assert (found, kind, guessed) == ([*map(pd.Timestamp, expected)], "date", False)

    def test_digits_can_be_dates(self, read_column):
        assert read_column("20200101", "20200102")[1:] == (
            "number", "numbers, such as 20200101 (assumed: no dates; see column_types)", True
        )  # fmt: skip
        for values in ("20200131", "20210101"), ("2020013100", "2021010100"):
            found = read_column(*values, column_types="a=date")
            assert found[:2] == ([pd.Timestamp(2020, 1, 31), pd.Timestamp(2021, 1, 1)], "date")

    def test_years_can_be_dates(self, read_column):
        found, kind, _, guessed = read_column("2019", "1034", column_types="a=day first")
        assert ([date.year for date in found], kind, guessed) == ([2019, 1034], "date", False)

    def test_first_of_the_month_in_american(self, write):
        reading = read(write("month,y\n" + "".join(f"{month:02}/01/2020,{month}\n" for month in range(1, 7))))
        assert reading.table["month"].dt.day.tolist() == [1, 2, 3, 4, 5, 6]
        how = "(assumed: no date shows it); else column_types 'A=month first'"
        assert reading.columns.loc["month"].tolist() == [
            "date", f"dates, day first {how}", "01/01/2020 | 02/01/2020 | 03/01/2020",
            "2020-01-01 | 2020-01-02 | 2020-01-03", True,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("row", "months", "guessed"),
        [
            ("01/31/2024,02.05.2024,03/04/2024", [1, 5, 3], [False, True, True]),  # by the mark between them
            ("01/31/2024,31/01/2024,03/04/2024", [1, 1, 4], [False, False, True]),  # that disagree
            ("01/31/2024,02/05/2024,03/03/2024", [1, 2, 3], [False, True, False]),
        ],
    )
    def test_other_columns_may_show_the_order(self, write, row, months, guessed):
        reading = read(write("a,b,c\n" + f"{row}\n" * 3))
        assert [date.month for date in reading.table.iloc[0]] == months
        assert reading.columns["guessed"].tolist() == guessed

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (("2020-01-01T12:00+02:00", "2020-01-01T12:00"), "dates that all have a time zone, or none"),
            (("01/02/2020", "2020-03-01", "05.06.2021"), "'a' must hold dates in one order"),
            (("01.03.2020", "31.02.2020", "02.03.2020"), "with years of four digits, got '31.02.2020';"),
            (("31.12.45", "01.02.50"), "with years of four digits, got '31.12.45'"),
            (("59:30", "1:02:10"), "column 'a' must hold times that all have seconds"),
            (("8:30", "9:15 PM"), "column 'a' must hold times that all have AM or PM"),
            (("13:30 PM", "9:15 PM"), "column 'a' must hold times that all have AM or PM, from 1 to 12"),
        ],
    )
    def test_of_two_kinds(self, read_column, values, message):
        with pytest.raises(ValueError, match=message):
            read_column(*values)

    def test_seasons_are_no_months(self, read_column):
        rule = "texts: 2005-06 is a season of two years (assumed: no month)"
        seasons = ["2005-06", "2006-07", "2007-08"]
        assert read_column(*seasons) == (seasons, "text", rule, True)
        months, kind, *_ = read_column(*seasons, column_types="a=date")
        assert ([date.month for date in months], kind) == ([6, 7, 8], "date")
        assert read_column("2011-12", "2012-13", "2013-14")[1] == "text"

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
    def test_times(self, read_column, values, hours, guessed):
        found, kind, _, is_guess = read_column(*values)
        assert [time / pd.Timedelta("1h") for time in found] == pytest.approx(hours)
        assert (kind, is_guess) == ("time", guessed)

    def test_a_ratio_may_be_no_time(self, write):
        reading = read(write("dilution,y\n1:10,3\n1:20,4\n1:40,5\n1:50,\n"))
        rule, read_as, guessed = reading.columns.loc["dilution", ["rule", "read", "guessed"]]
        assert rule == "hours:minutes, 1:10 is 1 h 10 min (assumed: no ratio, no minutes:seconds)"
        assert (read_as, guessed) == ("1 h 10 min | 1 h 20 min | 1 h 40 min", True)


class TestKinds:
    def test_every_kind_can_be_told(self, write):
        cases = [(1, 10115, "1.10"), (2, 80331, "1.2"), (3, 20095, "1.3")]
        rows = [f"{i},{zip_code},0{2 * i - 1}/0{2 * i}/2020,{i},{code},1:{i}0" for i, zip_code, code in cases]
        path = write("\n".join(["gen,zip,when,y,code,t", *rows]))
        reading = read(path, column_types="gen=category, zip = text,when=month first, code=number, t=text")
        kinds = ["category", "text", "date", "number", "number", "text"]
        assert reading.columns["taken_for"].tolist() == kinds
        assert not reading.columns["guessed"].any()
        assert reading.table["zip"].tolist() == ["10115", "80331", "20095"]
        assert reading.table["when"].dt.month.tolist() == [1, 3, 5]
        assert reading.table["code"].tolist() == [1.1, 1.2, 1.3]
        assert reading.table["t"].tolist() == ["1:10", "1:20", "1:30"]
        assert read(path, column_types={"t": "time"}).table["t"][0] == pd.Timedelta("70min")
        told = same_types(reading, ["zip", "when", "y", "code"])
        assert [*told.values()] == ["text", "month first", "number", "decimal point"]
        again = read(path, "t", column_types=told | {"gen": "number of any mark"})
        pd.testing.assert_frame_equal(again.table[[*told]], reading.table[[*told]])
        semicolons = read(write("a;b\n1,5;x\n2,25;x\n3;y"))
        assert same_types(semicolons, "ab") == {"a": "decimal comma", "b": "text"}

    def test_kinds_of_files_with_types(self, tmp_path):
        path = tmp_path / "t.parquet"
        dates = ["2020-01-02", "2020-01-03", None]
        pd.DataFrame({"n": [1.0, 2.0, None], "d": dates, "b": [True, False, True]}).to_parquet(path)
        table = read(path, column_types="n=text, d=date, b=number").table
        assert table["n"].tolist()[:2] == ["1", "2"]
        assert table["d"][0] == pd.Timestamp(2020, 1, 2)
        assert table["b"].tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("values", "kind", "expected"),
        [
            ([2**53, 2**53 + 1, 1], "", ["9007199254740992", "9007199254740993", "1"]),
            ([2**53, 2**53 + 1, None], "", ["9007199254740992", "9007199254740993", None]),
            (pd.array([2**63, 2**63 + 5, None], "UInt64"), "category", [str(2**63), str(2**63 + 5), None]),
            ([Decimal(2**53), Decimal(2**53 + 1), None], "", ["9007199254740992", "9007199254740993", None]),
            ([Decimal("1.234"), Decimal("2.500"), Decimal("3.125")], "", [1.234, 2.5, 3.125]),
            ([1.0, 2.5, 2.0, 1e20], "category", ["1", "2.5", "2", "1e+20"]),  # whatever is beside it
            (np.array([0.1, 2, 3], "float32"), "category", ["0.1", "2", "3"]),
            ([datetime(2020, 1, 2), datetime(2020, 1, 3, 9)], "text", ["2020-01-02", "2020-01-03 09:00:00"]),
            (["NA", "-", "x"], "", ["NA", "-", "x"]),
        ],
    )  # fmt: skip
    def test_values_of_files_with_types(self, tmp_path, values, kind, expected):
        parquet.write_table(pa.table({"a": values, "b": range(len(values))}), tmp_path / "t.parquet")
        with ZipFile(tmp_path / "t.zip", "w") as archive:
            archive.write(tmp_path / "t.parquet", "t.parquet")
        for name in ("t.parquet", "t.zip"):
            found = read(tmp_path / name, column_types={"a": kind} if kind else None, min_rows=2).table["a"]
            assert [None if pd.isna(value) else value for value in found] == expected

    def test_names_with_commas_and_equals_signs(self, write):
        path = write('"a, b",c=d,y\n1,2,3\n4,5,6\n7,8,9\n')
        kinds = read(path, column_types="a, b=text, c=d=category").columns["taken_for"]
        assert kinds.tolist() == ["text", "category", "number"]

    @pytest.mark.parametrize(
        ("kinds", "message"),
        [
            (
                "a=numbr",
                "column_types must give a column one of number, category, text, date, time, day first,",
            ),
            ("a=text, b=float", "got b=float"),
            ({"a": None}, "got a=None"),
            ("a", "got a="),
            ("bb=text", "column_types must name a column of t.csv (a, b), got 'bb'; did you mean b?"),
            ({"c": "text"}, "column_types must name a column of t.csv (a, b), got 'c'"),
            ("b=number", "column 'b' must hold numbers, got 'x' (line 2)"),
            ("b=date", "column 'b' must hold dates, got 'x' (line 2)"),
            ("a=time", "column 'a' must hold times, got '1' (line 2)"),
        ],
    )
    def test_wrong_kinds(self, write, kinds, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            read(write("a,b\n1,x\n2,y\n3,z\n"), column_types=kinds)
