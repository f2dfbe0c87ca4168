"""Tests that need system packages stay out of the default suite, and say why they are skipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import system

ROOT = Path(__file__).parents[2]


def test_skip_names_what_is_missing_and_what_to_type(monkeypatch):
    """Without root nothing is installed; the reason has the command."""
    monkeypatch.setattr(system.os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match=r"no-such-tool missing.*only root.*install no-such-package"):
        system.require(**{"no-such-tool": "no-such-package"})


def test_what_is_there_is_not_installed(monkeypatch):
    """Nobody is asked for a program that is there."""
    monkeypatch.setattr(system, "_install", lambda packages: pytest.fail(f"installs {packages}"))
    system.require(sh="dash")


@pytest.mark.long
@pytest.mark.parametrize(("words", "marked"), [([], False), (["-m", "deploy"], True)])
def test_marker_splits_the_suite(tmp_path, words, marked):
    """A test marked `deploy` runs if it is asked for, and only then."""
    (tmp_path / "test_one.py").write_text("import pytest\n@pytest.mark.deploy\ndef test_it(): pass\n")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", "-q", *words]
    done = subprocess.run([*command, tmp_path / "test_one.py"], capture_output=True, text=True, cwd=tmp_path)
    assert ("1 passed" in done.stdout) is marked, done.stdout
    assert ("1 deselected" in done.stdout) is not marked, done.stdout
