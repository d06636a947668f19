"""Every figure that the notebooks share."""

from __future__ import annotations

import seaborn as sns


def set_style() -> None:
    """One look for all figures: seaborn's colour-blind palette, light grid, readable sizes."""
    sns.set_theme(
        style="whitegrid",
        palette="colorblind",
        rc={"figure.figsize": (7, 4), "figure.dpi": 100, "axes.titlesize": 12, "axes.titleweight": "bold",
            "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True},
    )  # fmt: skip
