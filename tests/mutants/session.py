"""A session: the sample, one trial after the other or two at a time, a journal that survives a kill, and the report."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from threading import Lock

from tests.mutants.mirrors import mirrors_of, needs_cluster
from tests.mutants.places import Mutant, draw
from tests.mutants.trial import Clean, change, copied, run_clean, run_tests

STARTUP, TIMES = 60.0, 5.0
"""A trial may take so many seconds, and so many times as long as its tests take on the tree as it is."""


class Session:
    """Mutants of some files of a tree. `folder` holds the journal; the same tree, seed and size go on from it."""

    def __init__(self, root: Path, folder: Path, say: Callable[[str], None] = print) -> None:
        self.root, self.folder, self.say, self.lock = root, folder, say, Lock()
        self.digest = digest_of(root)
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, mutants: list[Mutant], jobs: int) -> list[dict]:
        """Try all mutants; the result of each, in their order."""
        done = {entry["key"]: entry for entry in self._journal() if entry["digest"] == self.digest}
        left = [mutant for mutant in mutants if mutant.key not in done]
        if left:
            with copied(self.root, self.folder) as base:
                clean = self._clean(base, left)
                with ThreadPoolExecutor(jobs) as pool:
                    for entry in pool.map(lambda mutant: self._try(base, mutant, clean), left):
                        done[entry["key"]] = entry
                        self._tell(entry, sum(mutant.key in done for mutant in mutants), len(mutants))
        return [done[mutant.key] for mutant in mutants]

    def survivors(self) -> list[Mutant]:
        """Survivors of the last sessions in this folder, by their last result, if their code is still there."""
        last = {entry["key"]: entry for entry in self._journal()}
        names = Mutant.__dataclass_fields__
        kept = [Mutant(**{name: entry[name] for name in names}) for entry in last.values() if not entry["caught"]]
        return [mutant for mutant in kept if self._is_there(mutant)]

    def _is_there(self, mutant: Mutant) -> bool:
        path = self.root / mutant.file
        lines = path.read_text().splitlines() if path.exists() else []
        return mutant.line <= len(lines) and lines[mutant.line - 1].strip() == mutant.before

    def _journal(self) -> list[dict]:
        path = self.folder / "journal.jsonl"
        entries = []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                entries.append(json.loads(line))
            except json.JSONDecodeError:
                self.say(f"a line of {path} was cut off; that mutant is tried again")
        return entries

    def _clean(self, base: Path, mutants: list[Mutant]) -> dict[bool, Clean]:
        """Seconds of the tests without and with clusters, kept for the next time; compiles the base on its way."""
        path = self.folder / f"clean-{self.digest[:16]}.json"
        known: dict = json.loads(path.read_text()) if path.exists() else {}
        found = {}
        for cluster in sorted({needs_cluster(mutant.file) for mutant in mutants}):
            wanted = {m.file for m in mutants if needs_cluster(m.file) == cluster}
            tests = sorted({test for file in wanted for test in mirrors_of(self.root, file)})
            before = Clean(*known.get(str(cluster), ({}, [])))
            fresh = [test for test in tests if test not in before.seconds]
            if fresh:
                self.say(f"{len(fresh)} test files on the tree as it is{', with clusters' * cluster} ...")
                now = run_clean(base, fresh, cluster)
                before = Clean(before.seconds | now.seconds, [*before.failing, *now.failing])
            known[str(cluster)], found[cluster] = before, before
            for name in before.failing:
                self.say(f"left out, for it fails where nothing is changed: {name}")
        path.write_text(json.dumps(known))
        return found

    def _try(self, base: Path, mutant: Mutant, clean: dict[bool, Clean]) -> dict:
        """One trial, and its line in the journal."""
        cluster = needs_cluster(mutant.file)
        usual = clean[cluster]
        tests = sorted(mirrors_of(self.root, mutant.file), key=lambda test: (usual.of(test), test))
        limit = STARTUP + TIMES * sum(map(usual.of, tests))
        left_out = [f"--deselect={name}" for name in usual.failing]
        with copied(base, self.folder) as folder:
            change(folder, mutant.file, mutant.code((base / mutant.file).read_text()))
            run = run_tests(folder, tests, limit, cluster, "-x", *left_out)
        if not run.caught and run.code != 0:
            raise RuntimeError(f"pytest ended with {run.code} for {mutant.key}:\n{run.said[-2000:]}")
        entry = asdict(mutant) | {
            "key": mutant.key, "caught": run.caught, "how": run.how, "seconds": round(run.seconds, 1), "digest": self.digest,
        }  # fmt: skip
        with self.lock, (self.folder / "journal.jsonl").open("a") as journal:
            journal.write(json.dumps(entry) + "\n")
        return entry

    def _tell(self, entry: dict, done: int, size: int) -> None:
        fate = f"caught by {entry['how']}" if entry["caught"] else "SURVIVED"
        self.say(f"{done}/{size} {entry['file']}:{entry['line']} {fate} ({entry['seconds']:.0f} s)")


def digest_of(root: Path) -> str:
    """What the verdicts depend on: all Python files of the package and the tests."""
    digest = hashlib.sha256()
    for path in sorted([*(root / "dkl").rglob("*.py"), *(root / "tests").rglob("*.py")]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def report(entries: list[dict], about: str) -> str:
    """The share caught, what took too long, and the survivors."""
    caught = sum(entry["caught"] for entry in entries)
    late = [entry for entry in entries if entry["how"] == "time-out"]
    lines = [f"{about}: {caught} of {len(entries)} mutants caught, share {caught / max(len(entries), 1):.3f}"]
    lines += [f"{len(late)} of them by time-out:" if late else "none of them by time-out"]
    lines += [f"  {entry['file']}:{entry['line']}  {entry['before']}  ->  {entry['after']}" for entry in late]
    alive = sorted((entry for entry in entries if not entry["caught"]), key=lambda entry: (entry["file"], entry["line"]))
    lines += [f"{len(alive)} survivors:" if alive else "no survivors"]
    for entry in alive:
        lines += [f"  {entry['file']}:{entry['line']}", f"    - {entry['before']}", f"    + {entry['after']}"]
    return "\n".join(lines)


def sample(root: Path, layers: list[str], size: int, seed: int) -> list[Mutant]:
    """The sample of a seed, from all modules of some layers."""
    files = sorted(path.relative_to(root).as_posix() for layer in layers for path in (root / "dkl" / layer).glob("*.py"))
    return draw(root, files, size, seed)
