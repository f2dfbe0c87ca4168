"""--model: parameters of a family of its own stand behind its name; whatever has a flag is given by the flag."""

from __future__ import annotations

import pytest

from dkl.cli.fit import build
from dkl.cli.options import MODEL
from tests.contracts import toy  # noqa: F401  registers the family

PARAMS = {option.name: option.default for option in MODEL if option.name not in ("model", "task")}


@pytest.mark.parametrize(
    ("family", "sentence"),
    [
        ("single:alpha=0.1", r"--model single:alpha=0.1: alpha has a flag; use --alpha 0.1"),
        ("single:foo=3", r"--model single:foo=3: 'foo' is no parameter of single; all that it has are flags"),
        (
            "nothere",
            "model='nothere' is not known; use one of 'continuous', 'convolutional', 'infinite', 'multiple', 'single'",
        ),
        ("infinite:n_alphas=4", r"--model infinite:n_alphas=4: n_alphas has a flag; use --n-alphas 4"),
        ("multiple:rule=last", r"--model multiple:rule=last: rule has a flag; use --rule last"),
        ("multiple:eps=0.1", r"--model multiple:eps=0.1: eps has a flag; use --eps 0.1"),
        ("multiple:features=chi2", r"'features' is no parameter of multiple; all that it has are flags"),
        ("toy:foo=3", r"'foo' is no parameter of toy; its own: delta"),
        ("toy:delta=x", r"--model toy:delta=x: 'x' is not possible"),
        ("toy:delta=2,delta=3", r"--model toy:delta=3: delta is given twice"),
    ],
)
def test_refusals(family, sentence):
    """One line, with what was typed and what to type."""
    with pytest.raises(ValueError, match=sentence) as refusal:
        build({"estimator": "regression", "family": family, "params": PARAMS})
    assert "\n" not in str(refusal.value)


def test_a_run_of_an_earlier_version_is_single():
    """Its run.json names no family."""
    assert type(build({"estimator": "regression", "params": PARAMS})).__name__ == "SingleKernelRegressor"
