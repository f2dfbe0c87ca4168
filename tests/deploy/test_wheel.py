"""The wheel has what `dkl cluster` starts from: the same words give the same text as in the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]


def test_wheel_writes_what_the_checkout_writes(tmp_path):
    """Scripts, manifests and renderings are packed."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(pip, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    for platform in ("kubernetes", "slurm", "pbs", "local"):
        words = ["cluster", platform, "--workers", "2", "--memory", "2GiB"]
        texts = []
        for place in (unpacked, ROOT):
            program = (
                f"import dkl, sys; assert dkl.__file__.startswith({str(place)!r}); import dkl.cli.main as m; m.run()"
            )
            command = [sys.executable, "-c", program, *words]
            done = subprocess.run(
                command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(place)}, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            texts.append(done.stdout)
        assert texts[0] == texts[1]
