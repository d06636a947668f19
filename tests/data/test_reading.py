"""Files of every dialect and kind are read; what is no table is refused with one clear error."""

import bz2
import gzip
import io
import lzma
import os
import time
import zipfile
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from random_tables import make_table, misread

from dmls2r_lite.data.datasets import load_dataset
from dmls2r_lite.data.dialect import name_columns
from dmls2r_lite.data.preparing import describe_columns, make_preprocessor
from dmls2r_lite.data.reading import expand_columns, read, read_source
from dmls2r_lite.data.unpacking import table_name

ROWS = "1,2,3\n4,5,6\n7,8,9\n"
NUMBERS = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def zipped(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class TestDialects:
    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            ("a , b\rx ,1\r x,2 \rz,3\r", {"a": ["x", "x", "z"], "b": [1, 2, 3]}),  # an old Mac's line ends
            ('"a","b"\n"x, y",1\nz,2\nz,2\n', {"a": ["x, y", "z", "z"], "b": [1, 2, 2]}),
            ("'a','b'\n'x, y',1\nz,2\nz,2\n", {"a": ["x, y", "z", "z"], "b": [1, 2, 2]}),
            ("'t Hof,d'or\n1,2\n3,4\n5,6\n", {"'t Hof": [1, 3, 5], "d'or": [2, 4, 6]}),
            ('a,b\n"1,5",3\n"2,5",4\n"3,5",5\n', {"a": [1.5, 2.5, 3.5], "b": [3, 4, 5]}),
            ("n (MPa, 28);y\n1,5;2\n2,5;3\n4,5;4\n", {"n (MPa, 28)": [1.5, 2.5, 4.5], "y": [2, 3, 4]}),
            (",a,b\n0,5,1\n1,6,2\n2,7,3\n", {"a": [5, 6, 7], "b": [1, 2, 3]}),  # counts the rows
            ("\n;a\n7;1\n8;2\n9;4\n", {"Unnamed: 0": [7, 8, 9], "a": [1, 2, 4]}),
            ("|a\n7|1\n8|2\n9|4\n", {"Unnamed: 0": [7, 8, 9], "a": [1, 2, 4]}),
        ],
    )
    def test_values(self, write, text, columns):
        assert read(write(text)).table.to_dict("list") == columns

    def test_empty_rows_and_columns(self, write):
        assert read(write("a;b\n1;2\n;\n3;4\n5;6\n")).table.index.tolist() == [0, 2, 3]
        assert read(write("a;b;\n1;2;\n3;4;\n5;6;\n")).table.isna().all().tolist() == [False, False, True]

    def test_cells_as_they_are(self, write, tmp_path):
        cells = read_source(write("id;x\n007;1,50\n9007199254740993;\n;\n8; a\n")).cells
        assert cells.to_numpy().tolist() == [["007", "1,50"], ["9007199254740993", ""], ["", ""], ["8", "a"]]
        pd.DataFrame({"id": [2**53 + 1, 2**53 + 3, 1]}).to_parquet(tmp_path / "t.parquet")
        assert read_source(tmp_path / "t.parquet").cells["id"].tolist() == [2**53 + 1, 2**53 + 3, 1]

    def test_a_single_row_where_it_is_enough(self, write):
        assert read(write("a,b\n1,x\n"), min_rows=1).table.to_dict("records") == [{"a": 1.0, "b": "x"}]
        with pytest.raises(ValueError, match="must hold 2 rows or more with values"):
            read(write("a,b\n1,x\n"), min_rows=2)


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
        "names", ["country,2019,2020,2021", "country,2019,2020,name", "country,400.5,401,401.5", "a,b,c,2020"]
    )
    def test_years_and_wavelengths_are_names(self, write, names):
        table = read(write(names + "\nAT,1,2,3\nDE,4,5,6\nCH,7,8,9\n")).table
        assert ",".join(table) == names
        assert len(table) == 3

    @pytest.mark.parametrize("text", ["a,b,y\nmm,kg,g\n" + ROWS, "Site,,Lab\na,b,c\n" + ROWS])
    def test_a_second_line_of_names(self, write, text):
        with pytest.raises(ValueError, match=r"if the first rows belong to the names, or hold units, delete"):
            read(write(text))

    def test_a_line_that_names_the_separator(self, write):
        reading = read(write("sep=;\n" + ("a,b,y\n" + ROWS).replace(",", ";")))
        assert (reading.table.to_numpy().tolist(), reading.lines) == (NUMBERS, [3, 4, 5])
        assert reading.assumed == ("the first line, sep=;, names the separator",)
        assert list(read(write('"sep=,"\r\na,b\r\n1,2\r\n3,4\r\n5,6\r\n')).table) == ["a", "b"]

    @pytest.mark.parametrize(
        ("text", "names", "said"),
        [
            ("# logger 7, site A, spring\na,b,y\n" + ROWS, ["a", "b", "y"], "the first line, which"),
            ("# one\n# two, with, commas\n\na,b,y\n" + ROWS, ["a", "b", "y"], "3 lines that start"),
            ("#a,b,y\n" + ROWS, ["a", "b", "y"], "the names are in the first line"),
            ("#a,b,y\nu,2:10,3\nv,5:11,6\nv,8:12,9\n", ["a", "b", "y"], "the names are in the first line"),
            ('# logger\n#a,b,y\n"u,1",2,"3"\n"v,2",5,6\nw,8,9\n', ["a", "b", "y"], "the first line, which"),
            ("#a|b, c|y\nu, v|x|3\nu|x|6\nu|x|9\n", ["a", "b, c", "y"], "the names are in"),
            ("# logger\n# a,b,y\n" + ROWS, ["a", "b", "y"], "the first line, which"),
        ],
    )
    def test_comments(self, write, text, names, said):
        reading = read(write(text))
        assert (list(reading.table), reading.table["y"].tolist()) == (names, [3, 6, 9])
        assert said in " ".join(reading.assumed)

    @pytest.mark.parametrize(
        "text", ["a b y\n1   2   3\n4  5  6\n7 8 9\n", ' a  b  y\n1 2 3 \n 4 5 6\n"7" 8 9\n']
    )
    def test_columns_separated_by_spaces(self, write, text):
        for name in ("t.txt", "t.dat", "t.data"):
            reading = read(write(text, name))
            assert reading.table.to_numpy().tolist() == NUMBERS
            assert reading.assumed == ("columns are separated by spaces",)

    def test_columns_that_are_left_out(self, write):
        path = write('a,"strength (MPa, day 28)",lab_1,lab_2,z,y\nx,2,3,4,1,5\n4,5,6,7,2,8\n7,8,9,1,3,2\n')
        name = "strength (MPa, day 28)"
        for left_out in (f"a,{name}", ["a", name], f"a, {name}, lab_*", f"a,lab_?,{name}"):
            data = load_dataset(path, left_out, target="y")
            assert ("lab_1" in data.features) == ("lab" not in str(left_out))
            assert not {"a", name} & set(data.features)
        with pytest.raises(ValueError, match="drop_columns must not name the target, got y"):
            load_dataset(path, "a, [a-z]", target="y")
        assert expand_columns("t", "a*", ["a*", "ab"]) == ["a*"]  # names come before patterns
        assert expand_columns("t", ["a?", "b", "a*"], ["ab", "b", "ac"]) == ["ab", "ac", "b"]
        with pytest.raises(ValueError, match=r"column of t \(size, y\), got 'sizes'; did you mean size\?"):
            expand_columns("t", "sizes", ["size", "y"])


