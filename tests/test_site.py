"""The site: its pages are complete, and (`make test-docs`) it works in a browser from its files alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dkl

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
SITE = ROOT / "build" / "site"
sys.path.insert(0, str(FOLDER))
from site_text import MARK, PAGES, RESULTS, filled, relinked, sources  # noqa: E402


def page(name: str) -> str:
    """The Markdown of a page."""
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_page_and_notebook_is_in_the_contents():
    """The toctrees of the home page name every file once, and no other."""
    named = re.findall(r"^([\w-]+)$", "\n".join(re.findall(r"```\{toctree\}(.*?)```", page("index.md"), re.S)), re.M)
    there = {path.stem for path in [*FOLDER.glob("*.md"), *FOLDER.glob("*.ipynb")]} - {"index"}
    assert len(named) == len(set(named))
    assert set(named) == there


def test_every_public_name_is_in_the_api_reference():
    """Sections of autosummary name what dkl, dkl.exact and dkl.plot export."""
    parts = re.split(r"^\.\. currentmodule:: ([\w.]+)$", page("api.md"), flags=re.MULTILINE)[1:]
    named = {
        f"{module}.{name}"
        for module, text in zip(parts[::2], parts[1::2], strict=True)
        for name in re.findall(r"^   (\w+)$", text, re.MULTILINE)
    }
    wanted = {f"dkl.{name}" for name in dkl.__all__} | {
        f"dkl.plot.{name}" for name in dkl.plot.__all__ if name.islower()
    }
    exact = {"GMKL", "GMKLClassifier", "KernelRidgeGD", "KernelRidgeGDClassifier"}
    assert named == wanted | {f"dkl.exact.{name}" for name in exact}


def test_files_from_outside_are_brought_in_with_their_links():
    """A mark stands for a file or its beginning; links lead to pages, or say the name of a file."""
    home = filled(page("index.md"), "index")
    assert home.startswith("# dkl: distributed kernel learning\n")
    assert "## Install" not in home
    assert not MARK.search(home)
    with pytest.raises(ValueError, match="no line 'Install'"):
        filled("<!-- file: ../README.md until Install -->", "index")
    text = "[a](notebooks/guide-data.md#scales) [b](dkl/DESIGN.md) [c](https://x.org/y) [d](Makefile)"
    assert relinked(text, ROOT) == "[a](guide-data.md#scales) [b](design.md) [c](https://x.org/y) `Makefile`"
    assert relinked("[e](../deploy/README.md)", FOLDER) == "[e](deploy.md)"
    assert "[operations.md](operations.md)" in filled(page("deploy.md"), "deploy")
    assert sources(page("deploy.md"))[1:] == [ROOT / "deploy" / "README.md"]
    assert sources(page("results.md"))[1:] == [RESULTS]
    assert all((ROOT / source).exists() and (FOLDER / shown).exists() for source, shown in PAGES.items())


def test_links_to_parts_of_pages_lead_to_headings():
    """The anchor of every link between pages is that of a heading there."""

    def anchors(text):
        headings = re.findall(r"^#{1,4} (.+)$", text, flags=re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    texts = {path.name: filled(path.read_text(encoding="utf-8"), path.stem) for path in FOLDER.glob("*.md")}
    known = {name: anchors(text) for name, text in texts.items()}
    named = [(name, target or name, place) for name, text in texts.items()
             for target, place in re.findall(r"\]\(([\w-]*(?:\.md)?)#([^)]+)\)", text)]  # fmt: skip
    assert len(named) >= 2
    assert [(name, target, place) for name, target, place in named if place not in known[target]] == []


def test_the_page_of_results_has_the_committed_ones():
    """Every committed result has a row."""
    text = filled(page("results.md"), "results")
    results = json.loads((ROOT / "tests" / "benchmarks" / "results.json").read_text())["results"]
    assert all(f"| `{result['name']}" in text and result["date"] in text for result in results)


def test_the_settings_of_sphinx_can_be_read():
    """conf.py is Python without side effects, and runs no notebook."""
    settings: dict[str, object] = {"__file__": str(FOLDER / "conf.py")}
    exec(compile((FOLDER / "conf.py").read_text(), "conf.py", "exec"), settings)
    assert settings["nb_execution_mode"] == "off"
    assert (FOLDER / f"{settings['root_doc']}.md").exists()


def seen(address: str, folder: Path, picture: Path | None = None) -> str:
    """The document as a browser has it after the scripts of the page ran, without a server or a network."""
    browser = shutil.which("chromium")
    assert browser, "chromium is not installed"
    assert SITE.exists(), "the site is not built; run make docs"
    calm = "--disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
    flags = f"--headless --no-sandbox --disable-gpu {calm} --virtual-time-budget=30000 --window-size=1280,1600".split()
    what = f"--screenshot={picture}" if picture else "--dump-dom"
    command = [browser, *flags, f"--user-data-dir={folder / 'profile'}", what, f"{SITE.as_uri()}/{address}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout


@pytest.mark.site
def test_home_page(tmp_path):
    """Title, code in colours, and the contents."""
    text = seen("index.html", tmp_path)
    assert "distributed kernel learning" in text
    assert '<span class="kn">import</span>' in text
    assert 'href="mathematics.html"' in text


@pytest.mark.site
def test_api_page(tmp_path):
    """Parameters and methods of an estimator; nothing of scikit-learn's routing."""
    text = seen("api/dkl.SingleKernelClassifier.html", tmp_path)
    assert all(f'id="dkl.SingleKernelClassifier{part}"' in text for part in ("", ".fit", ".predict", ".save"))
    assert "n_components" in text
    assert "set_fit_request" not in text


