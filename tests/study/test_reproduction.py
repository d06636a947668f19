"""The paper's tables with ours beside, and the counts of claims, on trials made up for it."""

import itertools
import re
from dataclasses import replace

import make
import pandas as pd
import pytest
from click.testing import CliRunner

from dmls2r_lite.command import cli
from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study import trials as driver
from dmls2r_lite.study.benchmark import AS_PUBLISHED, BENCHMARK_DATASETS, shipped_trials
from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.reproduction import (
    BEATS,
    BUDGETS,
    PLACEBOS,
    count_claims,
    format_table,
    judge_benchmark,
    paper_tables,
    reproduce_table,
    split_gain,
)

NAMES = ("null", "random", "swapped")
DATASETS = ("boston", "superconductivity", AS_PUBLISHED)


def made_up(mae, n_seeds=20, methods=("DML-S2R", "COREG", "MSSR"), n_labeled=(10, 20, 50)):
    """Trials of which `mae(dataset, method, n, seed)` is the error."""
    cells = itertools.product(DATASETS, methods, n_labeled, range(n_seeds))
    columns = ["dataset", "method", "n_labeled", "seed"]
    return pd.DataFrame([[*cell, mae(*cell)] for cell in cells], columns=[*columns, "mae"])


@pytest.fixture(scope="module")
def paper():
    """The paper's value by our dataset, method and N."""
    table = paper_tables().replace({"dataset": {"air_quality": AS_PUBLISHED}})
    key = ["dataset", "method", "n_labeled"]
    return table.drop_duplicates(key).set_index(key)["mae"]


def around(paper, shift=0.0, spread=1.0):
    """Trials whose mean is the paper's value plus `shift`."""
    return made_up(lambda dataset, method, n, seed: paper[dataset, method, n] + shift + spread * (-1) ** seed)


class TestTables:
    def test_by_hand(self, paper):
        # 1.0 above the paper's 8.2 for COREG on Boston with 10 labels: seeds 8.7 and 9.7 by turns
        table = reproduce_table(around(paper, shift=1.0, spread=0.5), 3)
        row = table.query("method == 'COREG' and n_labeled == 10").iloc[0]
        assert (row["paper"], row["n_seeds"], row["position"]) == (8.2, 20, "below")
        assert row["mean"] == pytest.approx(9.2)
        assert row["standard_deviation"] == pytest.approx(0.5 * (20 / 19) ** 0.5)
        cells = format_table(table).loc["COREG", ["N = 10", "paper, N = 10"]]
        assert cells.tolist() == ["9.20 ± 0.51", "8.2 ▼"]

    @pytest.mark.parametrize(
        ("shift", "position"), [(0, "within"), (1, "within"), (1.1, "below"), (-1.1, "above")]
    )
    def test_where_the_value_of_the_paper_lies(self, shift, position, paper):
        for number in (2, 3, 4):
            assert set(reproduce_table(around(paper, shift), number)["position"]) == {position}

    def test_every_value_of_the_paper_is_there(self):
        for number, printed in paper_tables().groupby("table"):
            table = reproduce_table(shipped_trials(), number)
            is_reading = table["method"].str.endswith("(literal)")
            ours = table[table["paper"].notna() & ~is_reading].set_index(["method", "n_labeled"])["paper"]
            assert ours.to_dict() == printed.set_index(["method", "n_labeled"])["mae"].to_dict()
            assert set(plain_models()) < set(table["method"])

    def test_table_4_is_made_of_air_quality_as_published(self):
        trials = shipped_trials()
        for dataset, chosen in ((None, AS_PUBLISHED), ("air_quality", "air_quality")):
            table = reproduce_table(trials, 4, dataset).set_index(["method", "n_labeled"])
            of_mssr = trials[(trials["dataset"] == chosen) & (trials["method"] == "MSSR")]
            expected = of_mssr.loc[of_mssr["n_labeled"] == 50, "mae"].mean()
            assert table.loc[("MSSR", 50), "mean"] == pytest.approx(expected)

    def test_number_of_seeds_is_shown_where_it_differs(self, paper):
        trials = around(paper)
        fewer = trials[~((trials["method"] == "MSSR") & (trials["seed"] > 5))]
        cells = format_table(reproduce_table(fewer, 3))["N = 10"]
        assert cells["MSSR"].endswith("(6)")
        assert cells["COREG"].endswith("(20)")

    def test_unknown_number(self, paper):
        with pytest.raises(ValueError, match="number must be 1, 2, 3 or 4, got 5"):
            reproduce_table(around(paper), 5)


