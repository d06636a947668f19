"""How the command reads what is typed, and what it shows meanwhile."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable

import click

SECONDS_BETWEEN_LINES = 30  # where there is no terminal for a bar


class WholeSentences(click.Group):
    """A group whose help says of each command its first sentence, where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            sentence = re.match(r".+?\.(?=\s|$)", " ".join(((command and command.help) or "").split()))
            rows.append((name, sentence.group() if sentence else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ManyValues(click.Command):
    """A command whose repeatable options take several values at once: `--datasets boston toy`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        repeatable = {
            name for option in self.params if getattr(option, "multiple", False) for name in option.opts
        }
        given: list[str] = []
        option = ""
        for before, arg in zip(["", *args], args, strict=False):
            if arg.startswith("-"):
                option = arg
            elif before != option and option in repeatable:
                given.append(option)
            given.append(arg)
        return super().parse_args(ctx, given)


def show_progress(left_to_do: Iterable[int], to_do: int) -> None:
    """Work through what tells how much is left: with a bar in a terminal, elsewhere with a line at times."""
    if sys.stdout.isatty():
        with click.progressbar(length=to_do, show_pos=True) as bar:
            for left in left_to_do:
                bar.update(to_do - left - bar.pos)
        return
    said = time.monotonic()
    for left in left_to_do:
        if left == 0 or time.monotonic() - said >= SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            click.echo(f"{to_do - left} of {to_do} trials done", err=True)
