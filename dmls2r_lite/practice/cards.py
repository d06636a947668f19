"""What has to be known of a model, in a few lines."""

from __future__ import annotations

from dataclasses import dataclass

from ..foundation.parameters import COUNT, SHARE, ParameterError, Rule, count, number

TEXT = Rule(
    "printable text of at most 2000 characters",
    lambda value: isinstance(value, str) and len(value) <= 2000 and value.replace("\n", "").isprintable(),
)
_ERROR = number("a finite number of 0 or more, or None", lambda value: value >= 0)
_TARGET = number("a finite number, or None", lambda value: True).or_else("", lambda value: value is None)
_CARD_RULES = {
    "data": TEXT,
    "target": TEXT,
    "unit": TEXT,
    "n_labeled": COUNT,
    "n_unlabeled": count(0),
    "expected_error": _ERROR.or_else("", lambda value: value is None),
    "error_margin": _ERROR.or_else("", lambda value: value is None),
    "coverage": SHARE.or_none(),
    "lowest": _TARGET,
    "highest": _TARGET,
    "verdict": TEXT,
}


@dataclass(frozen=True)
class Card:
    """What somebody who is given a model has to know.

    Attributes
    ----------
    data, target, unit : str
        What it learned from, the column that it estimates, and that column's unit.
    n_labeled, n_unlabeled : int
        N and M.
    expected_error, error_margin : float, optional
        Mean absolute error to be expected on new rows, and how far off that number may be.
    coverage : float, optional
        Nominal share of targets within the model's intervals.
    lowest, highest : float, optional
        Labels.
    verdict : str
        What comparing it with other models said.

    Raises
    ------
    ParameterError
        If one of these is of another kind.
    """

    data: str
    target: str
    n_labeled: int
    n_unlabeled: int
    unit: str = ""
    expected_error: float | None = None
    error_margin: float | None = None
    coverage: float | None = None
    verdict: str = ""
    lowest: float | None = None
    highest: float | None = None

    def __post_init__(self) -> None:
        for name, rule in _CARD_RULES.items():
            if not rule.fits(value := getattr(self, name)):
                raise ParameterError(f"{name} of a card must be {rule.allowed}, got {str(value)[:100]!r}")

    def __str__(self) -> str:
        unit = f" [{self.unit}]" if self.unit else ""
        lines = [
            f"Estimates {self.target}{unit}, learned from {self.data}: "
            f"{self.n_labeled} labeled rows and {self.n_unlabeled} without a label."
        ]
        if self.expected_error is not None:
            margin = "" if self.error_margin is None else f" ± {self.error_margin:.3g}"
            lines.append(
                f"Expected mean absolute error on new rows: {self.expected_error:.3g}{margin}{unit}."
            )
        if self.coverage is not None:
            lines.append(f"Its intervals are made to hold {self.coverage:.0%} of the targets.")
        return "\n".join([*lines, *filter(None, [self.verdict])])
