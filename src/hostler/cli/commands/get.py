"""`hostler get`: lists and single things, and with `-w` how they change."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, TypeAlias, TypeVar

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data, say_table, table
from hostler.cli.remote import Remote, now_ms
from hostler.cli.tables import UPCOMING_COLUMNS
from hostler.cli.terminal import is_colourful, note, say

if TYPE_CHECKING:
    from hostler.cli.kinds import Filters, Kind
    from hostler.client import SyncClient

V = TypeVar("V")

_FLAG_BY_FILTER: Final = {
    "bundle": "--bundle",
    "node": "--node",
    "pool": "--pool",
    "is_all": "--all",
}


ByOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="Of spend: pool, tier, offer, key, bundle, day, month, fleet; or several."
        " Of the audit: only this principal, or the token with this id.",
    ),
]
SubjectOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--subject", help="Of the audit: only about this id, or from this address."),
]
SinceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="Of spend: first day, 2026-11-01. Of the audit: a day, an instant, or how long"
        " ago, 2h.",
    ),
]
UntilOption: TypeAlias = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="The last one, alike.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "get",
        panel=panels.LOOK,
        examples="""
        hostler get nodes
        hostler get replicas --bundle live-channel -w
        hostler get allocations --all -o wide
        hostler get node n-000001 -o yaml
        hostler get nodes -o name
        hostler get waiting --pool runners
        hostler get upcoming
        hostler get spend
        hostler get spend --by key,day --since 2026-11-01 --csv
        hostler get audit --by alice --since 2h
        hostler get audit --subject n-000001 -w
        """,
    )(get)


@remote
def get(
    remote: Remote,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="bundles, replicas, allocations, nodes, pools, leases, waiting (the lines of"
            " leases), services, tokens, schedules, upcoming, maintenance, spend, stuck (machines"
            " that do not end), events or audit (who changed what); short forms will do.",
        ),
    ],
    thing_id: Annotated[str | None, typer.Argument(metavar="ID", help="Only this one.")] = None,
    output: OutputOption = OutputFormat.TABLE,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on, with a line for each change.")
    ] = False,
    is_all: Annotated[
        bool, typer.Option("--all", "-a", help="Also what is over, while it is remembered.")
    ] = False,
    bundle: Annotated[str | None, typer.Option("--bundle", help="Only of this bundle.")] = None,
    pool: Annotated[str | None, typer.Option("--pool", help="Only of this pool.")] = None,
    node: Annotated[str | None, typer.Option("--node", help="Only on this node.")] = None,
    by: ByOption = None,
    subject: SubjectOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    is_csv: Annotated[
        bool, typer.Option("--csv", help="Of spend: as comma-separated values.")
    ] = False,
) -> None:
    """List things of one kind, or one of them.

    The output of -o name goes back in: hostler get nodes -o name | xargs -n1 hostler describe
    """
    from hostler.cli.kinds import Filters, kind_and_id
    from hostler.cli.listing import say_list

    if kind.lower() in ("events", "event"):
        _events(remote, output, watch=watch)
        return
    if kind.lower() == "upcoming":
        _upcoming(remote, output, bundle or thing_id)
        return
    if kind.lower() == "audit":
        _refuse_flags("spend", csv=is_csv)
        _audit(remote, output, by, subject or thing_id, since, until, watch=watch)
        return
    _refuse_flags("the audit", subject=subject)
    if kind.lower() == "spend":
        from hostler.cli.spend import say_spend

        say_spend(
            remote.client,
            output,
            by=by,
            since=since,
            until=until,
            pool=pool,
            is_csv=is_csv,
            now_ms=now_ms(),
        )
        return
    _refuse_flags("spend", csv=is_csv)
    _refuse_flags("spend and the audit", by=by, since=since, until=until)
    found, wanted_id = kind_and_id(kind, thing_id)
    filters = Filters(
        bundle=bundle, node=node, pool=pool, is_all=is_all, is_wide=output is OutputFormat.WIDE
    )
    _refuse_unknown_filters(found, filters)
    if watch:
        _watch(remote, found, wanted_id, filters, output)
    elif wanted_id is not None:
        say_list([found.fetch(remote.client, wanted_id)], found, output, is_one=True)
    else:
        say_list(found.listed(remote.client, filters), found, output)


def _refuse_flags(kinds: str, **given: str | bool | None) -> None:
    for name, value in given.items():
        if value:
            raise CommandError(f"--{name} is for {kinds} only", code=ExitCode.BAD_INPUT)


def _events(remote: Remote, output: OutputFormat, *, watch: bool) -> None:
    from hostler.cli.event_lines import say_events

    client = remote.patient_client if watch else remote.client
    say_events(client.events(tail=100, follow=watch), output)


def _audit(
    remote: Remote,
    output: OutputFormat,
    by: str | None,
    subject: str | None,
    since: str | None,
    until: str | None,
    *,
    watch: bool,
) -> None:
    from hostler.cli.audit import say_audit

    say_audit(
        remote.patient_client if watch else remote.client,
        output,
        by=by,
        subject=subject,
        since=since,
        until=until,
        watch=watch,
        now_ms=now_ms(),
    )


def _upcoming(remote: Remote, output: OutputFormat, bundle: str | None) -> None:
    """Show the next starts and stops of timetables, the soonest first."""
    found = remote.client.upcoming(bundle=bundle)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data({"items": found}, output)
    elif output is OutputFormat.NAME:
        for name in dict.fromkeys(each.bundle_id for each in found):
            say(f"bundle/{name}")
    elif not found:
        note("no timetable has anything to come in the next 14 days")
    else:
        say_table(found, UPCOMING_COLUMNS, now_ms=now_ms(), is_wide=output is OutputFormat.WIDE)


def _refuse_unknown_filters(kind: Kind[Any], filters: Filters) -> None:
    for name, flag in _FLAG_BY_FILTER.items():
        if getattr(filters, name) and name not in kind.filters:
            raise CommandError(
                f"{kind.plural} cannot be narrowed with {flag}", code=ExitCode.BAD_INPUT
            )


# -- watching -----------------------------------------------------------------------------------


def _watch(
    remote: Remote, kind: Kind[Any], thing_id: str | None, filters: Filters, output: OutputFormat
) -> None:
    """Show what is, then a line whenever one of them has changed."""
    after_seq = remote.client.status().event_seq
    if thing_id is not None:
        found: Sequence[Any] = [kind.fetch(remote.client, thing_id)]
    else:
        found = kind.listed(remote.client, filters)
    shown = {kind.id_of(one): one for one in found}
    lines = _Lines(kind, output)
    lines.say(found)
    client = remote.patient_client
    for changed_id in _changed_ids(client, kind, after_seq):
        if thing_id is not None and changed_id != thing_id:
            continue
        now = kind.find(client, changed_id)
        if now is None:
            if shown.pop(changed_id, None) is not None:
                note(f"{kind.noun}/{changed_id} is gone")
        elif now != shown.get(changed_id) and _matches(now, filters):
            shown[changed_id] = now
            lines.say([now])


def _changed_ids(client: SyncClient, kind: Kind[Any], after_seq: int) -> Iterator[str]:
    for event in client.events(after_seq=after_seq):
        changed_id = event.about.get(kind.noun)
        if changed_id is not None:
            yield changed_id


def _matches(view: object, filters: Filters) -> bool:
    wanted = (
        ("bundle_id", filters.bundle),
        ("node_id", filters.node),
        ("pool", filters.pool),
    )
    return all(value is None or getattr(view, name, value) == value for name, value in wanted)


class _Lines(Generic[V]):
    """Writes rows as they come, under the widths that the first ones gave."""

    def __init__(self, kind: Kind[V], output: OutputFormat) -> None:
        self._kind = kind
        self._output = output
        self._first: list[V] | None = None

    def say(self, rows: Sequence[V]) -> None:
        match self._output:
            case OutputFormat.NAME:
                for row in rows:
                    say(f"{self._kind.noun}/{self._kind.id_of(row)}")
            case OutputFormat.JSON | OutputFormat.YAML:
                self._say_data(rows)
            case OutputFormat.TABLE | OutputFormat.WIDE:
                self._say_rows(rows)
        sys.stdout.flush()

    def _say_data(self, rows: Sequence[V]) -> None:
        """One document each: a line of JSON, or YAML between dashes."""
        import msgspec

        for row in rows:
            if self._output is OutputFormat.JSON:
                say(msgspec.json.encode(row).decode())
            else:
                say("---")
                say_data(row, self._output)

    def _say_rows(self, rows: Sequence[V]) -> None:
        is_begin = self._first is None
        first = self._first = list(rows) if self._first is None else self._first
        lines = table(
            [*first, *([] if is_begin else rows)],
            self._kind.columns,
            now_ms=now_ms(),
            is_wide=self._output is OutputFormat.WIDE,
            is_colour=is_colourful(sys.stdout),
        )
        for line in lines if is_begin else lines[-len(rows) :]:
            say(line)
