"""What is noticed in a table, and what is not."""

import re

import numpy as np
import pandas as pd
import pytest

from dmls2r_lite.data import load_dataset
from dmls2r_lite.data.noticing import enumerate_names, find_codes, find_notices, one_sided, shorten
from dmls2r_lite.data.preparing import describe_columns, make_preprocessor


@pytest.fixture
def load(tmp_path):
    """Load a table from its lines, without its warnings."""

    def load(lines, target="y", **options):
        path = tmp_path / "t.csv"
        path.write_text("\n".join(lines.split()) + "\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)
            return load_dataset(path, target=target, **options)

    return load


def noticed(features, target):
    features = pd.DataFrame(features)
    target = pd.Series(target, name="y", dtype=float)
    return find_notices(features, target, describe_columns(features, target))


def topics(features, target):
    return [notice.topic for notice in noticed(features, target)]


class TestSides:
    def test_a_second_result(self, load):
        data = load("a,lab2,lab1 1,10,11 2,21,20 3,29,31 4,41,40 5,52,50 6,, 7,, 8,, 9,,", target="lab1")
        assert list(data.features) == ["a"]
        assert data.columns.loc["lab2", "treatment"] == "left out: no value in any row without a target"
        assert "lab2: left out: no value in any row without a target" in data.note

    def test_known_where_the_target_is_not(self, load):
        data = load("a,b,y 1,,11 2,,20 3,,31 4,7, 5,8, 6,9,")
        assert list(data.features) == ["a"]
        assert "b: left out: no value in any row with a target" in data.note

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
        for n_labeled in (20, 150):
            is_labeled = np.arange(200) < n_labeled
            for share in rng.uniform(0.1, 0.9, 100):
                column = pd.Series(np.where(rng.random(200) < share, 1.0, np.nan))
                assert not one_sided(column, is_labeled)[1]

    def test_without_unlabeled_rows_there_is_one_side_only(self):
        column = pd.Series([1.0, np.nan, 2.0])
        assert one_sided(column, np.array([True, True, True])) == ("", False)

    def test_a_filler_in_place_of_gaps(self):
        labeled, others = np.arange(10.0), np.zeros(5)
        target = [*range(3, 13), *[np.nan] * 5]
        (notice,) = noticed({"a": np.arange(15) / 7, "later": [*labeled, *others]}, target)
        assert notice.text.startswith("later: 0.0 in all 5 unlabeled rows that have a value, but 10 values")


class TestCodes:
    @pytest.mark.parametrize(
        ("values", "found"),
        [
            ([1, -999, 3, -999, 5, 6], {"-999": 2}),
            ([11, 19, 31, 42, -999, -999, -999], {"-999": 3}),
            ([0.5, 0.7, 9999, 0.1], {"9999": 1}),
            ([3, 4, 5, 1e20], {"1e+20": 1}),
            ([3, 4, 5, 99.9], {"99.9": 1}),
            ([3, 4, 5, -999.25], {"-999.25": 1}),
            ([1, 2, 3, -99, -999, 5], {"-999": 1, "-99": 1}),
            ([21, 30, 45, 999, 27], {"999": 1}),
            ([*range(0, 2400, 100), -200, -200], {"-200": 2}),  # nearer than the others are to each other
            ([3.4028234663852886e38, 1, 2, 5], {"3.40282346639e+38": 1}),
            ([-32768, -3, 4, 8], {"-32768": 1}),
            # none
            ([1, 2, 3, 4, 5], {}),
            ([97, 98, 99, 100, 101], {}),
            ([0, 50, 99], {}),
            ([-1, 0, 1, 1, -1], {}),
            ([-99, -50, 0, 60], {}),
            ([999, 999, 1], {}),
            ([1, 2, 3, 10_000], {}),  # far out, but no code
            ([-9, -8, -7, 3], {}),
            ([], {}),
            ([np.nan, np.nan], {}),
        ],
    )
    def test_rule(self, values, found):
        assert find_codes(pd.Series(values, dtype=float)) == found

    def test_dates(self):
        dates = ["2021-03-01", "1900-01-01", "2021-04-09", "2021-05-02", "1900-01-01"]
        assert find_codes(pd.Series(pd.to_datetime(dates))) == {"1900-01-01": 2}
        assert find_codes(pd.Series(pd.to_datetime(["1970-01-01", "1969-05-01", "1972-01-01"]))) == {}

    def test_texts_and_truths_have_none(self):
        assert find_codes(pd.Series(["-999", "a", "b"])) == {}
        assert find_codes(pd.Series([True, False, True])) == {}

    def test_in_features(self, load):
        lines = "a,y 1,11 -999,19 3,31 -999,42 5, 6,"
        (notice,) = load(lines).notices
        assert notice.text == (
            "-999 is far from all other values of a (2 times). If it stands for a missing value: "
            "-p missing_values -999"
        )
        data = load(lines, missing_values="-999")
        assert data.notices == ()
        assert data.features["a"].isna().tolist() == [False, True, False, True, False, False]

    def test_in_the_target(self, load):
        lines = "a,y 1,11 2,19 3,31 4,42 5,-999 6,-999 7,-999"
        (notice,) = load(lines).notices
        assert "of y (3 times); a row with it in y counts as labeled" in notice.text
        assert load(lines, missing_values="-999").target.isna().sum() == 3

    def test_many_columns_are_one_sentence(self):
        features = {f"a{i}": [1.0, 2, 3, -999] for i in range(30)}
        (notice,) = noticed(features, [1, 2, 3, 4])
        assert "a0 (1 time), a1 (1 time), a2 (1 time), a3 (1 time) and 26 others" in notice.text

    def test_what_does_not_occur_is_no_missing_value(self, load):
        with pytest.raises(
            ValueError, match=re.escape("missing_values must occur in the file, got -998, which")
        ):
            load("a,y 1,11 2,19 3,31", missing_values="-998")


class TestTotals:
    @pytest.mark.parametrize(
        "lines",
        [
            "site,a,y N,1,10 S,2,21 N,3,30 S,4, N,5, Total,15,61",
            "a,b,y 1,5,10 2,6,21 3,7,30 6,18,61",  # without a word
            "site,a,y Summe,15,61 N,1,10 S,2,21 N,3,30 S,4, N,5,",  # above
            "site,y N,10 S,21 N,30 ,61",  # nothing else in the row
            "site,a,y N,1.25,10 S,2.5,21 N,3,30 Average,2.25,20.3333333",
        ],
    )
    def test_noticed(self, load, lines):
        found = [notice for notice in load(lines).notices if notice.topic == "total"]
        assert len(found) == 1
        assert re.search("looks like a (total|mean): its cells are the (sums|means)", found[0].text)
        assert "it counts as a labeled row" in found[0].text

    @pytest.mark.parametrize(
        "lines",
        [
            "site,a,y N,1,10 S,2,21 N,3,30 S,6,44",  # one of two
            "a,y 0,10 0,21 0,30 0,44",
            "a,b,y 1,5,10 2,6,21 3,7,30 4,8,44",
        ],
    )
    def test_not_noticed(self, load, lines):
        if lines.startswith("a,y 0"):
            lines = lines.replace("a,y 0", "a,y 1", 1)
        assert [notice for notice in load(lines).notices if notice.topic == "total"] == []


class TestClasses:
    @pytest.mark.parametrize(
        "target",
        [[0, 0, 1, 1], [1, 2] * 6, [0, 10] * 3, [1, 2, 3] * 4, [0, 1, -999, 0, 1, 0], [1, 2, 3, 4, 5] * 4],
    )
    def test_noticed(self, target):
        features = {"a": np.arange(len(target)) / 3}
        assert "classes" in topics(features, target)

    @pytest.mark.parametrize("target", [[0, 1, 2, 3], [1.5, 2.5, 3.5] * 4, [3, 5, 9] * 4, list(range(8)) * 4])
    def test_not_noticed(self, target):
        assert "classes" not in topics({"a": np.arange(len(target)) / 3}, target)

    def test_case(self, load):
        (notice,) = load("a,y 1,0 2,0 3,1 4,1 5, 6,").notices
        assert notice.text.startswith(
            "the target has 2 different values (0, 1): classes? This is for numbers"
        )

    def test_a_constant_target_is_refused(self, load):
        message = "target must have different values, but y is 4 in all 3 rows that have one"
        with pytest.raises(ValueError, match=message):
            load("a,y 1,4 2,4 3,4 5,")


class TestRepeats:
    def test_rows_that_are_equal(self):
        rng = np.random.default_rng(0)
        features = pd.DataFrame(rng.normal(size=(20, 2)).round(2), columns=["a", "b"])
        target = pd.Series(rng.normal(size=20).round(2))
        assert topics(features, target) == []
        features.iloc[3], target.iloc[3] = features.iloc[7], target.iloc[7]
        (notice,) = noticed(features, target)
        assert notice.text.startswith(
            "2 labeled rows are equal to another one in all columns: a held-out row"
        )
        target.iloc[3] += 1
        (notice,) = noticed(features, target)
        assert "in all columns but the target" in notice.text
        identified = features.assign(id=[f"row {i}" for i in range(20)])
        assert topics(identified, target) == ["repeats"]  # texts that never repeat tell nothing

    def test_few_values_repeat_by_chance(self):
        rng = np.random.default_rng(0)
        features = pd.DataFrame(rng.integers(0, 3, size=(60, 3)).astype(float), columns=["a", "b", "c"])
        assert topics(features, rng.normal(size=60)) == []


class TestGroups:
    CASE = (
        "patient,f,y P1,1.01,40 P1,1.02,40.5 P2,1.50,70 P2,1.51,71 P3,0.20,55 P3,0.21,55.5 P4,0.90, P4,0.95,"
    )

    def test_case(self, load):
        (notice,) = load(self.CASE).notices
        assert notice.topic == "groups"
        assert notice.text.startswith(
            "patient: labeled rows share values, none of which an unlabeled row has."
        )
        assert notice.text.endswith("-p groups patient")

    def test_numbers_and_dates(self):
        day = np.repeat(pd.date_range("2021-05-01", periods=12), 5)
        batch = np.repeat(np.arange(12.0), 5)
        target = [*np.random.default_rng(0).normal(size=40), *[np.nan] * 20]
        x = np.random.default_rng(1).normal(size=60)
        for name, column in {"batch": batch, "day": day}.items():
            (notice,) = noticed({name: column, "x": x}, target)
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

    def test_a_full_table(self):
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(2, 60))
        assert topics({"subject_id": np.repeat(np.arange(20.0), 3), "x": x}, y) == ["groups"]
        assert topics({"farm": np.repeat([f"f{i}" for i in range(20)], 3), "x": x}, y) == ["groups"]
        assert topics({"floor": np.repeat(np.arange(20.0), 3), "x": x}, y) == []
        assert topics({"child5": np.repeat(np.arange(20.0), 3), "x": x}, y) == []
        assert topics({"kind": np.repeat(["a", "b", "c"], 20), "x": x}, y) == []

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


def test_nothing_is_changed_and_preprocessing_is_as_before():
    features = pd.DataFrame({"a": [1.0, -999, 3, 4, 5], "b": [1.0, 2, np.nan, 4, 5]})
    before = features.copy()
    noticed(features, [1.0, 2, 3, np.nan, np.nan])
    pd.testing.assert_frame_equal(features, before)
    assert list(make_preprocessor(features).fit_transform(features)) == ["a", "b"]


def test_what_was_read_stays_whole(load):
    data = load("a,b,y 1,1,11 -999,1,19 3,1,31 4,1,42 5,1, 6,1,", missing_values="-999")
    assert list(data.reading.table) == ["a", "b", "y"]
    assert data.reading.cells["a"].tolist() == ["1", "-999", "3", "4", "5", "6"]
    assert data.column_types == {"a": "number"}
    assert (data.features["a"].isna().sum(), data.missing_values) == (1, "-999")


def test_many_columns_take_no_time():
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(100, 2000)).round(3)).rename(columns=str)
    assert topics(features, rng.normal(size=100)) == []
