"""dkl completion: the script for completion of verbs, options and choices in a shell."""

from __future__ import annotations

import click

from dkl.cli.layout import Verb

COMPLETE = "_DKL_COMPLETE"
"""The variable by which a shell asks for completions."""
SHELLS = ("bash", "zsh", "fish")
EXAMPLE = """eval "$(dkl completion bash)"          # in ~/.bashrc, or zsh in ~/.zshrc
dkl completion fish > ~/.config/fish/completions/dkl.fish"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Print the completion script of SHELL (bash, zsh or fish).",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """The verb."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "dkl", COMPLETE).source())
