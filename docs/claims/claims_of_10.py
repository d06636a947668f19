"""Blocks of notebook 10: coverage and width of intervals in the shipped trials."""

import numpy as np
import pandas as pd

from dmls2r_lite.study.trials import read_shipped

CELL = ["method", "n_labeled", "dataset"]


def intervals(trials: pd.DataFrame) -> str:
    """Per method what CV+ and the constant width hold where 80 % are asked, and the lowest cells."""
    cells = trials[trials["choice"] == "random"].groupby(CELL).mean(numeric_only=True)
    rows = []
    for method, part in cells.groupby("method"):
        held = 100 * part[["coverage_80", "constant_coverage_80"]].mean()
        wider = 100 * np.expm1(np.log(part["width_80"] / part["constant_width_80"]).mean())
        rows.append(f"| {method} | {held.iloc[0]:.0f} | {held.iloc[1]:.0f} | {wider:+.0f} % |")
    lowest = (100 * cells[["coverage_80", "constant_coverage_80"]]).agg(["min", "idxmin"])
    places = [
        f"{lowest.loc['min', name]:.0f} % ({dataset}, {method}, N = {n})"
        for name in lowest
        for method, n, dataset in [lowest.loc["idxmin", name]]
    ]
    both = trials.pivot_table(index=CELL, columns="choice", values="coverage_80")[["chosen", "random"]]
    chosen, random = 100 * both.dropna().mean()
    return "\n".join(
        [
            "| 80 % asked | inside, CV+ [%] | inside, constant width [%] | CV+ wider by |",
            "| --- " * 4 + "|",
            *rows,
            "",
            f"Means over {cells.index.unique('dataset').size} datasets with "
            f"{', '.join(map(str, cells.index.unique('n_labeled')))} labels. The lowest of {len(cells)} "
            f"cells: CV+ {places[0]}, constant width {places[1]}. With labels at *chosen* "
            f"rows CV+ holds {chosen:.0f} %, at random ones of the same cells {random:.0f} %.",
        ]
    )


def blocks() -> dict[str, str]:
    """Each block between `<!-- rows: NAME -->` and `<!-- end -->`."""
    return {"intervals": intervals(read_shipped("few_labels").dropna(subset="coverage_80"))}
