"""Help that begins with an example and fits a screen; completion by the shell itself; python -m dkl."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dkl
from dkl.cli.config import read_config
from dkl.cli.main import VERBS
from dkl.kernels import KERNELS
from dkl.options.continuous import CONTINUOUS
from dkl.options.infinite import INFINITE
from dkl.options.multiple import MULTIPLE
from tests.cli.in_process import dkl_in, done

ROOT = Path(__file__).parents[2]
LINES, COLUMNS = 60, 100
NOT_FLAGS = {"self", "checkpoint", "verbose", "features", "warm_start"}
"""The command line keeps checkpoints by itself, is silent where nobody watches, and names kernels, not objects."""
FAMILIES = {
    "single": (dkl.SingleKernelClassifier, dkl.SingleKernelRegressor),
    "multiple": (dkl.MultipleKernelClassifier, dkl.MultipleKernelRegressor),
    "infinite": (dkl.InfiniteFeatureClassifier, dkl.InfiniteFeatureRegressor),
}
"""Those that the command line can fit."""


def parameters(*families: str) -> set[str]:
    """Every parameter of some families."""
    classes = [cls for family in families for cls in FAMILIES[family]]
    return set().union(*(inspect.signature(cls.__init__).parameters for cls in classes)) - NOT_FLAGS


PAGES = {"": [], "--help": ["--help"], **{verb: [verb, "--help"] for verb in VERBS}}
OTHERS = ("multiple", "infinite")
PAGES |= {f"{verb} {name}": [verb, "--model", name, "--help"] for verb in ("fit", "plan") for name in OTHERS}


@pytest.mark.parametrize("words", [pytest.param(words, id=name) for name, words in PAGES.items()])
def test_help_fits_a_screen(words, tmp_path):
    """Exit code 0, an example first, at most 60 lines of 100 columns."""
    lines = done(tmp_path, *words).splitlines()
    assert lines[0].startswith("  $ dkl ") or words[:1] == ["completion"]
    assert lines[0].startswith("  $ ")
    assert "dkl" in lines[0]
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("width", ["40", "80", "300"])
def test_help_is_never_wider_than_its_examples(width, tmp_path, monkeypatch):
    """Whatever the terminal is."""
    monkeypatch.setenv("COLUMNS", width)
    for verb in VERBS:
        lines = done(tmp_path, verb, "--help").splitlines()
        assert max(map(len, lines)) <= COLUMNS


def test_help_names_every_verb_and_exit_code(tmp_path):
    """The first page leads to all others."""
    said = done(tmp_path, "--help")
    for word in (*VERBS, "--debug", "--version", "0 done", "1 refused", "2 wrong", "3 no room", "4 no cluster", "130"):
        assert word in said
    assert done(tmp_path) == said


def test_examples_of_the_help_are_of_real_verbs_and_options(tmp_path):
    """Every line after $ dkl names a verb; every --option in it is one of that verb."""
    for verb in VERBS:
        said = done(tmp_path, verb, "--help")
        for line in said.splitlines():
            words = line.split("#")[0].split()
            if words[:2] != ["$", "dkl"]:
                continue
            assert words[2] == verb
            for word in words:
                if word.startswith("--"):
                    assert word in said.split("Usage:")[1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("verb", ["fit", "plan"])
def test_every_parameter_is_a_flag(verb, family, tmp_path):
    """With the name of the estimators; what other families have is not shown."""
    said = done(tmp_path, verb, "--model", family, "--help")
    assert parameters(family) >= {"class_weight", "sigma" if family == "infinite" else "cv"}
    for name in parameters(*FAMILIES):
        assert (f"  --{name.replace('_', '-')} " in said) == (name in parameters(family)), name
    assert ("--n-components VALUE      Number of features [1000]." in said) == (family == "single")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_is_a_key(family, tmp_path):
    """The written configuration names them all, and its lines are TOML if the # is removed."""
    text = done(tmp_path, "fit", "--model", family, "--write-config", "-").replace("\nmodel =", "\n# model =")
    keys = [line for line in text.splitlines() if line.startswith("# ") and " = " in line and line[2].islower()]
    found = {line[2:].split(" = ")[0] for line in keys if line[2:].split(" = ")[0].isidentifier()}
    assert parameters(family) | {"task", "model"} == found
    for line in keys:
        tomllib.loads(line[2:])
    assert all(line.startswith("#") or not line for line in text.splitlines())


