"""dkl completion: the script that makes a shell complete verbs, options and choices."""

from __future__ import annotations

import click

from dkl.cli.layout import Verb

SHELLS = ("bash", "zsh", "fish")
EXAMPLE = """eval "$(dkl completion bash)"          # in ~/.bashrc; zsh alike
dkl completion fish > ~/.config/fish/completions/dkl.fish"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Print the script that lets SHELL (bash, zsh or fish) complete dkl's verbs, options and choices.",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """The verb."""
    from click.shell_completion import get_completion_class

    from dkl.cli.main import COMPLETE, cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "dkl", COMPLETE).source())
