"""What is said of a process that differs, from the answers that processes give; no cluster is needed for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import dkl
from dkl.engine.stamp import PACKAGES, REMOTE_CODE, STAMP, _source, _version
from dkl.engine.versions import MOST_SHOWN, OLD, _fault, _is_silent, _older, _sentence, _series

NAMES = ("python", *PACKAGES)


def other(**changes):
    """The stamp of a process that differs."""
    return STAMP | changes


def test_who_answers_nothing():
    """A worker that is gone is silent; one without dkl, or with an older one, has answered."""
    assert _is_silent(OSError("gone"))
    assert not any(map(_is_silent, (ImportError("x"), AttributeError("x"), STAMP, None)))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (STAMP, ""),
        (None, ""),
        (ModuleNotFoundError("No module named 'dkl'", name="dkl"), "no dkl"),
        (ImportError("no"), "no dkl"),
        (ModuleNotFoundError("No module named 'dkl.engine.stamp'", name="dkl.engine.stamp"), OLD),
        (AttributeError("STAMP"), OLD),
        (other(dkl="0.0.1"), "dkl 0.0.1"),
        (other(dkl="99.0"), "dkl 99.0"),
        (other(dkl=""), ""),
        (other(source=""), ""),
        (other(source="abc"), f"dkl {STAMP['dkl']} with other source files (abc, here {STAMP['source']})"),
        (other(source="zzz"), f"dkl {STAMP['dkl']} with other source files (zzz, here {STAMP['source']})"),
        (other(numpy="1.2.3"), f"numpy 1.2.3 (here {STAMP['numpy']})"),
        (other(numpy="99.2.3"), f"numpy 99.2.3 (here {STAMP['numpy']})"),
        (other(zarr=""), f"zarr not at all (here {STAMP['zarr']})"),
        (other(numpy=f"{'.'.join(STAMP['numpy'].split('.')[:2])}.999"), ""),
        (
            other(python="2.7.1", dask="1.0"),
            f"python 2.7.1 (here {STAMP['python']}), dask 1.0 (here {STAMP['dask']})",
        ),
    ],
)
def test_faults(answer, fault):
    """No dkl, another one, other files, another package; patch releases, and what is not known, are no fault."""
    assert _fault(answer, NAMES) == fault


def test_only_what_is_asked_for_counts():
    """A scheduler need not have the same zarr."""
    assert _fault(other(zarr="1.0"), ("python", "numpy")) == ""


def test_older_versions_and_series():
    """Their number, if it tells them apart; major and minor."""
    assert _older("0.0.9") == "dkl 0.0.9"
    assert _older("99.0") == "dkl 99.0"
    assert _older(STAMP["dkl"]) == _older(None) == _older(AttributeError("x")) == OLD
    assert [_series(v) for v in ("1.2.3", "1.2", "")] == [["1", "2"], ["1", "2"], [""]]


def test_sentences():
    """Three are named, the rest counted; what to install depends on what differs."""
    assert MOST_SHOWN == 3
    wrong = {f"the worker {i}": "no dkl" for i in range(5)}
    install = f"install dkl {STAMP['dkl']}, as here, on every worker and on the scheduler, and restart them"
    three = "the worker 0 has no dkl; the worker 1 has no dkl; the worker 2 has no dkl"
    assert _sentence(wrong) == f"{three}, and 2 more differ; {install}"
    assert _sentence(dict(list(wrong.items())[:3])) == f"{three}; {install}"
    assert _sentence(dict(list(wrong.items())[:4])) == f"{three}, and 1 more differ; {install}"
    versions = {"the scheduler": f"numpy 1.2.3 (here {STAMP['numpy']})"}
    said = f"the scheduler has {versions['the scheduler']}; install the same versions everywhere, and restart them"
    assert _sentence(versions) == said


def test_the_stamp():
    """Versions that are installed, and twelve digits of the files."""
    assert set(STAMP) == {"dkl", "source", "python", "numpy", "dask", "distributed", "zarr"}
    assert _version("no-such-package") == ""
    assert len(STAMP["source"]) == 12
    assert int(STAMP["source"], 16) >= 0
    assert _source() == STAMP["source"]


def test_the_stamp_covers_all_code_that_runs_remotely():
    """Every folder but those that only the client runs."""
    folders = {path.parent.name for path in Path(dkl.__file__).parent.glob("*/__init__.py")}
    assert "engine" in folders
    assert folders - set(REMOTE_CODE) <= {"cli", "estimators", "options", "plot", "report"}
