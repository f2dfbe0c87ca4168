"""One parameter: its default, its sentence, how a flag's text becomes its value, and which values are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dkl.checks import check_choice

Rule = Callable[[str, Any], object]
"""(name, value) -> nothing, or a ValueError that shows the value and says what to type."""


@dataclass(frozen=True)
class Option:
    """A parameter of an estimator; a flag and a key of the configuration too."""

    name: str
    default: Any
    about: str
    """One sentence, for the flag and the TOML comment."""
    doc: str = ""
    """Further sentences, for the docstring."""
    takes: str = ""
    """What it takes, in a docstring; choices say it themselves."""
    parse: Callable[[str], Any] = str
    """The value of a flag's text."""
    choices: tuple[str, ...] | None = None
    optional: bool = False
    """Whether None is a value."""
    rule: Rule | None = None
    sample: Any = None
    """An example for the configuration, of an option whose default is None."""

    def check(self, value: Any) -> None:
        """Refuse a value that no data could make right."""
        if value is None and self.optional:
            return
        if self.rule is not None:
            self.rule(self.name, value)
        elif self.choices is not None:
            check_choice(self.name, value, self.choices)

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")
