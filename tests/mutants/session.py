"""A session: the sample, one trial after the other or two at a time, a journal that survives a kill, and the report."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from tests.mutants.mirrors import TOO_LONG, mirrors_of, needs_cluster
from tests.mutants.places import Mutant, draw, places_of
from tests.mutants.trial import LIBRARIES, NO_TESTS, Clean, Run, Warm, change, copied, run_clean

LONG = [f"--deselect={name}" for name in TOO_LONG]
STARTUP, TIMES = 60.0, 5.0
"""A trial may take so many seconds, and so many times as long as its tests take on the tree as it is."""


class Session:
    """Mutants of some files of a tree. `folder` holds the journal; what it says of the same code
    and the same tests is not tried again."""

    def __init__(
        self, root: Path, folder: Path, say: Callable[[str], None] = print, libraries: tuple[str, ...] = LIBRARIES
    ) -> None:
        self.root, self.folder, self.say, self.libraries, self.lock = root, folder, say, libraries, Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, mutants: list[Mutant], jobs: int) -> list[dict]:
        """Try all mutants; the result of each, in their order."""
        digests = {file: digest_of(self.root, mirrors_of(self.root, file)) for file in {m.file for m in mutants}}
        last = {(entry["key"], entry["digest"]): entry for entry in self._journal()}
        done = {m.key: last[m.key, digests[m.file]] for m in mutants if (m.key, digests[m.file]) in last}
        left = [mutant for mutant in mutants if mutant.key not in done]
        if left:
            with copied(self.root, self.folder) as base, self._processes(jobs), ThreadPoolExecutor(jobs) as pool:
                clean = self._clean(base, left)
                trials = [pool.submit(self._try, base, m, clean[needs_cluster(m.file)], digests[m.file]) for m in left]
                try:
                    for trial in as_completed(trials):
                        entry = trial.result()
                        done[entry["key"]] = entry
                        self._tell(entry, len(done), len(mutants))
                finally:
                    pool.shutdown(cancel_futures=True)
        return [done[mutant.key] for mutant in mutants]

    @contextlib.contextmanager
    def _processes(self, jobs: int) -> Iterator[None]:
        """Processes that trials run in, one for each job."""
        warm, self.free = [Warm(self.libraries) for _ in range(jobs)], SimpleQueue()
        for process in warm:
            self.free.put(process)
        try:
            yield
        finally:
            for process in warm:
                process.close()

    def _run_tests(self, *arguments: Any) -> Run:
        """A run in a process that is free."""
        warm = self.free.get()
        try:
            return warm.run_tests(*arguments)
        finally:
            self.free.put(warm)

    def survivors(self) -> list[Mutant]:
        """Survivors of the last sessions in this folder, by their last result, if their code is still there."""
        last = {entry["key"]: entry for entry in self._journal()}
        names = Mutant.__dataclass_fields__
        kept = [Mutant(**{name: entry[name] for name in names}) for entry in last.values() if not entry["caught"]]
        return [mutant for mutant in kept if self._is_there(mutant)]

    def _is_there(self, mutant: Mutant) -> bool:
        """Whether the line is as it was, and its place is not exempt by now."""
        path = self.root / mutant.file
        source = path.read_text() if path.exists() else ""
        if mutant.line > len(source.splitlines()):
            return False
        same = source.splitlines()[mutant.line - 1].strip() == mutant.before
        ways = (way for ways in places_of(mutant.file, source).values() for way in ways)
        return same and (mutant.operator, mutant.occurrence) in ways

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
        """What the mirror tests do on the tree as it is, kept while they and the package stay the same."""
        path, found = self.folder / "clean.json", {}
        known: dict = json.loads(path.read_text()) if path.exists() else {}
        for cluster in sorted({needs_cluster(mutant.file) for mutant in mutants}):
            wanted = {m.file for m in mutants if needs_cluster(m.file) == cluster}
            tests = sorted({test for file in wanted for test in mirrors_of(base, file)})
            names = {test: f"{test} {cluster} {digest_of(base, [test])}" for test in tests}
            fresh = [test for test in tests if names[test] not in known]
            if fresh:
                self.say(f"{len(fresh)} test files on the tree as it is{', with clusters' * cluster} ...")
                warm = self.free.get()
                now = run_clean(warm, base, fresh, cluster, *LONG)
                self.free.put(warm)
                for test in fresh:
                    known[names[test]] = now.seconds[test], [name for name in now.failing if name.startswith(test)]
                path.write_text(json.dumps(known, indent=1))
            failing = [name for test in tests for name in known[names[test]][1]]
            found[cluster] = Clean({test: known[names[test]][0] for test in tests}, failing)
            for name in failing:
                self.say(f"left out, for it fails where nothing is changed: {name}")
        return found

    def _try(self, base: Path, mutant: Mutant, usual: Clean, digest: str) -> dict:
        """One trial, and its line in the journal."""
        tests = sorted(mirrors_of(base, mutant.file), key=lambda test: (usual.seconds[test], test))
        limit = STARTUP + TIMES * sum(usual.seconds[test] for test in tests)
        left_out = [*LONG, *(f"--deselect={name}" for name in usual.failing)]
        with copied(base, self.folder) as folder:
            change(folder, mutant.file, mutant.code((base / mutant.file).read_text()))
            run = self._run_tests(folder, tests, limit, needs_cluster(mutant.file), "-x", *left_out)
        if run.code == NO_TESTS:
            raise RuntimeError(f"there are no tests to run for {mutant.key}; add some to mirrors.py")
        verdict = {"caught": run.caught, "how": run.how, "seconds": round(run.seconds, 1)}
        entry = asdict(mutant) | verdict | {"key": mutant.key, "digest": digest}
        with self.lock, (self.folder / "journal.jsonl").open("a") as journal:
            journal.write(json.dumps(entry) + "\n")
        return entry

    def _tell(self, entry: dict, done: int, size: int) -> None:
        fate = f"caught by {entry['how']}" if entry["caught"] else "SURVIVED"
        self.say(f"{done}/{size} {entry['file']}:{entry['line']} {fate} ({entry['seconds']:.0f} s)")


def digest_of(root: Path, tests: list[str]) -> str:
    """What the verdicts of some test files depend on: these files, the helpers of tests, and the package."""
    helpers = [path for path in (root / "tests").rglob("*.py") if not path.name.startswith(("test_", "bench_"))]
    helpers = [path for path in helpers if path.parent.name != "mutants"]
    digest = hashlib.sha256()
    for path in sorted([*(root / "dkl").rglob("*.py"), *helpers, *(root / test for test in tests)]):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def report(entries: list[dict], about: str) -> str:
    """The share caught, what took too long, and the survivors."""
    caught = sum(entry["caught"] for entry in entries)
    late = [entry for entry in entries if entry["how"] == "time-out"]
    lines = [f"{about}: {caught} of {len(entries)} mutants caught, share {caught / max(len(entries), 1):.3f}"]
    lines += [f"{len(late)} of them by time-out:" if late else "none of them by time-out"]
    lines += [f"  {entry['file']}:{entry['line']}  {entry['before']}  ->  {entry['after']}" for entry in late]
    alive = sorted(
        (entry for entry in entries if not entry["caught"]), key=lambda entry: (entry["file"], entry["line"])
    )
    lines += [f"{len(alive)} survivors:" if alive else "no survivors"]
    for entry in alive:
        lines += [f"  {entry['file']}:{entry['line']}", f"    - {entry['before']}", f"    + {entry['after']}"]
    return "\n".join(lines)


def sample(root: Path, layers: list[str], size: int, seed: int) -> list[Mutant]:
    """The sample of a seed, from all modules of some layers."""
    files = sorted(
        path.relative_to(root).as_posix() for layer in layers for path in (root / "dkl" / layer).glob("*.py")
    )
    return draw(root, files, size, seed)
