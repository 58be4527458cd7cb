"""`hostler token`: who may do what."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, group, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say


class RoleName(StrEnum):
    """What a token allows."""

    VIEWER = "viewer"
    LESSEE = "lessee"
    OPERATOR = "operator"
    ADMIN = "admin"
    AGENT = "agent"


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="token", rich_help_panel=panels.SETTINGS)


_group = group(
    "Make, list and revoke tokens: what people, programs and agents prove themselves with."
)


@command(
    _group,
    "create",
    examples="""
    hostler token create alice --role admin
    hostler token create ci --role lessee --pool runners --expires 90d > ci.token
    hostler token create rack-7 --role agent --pool studio --tier own
    """,
)
@remote
def create(
    remote: Remote,
    name: Annotated[str, typer.Argument(help="Whose it is, as the events and the audit say it.")],
    output: OutputOption = OutputFormat.TABLE,
    *,
    role: Annotated[
        RoleName,
        typer.Option(
            "--role",
            metavar="ROLE",
            help="viewer sees; lessee leases; operator also changes bundles and nodes; admin also"
            " makes tokens; agent joins nodes.",
        ),
    ],
    pool: Annotated[
        str, typer.Option("--pool", help="An agent joins it; a lessee may lease from it alone.")
    ] = "",
    tier: Annotated[str, typer.Option("--tier", help="An agent joins this tier.")] = "",
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DURATION", help="Worthless after so long.")
    ] = None,
) -> None:
    """Make a token. Its secret is printed this once, and kept nowhere.

    The first admin token of a server on loopback closes its open door: from then on every request
    needs a token.
    """
    from hostler.base.units import duration_ms
    from hostler.wire.http import CreateTokenRequest

    if role is RoleName.AGENT and not (pool and tier):
        raise CommandError(
            "an agent's token says what it joins: give --pool and --tier", code=ExitCode.BAD_INPUT
        )
    created = remote.client.create_token(
        CreateTokenRequest(
            name=name,
            role=role.value,
            pool=pool,
            tier=tier,
            expires_in_ms=None if expires is None else duration_ms(expires),
        )
    )
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(created, output)
        return
    token = created.token
    note(f"token/{token.token_id} created for {token.name}, role {token.role}. Its secret:")
    say(created.secret)
    sys.stdout.flush()
    note("It is shown this once: keep it in a file that only its owner can read.")


@command(_group, "list", examples="hostler token list -o wide")
@remote
def list_tokens(remote: Remote, output: OutputOption = OutputFormat.TABLE) -> None:
    """List tokens, without their secrets."""
    from hostler.cli.kinds import TOKENS
    from hostler.cli.listing import say_list

    say_list(remote.client.tokens(), TOKENS, output)


@command(_group, "revoke", examples="hostler token revoke t-000002")
@remote
def revoke(
    remote: Remote,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="Its id, not its secret.")],
) -> None:
    """Make a token worthless, at once."""
    from hostler.cli.kinds import TOKENS

    TOKENS.fetch(remote.client, token_id)
    remote.client.revoke_token(token_id)
    say(f"token/{token_id} revoked")
