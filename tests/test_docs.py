"""The documentation is true: its code prints what it says, and the paths, links, flags and layers it names exist."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from tests.benchmarks.names import NAMES
from tests.test_layers import LAYERS

ROOT = Path(__file__).parent.parent
GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("guide-*.md"))
PAGES = ["README.md", *GUIDES, "notebooks/mathematics.md"]
DESIGN = ["dkl/DESIGN.md", "dkl/DECISIONS.md"]
EXTRAS = {"notebooks/guide-torch.md": "torch"}
"""Pages whose code needs a package that the default environment does not have; make test-torch runs them."""
LIKE = "prints something like"
"""The words between a block and an output whose numbers depend on the machine."""


class Block(NamedTuple):
    """A fenced block: its language, its text, and the prose between it and the block before."""

    language: str
    text: str
    before: str


def read(page: str) -> str:
    """The text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(text: str) -> list[Block]:
    """Fenced blocks of a Markdown text, in order."""
    parts = re.split(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [Block(language, body, before.strip()) for before, language, body in zip(*[iter(parts)] * 3, strict=False)]


def run_blocks(codes: list[str], folder: Path) -> list[list[str]]:
    """Lines that each block prints, when all run in order as one script of a new user."""
    end = "-- end of a block --"
    lines = [f"    {line}" for code in codes for line in [*code.splitlines(), f"print({end!r})"]]
    script = folder / "page.py"
    script.write_text("def main():\n" + "\n".join(lines) + '\n\nif __name__ == "__main__":\n    main()\n')
    done = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return [part.strip("\n").splitlines() for part in done.stdout.split(end)[:-1]]


NUMBER = r"\d+\.?\d*(?:e-?\d+)?"


def same_but_for_rounding(said: str, got: str) -> bool:
    """The same words, and numbers that are the same or (those with a point) near: another CPU rounds otherwise."""
    if re.sub(NUMBER, "#", said) != re.sub(NUMBER, "#", got):
        return False
    pairs = zip(re.findall(NUMBER, said), re.findall(NUMBER, got), strict=True)
    return all(a == b or ("." in a and abs(float(a) - float(b)) <= 0.1 * float(a)) for a, b in pairs)


def same_labels(said: str, got: str) -> bool:
    """The same words in the first column of a table."""
    return re.split(r"\s{2,}", said.strip())[0] == re.split(r"\s{2,}", got.strip())[0]


@pytest.mark.cluster
@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in read(page)])
def test_code_runs_and_prints_what_it_says(page, tmp_path):
    """All Python blocks of a page run in order; each prints the output shown below it, and no other block prints."""
    if page in EXTRAS:
        pytest.importorskip(EXTRAS[page])
    blocks = blocks_of(read(page))
    codes = [i for i, block in enumerate(blocks) if block.language == "python"]
    outputs = [i for i, block in enumerate(blocks) if not block.language]
    assert all(i - 1 in codes and blocks[i].before in ("", LIKE) for i in outputs), "an output follows its code"
    printed = dict(zip(codes, run_blocks([blocks[i].text for i in codes], tmp_path), strict=True))
    for i in codes:
        said = blocks[i + 1] if i + 1 in outputs else Block("", "", "")
        same = same_labels if said.before == LIKE else same_but_for_rounding
        lines = said.text.splitlines()
        assert len(lines) == len(printed[i]), (said.text, printed[i])
        assert all(map(same, lines, printed[i])), (said.text, printed[i])


def test_every_promised_output_is_tested():
    """The outputs that the sweep above compares, over all pages."""
    assert sum(not block.language for page in PAGES for block in blocks_of(read(page))) >= 12
    assert not same_but_for_rounding("accuracy 0.95", "accuracy 0.5")
    assert not same_but_for_rounding("25 of 30", "24 of 30")


def test_readme_shell_commands_run(tmp_path):
    """The four commands on the first screen, as typed, in an empty folder."""
    block = re.search(r"```sh\n(dkl ingest sklearn.*?)```", read("README.md"), re.S).group(1)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=200, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert float(re.search(r"accuracy +([\d.]+)", done.stdout).group(1)) > 0.95
    assert (tmp_path / "answers.csv").read_text().startswith("row,prediction\n")


def verbs():
    """The verbs of the command line, by name."""
    from dkl.cli.main import cli

    context = click.Context(cli)
    return {name: cli.get_command(context, name) for name in cli.list_commands(context)}


def anywhere():
    """Flags of `dkl` itself, which may stand anywhere."""
    from dkl.cli.main import cli

    return {flag for one in cli.params for flag in one.opts}


@pytest.mark.parametrize("page", [*PAGES, "deploy/README.md", "deploy/operations.md"])
def test_shell_commands_can_be_parsed(page):
    """Every line `dkl VERB ...` of a shell block has flags and values that the verb takes."""
    known = verbs()
    shell = "\n".join(block.text for block in blocks_of(read(page)) if block.language == "sh")
    for line in re.findall(r"^dkl .*", shell, flags=re.MULTILINE):
        whole = itertools.takewhile(lambda word: word != "&&", shlex.split(line, comments=True))
        _, verb, *words = [word for word in whole if word not in anywhere()]
        known[verb].make_context(verb, words)


