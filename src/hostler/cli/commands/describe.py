"""`hostler describe`: everything about one thing, its phases, and what happened to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote, now_ms
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.wire.http import LifeView


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "describe",
        panel=panels.LOOK,
        examples="""
        hostler describe node n-000001
        hostler describe replica live-channel/encoder/0
        hostler describe bundle live-channel
        hostler describe pool studio
        """,
    )(describe)


@remote
def describe(
    remote: Remote,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="bundle, replica, allocation, node, pool, lease or token."
        ),
    ],
    thing_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which one.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show all that is known about one thing: its fields, what belongs to it, and its life.

    A life tells each phase with how long it lasted, and goes on being told when the thing is gone.
    """
    from hostler.cli.kinds import kind_and_id

    found, wanted_id = kind_and_id(kind, thing_id)
    if wanted_id is None:
        raise CommandError(
            f"say which {found.noun}",
            code=ExitCode.BAD_INPUT,
            hint=f"`hostler get {found.plural}` lists them",
        )
    from hostler.cli.timeline import life_of, timeline

    life = life_of(remote.client, found.noun, wanted_id)
    view = found.find(remote.client, wanted_id) if life else found.fetch(remote.client, wanted_id)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(_with_life(view, life), output)
        return
    from hostler.cli.descriptions import described

    if view is None:
        note(f"{found.noun} {wanted_id} is no more; this is what is remembered of it")
    else:
        for line in described(remote.client, view):
            say(line)
    if found.noun != "token":
        for line in timeline(remote.client, life, wanted_id, now_ms()):
            say(line)


def _with_life(view: object, life: LifeView | None) -> object:
    """Put a thing's life beside its fields."""
    if life is None:
        return view
    import msgspec

    fields = {} if view is None else msgspec.to_builtins(view)
    return {**fields, "life": msgspec.to_builtins(life)}
