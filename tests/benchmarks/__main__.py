"""python -m tests.benchmarks NAME: a table for people, then one JSON line for machines.

python -m tests.benchmarks all --write FILE     every benchmark that can run here (--quick, --only a,b)
python -m tests.benchmarks NAME --write FILE    one more result in the same file
python -m tests.benchmarks show --write FILE    the file as a table in Markdown
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys

from tests.benchmarks.names import NAMES, chosen
from tests.benchmarks.page import page
from tests.benchmarks.results import collect, read


def main() -> None:
    """Run one benchmark, or collect the results of several."""
    options = parse(sys.argv[1:])
    if options.name == "show":
        print(page(read(options.write)))
    elif options.write:
        names = chosen(options.only, options.quick, available(options)) if options.name == "all" else [options.name]
        sys.exit(min(collect(names, options.rest, options.write), 1))
    else:
        importlib.import_module(f"tests.benchmarks.bench_{options.name}").run(options)


def available(options: argparse.Namespace) -> set[str]:
    """Which of "data" and "torch" are there."""
    data, torch = options.data or os.environ.get("DKL_DATA"), importlib.util.find_spec("torch")
    return {name for name, there in (("data", data), ("torch", torch)) if there}


def parse(words: list[str]) -> argparse.Namespace:
    """The options; `rest` are those that a benchmark itself is to be told."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Benchmarks: " + "; ".join(f"{name}: {one.text}" for name, one in NAMES.items()),
    )
    parser.add_argument("name", choices=[*NAMES, "all", "show"], help="a benchmark; all or show need --write")
    own = parser.add_argument_group("a file of results")
    own.add_argument("--write", default=None, metavar="FILE", help="add the results to this file (show: print it)")
    own.add_argument("--only", default=None, help="of all: these benchmarks, with commas")
    own.add_argument("--quick", action="store_true", help="of all: those that take about a minute")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions; medians are reported")
    parser.add_argument("--scratch", default=None, help="folder for temporary data (default: the system's)")
    parser.add_argument("--data", default=None, help="folder of the real data sets (default: DKL_DATA)")
    parser.add_argument("--sets", default=None, help="of learned, table, expchi2, proba, ckl: some sets, with commas")
    parser.add_argument("--splits", type=int, default=None, help="of ckl: splits of a set, at most (20, or 5); grfl: 5")
    parser.add_argument("--search", type=int, default=None, help="of ckl: candidates (100, or 40 of large sets)")
    parser.add_argument(
        "--rows",
        type=int,
        default=None,
        help="of proba (50,000), far, path, mkl_scaling (200,000), textures (10,000): most",
    )
    parser.add_argument("--learn", default="log_loss", help="of learned: the objective, log_loss or cv")
    parser.add_argument(
        "--sizes",
        default=None,
        help="of expchi2 (1000,3000,5000), grfl: features; multitask, textures: rows; swarm: workers:features",
    )
    parser.add_argument("--most", type=int, default=9000, help="of expchi2: features of one PCA, at most")
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        help="of expchi2: splits and draws; of losses, equivalence, mfeat: problems or splits",
    )
    parser.add_argument("--improve", type=int, default=2, help="of grfl: gradient steps of new features")
    parser.add_argument("--without-peers", action="store_true", help="of grfl: our model alone")
    parser.add_argument("--resume", default=None, help="of grfl: a file that keeps the fits that are done")
    parser.add_argument("--wide", default=None, help="of wide: numbers of features, with commas")
    parser.add_argument("--slower", type=float, default=1.0, help="of swarm: how much longer blocks take")
    parser.add_argument("--minutes", type=float, default=10.0, help="of drill: how long")
    options = parser.parse_args(words)
    if options.name in ("all", "show") and not options.write:
        parser.error(f"{options.name} needs --write FILE, the file of results")
    if options.name != "all" and (options.only or options.quick):
        parser.error("--only and --quick choose the benchmarks of all")
    options.rest = without(words, options.name)
    return options


def without(words: list[str], name: str) -> list[str]:
    """The words of the command line that one benchmark takes too."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--write", "--only"):
        first.add_argument(flag)
    first.add_argument("--quick", action="store_true")
    rest = first.parse_known_args(words)[1]
    rest.remove(name)
    return rest


if __name__ == "__main__":
    main()