class TestClaims:
    def counts(self, trials):
        return count_claims(trials).set_index("claim")

    def test_beside_the_paper(self, paper):
        for shift, holds in ((-0.1, 9), (0.1, 0)):
            counts = self.counts(around(paper, shift))
            for method in ("DML-S2R", "COREG", "MSSR"):
                assert counts.loc[f"{method}: at or under the paper's MAE"].tolist() == [holds, 9]
        assert counts.loc["the paper's order of DML-S2R, COREG and MSSR"].tolist() == [9, 9]
        assert counts.loc["DML-S2R has the lowest mean of the three"].tolist() == [9, 9]
        other = made_up(lambda dataset, method, n, seed: {"COREG": 1, "DML-S2R": 2, "MSSR": 3}[method])
        assert self.counts(other).loc["DML-S2R has the lowest mean of the three"].tolist() == [0, 9]

    def test_beats(self):
        # step 1 is worse by 1 on all seeds for N = 10, better for N = 20, worse on 10 of 20 for N = 50
        def mae(dataset, method, n, seed):
            change = {10: 1.0, 20: -1.0, 50: (-1) ** seed * (1 + seed / 100)}[n]
            return 5 + seed / 7 + change * (method == "step 1")

        counts = self.counts(made_up(mae, methods=("DML-S2R", "step 1")))
        assert counts.loc["DML-S2R beats step 1 alone"].tolist() == [3, 9]
        assert counts.loc["step 1 alone beats DML-S2R"].tolist() == [3, 9]
        assert not [claim for claim in counts.index if "placebo" in claim]

    def test_plain_models(self):
        maes = {"DML-S2R": 3, "ridge": 2.5, "3-NN": 4}
        counts = self.counts(made_up(lambda dataset, method, n, seed: maes[method], methods=list(maes)))
        assert counts.loc["DML-S2R is below the best plain model"].tolist() == [0, 9]
        # of the paper's nine values for DML-S2R all are above 2.5
        assert counts.loc["a plain model is below the paper's DML-S2R"].tolist() == [9, 9]

    def test_table_1_and_the_cleaned_air_quality_do_not_count(self):
        trials = shipped_trials()
        counts = count_claims(trials)
        assert set(counts["of"]) == {9}
        # They are a part of each question, so their p values count in Holm's correction only.
        fewer = trials[(trials["n_labeled"] != 100) & (trials["dataset"] != "air_quality")]
        no_test = ~counts["claim"].str.contains(" beats ")
        pd.testing.assert_frame_equal(counts[no_test], count_claims(fewer)[no_test])


class TestBenchmarkVerdicts:
    def test_one_answer_whoever_asks(self):
        """It depends on nothing but the question: not on other cells or methods, nor on the order of rows."""
        trials = shipped_trials()
        verdicts = judge_benchmark(trials, "DML-S2R", "step 1")
        cells = [*itertools.product(BENCHMARK_DATASETS, (10, 20, 50)), ("superconductivity", 100)]
        assert sorted(verdicts.index) == sorted(cells)
        others = trials[trials["method"].isin(["DML-S2R", "step 1", *PLACEBOS])].sample(
            frac=1, random_state=0
        )
        more = others[others["dataset"] == "boston"].replace({"dataset": {"boston": "toy"}})
        beyond = others[others["n_labeled"] == 50].assign(n_labeled=70)
        same = pd.concat([others, more, beyond])
        pd.testing.assert_frame_equal(judge_benchmark(same, "DML-S2R", "step 1"), verdicts)

    @pytest.mark.parametrize(
        ("setting", "step_1", "placebos"),
        [
            ("", "step 1", ["step 1, half the epochs", *(f"placebo {name}" for name in NAMES)]),
            ("", "step 1, half the epochs", [f"placebo {name}" for name in NAMES]),
            (
                " (one batch)",
                "step 1 (one batch)",
                ["step 1, half the epochs", "placebo null", "placebo random"],
            ),
        ],
    )
    def test_is_give_verdict_with_the_placebos_of_the_setting(self, setting, step_1, placebos):
        trials = shipped_trials()
        found = judge_benchmark(trials, f"DML-S2R{setting}", step_1)
        names = [f"{name}{setting}" for name in placebos]
        expected = give_verdict(trials, f"DML-S2R{setting}", step_1, names)
        pd.testing.assert_frame_equal(found, expected.loc[found.index])


