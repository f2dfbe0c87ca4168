"""The results as Markdown: one table of figure, bar, anchor and date, and a line for each machine."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.names import NAMES
from tests.benchmarks.report import AT_MOST

HEAD = """| benchmark | figure | value | bar | met | beside | date | load | machine |
|---|---|---|---|---|---|---|---|---|"""


def number(value: float | None) -> str:
    """Four digits, with an exponent where that is shorter."""
    return "not finite" if value is None else f"{value:.4g}"


def rows_of(record: dict[str, Any]) -> list[str]:
    """Figures with a bar first; then those without one."""
    known = NAMES.get(record["benchmark"])
    name = f"`{' '.join([record['name'], record['arguments']]).strip()}`"
    bars, lines = record["bars"], []
    for figure in [*bars, *(key for key in record["figures"] if key not in bars)]:
        bar = f"{'≤' if figure in AT_MOST else '≥'} {bars[figure]:g}" if figure in bars else ""
        met = {True: "yes", False: "**no**"}[record["met"][figure]] if figure in bars else ""
        told = [name, figure, number(record["figures"][figure]), bar, met, known.anchor if known else ""]
        lines.append("| " + " | ".join([*told, record["date"], f"{record['load']:g}", record["machine"]]) + " |")
        name = ""
    return lines


def told(machine: dict[str, Any]) -> str:
    """A machine in a line."""
    versions = ", ".join(f"{name} {text}" for name, text in machine["versions"].items())
    hardware = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:g} GiB"
    return f"{hardware}; {machine['system']}, Python {machine['python']}, {machine['blas']}; {versions}"


def page(found: dict[str, Any]) -> str:
    """The whole table."""
    if not found["results"]:
        return "No results yet: `python -m tests.benchmarks all --write FILE` collects them."
    table = [HEAD, *(line for record in found["results"] for line in rows_of(record))]
    missed = sum(not met for record in found["results"] for met in record["met"].values())
    count = sum(len(record["bars"]) for record in found["results"])
    busy = max(record["load"] for record in found["results"])
    lines = [
        f"{count - missed} of {count} bars are met. *load* is that of the machine before a run, at most {busy:g}: "
        "where it exceeds the number of cores, times are worth little.",
        *table,
        "\n".join(f"- `{key}`: {told(machine)}" for key, machine in found["machines"].items()),
    ]
    return "\n\n".join([lines[0], "\n".join(lines[1:-1]), lines[-1]])