@pytest.mark.parametrize("page", PAGES)
def test_named_flags_exist(page):
    """Every flag in backquotes belongs to its verb; one alone, to some verb or to the benchmarks."""
    flags = {name: {f for p in verb.params for f in (*p.opts, *p.secondary_opts)} for name, verb in verbs().items()}
    every = set().union({"--help"}, anywhere(), *flags.values())
    benchmarks = set(re.findall(r'"(--[a-z]+)"', read("tests/benchmarks/__main__.py")))
    for code in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", read(page), flags=re.DOTALL | re.MULTILINE)):
        words = code.split()
        named = {word for word in words if re.fullmatch(r"--[a-z][a-z0-9-]*", word)}
        if words[:1] == ["dkl"] and len(words) > 1:
            assert words[1] == "VERB" or words[1] in flags, code
            assert named <= flags.get(words[1], every) | {"--help"}, code
        elif code.startswith("--"):
            assert named <= every | benchmarks, code


@pytest.mark.parametrize("page", PAGES)
def test_named_benchmarks_exist(page):
    """`python -m tests.benchmarks NAME` names one that there is."""
    assert set(re.findall(r"tests\.benchmarks (\w+)", read(page))) <= {*NAMES, "NAME", "all", "show"}


def test_guide_of_benchmarks_has_all():
    """The table names every benchmark, and the README no other."""
    rows = re.findall(r"^\| `(\w+)` \|", read("notebooks/guide-benchmarks.md"), flags=re.MULTILINE)
    assert sorted(rows) == sorted(NAMES)
    figures = re.search(r"\n## Figures\n(.*?)\n## ", read("README.md"), flags=re.DOTALL).group(1)
    measured = re.findall(r"\| `(\w+)[^`]*` \|$", figures, flags=re.MULTILINE)
    assert len(measured) >= 5
    assert set(measured) <= set(NAMES)


def test_code_stands_on_the_first_screen():
    """Working code begins within the first 15 lines."""
    assert "```python" in "\n".join(read("README.md").splitlines()[:15])


@pytest.mark.parametrize(("page", "most"), [("README.md", 165), ("dkl/DESIGN.md", 80)])
def test_first_pages_stay_short(page, most):
    """What grows belongs into a guide, or among the decisions."""
    assert len(read(page).splitlines()) <= most


@pytest.mark.parametrize("page", [*PAGES, *DESIGN])
def test_named_paths_exist(page):
    """Every path in backquotes that looks like a file of this project is one."""
    named = re.findall(r"`((?:dkl/)?[a-z_]+(?:/[a-zA-Z_-]+)*(?:/|\.py|\.md))`", read(page))
    assert named or page.startswith("notebooks/")
    missing = [path for path in named if not (ROOT / path).exists() and not (ROOT / "dkl" / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", [*PAGES, *DESIGN, "CHANGELOG.md", "deploy/README.md", "deploy/operations.md"])
def test_links_lead_somewhere(page):
    """Every relative link is a file."""
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", read(page))
    assert [link for link in links if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()] == []


def test_readme_leads_to_every_guide_and_notebook():
    """Nothing under notebooks/ is hidden."""
    links = set(re.findall(r"\]\(([^)]+)\)", read("README.md")))
    notebooks = {path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert len(notebooks) >= 3
    assert {*GUIDES, *notebooks} <= links


def test_public_names_are_documented():
    """The README names everything that dkl exports."""
    import dkl

    assert [name for name in dkl.__all__ if f"dkl.{name}" not in read("README.md")] == []


def test_design_draws_the_layers_that_are_tested():
    """The picture in DESIGN.md has the layers of test_layers.py, and the table a row for each."""
    text = read("dkl/DESIGN.md")
    drawn = [set(re.findall(r"\w+", layer)) for layer in blocks_of(text)[0].text.split("->")]
    assert drawn == LAYERS
    rows = {name.strip("/").removesuffix(".py") for name in re.findall(r"`([a-z_]+(?:/|\.py))`[^|]* \|", text)}
    assert set().union(*LAYERS) <= rows


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

    import dkl

    classes = dkl.SingleKernelRegressor, dkl.MultipleKernelRegressor
    found = [example for cls in classes for example in doctest.DocTestFinder().find(cls, cls.__name__, globs={})]
    results = [doctest.DocTestRunner().run(example) for example in found]
    assert sum(r.attempted for r in results) >= 9
    assert sum(r.failed for r in results) == 0


def test_parameters_of_losses_are_documented():
    """Every parameter of every loss with its default, in the guide and in the docstring of `loss`."""
    from dataclasses import fields

    import dkl
    from dkl.losses import LOSSES

    guide, text = read("notebooks/guide-losses.md"), " ".join((dkl.SingleKernelRegressor.__doc__ or "").split())
    named = {(name, one.name, one.default) for name, loss in LOSSES.items() for one in fields(loss)}
    assert len(named) >= 5
    for name, parameter, default in named:
        assert f"| `{name}:{parameter}` | {default:g} |" in guide
        assert f"{parameter}=" in text
        assert name in text
    assert "ten times max_iter steps" in text
    for cls in (dkl.SingleKernelRegressor, dkl.SingleKernelClassifier):
        assert "any loss" in (cls.__doc__ or "").split(".")[0]