@pytest.mark.site
def test_formulas_are_typeset(tmp_path):
    """MathJax turned every formula into glyphs, and none into an error."""
    text = seen("mathematics.html", tmp_path)
    assert text.count("<mjx-container") >= 40
    assert "<mjx-merror" not in text
    assert not re.search(r"\\\(|\\\[|\\frac", re.sub(r"<script.*?</script>", "", text, flags=re.S))


@pytest.mark.site
@pytest.mark.parametrize(("words", "page"), [("adjoint", "mathematics.html"), ("landmarks", "api/")])
def test_search_finds(words, page, tmp_path):
    """The index is read without a server, and leads to pages that are there."""
    text = seen(f"search.html?q={words}", tmp_path)
    found = re.search(r'<ul[^>]*class="search"[^>]*>(.*?)</ul>', text, re.S)
    assert found, "no list of results"
    links = re.findall(r'href="([^"#?]+)', found[1])
    assert any(link.startswith(page) for link in links), links
    assert all((SITE / link).exists() for link in links)


@pytest.mark.site
def test_every_link_within_the_site_leads_to_a_page_and_a_place():
    """Of all pages: files exist, and so do the anchors in them."""
    pages = {path: path.read_text(encoding="utf-8") for path in SITE.rglob("*.html")}
    assert len(pages) > 30
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    wrong = []
    for path, text in pages.items():
        for link in set(re.findall(r'\b(?:href|src)="([^"]+)"', text)):
            target, _, place = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            to = (path.parent / target.split("?")[0]).resolve() if target else path
            if not to.exists() or (place and to in ids and place not in ids[to]):
                wrong.append((path.name, link))
    assert wrong == []


@pytest.mark.site
def test_nothing_is_loaded_from_elsewhere():
    """Scripts, styles and pictures are files of the site."""
    for path in SITE.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\bsrc="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]*rel="stylesheet"[^>]*href="([^"]+)"', text)
        assert [one for one in loaded if re.match(r"(?:https?:)?//", one)] == [], path.name


@pytest.mark.site
def test_a_picture_of_the_mathematics_is_not_blank(tmp_path):
    """A screenshot has text and formulas: dark pixels in both halves of the column."""
    from PIL import Image

    seen("mathematics.html", tmp_path, tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as image:
        pixels = list(image.convert("L").crop((400, 0, 1200, 1600)).resize((80, 160)).tobytes())
    assert min(pixels) < 200
    assert sum(value < 235 for value in pixels) > 500