class TestEncodings:
    @pytest.mark.parametrize(
        ("encoding", "text"),
        [
            ("cp1252", "größe;µg/m³\nmäßig;1\ngroß;2\nklein;3\n"),
            ("cp1252", "größe;y\n1\xa0234,50;1\n2\xa0345,00;2\n3;3\n"),
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
        assert said.startswith(f"the file is not in UTF-8 and was read as {encoding}, as in ")

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    def test_unicode_needs_no_guess(self, write, encoding):
        reading = read(write("größe;цена\n1;2\n3;4\n5;6\n".encode(encoding)))
        assert (list(reading.table), reading.assumed) == (["größe", "цена"], ())

    def test_no_encoding_at_all(self, write):
        content = bytes(np.random.default_rng(0).integers(128, 256, 300, dtype=np.uint8))
        with pytest.raises(ValueError, match=r"encoding|cannot be read|names"):
            read(write(b"a,b\n" + content + b"\n"))


class TestFiles:
    CSV = "a,b\n" + "1,2\n3,4\n5,6\n" * 100

    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("t.csv.gz", gzip.compress),
            ("t.csv.bz2", bz2.compress),
            ("t.DATA.XZ", lzma.compress),
            ("t.zip", lambda content: zipped(**{"folder/t.csv": content, "readme.md": "x"})),
        ],
    )
    def test_packed(self, write, tmp_path, name, pack, monkeypatch):
        content = pack(self.CSV.encode())
        assert read(write(content, name)).table["b"].sum() == 1200
        assert table_name(name) == "t"
        assert [path.name for path in tmp_path.iterdir()] == [name]  # nothing was unpacked
        for damaged in (content[:-15], self.CSV):
            with pytest.raises(ValueError, match="is damaged, cut off or not what its name says"):
                read(write(damaged, name))
        monkeypatch.setattr("dmls2r_lite.data.unpacking.MAX_BYTES", 1000)
        assert len(content) < 1000
        with pytest.raises(ValueError, match="holds more than 1 GiB, which is too much"):
            read(write(content, name))

    def test_too_large(self, write, monkeypatch):
        monkeypatch.setattr("dmls2r_lite.data.unpacking.MAX_BYTES", 1000)
        with pytest.raises(ValueError, match="holds more than 1 GiB, which is too much"):
            read(write(self.CSV))

    @pytest.mark.skipif(os.name == "nt", reason="has no such files")
    def test_special_files(self, tmp_path, write, monkeypatch):
        fifo, device, loop = (tmp_path / f"{name}.csv" for name in ("fifo", "device", "loop"))
        os.mkfifo(fifo)
        device.symlink_to("/dev/zero")
        loop.symlink_to(loop)
        for path in (fifo, device, loop, tmp_path / ("n" * 300 + ".csv"), tmp_path / "a\0b.csv"):
            with pytest.raises(FileNotFoundError, match="there is no file"):
                read(path)
        with pytest.raises(IsADirectoryError, match=r"must be a file, but .* is a folder"):
            read(tmp_path)

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
        for sheet, message in {
            "": r"one of its sheets \(site, lab 2\), as in 't.xlsx::site', got none",
            "::Lab": r"\(site, lab 2\), as in 't.xlsx::site', got Lab",
            "::lab 2": r"'a' seems to hold numbers, but has 'n.d.' \(line 4\)",
        }.items():
            with pytest.raises(ValueError, match=message):
                read(f"{path}{sheet}")
        reading = read(f"{path}::site")
        assert reading.columns["taken_for"].tolist() == ["text", "date", "number", "number", "number"]
        assert reading.table["a"].tolist()[::2] == [1.234, 2.5]
        assert reading.table["2020"].tolist() == [1.5] * 3
        assert (reading.assumed, reading.lines) == (("sheet site of 2 is read",), [2, 3, 4])
        assert table_name(f"{path}::lab 2") == "t_lab 2"
        assert read_source(f"{path}::site").cells["zip"].tolist() == ["02090"] * 3

    def test_names_in_parquet_are_names(self, tmp_path):
        frame = pd.DataFrame({"a": ["a", "b", "c"], "2019": [1, 2**53 - 1, 3], "b": ["b", "a", "c"]})
        frame.to_parquet(tmp_path / "t.parquet")
        reading = read(tmp_path / "t.parquet")
        assert list(reading.table) == ["a", "2019", "b"]
        assert reading.columns["written"]["2019"] == f"1 | {2**53 - 1} | 3"
        pd.DataFrame({"400.1": [1, 2, 3], "403.7": 2.5, "411": [1, 3, 4], "y": 1}).to_parquet(
            tmp_path / "s.parquet"
        )
        assert list(read(tmp_path / "s.parquet").table) == ["400.1", "403.7", "411", "y"]

    def test_parquet_has_all_kinds(self, tmp_path):
        frame = pd.DataFrame({"f": np.array([1, 2, 3], dtype=np.float32), "b": [True, False, True]})
        frame["i"], frame["n"] = pd.array([1, None, 3], dtype="Int64"), pd.Categorical([10, 20, 10])
        frame["empty"] = pd.array([None] * 3, dtype="Int64")
        frame["maybe"] = pd.array([True, None, False], dtype="boolean")
        frame["c"], frame["s"] = pd.Categorical(["x", "y", "x"]), ["p", None, "q"]
        frame["d"] = pd.to_datetime(["2020-01-01", None, "2020-01-03"])
        frame["day"] = [date(2020, 1, 1), None, date(2020, 1, 3)]
        frame["z"] = pd.to_datetime(["2020-01-01 12:00"] * 3).tz_localize("Europe/Vienna")
        frame["t"] = pd.to_timedelta([1, 2, None], unit="h")
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
        table = read(path).table
        described = describe_columns(table)
        for kind, names in ("number", "ifn"), ("category", "bcs"), ("date", "dz"), ("time", "t"):
            assert set(described.loc[list(names), "kind"]) == {kind}
        assert described.loc[["maybe", "day"], "kind"].tolist() == ["category", "date"]
        assert table["z"][0] == pd.Timestamp(2020, 1, 1, 11)
        X = make_preprocessor(table.assign(z=frame["d"])).fit_transform(table)
        assert np.isfinite(X.to_numpy(dtype=float)).all()
        frame[["n", "f"]][frame["f"] != 2].to_parquet(path)  # whose index is no column
        assert list(read(path, min_rows=2).table) == ["n", "f"]
        frame[["n", "f"]].set_index("n").to_parquet(path)
        assert list(read(path).table) == ["n", "f"]
        frame[["n", "f"]].set_axis(["A17", "B03", "C1"]).to_parquet(path)
        assert read(path).table["Unnamed: 0"].tolist() == ["A17", "B03", "C1"]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("t.csv", "", "cannot be read as a table: it is empty"),
            ("t.csv", "a,b\n", "must hold 3 rows or more with values below the line of names, got 0"),
            ("t.csv", "a,b\n1,2\n", "must hold 3 rows or more with values below the line of names, got 1"),
            ("t.csv", "1,2\n3,4\n5,6\n", "must have the names of its columns in the first line, got 1, 2"),
            ("t.csv", "Lab,Lab,y\na,b,y\n" + ROWS, "more than one column named Lab: rename them, and leave"),
            ("t.csv", "a,b\n1,2\n3,4,5\n6,7\n", "2 names in the first line, but 3 values in line 3"),
            ("t.csv", "a,b\n" + ROWS, "2 names in the first line, but 3 values in line 2"),
            ("t.csv", "a,b\n1,2\n3,4\n5,6\n7\n", "2 names in the first line, but 1 values in line 5"),
            ("t.csv", "a|b,c\nx|y,z\nu|v,w\np|q,r\n", "may be separated by (commas or by b|bars or by c)"),
            ("t.csv", 'a,n\n1,x\n2,"y\n3,z\n4,"w\n5,v\n', "expected after '\"', in the row from line 3"),
            ("t.csv", "größe,n\n1,ä\n2,ö\n3,".encode() + b"\xe4\n", "is damaged or cut off at byte"),
            (
                "t.csv",
                b"\xef\xbb\xbfname,y\nabc\xff,1.5\nx,2\ny,3\nx,4\n",
                "is damaged or cut off at byte 10",
            ),
            ("t.csv", "Unnamed: 1,,y\n1,2,3\n4,5,6\n", "has more than one column named Unnamed: 1"),
            ("t.csv", b"a,b\n\0\0\0\1,2", "not what its name says: it is not text"),
            ("t.csv", zipped(a="b"), "not what its name says: it is not text"),
            ("t.csv", gzip.compress(b"a,b\n", mtime=0), "not what its name says: it is not text"),
            ("t.parquet", ROWS, "is not a Parquet file, or damaged"),
            ("t.parquet", b"PAR1 and nothing else", "is not a Parquet file, or damaged"),
            ("t.xlsx", b"PK\3\4rest", "is not an Excel file, or damaged"),
            ("t.ods", b"PK\3\4rest", "must end in .csv.*; save another kind of spreadsheet as CSV"),
            ("t", ROWS, "must end in .csv"),
            ("t.zip", zipped(**{"a.csv": "x", "b.csv": "x"}), "must hold one table, got a.csv, b.csv"),
            ("t.zip", zipped(**{"readme.md": "x"}), "must hold one table, got readme.md"),
            ("t.zip", zipped(), "must hold one table, got none"),
        ],
    )
    def test_one_clear_error(self, write, name, content, message):
        with pytest.raises(ValueError, match=message) as caught:
            read(write(content, name))
        assert name in str(caught.value)


