"""Parameters that are given by -p NAME VALUE."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import click

LISTS = ("drop_columns", "column_types", "missing_values")  # more of them are added up


def merge_given(given: Sequence[tuple[str, str]], known: Collection[str] | None = None) -> dict[str, str]:
    """One value for each name: lists are joined by commas.

    Raises
    ------
    click.ClickException
        If another parameter is given twice, or a name is not known.
    """
    merged: dict[str, str] = {}
    for name, value in given:
        if name in merged and name not in LISTS:
            raise click.ClickException(f"give {name} once, got {merged[name]} and {value}")
        merged[name] = f"{merged[name]}, {value}" if name in merged else value
    unknown = [name for name in merged if known is not None and name not in known]
    if unknown and known is not None:
        from ..foundation.parameters import did_you_mean  # here, because it brings NumPy

        raise click.ClickException(
            f"unknown parameter {', '.join(unknown)}; known are {', '.join(known)}"
            f"{did_you_mean(unknown[0], known)}"
        )
    return merged
