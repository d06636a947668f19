"""Blocks of notebook 10: coverage and width of intervals in the shipped trials."""

import numpy as np
import pandas as pd

from dmls2r_lite.study.few_labels import shipped_few_labels

CELL = ["method", "n_labeled", "dataset"]


def intervals(trials: pd.DataFrame) -> str:
    """Per method what CV+ and the constant width hold of 80 and 90 %, and the lowest cells."""
    cells = trials[trials["choice"] == "random"].groupby(CELL).mean(numeric_only=True)
    rows = []
    for method, part in cells.groupby("method"):
        values = []
        for asked in (80, 90):
            held = 100 * part[[f"coverage_{asked}", f"constant_coverage_{asked}"]].mean()
            wider = np.log(part[f"width_{asked}"] / part[f"constant_width_{asked}"]).mean()
            values += [f"{held.iloc[0]:.0f}", f"{held.iloc[1]:.0f}", f"{100 * np.expm1(wider):+.0f} %"]
        rows.append(f"| {method} | {' | '.join(values)} |")
    lowest = (100 * cells[["coverage_80", "constant_coverage_80"]]).agg(["min", "idxmin"])
    places = [
        f"{lowest.loc['min', name]:.0f} % ({dataset}, {method}, N = {n})"
        for name in lowest
        for method, n, dataset in [lowest.loc["idxmin", name]]
    ]
    both = trials.pivot_table(index=CELL, columns="choice", values="coverage_80")[["chosen", "random"]]
    chosen, random = 100 * both.dropna().mean()
    names = " | ".join(f"of {asked} %: CV+ | constant | CV+ wider by" for asked in (80, 90))
    return "\n".join(
        [
            f"| inside [%] | {names} |",
            "| --- " * 7 + "|",
            *rows,
            "",
            f"Means over {cells.index.unique('dataset').size} datasets with "
            f"{', '.join(map(str, cells.index.unique('n_labeled')))} labels. The lowest of {len(cells)} "
            f"cells with 80 % asked: CV+ {places[0]}, constant width {places[1]}. With labels at *chosen* "
            f"rows CV+ holds {chosen:.0f} %, at random ones of the same cells {random:.0f} %.",
        ]
    )


def blocks() -> dict[str, str]:
    """Each block between `<!-- rows: NAME -->` and `<!-- end -->`."""
    return {"intervals": intervals(shipped_few_labels().dropna(subset="coverage_80"))}
