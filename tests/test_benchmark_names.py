"""The command line of the benchmarks, and the file that collects what they print."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import parse
from tests.benchmarks.machine import describe, identity
from tests.benchmarks.names import NAMES, chosen
from tests.benchmarks.page import page
from tests.benchmarks.results import collect, lines_of, meets, merged, public, read, write

FOLDER = Path(__file__).parent / "benchmarks"


def test_every_benchmark_is_listed_and_every_listed_one_is_there():
    files = {path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py")}
    assert files == set(NAMES)


def test_the_options_of_the_benchmarks_can_be_parsed():
    command = [sys.executable, "-m", "tests.benchmarks", "--help"]
    out = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    for name in NAMES:
        assert f"{name}: " in " ".join(out.stdout.split()), name


HERE = {"cpu": "a", "cores": 2, "memory_gib": 8.0, "system": "s", "python": "3", "blas": "b", "versions": {"dkl": "1"}}
THERE = {**HERE, "cores": 64}


def record(name="small", value=1.0, arguments="", bar=1.5, date="2026-01-01"):
    """A result as a run leaves it."""
    run = {"date": date, "seconds": 1.0, "load": 0.5}
    met = {"time_ratio": meets("time_ratio", value, bar)}
    figures = {"time_ratio": value, "other": 3.0}
    known = {"name": name, "benchmark": name.split()[0], "arguments": arguments}
    return {**known, "figures": figures, "bars": {"time_ratio": bar}, "met": met, **run}


def test_a_new_result_replaces_the_same_one_and_no_other():
    """Same name, arguments and machine: replaced. Another name, other arguments or another machine: kept."""
    found = merged({"machines": {}, "results": []}, HERE, [record(value=1.0), record("dual")])
    found = merged(found, THERE, [record(value=2.0)])
    found = merged(found, HERE, [record(value=3.0), record(value=4.0, arguments="--repeats 1")])
    here, there = identity(HERE), identity(THERE)
    left = [(r["name"], r["arguments"], r["machine"], r["figures"]["time_ratio"]) for r in found["results"]]
    assert sorted(left) == sorted(
        [
            ("small", "", here, 3.0),
            ("small", "--repeats 1", here, 4.0),
            ("small", "", there, 2.0),
            ("dual", "", here, 1.0),
        ]
    )
    assert found["machines"] == {here: HERE, there: THERE}
    assert [r["name"] for r in found["results"]][-1] == "dual", "in the order of the list of benchmarks"


def test_a_machine_without_results_is_forgotten():
    """The file has the machines of its results, no others."""
    assert merged({"machines": {"old": THERE}, "results": []}, HERE, [record()])["machines"] == {identity(HERE): HERE}


def test_the_file_is_read_as_it_was_written(tmp_path):
    """Through JSON; a file of something else is refused."""
    found = merged(read(tmp_path / "none.json"), HERE, [record()])
    write(tmp_path / "r.json", found)
    assert read(tmp_path / "r.json") == found
    for text in ("words", "{}", "[1]"):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(SystemExit, match=r"other.json' is no file of results"):
            read(tmp_path / "other.json")


def test_the_table_has_figure_bar_anchor_date_and_machine():
    """Figures above their bar are said to miss it."""
    text = page(merged({"machines": {}, "results": []}, HERE, [record(), record("dual", value=2.0)]))
    lines = text.splitlines()
    assert lines[0].startswith("1 of 2 bars are met.")
    small = next(line for line in lines if line.startswith("| `small`"))
    here = identity(HERE)
    said = ["`small`", "time_ratio", "1", "≤ 1.5", "yes", "RBFSampler + RidgeClassifier", "2026-01-01", "0.5", here]
    assert [cell.strip() for cell in small.strip("|").split("|")] == said
    assert "| **no** |" in next(line for line in lines if line.startswith("| `dual`"))
    assert f"- `{here}`: a, 2 cores, 8 GiB; s, Python 3, b; dkl 1" in lines


def test_lines_and_sides():
    """JSON lines among words; figures that must stay below, and those that must not."""
    text = 'pass\n  words {"name": 1}\n{"name": "a b", "figures": {"speed": 2.0}, "bars": {"speed": 1.0}}\n'
    assert [line["name"] for line in lines_of(text)] == ["a b"]
    assert meets("speed", 2.0, 1.0)
    assert not meets("seconds", 2.0, 1.0)
    assert not meets("seconds", float("nan"), 1.0)
    assert public(["--data", "/home/x", "--sets", "a", "--scratch=/home/y", "--repeats", "3"]) == "--sets a --repeats 3"


def test_which_benchmarks_all_runs():
    """Without data or torch those that need them are left out; --only says all of them."""
    bare = chosen(None, False, set())
    assert {"pass", "small"} <= set(bare)
    assert not {"covtype", "ckl_speed"} & set(bare)
    assert {"covtype"} == set(chosen(None, False, {"data"})) & {"covtype", "ckl_speed"}
    assert set(chosen(None, True, set())) < set(bare)
    assert chosen("ckl_speed,small", False, set()) == ["ckl_speed", "small"]
    with pytest.raises(SystemExit, match="--only 'smal': there is no such benchmark"):
        chosen("smal", False, set())


def test_what_a_benchmark_is_told():
    """The words about the file stay here, all others travel."""
    options = parse(["all", "--write", "r.json", "--only", "small,dual", "--repeats", "2", "--data", "d"])
    assert options.rest == ["--repeats", "2", "--data", "d"]
    for words in (["all"], ["show"], ["small", "--quick"], ["small", "--only", "dual"]):
        with pytest.raises(SystemExit):
            parse(words)


def test_one_benchmark_is_measured_and_written(tmp_path, capsys):
    """A real run: its JSON line, its bars, this machine; a benchmark that stops is counted and leaves no result."""
    path = tmp_path / "r.json"
    missed = collect(["small"], ["--repeats", "1"], path)
    found = read(path)
    (result,) = found["results"]
    printed = lines_of(capsys.readouterr().out)
    assert [line["figures"] for line in printed] == [result["figures"]]
    assert result["arguments"] == "--repeats 1"
    assert found["machines"][result["machine"]] == json.loads(json.dumps(describe()))
    assert missed == (result["figures"]["time_ratio"] > result["bars"]["time_ratio"])
    assert collect(["learned"], ["--data", str(tmp_path)], path) == 1
    assert read(path) == found


def test_committed_results_are_of_this_form():
    """Every committed result names a benchmark and a described machine, and says truly whether its bars are met."""
    found = read(FOLDER / "results.json")
    assert found["results"]
    for result in found["results"]:
        assert result["benchmark"] in NAMES
        assert result["machine"] in found["machines"]
        assert result["met"] == {key: meets(key, result["figures"][key], bar) for key, bar in result["bars"].items()}
