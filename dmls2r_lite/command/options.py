"""What the commands share: how they read what is typed, how they refuse, how they show a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..data.unpacking import table_name
from ..foundation.parameters import did_you_mean, shown

if TYPE_CHECKING:
    import pandas as pd

    from ..data.reading import Reading

# Heavy imports are inside the functions that need them, so that a refusal comes at once.

LISTS = ("drop_columns", "column_types", "missing_values")  # more of them are added up
SAME_COMMAND = "the same command does the rest"

table_argument = click.argument("file", type=click.Path(path_type=Path))
output_option = click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="A CSV file that does not exist yet.  [default: named after FILE, in the current folder]",
)


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


class ManyValues(click.Command):
    """A command whose repeatable options take several values at once: `--datasets boston toy`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the option again before each further value."""
        repeatable = {
            name for known in self.params if getattr(known, "multiple", False) for name in known.opts
        }
        given: list[str] = []
        option = ""
        for arg in args:
            if arg.startswith("-"):
                option = arg
            elif option in repeatable and given[-1] != option:
                given.append(option)
            given.append(arg)
        return super().parse_args(ctx, given)


def parameters_option(words: str, known: Collection[str] | None = None) -> Callable[..., Any]:
    """The option -p NAME VALUE, which gives a mapping to `given`: lists are joined by commas.

    Parameters
    ----------
    words : str
        For the help.
    known : collection of str, optional
        Names that may be given. Default: all.
    """

    def merge(
        ctx: click.Context, option: click.Parameter, pairs: Iterable[tuple[str, str]]
    ) -> dict[str, str]:
        given: dict[str, str] = {}
        for name, value in pairs:
            if name in given and name not in LISTS:
                raise ValueError(f"give {name} once, got {given[name]} and {value}")
            given[name] = f"{given[name]}, {value}" if name in given else value
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


def new_csv(output: Path | None, source: Path, ending: str, beside: str = ".csv") -> Path:
    """Check the file to write, by default named after the table that it is made of, and one beside it."""
    output = output or Path(f"{table_name(source)}_{ending}.csv")
    if output.suffix.lower() != ".csv":
        raise ValueError(f"--output must end in .csv, got {output}")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent}")
    for path in (output, output.with_suffix(beside)):
        if path.exists():
            raise FileExistsError(f"{path} exists: move it, or name another file with --output")
    return output


def read_given(file: Path, given: Mapping[str, str]) -> tuple[Reading, pd.DataFrame, pd.Series]:
    """Read a table by the parameters that are `given`, see `read_table`; that of groups is left out, too."""
    from ..data.datasets import read_table

    left_out = ", ".join(given[name] for name in ("drop_columns", "groups") if name in given)
    others = {name: value for name, value in given.items() if name not in ("drop_columns", "groups")}
    return read_table(file, left_out, **others)


def read_alike(
    path: Path, kinds: Mapping[str, str], missing_values: str, other: str
) -> tuple[Reading, pd.DataFrame]:
    """Read a table that must have the columns of another one, each as in that one.

    Parameters
    ----------
    path : Path
    kinds : mapping of str to str
        What each column holds, see `read`. Further columns of the file are left out.
    missing_values : str
    other : str
        What to call the other one.

    Returns
    -------
    Reading
    features : pandas.DataFrame
        Without what stands for a missing value.
    """
    from ..data.datasets import mark_missing
    from ..data.noticing import enumerate_names
    from ..data.reading import read, read_source

    cells = read_source(path).cells
    if missing := [name for name in kinds if name not in cells]:
        raise ValueError(f"{path} must have the columns of {other}, but lacks {enumerate_names(missing)}")
    further = [name for name in map(str, cells) if name not in kinds]
    try:
        reading = read(path, further, column_types=kinds, missing_values=missing_values, min_rows=1)
    except ValueError as error:
        raise ValueError(str(error).replace("as column_types says", f"as in {other}")) from error
    return reading, mark_missing(reading, missing_values)


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
