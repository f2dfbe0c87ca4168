"""The options of one family of estimators, and the verbs whose help shows them; other verbs import no estimator."""

from __future__ import annotations

from dataclasses import replace

import click

from dkl.cli.layout import Verb
from dkl.cli.options import BY_NAME, DEFAULTS, FAMILY, MODEL, SINGLE, TASK, about_of
from dkl.options.continuous import CONTINUOUS
from dkl.options.infinite import INFINITE
from dkl.options.multiple import MULTIPLE
from dkl.options.option import Option


def options_of_family(family: str) -> dict[str, Option]:
    """The options that a family knows, with its own sentences and defaults, in the order of the table."""
    from dkl.estimators.loading import family_of
    from dkl.options.fields import options_of

    classes = family_of(family.partition(":")[0]).values()
    own = {option.name: option for cls in classes for option in options_of(cls)}
    found = {FAMILY.name: FAMILY, TASK.name: TASK}
    for name in BY_NAME:
        if name in own:
            found[name] = replace(own[name], default=DEFAULTS.get(name, own[name].default))
    return found


class ModelVerb(Verb):
    """A verb with the options of a family: its help shows those of the family that --model names before it."""

    def rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Flags of the family, with its own sentences and defaults."""
        family = ctx.params.get(FAMILY.name) or SINGLE
        if family == SINGLE:
            own = {option.name: option for option in MODEL if option not in (*MULTIPLE, *INFINITE, *CONTINUOUS)}
        else:
            own = options_of_family(family)
        names = {option.flag: option.name for option in MODEL}
        found = []
        for flag, about in super().rows(ctx):
            name = names.get(flag.split()[0])
            if name is None or name in own:
                found.append((flag, about if name is None else about_of(own[name])))
        return found
