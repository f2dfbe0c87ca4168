"""dkl completion: the script that makes a shell complete verbs, options and choices."""

from __future__ import annotations

import click

from dkl.cli.layout import Verb

COMPLETE = "_DKL_COMPLETE"
"""The variable by which a shell asks for completions."""
SHELLS = ("bash", "zsh", "fish")
EXAMPLE = """eval "$(dkl completion bash)"          # in ~/.bashrc; zsh alike
dkl completion fish > ~/.config/fish/completions/dkl.fish"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Print the script that lets SHELL (bash, zsh or fish) complete dkl's verbs, options and choices.",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """The verb."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "dkl", COMPLETE).source())
