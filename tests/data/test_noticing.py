"""What is noticed in a table, and what is not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from dmls2r_lite.data import load_dataset
from dmls2r_lite.data.noticing import enumerate_names, find_codes, find_notices, one_sided, shorten
from dmls2r_lite.data.preparing import describe_columns
from dmls2r_lite.data.reading import read


@pytest.fixture
def load(write):
    """Load a table from its lines, without its warnings."""

    def load(lines, target="y", **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_dataset(write("\n".join(lines.split())), target=target, **options)

    return load


def noticed(features, target):
    features = pd.DataFrame(features)
    before, target = features.copy(), pd.Series(target, name="y", dtype=float)
    notices = find_notices(features, target, describe_columns(features, target))
    pd.testing.assert_frame_equal(features, before)  # nothing is changed
    return notices


def topics(features, target):
    return [notice.topic for notice in noticed(features, target)]


class TestSides:
    def test_cases(self, load):
        data = load("a,lab2,lab1 1,10,11 2,21,20 3,29,31 4,41,40 5,52,50 6,, 7,, 8,, 9,,", target="lab1")
        assert list(data.features) == ["a"]
        assert data.columns.loc["lab2", "treatment"] == "left out: no value in any row without a target"
        data = load("a,b,y 1,,11 2,,20 3,,31 4,7, 5,8, 6,9,")
        assert list(data.features) == ["a"]
        assert "b: left out: no value in any row with a target" in data.note
        rows = [f"{row % 7},{row},{row * 3 % 5}" for row in range(24)]
        data = load(" ".join(["length,depth,y", *rows, ",9,", ",8,"]))  # two rows are no evidence
        assert list(data.features) == ["length", "depth"]
        assert "length: kept, missing: the median, no value in any row without a target" in data.note

    @pytest.mark.parametrize(
        ("labeled", "others", "left_out"),
        [(0.95, 0.03, True), (0.05, 0.95, True), (0.9, 0.5, False), (0.6, 0.55, None), (1.0, 1.0, None)],
    )
    def test_partly(self, labeled, others, left_out):
        is_labeled = np.arange(100) < 40
        known = np.where(is_labeled, np.arange(100) < 40 * labeled, np.arange(100) - 40 < 60 * others)
        features = pd.DataFrame({"a": np.arange(100) % 7.0, "b": np.where(known, np.arange(100) / 3, np.nan)})
        target = pd.Series(np.where(is_labeled, 1.0, np.nan), name="y")
        row = describe_columns(features, target).loc["b"]
        words = f"known in {labeled:.0%} of the rows with a target, {others:.0%} of the others"
        assert row["treatment"].startswith("left out") == bool(left_out)
        assert (words in f"{row['treatment']}, {row['warning']}") == (left_out is not None)

    def test_chance_is_no_side(self):
        """Of 100 columns with gaps at random none is left out, however few rows lack a target."""
        rng = np.random.default_rng(0)
        for n_labeled in (20, 150, 200):
            is_labeled = np.arange(200) < n_labeled
            for share in rng.uniform(0.1, 0.9, 100):
                column = pd.Series(np.where(rng.random(200) < share, 1.0, np.nan))
                assert not one_sided(column, is_labeled)[1]

    def test_a_filler_in_place_of_gaps(self):
        features = {"a": np.arange(15) / 7, "later": [*np.arange(10.0), *np.zeros(5)]}
        (notice,) = noticed(features, [*range(3, 13), *[np.nan] * 5])
        assert notice.text.startswith("later: 0.0 in all 5 unlabeled rows that have a value, in 1 of 10 labe")
        features["later"][-3:] = [-1.0, 0.0, -1.0]
        (notice,) = noticed(features, [*range(3, 13), *[np.nan] * 5])
        assert notice.text.startswith("later: 0.0 or -1.0 in all 5 unlabeled rows")


class TestCodes:
    @pytest.mark.parametrize(
        ("values", "found"),
        [
            ([1, -999, 3, -999, 5, 6], {"-999": 2}),
            ([0.5, 0.7, 9999, 0.1], {"9999": 1}),
            ([3, 4, 5, 1e20], {"1e+20": 1}),
            ([3, 4, 5, 1e10], {"10000000000": 1}),
            ([3, 4, 5, 99.9], {"99.9": 1}),
            ([3, 4, 5, -999.25], {"-999.25": 1}),
            ([1, 2, 3, -99, -999, 5], {"-999": 1, "-99": 1}),
            ([*range(0, 2400, 100), -200, -200], {"-200": 2}),  # nearer than the others are to each other
            ([3.4028234663852886e38, 1, 2, 5], {"3.40282346639e+38": 1}),
            ([-32768, -3, 4, 8], {"-32768": 1}),
            ([98, 99, 3, 4, 5, 1, 98, 99, 2], {"98": 2, "99": 2}),
            ([-9, -8, 3, 4, 5, 1, -9, -8, 2], {"-9": 2, "-8": 2}),
            ([888, 999, *range(20, 45), 888, 999], {"888": 2, "999": 2}),
            ([-1e6, *range(20, 47), 7777, -1e6, 7777], {"-1000000": 2, "7777": 2}),
            ([-1, *range(20, 47), -1, -1], {"-1": 3}),
            ([0] * 50 + [*range(41, 60)], {"0": 50}),
            ([1, 2, 3, 4, 10_000], {}),  # far out, but neither a code nor repeated
            ([1, 2, 4, 8, 16, 32, 64, 64], {}),  # doses
            ([0, 0, 0, 10, 20, 30, 40], {}),
            ([np.nan, np.nan], {}),
        ],
    )
    def test_rule(self, values, found):
        assert find_codes(pd.Series(values, dtype=float)) == found

    def test_other_kinds(self):
        dates = ["2021-03-01", "1900-01-01", "2021-04-09", "2021-05-02", "1900-01-01"]
        assert find_codes(pd.Series(pd.to_datetime(dates))) == {"1900-01-01": 2}
        assert find_codes(pd.Series(pd.to_datetime(["1970-01-01", "1969-05-01", "1972-01-01"]))) == {}
        for values in (
            [97, 98, 99, 100, 101],
            [0, 50, 99],
            [-1, 0, 1, 1, -1],
            [-99, -50, 0, 60],
            [999, 999, 1],
        ):
            assert find_codes(pd.Series(values, dtype=float)) == {}
        for values in [999, 999, 1], [999, 99, -9], [-9, -8, -7, 3], ["-999", "a", "b"]:
            assert find_codes(pd.Series(values)) == {}
        assert find_codes(pd.Series([True, False, True])) == {}

    def test_in_features(self, load):
        lines = "a,b,y 1,7,11 -999,8,19 3,5,31 -999,6,42 5,9, 6,4,"
        (notice,) = load(lines).notices
        assert notice.text == (
            "-999 is far from all other values of a (2 times). If this stands for a missing value: "
            '-p missing_values "a=-999"'
        )
        data = load(lines, missing_values="-999")
        assert (data.notices, data.missing_values) == ((), "-999")
        assert data.features["a"].isna().tolist() == [False, True, False, True, False, False]
        assert data.reading.cells["a"].tolist() == ["1", "-999", "3", "-999", "5", "6"]  # what was read
        assert data.column_types == {"a": "number", "b": "number"}
        with pytest.raises(ValueError, match="missing_values must occur in the file, got -998, which"):
            load(lines, missing_values="-999, -998")

    def test_of_one_column(self, load):
        rows = [f"{(99, 2, 3, 4, 5)[i % 5]},{95 + i % 9},{90 + i}" for i in range(25)]
        lines = " ".join(["q,age,y", *rows, "1,102,", "2,103,"])
        (notice,) = load(lines).notices
        assert notice.text.endswith('-p missing_values "q=99"')
        data = load(lines, missing_values="q=99; age=95,96")
        assert data.notices == ()
        assert [data.features[name].isna().sum() for name in data.features] == [5, 6]
        assert data.target.count() == 25
        told = "99 stands for a missing value in q (5), age (3), y (1); q=99 is for one column"
        assert told in load(lines, missing_values="99").doubts
        with pytest.raises(ValueError, match=r"must name a column of t.csv .* 'aeg'; did you mean age"):
            load(lines, missing_values="aeg=95")
        with pytest.raises(ValueError, match="missing_values must occur in age, got 7, which does not"):
            load(lines, missing_values="age=7")

    def test_of_signs_and_of_days_with_a_time(self, write):
        rows = [
            f"{'<=5' if i % 5 == 0 else i}\t{'1900-01-01' if i % 4 == 0 else f'2021-03-{i + 1:02}'} 14:30"
            for i in range(20)
        ]
        path = write("\n".join(["n\td\ty", *(f"{row}\t{i}" for i, row in enumerate(rows))]))
        with pytest.warns(UserWarning, match="1900-01-01 is far"):
            load_dataset(path, target="y", missing_values="<=5")
        for given in ("n=<=5; d=1900-01-01", "<=5, 1900-01-01"):
            assert read(path, missing_values=given).table.isna().sum().tolist() == [4, 5, 0]
        path.write_text("a , b\n1 , unknown \n2 , 5 \n3 , 7 \n4 , 8 \n")
        assert load_dataset(path, target="b", missing_values="unknown").target.isna().sum() == 1

    def test_in_the_target(self, load):
        lines = "a,y 1,11 2,19 3,31 4,42 5,-999 6,-999 7,-999"
        (notice,) = load(lines).notices
        assert "of y (3 times); a row with it in y counts as labeled" in notice.text
        assert load(lines, missing_values="-999").target.isna().sum() == 3

    def test_many_columns_are_one_sentence(self):
        features = {f"a{i}": [1.0, 2, 3, -999] for i in range(30)}
        (notice,) = noticed(features, [1, 2, 3, 4])
        assert "a0 (1 time), a1 (1 time), a2 (1 time), a3 (1 time) and 26 others" in notice.text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("site,a,y N,1,10 S,2,21 N,3,30 S,4, N,5, Total,15,61", "last row (Total) looks like a total"),
        ("a,b,y 1,5,10 2,6,21 3,7,30 6,18,61", "last row looks like a total"),  # without a word
        ("a,b,y 1,5,10 2,6,21 3,7,30 2,6,20.33", "last row looks like a total or mean"),  # rounded
        ("site,a,y Summe,15,61 N,1,10 S,2,21 N,3,30 S,4, N,5,", "first row (Summe) looks like a total"),
        ("site,y N,10 S,21 N,30 ,61", "last row looks like a total"),  # nothing else in the row
        (
            "site,a,y N,1.25,10 S,2.5,21 N,3,30 Average,2.25,20.3333333",
            "(Average) looks like a total or mean",
        ),
        ("site,a,y N,1,10 Total,2,21 Total,3,30 N,4,44 Total,5,50", ""),  # a word that is no rare one
        ("site,a,y N,1,10 S,2,21 N,3,30 S,6,44", ""),  # one of two
        ("a,y 1,10 0,21 0,30 0,44", ""),
        ("lat,lon,y 48.21,16.37,9 48.24,16.31,5 48.17,16.42,7 48.2,16.36,8", ""),  # near, for their size
        ("a,b,y 1,5,10 2,6,21 3,7,30 4,8,44", ""),
        ("soil,kind,y cm,none, loam,a,3 clay,b,4 loam,b,5 clay,a,6", "(cm, none) holds no number, and texts"),
        ("soil,kind,y [-],[x], loam,a,3 clay,c,4 sand,b,5", "([-], [x]) holds no number"),
        ("soil,kind,y sand,a, loam,a,3 clay,b,4 loam,b,5 clay,a,6", ""),
    ],
)
def test_totals(load, lines, said):
    found = [notice.text for notice in load(lines).notices if notice.topic == "total"]
    assert len(found) == bool(said)
    assert all(said in text and ("counts as a labeled row" in text or "its line" in text) for text in found)


class TestClasses:
    @pytest.mark.parametrize(
        ("targets", "is_noticed"),
        [
            ([[0, 0, 1, 1], [1, 2] * 6, [0, 10] * 3, [1, 2, 3] * 4, [0, 1, -999, 0, 1, 0]], True),
            ([[0, 1, 2, 3], [1.5, 2.5, 3.5] * 4, [3, 5, 9] * 4, list(range(8)) * 4], False),
        ],
    )
    def test_rule(self, targets, is_noticed):
        for target in targets:
            assert ("classes" in topics({"a": np.arange(len(target)) / 3}, target)) == is_noticed

    def test_case(self, load):
        (notice,) = load("a,y 1,0 2,0 3,1 4,1 5, 6,").notices
        assert notice.text.startswith("the target has 2 different values (0, 1): classes? This is for num")


class TestRepeats:
    def test_rows_that_are_equal(self):
        rng = np.random.default_rng(0)
        features = pd.DataFrame(rng.normal(size=(20, 2)).round(2), columns=["a", "b"])
        target = pd.Series(rng.normal(size=20).round(2))
        assert topics(features, target) == []
        features.iloc[3], target.iloc[3] = features.iloc[7], target.iloc[7]
        (notice,) = noticed(features, target)
        assert notice.text.startswith("2 labeled rows are equal to another one in all columns: a held-out")
        target.iloc[3] += 1
        (notice,) = noticed(features, target)
        assert "in all columns but the target" in notice.text
        (notice,) = noticed(pd.concat([features] * 2, ignore_index=True), [*target, *target])
        assert notice.text.startswith("40 labeled rows are equal to another one in all columns: a held-out")
        is_known = np.arange(20) > 1  # a column with a warning tells, too
        assert topics(features.assign(a=features["a"].where(is_known)), target.where(is_known)) == ["repeats"]
        identified = features.assign(id=[f"row {i}" for i in range(20)])
        assert topics(identified, target) == ["repeats"]  # texts that never repeat tell nothing

    def test_few_values_repeat_by_chance(self):
        rng = np.random.default_rng(0)
        features = pd.DataFrame(rng.integers(0, 3, size=(60, 3)).astype(float), columns=["a", "b", "c"])
        assert topics(features, rng.normal(size=60)) == []


class TestGroups:
    def test_case(self, load):
        rows = "P1,1.01,40 P1,1.02,40.5 P2,1.50,70 P2,1.51,71 P3,0.20,55 P3,0.21,55.5 P4,0.90, P4,0.95,"
        (notice,) = load(f"patient,f,y {rows}").notices
        assert notice.topic == "groups"
        assert "patient: labeled rows share values, none of which an unlabeled row has." in notice.text
        assert notice.text.endswith("-p groups COLUMN")

    def test_numbers_and_dates(self):
        target = [*np.random.default_rng(0).normal(size=40), *[np.nan] * 20]
        x = np.random.default_rng(1).normal(size=60)
        days = pd.date_range("2021-05-01", periods=12)
        for name, values in {"batch": np.arange(12.0), "day": days}.items():
            (notice,) = noticed({name: np.repeat(values, 5), "x": x}, target)
            assert notice.text.startswith(f"{name}: labeled rows share values")

    @pytest.mark.parametrize("seed", range(5))
    def test_rows_labeled_at_random_are_none(self, seed):
        rng = np.random.default_rng(seed)
        n = 120
        features = {
            "district": rng.choice(["a", "b", "c", "d"], n), "floor": rng.integers(0, 9, n).astype(float),
            "day": pd.Timestamp(2021, 1, 1) + pd.to_timedelta(rng.integers(0, 40, n), unit="D"),
            "size": rng.uniform(20, 90, n).round(1), "lift": rng.choice([True, False], n),
        }  # fmt: skip
        target = np.where(rng.random(n) < 0.3, rng.normal(size=n), np.nan)
        assert topics(features, target) == []

    @pytest.mark.parametrize(
        ("name", "values", "found"),
        [
            ("subject", np.repeat(np.arange(20.0), 3), ["groups"]),
            ("farm", np.repeat([f"f{i}" for i in range(20)], 3), ["groups"]),
            ("floor", np.tile(np.arange(20.0), 3), []),  # targets differ
            ("kind", np.repeat(["a", "b", "c"], 20), []),
        ],
    )
    def test_a_full_table(self, name, values, found):
        x, noise = np.random.default_rng(0).normal(size=(2, 60))
        y = np.repeat(x[:20], 3) + noise / 2
        assert topics({name: values, "x": x}, y) == found
        for without in noise, np.sort(y):  # which follows from the number
            assert topics({name: values, "x": x}, without) == (["groups"] if name == "farm" else [])

    def test_as_many_texts_as_labels(self):
        rng = np.random.default_rng(0)
        target = [*rng.normal(size=10), *[np.nan] * 50]
        site = [*(f"s{i}" for i in range(10)), *rng.choice([f"s{i}" for i in range(12)], 50)]
        (notice,) = noticed({"site": site, "x": rng.normal(size=60)}, target)
        assert notice.text.startswith("site: hardly a text that labeled rows share")


def test_names_in_sentences_are_short_and_on_one_line():
    assert shorten("a\nb\x1b[31m") == "a b [31m"
    assert len(shorten("x" * 1000)) == 40
    assert enumerate_names("abc") == "a, b, c"
    assert enumerate_names("abcdefg") == "a, b, c, d and 3 others"