def test_flags_and_keys_are_the_same(tmp_path):
    """Nothing is accepted in one place only."""
    for name in parameters(*FAMILIES):
        said = dkl_in(tmp_path, "fit", f"--{name.replace('_', '-')}")
        assert said.code == 2
        assert "requires an argument" in said.err
    (tmp_path / "c.toml").write_text("".join(f"{name} = []\n" for name in parameters(*FAMILIES)))
    with pytest.raises(ValueError, match=r"is not (possible|known)"):
        read_config(str(tmp_path / "c.toml"))


def run(*words: str, **more: str) -> subprocess.CompletedProcess:
    """A process with the package on its path."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | more
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)


def test_python_m_dkl():
    """The module is the command."""
    ran = run(sys.executable, "-m", "dkl", "--version")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"dkl {dkl.__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, tmp_path):
    """A script that names the program and the variable."""
    said = done(tmp_path, "completion", shell)
    assert "_DKL_COMPLETE" in said
    assert f"{shell}_complete" in said
    assert "dkl" in said


def complete(words: str) -> list[str]:
    """What bash would offer for the last word."""
    typed = words.split(" ")
    ran = run(
        sys.executable, "-c", "from dkl.cli.main import run; run()",
        COMP_WORDS="\n".join(typed), COMP_CWORD=str(len(typed) - 1), _DKL_COMPLETE="bash_complete",
    )  # fmt: skip
    assert ran.stderr == ""
    return [line.split(",", 1)[1] for line in ran.stdout.splitlines()]


def test_completion_of_verbs():
    """All of them, in order."""
    assert complete("dkl ") == list(VERBS)


def test_completion_of_options():
    """Those that begin with what has been typed."""
    assert complete("dkl fit --n") == ["--n-components", "--n-terms", "--n-alphas"]


def test_completion_of_kernels():
    """Choices of an option."""
    assert complete("dkl fit --kernel ") == list(KERNELS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_completion_by_bash(tmp_path):
    """bash with the script sourced completes the verb, and runs the program to do so."""
    program = tmp_path / "dkl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "from dkl.cli.main import run; run()" "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(dkl completion bash)"; '
        "COMP_WORDS=(dkl ev); COMP_CWORD=1; _dkl_completion dkl ev dkl; "
        'printf "%s\\n" "${COMPREPLY[@]}"; complete -p dkl'
    )
    ran = run("bash", "-c", script, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[0] == "evaluate"
    assert "_dkl_completion dkl" in ran.stdout


def test_the_flags_are_the_fields():
    """The command line lists them without importing the estimators; none is missing and none is another's."""
    from dkl.cli.options import MODEL
    from dkl.options.fields import options_of

    several = {option.name for option in (*MULTIPLE, *INFINITE, *CONTINUOUS)}
    for cls in (*(classes[0] for classes in FAMILIES.values()), dkl.ContinuousKernelClassifier):
        own = {option.name for option in options_of(cls)} - NOT_FLAGS
        assert own <= {option.name for option in MODEL}
    own = [option.name for option in options_of(dkl.SingleKernelClassifier) if option.name not in NOT_FLAGS]
    assert [option.name for option in MODEL if option.name not in several] == ["model", "task", *own]


def test_help_imports_no_estimators():
    """A shell that completes waits for every import."""
    program = "import sys, dkl.cli.fit; print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'dask')])"
    assert run(sys.executable, "-c", program).stdout == "[]\n"
