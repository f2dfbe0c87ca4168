"""How Sphinx makes the site out of this folder (`make docs`); no network, and every warning is an error.

Notebooks are shown with the outputs they are committed with. MathJax comes from a package and is copied into the site,
so that formulas, like the search, work from the files alone.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

project = "dkl"
author = "The dkl developers"
language = "en"
root_doc = "index"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]

nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a notebook's cell may begin at any level

autodoc_typehints = "none"
autosummary_generate = True
autoclass_content = "class"
default_role = "code"  # single backquotes in docstrings
smartquotes = False  # "scale" and --scale are typed as they are shown
highlight_language = "none"

templates_path = ["_templates"]
html_theme = "furo"
html_title = "dkl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
mathjax_path = "mathjax/tex-chtml-full.js"
mathjax3_config = {"chtml": {"displayAlign": "left", "displayIndent": "2em"}}

MATHJAX = "sphinx-mathjax-offline"
"""The package whose folder has MathJax 3; its name is no Python name, so it is found and never imported."""


def copy_mathjax(app: Any, error: Exception | None) -> None:
    """One script and its fonts into _static."""
    found = importlib.util.find_spec(MATHJAX)
    if error or found is None or not found.submodule_search_locations:
        return
    source = Path(next(iter(found.submodule_search_locations))) / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    fonts = "output/chtml/fonts"
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
    shutil.copy(source / "tex-chtml-full.js", target)


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn brings (metadata routing, HTML) are described there."""
    module = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return True if module.startswith("sklearn.") else None


def plain(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: a name like coef_ or a norm |w| is no markup. Text in backquotes stays as it is."""
    for i, line in enumerate(lines):
        parts = re.split(r"(`+[^`]*`+)", line)
        lines[i] = "".join(
            p if p.startswith("`") else re.sub(r"(?<!\\)(?:\||(?<=\w)_(?!\w))", r"\\\g<0>", p) for p in parts
        )


def fill(app: Any, document: str, text: list[str]) -> None:
    """Markdown pages bring in files from outside this folder, with their links set right."""
    from site_text import filled, sources

    if Path(app.env.doc2path(document)).suffix == ".md":
        for path in sources(text[0]):  # when one of them changes, the page is made again
            app.env.note_dependency(str(path), docname=document)
        text[0] = filled(text[0], document)


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("build-finished", copy_mathjax)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", plain, priority=900)  # after napoleon
    app.connect("source-read", fill)
