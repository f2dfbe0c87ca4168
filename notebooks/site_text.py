"""Text that the site takes from files outside this folder: `<!-- file: ../dkl/DESIGN.md -->` stands for one.

`<!-- file: ../README.md until ## Install -->` ends before a line, and `<!-- results -->` is the table of benchmarks.
Links between files become links between pages.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent.resolve()
ROOT = HERE.parent
PAGES = {
    "README.md": "index.md",
    "dkl/DESIGN.md": "design.md",
    "dkl/DECISIONS.md": "decisions.md",
    "deploy/README.md": "deploy.md",
    "deploy/operations.md": "operations.md",
    "CHANGELOG.md": "changelog.md",
}
"""Files outside this folder, and the page that shows each."""
RESULTS = ROOT / "tests" / "benchmarks" / "results.json"
MARK = re.compile(r"^<!-- (?:(results)|file: (\S+)(?: until (.+))?) -->$", flags=re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def relinked(text: str, folder: Path) -> str:
    """Links relative to `folder` as links between pages; a file that no page shows is named in code type."""

    def one(match: re.Match[str]) -> str:
        words, target, part = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = (folder / target).resolve().relative_to(ROOT).as_posix()
        if path in PAGES:
            return f"[{words}]({PAGES[path]}{part})"
        return f"[{words}]({path.removeprefix('notebooks/')}{part})" if path.startswith("notebooks/") else f"`{path}`"

    return LINK.sub(one, text)


def sources(text: str) -> list[Path]:
    """The files that a page is made of, beside its own."""
    marks = [RESULTS if mark[1] else (HERE / mark[2]).resolve() for mark in MARK.finditer(text)]
    return [Path(__file__).resolve(), *marks]


def filled(text: str, document: str) -> str:
    """A page with the files it asks for."""

    def one(match: re.Match[str]) -> str:
        results, name, end = match.groups()
        if results:
            from tests.benchmarks.page import page
            from tests.benchmarks.results import read

            return page(read(RESULTS))
        source = (HERE / name).resolve()
        found = source.read_text(encoding="utf-8")
        if end and f"\n{end}\n" not in found:
            raise ValueError(f"{document}: {name} has no line {end!r}")
        return relinked(found.split(f"\n{end}\n")[0] if end else found, source.parent)

    return MARK.sub(one, relinked(text, HERE))
