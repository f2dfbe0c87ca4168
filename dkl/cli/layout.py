"""The layout of the command line: help that begins with an example and fits a screen, and tables."""

from __future__ import annotations

import csv
from typing import Any

import click

WIDTH = 100
SETTINGS = {"max_content_width": WIDTH, "help_option_names": ["-h", "--help"]}


def several(ctx: Any, param: Any, value: tuple[str, ...]) -> tuple[str, ...]:
    """Values of a repeated flag, or separated by commas; a value with a comma is in double quotes."""
    words = (word for text in value for word in next(csv.reader([text], skipinitialspace=True), []))
    return tuple(word.strip() for word in words if word.strip())


def reading_options(function: Any) -> Any:
    """Options of verbs that read new files."""
    missing = click.option("--missing", help="Files: how to treat missing values: drop (the row), zero, mean.")
    na = click.option("--na", multiple=True, callback=several, help="Files: words that mark a missing value.")
    return missing(na(function))


class Verb(click.Command):
    """A command whose help begins with its example."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, context_settings=SETTINGS, **kwargs)
        self.example = example

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Example, what it does, usage, options."""
        for line in self.example.splitlines():
            formatter.write(f"  $ {line}\n")
        formatter.write("\n")
        formatter.write_text(self.help or "")
        self.format_usage(ctx, formatter)
        formatter.write("\n")
        with formatter.indentation():
            formatter.write_dl(self.rows(ctx), col_max=28, col_spacing=2)

    def rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Every flag, and what it does."""
        return [record for p in self.get_params(ctx) if (record := p.get_help_record(ctx)) and record[1]]


class Verbs(click.Group):
    """The group of verbs. Their modules are imported when they are used."""

    def __init__(self, *args: Any, verbs: dict[str, tuple[str, str]], example: str, **kwargs: Any) -> None:
        super().__init__(*args, context_settings=SETTINGS, **kwargs)
        self.verbs, self.example = verbs, example

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the verbs, in the order of use."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb; its module is imported now."""
        from importlib import import_module

        if name not in self.verbs:
            return None
        return getattr(import_module(f"dkl.cli.{self.verbs[name][0]}"), self.verbs[name][0].removesuffix("_"))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Refuse an unknown verb with the nearest one."""
        import difflib

        if args and not args[0].startswith("-") and args[0] not in self.verbs:
            near = difflib.get_close_matches(args[0], self.verbs, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.verbs)}"
            raise click.UsageError(f"{args[0]!r} is not a verb of dkl; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Example, what dkl is, verbs, options, exit codes."""
        for line in self.example.splitlines():
            formatter.write(f"  $ {line}\n")
        formatter.write("\n")
        formatter.write_text(self.help or "")
        with formatter.section("Verbs (dkl VERB --help)"):
            formatter.write_dl([(name, about) for name, (_, about) in self.verbs.items()])
        with formatter.section("Options"):
            rows = [record for p in self.get_params(ctx) if (record := p.get_help_record(ctx)) is not None]
            formatter.write_dl(rows)
        self.format_epilog(ctx, formatter)


def pairs(rows: list[tuple[str, Any]]) -> str:
    """Labels on the right, values on the left of a middle line."""
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:>{width}}  {value}" for label, value in rows)


def grid(headers: list[str], rows: list[list[Any]]) -> str:
    """Columns under headers; numbers on the right, words on the left."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(h), *(len(row[i]) for row in cells)) if cells else len(h) for i, h in enumerate(headers)]
    right = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(headers))]
    lines = [headers, *cells]
    return "\n".join(
        "  ".join(v.rjust(w) if r else v.ljust(w) for v, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
