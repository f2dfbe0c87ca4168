"""A file of results: every JSON line that a benchmark printed, with its date, its command and its machine.

    {"machines": {id: description}, "results": [{"name", "benchmark", "arguments", "figures", "bars", "met",
                                                 "date", "seconds", "load", "machine"}, ...]}

A run replaces the results of the same name, arguments and machine, and leaves all others: a file grows run by run.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.machine import describe, identity
from tests.benchmarks.names import NAMES
from tests.benchmarks.report import AT_MOST

Record = dict[str, Any]


def lines_of(text: str) -> list[Record]:
    """The JSON lines among what a benchmark printed."""
    found = []
    for line in text.splitlines():
        if line.startswith('{"name": '):
            found.append(json.loads(line))
    return found


def meets(figure: str, value: float, bar: float) -> bool:
    """Whether a figure is on the right side of its bar."""
    return value <= bar if figure in AT_MOST else value >= bar


def measure(name: str, arguments: list[str]) -> tuple[int, list[Record]]:
    """Run one benchmark in a process of its own, show what it prints, and return its exit code and its records."""
    load, begin, printed = os.getloadavg()[0], time.perf_counter(), []
    command = [sys.executable, "-m", "tests.benchmarks", name, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            printed.append(line)
    seconds = round(time.perf_counter() - begin, 1)
    run = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": seconds, "load": round(load, 1)}
    return child.returncode, [
        {
            "name": line["name"],
            "benchmark": name,
            "arguments": public(arguments),
            "figures": {key: value if math.isfinite(value) else None for key, value in line["figures"].items()},
            "bars": line["bars"],
            "met": {key: meets(key, line["figures"][key], bar) for key, bar in line["bars"].items()},
            **run,
        }
        for line in lines_of("".join(printed))
    ]


def public(arguments: list[str]) -> str:
    """Arguments without folders of this machine."""
    kept, skip = [], False
    for word in arguments:
        if skip:
            skip = False
        elif word.partition("=")[0] in ("--data", "--scratch"):
            skip = "=" not in word
        else:
            kept.append(word)
    return " ".join(kept)


def read(path: str | Path) -> Record:
    """The file, or an empty one."""
    if not Path(path).exists():
        return {"machines": {}, "results": []}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        machines, results = found["machines"], found["results"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise SystemExit(f"--write {str(path)!r} is no file of results; name another") from None
    return {"machines": machines, "results": results}


def merged(found: Record, machine: Record, records: list[Record]) -> Record:
    """The file with new records; the same name, arguments and machine are replaced."""
    here = identity(machine)
    records = [{**record, "machine": here} for record in records]
    new = {key_of(record) for record in records}
    results = [record for record in found["results"] if key_of(record) not in new] + records
    order = list(NAMES)
    results.sort(key=lambda r: (order.index(r["benchmark"]) if r["benchmark"] in order else len(order), *key_of(r)))
    machines = {**found["machines"], here: machine}
    return {"machines": {key: machines[key] for key in {r["machine"]: 0 for r in results}}, "results": results}


def key_of(record: Record) -> tuple[str, str, str]:
    """What one record has that no other has."""
    return record["name"], record["arguments"], record["machine"]


def write(path: str | Path, found: Record) -> None:
    """Replace the file at once, so that a kill leaves the old one or the new one."""
    near = Path(f"{path}.new")
    near.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    near.replace(path)


def collect(names: list[str], arguments: list[str], path: str | Path) -> int:
    """Run benchmarks in turn and write after each one; the number of those that failed or missed a bar."""
    read(path)  # a wrong file is refused before hours of work
    machine, bad = describe(), []
    for name in names:
        code, records = measure(name, arguments)
        if code or not records:
            bad.append(f"{name} stopped with exit code {code}" if code else f"{name} printed no result")
        bad += [f"{r['name']} misses {key}" for r in records for key, met in r["met"].items() if not met]
        if records:
            write(path, merged(read(path), machine, records))
    for line in bad:
        print(line, file=sys.stderr)
    return len(bad)
