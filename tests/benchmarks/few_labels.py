"""What the trials of few labels say, as tables: `python tests/benchmarks/few_labels.py [FOLDER]`."""

from pathlib import Path

import click
import numpy as np
import pandas as pd

from dmls2r_lite.rivals.plain import plain_models
from dmls2r_lite.study.benchmark import AS_PUBLISHED
from dmls2r_lite.study.comparing import give_verdict
from dmls2r_lite.study.few_labels import CHOSEN, FEW_LABELS, RANDOM, WITH_INTERVALS, shipped_few_labels
from dmls2r_lite.study.reproduction import paper_tables

CELL = ["dataset", "method", "n_labeled"]


def compare_choices(trials: pd.DataFrame, way: str, reference: str) -> pd.DataFrame:
    """Mean log ratio by learner and N, and verdicts over all cells of the question."""
    both = trials[trials["choice"].isin([way, reference])]
    wide = both.pivot(index=[*CELL, "seed"], columns="choice", values="mae").dropna()
    change = np.log(wide[way] / wide[reference]).groupby(CELL).mean()
    judged = both.assign(dataset=both["dataset"] + ", " + both["method"], method=both["choice"])
    judged = judged[judged["dataset"].isin([f"{d}, {m}" for d, m, _ in change.index])]
    counts = give_verdict(judged, way, reference)["verdict"].value_counts()
    table = np.expm1(change.groupby(["method", "n_labeled"]).mean().unstack()) * 100
    table["all"] = np.expm1(change.groupby("method").mean()) * 100
    print(
        f"\n{way} against {reference}: {100 * np.expm1(change.mean()):+.1f} % over {len(change)} cells; "
        f"{counts.to_dict()}; worst cell {100 * np.expm1(change.max()):+.0f} % {change.idxmax()}"
    )
    return table.round(1)


def coverages(trials: pd.DataFrame) -> pd.DataFrame:
    """Share of test rows in the intervals and their width, beside those of a constant width."""
    rows = []
    for (method, choice, n), part in trials[trials["method"].isin(WITH_INTERVALS)].groupby(
        ["method", "choice", "n_labeled"]
    ):
        for level in ("80", "90"):
            by_dataset = part.groupby("dataset")[[f"coverage_{level}", f"constant_coverage_{level}"]].mean()
            if by_dataset.isna().all(axis=None):
                continue
            lowest = by_dataset[f"coverage_{level}"].idxmin()
            width = np.log(part[f"width_{level}"] / part[f"constant_width_{level}"]).mean()
            rows.append(
                {
                    "method": method, "labels": choice, "N": n, "nominal": level,
                    "covered": by_dataset[f"coverage_{level}"].mean(),
                    "lowest": f"{by_dataset.loc[lowest, f'coverage_{level}']:.2f} {lowest}",
                    "constant width covers": by_dataset[f"constant_coverage_{level}"].mean(),
                    "width against constant": f"{100 * np.expm1(width):+.0f} %",
                }
            )  # fmt: skip
    return pd.DataFrame(rows).set_index(["method", "labels", "N", "nominal"])


def expectations(trials: pd.DataFrame) -> pd.DataFrame:
    """Expected error divided by the true one: median over splits and datasets."""
    known = trials.dropna(subset="expected")
    ratios = known.assign(
        plain=known["expected"] / known["mae"], corrected=known["expected_corrected"] / known["mae"]
    )
    return (
        ratios.groupby(["choice", "n_labeled", "method"])[["plain", "corrected"]].median().unstack().round(2)
    )


def against_plain(trials: pd.DataFrame) -> None:
    """The average, on random and on chosen rows, against the best plain model of each cell in hindsight."""
    means = trials.groupby(["choice", "dataset", "n_labeled", "method"])["mae"].mean()
    best = means[RANDOM].unstack()[list(plain_models())].min(axis=1)
    for choice in (RANDOM, CHOSEN):
        ratio = (means[choice].unstack()["average"] / best).dropna()
        print(
            f"average on {choice} rows / best plain model in hindsight on random rows: at or below in "
            f"{(ratio <= 1).sum()} of {len(ratio)}, within 2 % in {(ratio <= 1.02).sum()}, mean "
            f"{100 * np.expm1(np.log(ratio).mean()):+.1f} % "
            f"{(100 * np.expm1(np.log(ratio).groupby('n_labeled').mean())).round(1).to_dict()}"
        )


def against_paper(trials: pd.DataFrame) -> pd.DataFrame:
    """Mean error of the average in the nine cells of the paper's Tables 2 to 4, beside the paper's."""
    paper = paper_tables().query("method == 'DML-S2R'").replace({"dataset": {"air_quality": AS_PUBLISHED}})
    paper = paper.drop_duplicates(["dataset", "n_labeled"]).set_index(["dataset", "n_labeled"])["mae"]
    ours = trials[(trials["choice"] == RANDOM) & (trials["method"] == "average")]
    table = pd.DataFrame({"paper": paper, "average": ours.groupby(["dataset", "n_labeled"])["mae"].mean()})
    return table.dropna().round(2).assign(at_or_under=lambda t: t["average"] <= t["paper"])


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(folder: Path | None) -> None:
    """Print the tables, for the trials of a folder or those that come with the package."""
    trials = FEW_LABELS.read(folder) if folder else shipped_few_labels()
    print(f"{len(trials)} trials")
    for way in (CHOSEN, "k-means"):
        print(compare_choices(trials, way, RANDOM))
    print(compare_choices(trials, CHOSEN, "k-means"))
    for way in ("metric space", "untrained space"):
        print(compare_choices(trials, way, "input space"))
    print(compare_choices(trials, "metric space", "untrained space"))
    for which in ("a third", "20 near"):
        for reference in (f"random ({which})", f"chosen ({which})"):
            print(compare_choices(trials, f"targets ({which})", reference))
    print("\n", coverages(trials).round(3).to_string())
    print("\nexpected / true error\n", expectations(trials).to_string(), "\n")
    against_plain(trials)
    print("\n", against_paper(trials).to_string())


if __name__ == "__main__":
    main()
