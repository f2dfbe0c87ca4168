"""The page in a real Chromium, light and dark: what it looks like, and that nothing was asked of a network."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from matplotlib import image

import dkl

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
]  # fmt: skip
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed (Debian: apt install chromium)")
WIDTH, HEIGHT = 900, 2400
PAPER = {"light": (255, 255, 255), "dark": (0x17, 0x1B, 0x21)}
EVIL = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with hostile classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] > 0, EVIL, "other")
    path = tmp_path_factory.mktemp("page") / "report.html"
    model = dkl.SingleKernelClassifier(n_components=20, sigma=1.0, random_state=0, verbose=0).fit(X[:80], y[:80])
    model.report(X[80:], y[80:], train=(X[:80], y[:80]), path=path)
    return path


def chromium(folder, *words):
    """What the browser prints."""
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def shot(page, folder, scheme):
    """The page as a picture (height, width, 3), in a colour scheme."""
    out = folder / f"{scheme}.png"
    prefers = f"--blink-settings=preferredColorScheme={'1' if scheme == 'light' else '0'}"
    chromium(folder, prefers, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={out}", page.as_uri())
    return np.rint(255 * image.imread(out)[..., :3]).astype(int)


def test_light_and_dark(page, tmp_path):
    """The paper of each scheme, ink that stands out on it, and the colours of the pictures on both."""
    for scheme, paper in PAPER.items():
        seen = shot(page, tmp_path, scheme)
        assert seen.shape == (HEIGHT, WIDTH, 3)
        far = np.abs(seen - paper).sum(axis=2)
        assert (far < 6).mean() > 0.4, f"{scheme}: most of the page is its paper"
        assert (far > 450).mean() > 0.003, f"{scheme}: there are letters"
        vermilion = np.abs(seen - (0xD5, 0x5E, 0x00)).sum(axis=2) < 40
        assert vermilion.any() or (np.abs(seen - (0x56, 0xB4, 0xE9)).sum(axis=2) < 60).any(), "pictures have colours"


def test_nothing_of_a_name_runs(page, tmp_path):
    """The document that the browser made of it: no element of a name, and the title as it was."""
    document = chromium(tmp_path, "--dump-dom", page.as_uri())
    assert "<title>SingleKernelClassifier · dkl report</title>" in document
    assert document.count("<script") == 1
    assert "<img src=" not in document
    assert "&lt;script&gt;document.title" in document
    assert document.count("<svg") >= 3
