"""Summaries, paired comparisons and verdicts, by hand; by loops in `teaching/test_hand_built.py`."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import bootstrap, wilcoxon

from dmls2r_lite.study import comparing
from dmls2r_lite.study.comparing import give_verdict, holm, summarize, tally_verdicts


def make_trials(**mae_by_method):
    """Trials with 10 labels, seeds 0, 1, ..."""
    rows = [
        {"dataset": "d", "method": name, "n_labeled": 10, "seed": seed, "mae": mae}
        for name, values in mae_by_method.items()
        for seed, mae in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_summarize_by_hand():
    # b: mean (1 + 3 + 5) / 3 = 3, standard deviation 2, standard error 2 / sqrt(3)
    trials = pd.concat([make_trials(b=[1, 3, 5], a=[4, 4, 4]), make_trials(b=[6, 8, 7]).assign(n_labeled=5)])
    table = summarize(trials)
    assert table.index.tolist() == ["b", "a"]  # in order of first appearance
    assert table["mean"].loc["b"].to_dict() == {5: 7.0, 10: 3.0}
    assert table["standard_error"][10].tolist() == pytest.approx([2 / 3**0.5, 0])
    assert table["mean"][5].isna().tolist() == [False, True]


class TestCompare:
    def test_by_hand(self, monkeypatch):
        # Differences -1, -2, -3 and 4. Their sizes have ranks 1 to 4, positive ranks sum to 4.
        # 7 of the 16 sets of signs give at most 4 ({}, 1, 2, 3, 4, 1+2, 1+3): p = 2 * 7 / 16.
        monkeypatch.setattr(comparing, "LEVEL", 0.2)
        row = give_verdict(make_trials(a=[1, 2, 3, 9], b=[2, 4, 6, 5]), "a", "b").loc["d", 10]
        assert row["mean_difference"] == -0.5  # which of a mean of 17 / 4 is -11.8 %
        assert row["p_value"] == pytest.approx(14 / 16)
        assert (row["n_seeds"], row["n_better"]) == (4, 3)
        assert row["sentence"] == (
            f"Against b the MAE changes by -0.5 on average (-11.8%), 95 % interval {row['low']:+.3g} to "
            f"{row['high']:+.3g}; it is lower on 3 of 4 splits (4 or more can show something); p = 0.88, "
            "0.88 corrected for 1 cell."
        )

    def test_equals_scipy(self):
        a, b = np.random.default_rng(0).normal([[3], [3.5]], 1, size=(2, 20))
        row = give_verdict(make_trials(a=a, b=b), "a", "b").loc["d", 10]
        interval = bootstrap((a - b,), np.mean, rng=0, method="percentile").confidence_interval
        assert (row["low"], row["high"]) == tuple(interval)
        assert row["p_value"] == wilcoxon(a, b).pvalue

    def test_pairs_by_seed_and_n_whatever_the_order_of_rows_and_other_methods(self):
        trials = make_trials(a=[1, 2, 3], b=[2, 4, 6])
        both = pd.concat([trials, trials.assign(n_labeled=5, mae=trials["mae"] * 10)])
        table = give_verdict(both, "a", "b")
        assert table["mean_difference"].to_dict() == {("d", 5): -20.0, ("d", 10): -2.0}
        more = pd.concat([both.sample(frac=1, random_state=0), make_trials(c=[1, 1, 1, 1, 1])])
        pd.testing.assert_frame_equal(give_verdict(more, "a", "b"), table)

    @pytest.mark.parametrize(("difference", "p_value", "n_better"), [(0, 1, 0), (-1, 2 / 8, 3)])
    def test_the_same_difference_everywhere(self, difference, p_value, n_better):
        b = np.arange(3)
        row = give_verdict(make_trials(a=b + difference, b=b), "a", "b").loc["d", 10]
        assert row[["mean_difference", "low", "high"]].tolist() == [difference] * 3
        assert (row["p_value"], row["n_better"]) == (pytest.approx(p_value), n_better)

    @pytest.mark.parametrize("n_equal", [0, 9, 56])
    def test_seeds_on_which_nothing_differs_do_not_add_up_to_a_verdict(self, n_equal):
        """Four of four: no result could be below 2 / 2^4, with however many ties beside them."""
        trials = make_trials(a=[*[1.0] * n_equal, 0.9, 0.8, 0.7, 0.6], b=[1.0] * (4 + n_equal))
        assert give_verdict(trials, "a", "b").loc[("d", 10), "p_value"] == pytest.approx(0.125)
        assert give_verdict(trials, "a", "b")["verdict"].tolist() == ["cannot tell"]

    @pytest.mark.parametrize(
        ("trials", "placebos", "message"),
        [
            ({"a": [1, 2]}, [], "'a' and 'b' have not run on the same 2 or more seeds .*; there are a"),
            *(
                ({"a": [1, 2], "b": [2, 3]} | {name: [1, value]}, placebos,
                 f"trials must hold finite errors, got {value} for '{name}' with N = 10 and seed 1")
                for name, placebos in (("a", []), ("p", ["p"]))
                for value in (np.nan, np.inf)
            ),
        ],
    )  # fmt: skip
    def test_errors(self, trials, placebos, message):
        with pytest.raises(ValueError, match=message):
            give_verdict(make_trials(**trials), "a", "b", placebos)

    def test_repeated_trials(self):
        trials = make_trials(a=[1, 2], b=[2, 3])
        for function, other in (
            (summarize, trials.assign(dataset="another")),
            (lambda trials: give_verdict(trials, "a", "b"), trials),
        ):
            with pytest.raises(ValueError, match="got 'a' with N = 10 and seed 0 twice"):
                function(pd.concat([trials, other]))


def test_cells_are_compared_on_each_dataset():
    rng = np.random.default_rng(0)
    first = make_trials(a=rng.normal(size=8), b=rng.normal(1, size=8))
    second = make_trials(a=rng.normal(size=8), b=rng.normal(0, size=8)).assign(dataset="c", n_labeled=20)
    table = give_verdict(pd.concat([first, second]), "a", "b")
    assert table.index.tolist() == [("d", 10), ("c", 20)]  # in order of first appearance
    for dataset, part in (("d", first), ("c", second)):
        alone = give_verdict(part, "a", "b").drop(columns=["p_holm", "verdict", "sentence"])
        pd.testing.assert_frame_equal(table.loc[[dataset], list(alone)], alone)
    assert_allclose(table["p_holm"], holm(table["p_value"]))


def test_holm_by_hand():
    # sorted 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.5
    assert_allclose(holm([0.5, 0.01, 0.03, 0.02]), [0.5, 0.04, 0.06, 0.06])
    assert_allclose(holm([0.04, 0.04]), [0.08, 0.08])
    assert_allclose(holm([0.9, 0.8]), [1, 1])


def cells_of(**errors):
    """Trials from arrays of shape (cells, splits); cells are N = 0, 1, ..."""
    return pd.concat(
        make_trials(**{name: values[n] for name, values in errors.items()}).assign(n_labeled=n)
        for n in range(len(next(iter(errors.values()))))
    )


def constant(difference, n_seeds=8):
    """Errors of a (5, 6, ...) and of b, which differs by about that much on all splits."""
    a = 5.0 + np.arange(n_seeds)
    return {"a": a + difference * (1 + np.arange(n_seeds) / 100), "b": a}


class TestVerdict:
    def verdict(self, errors, placebos=()):
        return give_verdict(make_trials(**errors), "a", "b", placebos).iloc[0]

    @pytest.mark.parametrize(("difference", "verdict"), [(-1, "helped"), (1, "hurt")])
    def test_one_sign_on_eight_splits(self, difference, verdict):
        row = self.verdict(constant(difference))
        assert row["verdict"] == verdict
        assert row["p_holm"] == pytest.approx(2 / 2**8)
        lower = 8 if verdict == "helped" else 0
        assert f"lower on {lower} of 8 splits (6 or more can show something)" in row["sentence"]

    def test_corrected_for_the_cells_that_are_looked_at_together(self):
        # six splits of one sign: p = 2 / 64, and 6 / 64 as the smallest of three
        one, more = constant(-1, 6), constant(0.0, 6)
        alone = give_verdict(make_trials(**one), "a", "b")
        assert alone["verdict"].tolist() == ["helped"]
        three = cells_of(**{name: [one[name], more[name], more[name]] for name in one})
        table = give_verdict(three, "a", "b")
        assert table["p_holm"].tolist() == pytest.approx([6 / 64, 1, 1])
        assert table["verdict"].tolist() == ["cannot tell"] * 3
        assert "p = 0.031, 0.094 corrected for 3 cells." in table["sentence"].iloc[0]

    def test_interval_leaves_out_zero_and_the_corrected_p_value_says_no(self):
        # 7 of 8 differences are negative, the positive one has rank 3: p = 2 * 5 / 2^8 (sums 0, 1, 2, 3, 3)
        a, b = 9 + np.array([-1.0, -2, 3, -4, -5, -6, -7, -8]), np.full(8, 9.0)
        row = give_verdict(cells_of(a=[a, b], b=[b, b]), "a", "b").iloc[0]
        assert (row["p_value"], row["p_holm"]) == pytest.approx((10 / 2**8, 20 / 2**8))
        assert row["high"] < 0
        assert row["verdict"] == "cannot tell"
        assert self.verdict({"a": a, "b": b})["verdict"] == "helped"

    @pytest.mark.parametrize(
        ("n_splits", "n_cells", "needed"), [(5, 1, 6), (2, 1, 6), (6, 2, 7), (7, 4, 8), (8, 10, 9)]
    )
    def test_too_few_splits_for_any_verdict(self, n_splits, n_cells, needed):
        def table(n):
            errors = {name: [values] * n_cells for name, values in constant(-1, n).items()}
            return give_verdict(cells_of(**errors), "a", "b")

        assert set(table(n_splits)["verdict"]) == {"cannot tell"}
        for sentence in table(n_splits)["sentence"]:
            assert f"lower on {n_splits} of {n_splits} splits ({needed} or more can show" in sentence
        assert set(table(needed)["verdict"]) == {"helped"}

    @pytest.mark.parametrize(
        ("differences", "p_value"),
        [
            # ranks of positive ones 1 and 3 of 6: sums 0 to 4 are 0, 1, 2, 3, 1+2, 4, 1+3
            ([0.1, -2, 2.1, -4, -5, -6], 14 / 64),
            # small ones below zero and a huge one above: ranks say lower, the mean says higher
            ([*range(-7, 0), 90], 2 * 25 / 2**8),
            ([0] * 8, 1),
        ],
    )
    def test_doubts(self, differences, p_value, monkeypatch):
        monkeypatch.setattr(comparing, "LEVEL", 0.2)
        b = np.full(len(differences), 9.0)
        row = self.verdict({"a": b + differences, "b": b})
        assert row["p_value"] == pytest.approx(p_value)
        assert row["verdict"] == "cannot tell"

    def test_placebos(self):
        errors = constant(-1.0)
        worse = {**errors, "p": errors["b"] + 0.1, "q": errors["b"] - 0.2}
        row = self.verdict(worse, ["p", "q"])
        assert row["verdict"] == "helped"
        of_p = (
            "1 cell. a against p: -1.13, corrected p = 0.0078; p against b: +0.1, corrected p = 0.0078. a ag"
        )
        assert of_p in row["sentence"]

        as_good = {**worse, "q": errors["a"] + np.array([0.05, -0.3, 0.15, 0.02, 0.1, -0.2, 0.25, -0.1])}
        row = self.verdict(as_good, ["p", "q"])
        assert row["verdict"] == "helped, but so does a placebo"
        assert "q against b: -1" in row["sentence"]

        unsure = {**worse, "q": errors["b"] + 3 * np.array([-2, 1, -1, 1.1, -0.9, 0.8, -1.2, 0.7])}
        row = self.verdict(unsure, ["q"])
        assert row["verdict"] == "cannot tell"  # "so does a placebo" would not be true

    def test_a_placebo_cannot_make_or_mend_a_verdict(self):
        errors = constant(1.0)
        assert self.verdict({**errors, "p": errors["a"] + 1}, ["p"])["verdict"] == "hurt"
        same = constant(0.0)
        assert self.verdict({**same, "p": same["a"] + 1}, ["p"])["verdict"] == "cannot tell"

    def test_only_splits_and_cells_that_all_share(self):
        errors = {name: [values, values] for name, values in constant(-1.0, 10).items()}
        trials = cells_of(**errors, p=errors["b"])
        fewer = trials[~((trials["method"] == "p") & ((trials["n_labeled"] == 1) | (trials["seed"] >= 8)))]
        table = give_verdict(fewer, "a", "b", ["p"])
        assert table.index.tolist() == [("d", 0)]
        assert table["n_seeds"].tolist() == [8]
        with pytest.raises(ValueError, match="'a' and 'b' and 'x' have not run on the same 2 or more seeds"):
            give_verdict(trials, "a", "b", ["x"])

    @pytest.mark.parametrize(
        ("n_cells", "n_splits"),
        [(3, 8), *(pytest.param(*p, marks=pytest.mark.exhaustive) for p in [(1, 8), (12, 20)])],
    )
    def test_false_alarms_where_nothing_differs(self, n_cells, n_splits, monkeypatch):
        """At most 5 % of questions get any verdict but "cannot tell", and the interval plays no part."""
        no_interval = SimpleNamespace(confidence_interval=(np.nan, np.nan))
        monkeypatch.setattr(comparing, "bootstrap", lambda *_, **__: no_interval)
        rng, n_questions, alarms = np.random.default_rng(1), 150, 0
        for _ in range(n_questions):
            hardness = rng.lognormal(1, 0.5, size=(n_cells, n_splits))
            arms = {name: hardness * rng.lognormal(0, 0.2, size=hardness.shape) for name in "ab"}
            alarms += (give_verdict(cells_of(**arms), "a", "b")["verdict"] != "cannot tell").any()
        # of 150 questions 7.5 at most are to be expected; more than 15 come by luck in one of 200 tests
        assert alarms <= 15

    def test_a_reference_without_error(self):
        row = self.verdict({"a": [1.0] * 8, "b": [0.0] * 8})
        assert row["verdict"] == "hurt"
        assert "the MAE changes by +1 on average, 95 % interval" in row["sentence"]


def index_of(*cells):
    return pd.MultiIndex.from_tuples(cells, names=["dataset", "n_labeled"])


def test_tally():
    cells = index_of(("toy", 10), ("toy", 20), ("boston", 10))
    table = pd.DataFrame({"verdict": ["cannot tell", "helped", "cannot tell"]}, index=cells)
    assert tally_verdicts(table) == "helped in 1 of 3 cells (toy, N = 20), cannot tell in 2"
    assert tally_verdicts(table, where=False) == "helped in 1 of 3 cells, cannot tell in 2"
    both = pd.DataFrame({"verdict": ["hurt", "helped", "hurt"]}, index=cells)
    two = "helped in 1 of 3 cells (toy, N = 20), hurt in 2 (toy, N = 10; boston, N = 10)"
    assert tally_verdicts(both) == two
    assert tally_verdicts(table[table["verdict"] == "cannot tell"]) == "cannot tell in 2 of 2 cells"