def test_names_of_tables():
    names = ["a.csv", "b.CSV.gz", "c d.v2.parquet", "e.zip", ".hidden.csv"]
    assert [table_name(name) for name in names] == ["a", "b", "c d.v2", "e", ".hidden"]
    for name in (".csv", "...csv", "index.html.csv"):
        with pytest.raises(ValueError, match="rename the file"):
            table_name(name)


def test_time_is_linear_in_columns(write):
    """Where every name was counted among all names this took 25 s, and a line of commas did not end."""
    start = time.process_time()
    name_columns([f"gene{place}" for place in range(40_000)], pd.DataFrame(columns=range(40_000)))
    rng = np.random.default_rng(0)
    for names in ([f"gene{place}" for place in range(3999)], [""] * 3999):
        rows = [",".join(map(str, row)) for row in rng.random((30, 4000)).round(3)]
        path = write("\n".join([",".join([*names, "y"]), *rows]))
        assert load_dataset(path, target="y").features.shape == (30, 3999)
    assert time.process_time() - start < 12


@pytest.mark.parametrize("seed", range(4))
def test_random_tables_are_read_back_or_refused(seed, tmp_path):
    refusals = []
    for place in range(50):
        table = make_table(np.random.default_rng([10**6 + seed, place]))
        path = tmp_path / table.name
        path.write_bytes(table.content)
        try:
            reading = read(path, **table.options)
        except ValueError as error:
            refusals.append(str(error))
        else:
            assert misread(reading, table) == "", (table.content, reading.columns)
    assert all(text.startswith((str(tmp_path), "column_types must")) for text in refusals)
    assert len(refusals) < 35


def test_a_mark_that_is_no_number_and_a_text_that_is_no_mark(tmp_path):
    """inf erases no numbers; NA among countries stays one in a file that has no other."""
    (tmp_path / "t.csv").write_text(
        "w,c,y\n" + "".join(f"{i}.5,{['NA', 'DE', 'FR'][i % 3]},{i}\n" for i in range(9))
    )
    with pytest.raises(ValueError, match="missing_values must occur in the file, got inf"):
        load_dataset(str(tmp_path / "t.csv"), target="y", missing_values="inf")
    with pytest.warns(UserWarning, match="NA is one of them"):
        kinds = load_dataset(str(tmp_path / "t.csv"), target="y").column_types
    (tmp_path / "new.csv").write_text("w,c\n1.5,NA\n2.5,NA\n3.5,\n")
    assert read(tmp_path / "new.csv", column_types=kinds).table["c"].tolist()[:2] == ["NA", "NA"]
