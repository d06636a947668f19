"""What the commands share: how they read what is typed, how they refuse, how they show a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from ..foundation.parameters import did_you_mean, shown

LISTS = {"drop_columns": ", ", "column_types": ", ", "missing_values": "; "}  # more of them are joined
SAME_COMMAND = "the same command does the rest"


class Commands(click.Group):
    """Commands whose errors are one line each, and whose help is not cut within a sentence."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add one; the list of commands shows its first sentence."""
        cmd.short_help = re.split(r"(?<=\.)\s", cmd.help or "")[0]
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run one, and end it with the message of what it refuses."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # nobody reads on: click ends quietly
            raise
        except (OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error


def parameters_option(words: str, known: Collection[str] | None = None) -> Callable[..., Any]:
    """The option -p NAME VALUE, which gives a mapping to `given`: several of a list are joined.

    Parameters
    ----------
    words : str
        For the help.
    known : collection of str, optional
        Names that may be given. Default: all.
    """

    def merge(_: click.Context, __: click.Parameter, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
        given: dict[str, str] = {}
        for name, value in pairs:
            if name in given and name not in LISTS:
                raise ValueError(f"give {name} once, got {given[name]} and {value}")
            given[name] = f"{given[name]}{LISTS[name]}{value}" if name in given else value
        if known is not None:
            check_names("parameter", given, known)
        return given

    return click.option(
        "-p", "given", nargs=2, multiple=True, metavar="NAME VALUE", callback=merge, help=words
    )


def check_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError if a name is not known; the message lists those that are."""
    known = list(known)
    for name in given:
        if name not in known:
            listed = f"{did_you_mean(name, known)}; known are {', '.join(known)}"
            raise ValueError(f"unknown {what} {shown(name)}{listed}")


@contextmanager
def resumable() -> Iterator[None]:
    """Say what to do when a command is stopped that goes on from where it was."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted: {SAME_COMMAND}.", err=True)
        sys.exit(130)
    except (OSError, RuntimeError) as error:
        raise click.ClickException(f"{error}. What is finished is kept: {SAME_COMMAND}") from error


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: each column as wide as its widest entry, numbers to the right."""
    columns = []
    for column in zip(*rows, strict=True):
        width, is_number = max(map(len, column)), all(e.replace(".", "").isdigit() for e in column[1:])
        columns.append([entry.rjust(width) if is_number else entry.ljust(width) for entry in column])
    return ["  ".join(entries).rstrip() for entries in zip(*columns, strict=True)]
