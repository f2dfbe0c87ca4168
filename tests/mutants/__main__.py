"""python -m tests.mutants: the share of deliberate mistakes that the tests catch, and those they do not.

Journal, report.txt and report.json go to output/mutants. After a kill, the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.mutants.mirrors import LAYERS
from tests.mutants.session import Session, report, sample

ROOT = Path(__file__).parents[2]


def main() -> int:
    """0 if the share is at least what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--size", type=int, default=200, help="mutants to try (200)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (0)")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time (2)")
    parser.add_argument("--least", type=float, default=0.9, help="share caught below which the exit code is 1 (0.9)")
    parser.add_argument("--layers", nargs="+", default=sorted(LAYERS), choices=sorted(LAYERS), help="folders of dkl")
    parser.add_argument("--folder", type=Path, default=ROOT / "output" / "mutants", help="for journal and report")
    parser.add_argument("--survivors", action="store_true", help="try earlier survivors again, with the tests of now")
    parser.add_argument("--list", action="store_true", help="print the sample and try nothing")
    options = parser.parse_args()
    session = Session(ROOT, options.folder)
    if options.survivors:
        mutants, about = session.survivors(), "earlier survivors"
    else:
        mutants = sample(ROOT, options.layers, options.size, options.seed)
        about = f"seed {options.seed}, {len(mutants)} places in {', '.join(options.layers)}"
    if options.list:
        print("\n".join(f"{m.file}:{m.line}  {m.before}  ->  {m.after}" for m in mutants))
        return 0
    entries = session.run(mutants, options.jobs)
    text = report(entries, about)
    share = sum(entry["caught"] for entry in entries) / max(len(entries), 1)
    found = {"about": about, "seed": options.seed, "size": len(entries), "share": share, "mutants": entries}
    name = "survivors" if options.survivors else f"report-{options.seed}"
    (options.folder / f"{name}.txt").write_text(text + "\n")
    (options.folder / f"{name}.json").write_text(json.dumps(found, indent=1))
    print(text)
    return 0 if share >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