class TestSplitGain:
    def test_by_hand(self):
        """Halving takes a tenth away, and step 2 half of what is left, on each of 20 splits of one cell."""
        maes = {"step 1": 10.0, "step 1, half the epochs": 9.0, "DML-S2R": 4.5}
        gains = split_gain(
            made_up(lambda dataset, method, n, seed: maes[method] + seed / 50, methods=list(maes))
        )
        for (_, _, question), change in gains["change"].items():
            method, reference = BUDGETS[question]
            expected = (maes[method] + 0.19) / (maes[reference] + 0.19) - 1
            assert change == pytest.approx(expected)
        assert set(gains["verdict"]) == {"helped"}
        of_paper = gains["paper"].dropna()
        assert of_paper.index.tolist() == [
            ("superconductivity", n, next(iter(BUDGETS))) for n in (10, 20, 50)
        ]
        assert of_paper.tolist() == pytest.approx([22.3 / 23.5 - 1, 18.2 / 22.8 - 1, 16.2 / 18.2 - 1])

    def test_without_the_middle_arm(self, paper):
        assert split_gain(around(paper)).empty


class TestCommand:
    @pytest.mark.parametrize("width", [80, 120])
    def test_text_of_the_shipped_trials(self, width):
        result = CliRunner().invoke(cli.main, ["tables"], env={"COLUMNS": str(width)})
        assert result.exit_code == 0, result.output
        lines = result.output.splitlines()
        assert max(map(len, lines)) <= width
        titles = [line for line in lines if line.startswith(("Table", "How often"))]
        assert [title[:7] for title in titles] == [*(f"Table {n}" for n in (1, 1, 2, 3, 4, 4)), "How oft"]
        ours = [line for line in lines if line.startswith("DML-S2R  ")]
        assert len(ours) >= {80: 9, 120: 5}[width]
        assert all(
            re.fullmatch(r"DML-S2R( +\d+\.\d\d ± \d+\.\d\d( +\d+\.\d [▼●▲])?)+", line) for line in ours
        )
        cleaned = result.output.split("Table 4")[2]
        assert "paper  " not in cleaned
        assert " ".join(result.output.split()).endswith(BEATS)

    def test_folder_of_a_short_run(self, tmp_path):
        output = str(tmp_path / "results")
        asked = "--datasets boston --datasets toy --methods median --methods 3-NN --seeds 2 --jobs 1"
        asked += " --n-labeled 10 --n-labeled 20 --output"
        for to_do in (16, 0):
            result = CliRunner().invoke(cli.main, ["benchmark", *asked.split(), output])
            assert result.exit_code == 0, result.output
            assert f"{to_do} trials to do, into {output}" in result.stdout
            assert ("16/16" in result.stderr) == (to_do == 16)
        tables = CliRunner().invoke(cli.main, ["tables", output])
        assert tables.exit_code == 0, tables.output
        assert "Table 2: Superconductivity: no trials" in tables.output
        assert re.search(r"^median +\d", tables.output, flags=re.M)

    def test_another_study(self, tmp_path, monkeypatch):
        """It runs from a clone, and what it has found is packed, if that is all, so that it is read again."""
        small = {
            "datasets": ("toy",),
            "sizes": lambda dataset, name: (10,),
            "kinds": lambda *_: [("random",)],
        }
        small["methods"] = lambda: {"median": plain_models()["median"]}
        monkeypatch.setitem(make.STUDIES, "few-labels", replace(make.FEW_LABELS, **small))
        for module in (make, driver):
            monkeypatch.setattr(module, "RESULTS", tmp_path)
        asked = ["few-labels", str(tmp_path), "--jobs", "1", "--pack"]
        part = CliRunner().invoke(make.main, [*asked, "--seeds", "2"])
        assert (part.exit_code, "and 18 trials are still to do" in part.output) == (1, True)
        assert not list(tmp_path.glob("*.gz"))
        result = CliRunner().invoke(make.main, asked)
        assert result.exit_code == 0, result.output
        assert f"18 trials to do, into {tmp_path}" in result.output
        packed = driver.read_shipped("few_labels")
        assert (len(packed), packed.attrs["command"]) == (20, "python studies/make.py few-labels")
        wrong = CliRunner().invoke(make.main, [*asked, "--methods", "meddian"])
        assert (wrong.exit_code, "methods must be among" in wrong.output) == (1, True)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["benchmark", "--n-labeled", "2"], "--n-labeled"),
            (["benchmark", "--datasets", "boston", "--n-labeled", "400"], "must be below 506"),
            (["benchmark", "--jobs", "0"], "--jobs must be an integer of 1 or more, or -1, got 0"),
            (["benchmark", "--seeds", "0"], "--seeds"),
            (["benchmark", "boston"], "unexpected extra argument"),
            (["tables", "nowhere"], "cannot read trials from nowhere"),
        ],
    )
    def test_mistakes(self, arguments, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(cli.main, arguments)
        assert result.exit_code != 0
        assert message in result.output
        assert "Traceback" not in result.output
        assert list(tmp_path.iterdir()) == []
