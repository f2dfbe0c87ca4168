"""The documentation is true: the README's code runs, and the paths it and DESIGN.md name exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def python_blocks(text: str) -> list[str]:
    """Code blocks of a Markdown text that are Python."""
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.cluster
def test_readme_code_runs_and_prints_what_it_says(tmp_path):
    """All blocks of README.md run in order, as one script of a new user."""
    text = (ROOT / "README.md").read_text()
    blocks = python_blocks(text)
    assert len(blocks) >= 4
    script = tmp_path / "readme.py"
    guarded = ["    " + line for block in blocks for line in block.splitlines()]
    script.write_text("def main():\n" + "\n".join(guarded) + '\n\nif __name__ == "__main__":\n    main()\n')
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    outputs = re.findall(r"```python\n.*?```\n\n```\n(.*?)```", text, flags=re.DOTALL)
    assert len(outputs) >= 8
    printed = iter(done.stdout.splitlines())
    for said in "".join(outputs).splitlines():
        assert any(same_but_for_rounding(said, got) for got in printed), (said, done.stdout)


NUMBER = r"\d+\.?\d*(?:e-?\d+)?"


def same_but_for_rounding(said: str, got: str) -> bool:
    """The same words, and numbers that are the same or (those with a point) near: another CPU rounds otherwise."""
    if re.sub(NUMBER, "#", said) != re.sub(NUMBER, "#", got):
        return False
    pairs = zip(re.findall(NUMBER, said), re.findall(NUMBER, got), strict=True)
    return all(a == b or ("." in a and abs(float(a) - float(b)) <= 0.1 * float(a)) for a, b in pairs)


def test_readme_shell_commands_run(tmp_path):
    """The four commands on the first screen, as typed, in an empty folder."""
    block = re.search(r"```sh\n(dkl ingest sklearn.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=200, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert float(re.search(r"accuracy +([\d.]+)", done.stdout).group(1)) > 0.95
    assert (tmp_path / "answers.csv").read_text().startswith("row,prediction\n")


def test_code_stands_on_the_first_screen():
    """Working code begins within the first 15 lines."""
    assert "```python" in "\n".join((ROOT / "README.md").read_text().splitlines()[:15])


@pytest.mark.parametrize("page", ["README.md", "dkl/DESIGN.md"])
def test_named_paths_exist(page):
    """Every path in backquotes that looks like a file of this project is one."""
    named = re.findall(r"`((?:dkl/)?[a-z_]+(?:/[a-zA-Z_]+)*(?:/|\.py|\.md))`", (ROOT / page).read_text())
    assert named
    missing = [path for path in named if not (ROOT / path).exists() and not (ROOT / "dkl" / path).exists()]
    assert not missing


def test_public_names_are_documented():
    """The README's table names everything that dkl exports."""
    import dkl

    text = (ROOT / "README.md").read_text()
    assert [name for name in dkl.__all__ if f"dkl.{name}" not in text] == []


def test_quickstart_reaches_the_exact_kernel_machine(tmp_path):
    """`make run` prints a kernel model far above the linear one and near the exact one, and saves it."""
    command = [sys.executable, "-m", "dkl.quickstart", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, env={**os.environ})
    assert done.returncode == 0, done.stderr
    ours, linear, exact = (float(a) for a in re.findall(r"accuracy ([\d.]+)", done.stdout))
    assert ours > linear + 0.03
    assert abs(ours - exact) < 0.01
    assert "bit for bit" in done.stdout
    assert (tmp_path / "out" / "digits-model.zarr" / "zarr.json").exists()


def test_examples_in_docstrings_run():
    """The example that help() shows is true."""
    import doctest

    from dkl.estimators import single

    found = doctest.DocTestFinder().find(single.SingleKernelRegressor, "SingleKernelRegressor", globs={})
    results = [doctest.DocTestRunner().run(example) for example in found]
    assert sum(r.attempted for r in results) >= 4
    assert sum(r.failed for r in results) == 0
