"""Watching nodes until they are empty: each thing that is left, what it waits for, and its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import counted
from hostler.cli.terminal import note

if TYPE_CHECKING:
    from hostler.cli.remote import Remote
    from hostler.wire.http import LeftView, NodeView

POLL_S: Final = 0.3
"""Between two looks: short for a person, nothing for a server."""


def watch_drains(
    remote: Remote, node_ids: Sequence[str], *, has_to_retire: bool
) -> dict[str, NodeView]:
    """Tell what is left on nodes until nothing is, or nothing more will leave by itself.

    Args:
        remote: The server.
        node_ids: Nodes that are drained.
        has_to_retire: Wait for the end of their machines, too.

    Returns:
        The nodes as they were last, by id.

    Raises:
        CommandError: Somebody called the drain off.
    """
    told = _Told()
    views: dict[str, NodeView] = {}
    waiting = list(node_ids)
    while waiting:
        for node_id in list(waiting):
            view = views[node_id] = remote.patient_client.node(node_id)
            told.tell(view)
            if is_drained(view, has_to_retire=has_to_retire) or _is_stuck(view):
                waiting.remove(node_id)
            elif view.drain is None and view.phase == "ready":
                raise CommandError(f"the drain of {node_id} was called off", code=ExitCode.REFUSED)
        if waiting:
            time.sleep(POLL_S)
    return views


def is_drained(view: NodeView, *, has_to_retire: bool) -> bool:
    """Say whether a node's agent has said that nothing is left, or its machine is gone."""
    if has_to_retire:
        return view.phase == "retired"
    return view.phase == "retired" or (view.drain is not None and view.drain.is_done)


def not_empty(views: Sequence[NodeView]) -> CommandError:
    """Say what stays where, past the deadline, and why."""
    left = [(view.node_id, one) for view in views for one in _left(view)]
    return CommandError(
        f"past the deadline, {counted(len(left), 'thing')} stayed",
        details=[f"{node_id}: {_named(one)} {_state(one)}" for node_id, one in left],
        hint="make room for it; or --force stops it, and `hostler uncordon` calls the drain off",
    )


def _is_stuck(view: NodeView) -> bool:
    """Say whether the deadline has passed, and what is left is not ending."""
    drain = view.drain
    is_over = drain is not None and drain.is_overdue and not drain.is_forced
    left = _left(view)
    return is_over and bool(left) and all(one.kind == "allocation" and one.reason for one in left)


def _left(view: NodeView) -> list[LeftView]:
    return [] if view.drain is None else view.drain.left


def _named(one: LeftView) -> str:
    return one.replica_id or f"{one.kind}/{one.id}"


def _state(one: LeftView) -> str:
    if not one.reason:
        return "is ending"
    return f"stays: {one.reason} ({one.detail})" if one.detail else f"stays: {one.reason}"


class _Told:
    """Tells the state of each thing when it changes."""

    def __init__(self) -> None:
        self._state_by_id: dict[str, str] = {}
        self._left_by_node: dict[str, set[str]] = {}

    def tell(self, view: NodeView) -> None:
        left = _left(view)
        for one in left:
            state = _state(one)
            if self._state_by_id.get(one.id) != state:
                self._state_by_id[one.id] = state
                note(f"node/{view.node_id}: {_named(one)} {state}")
        ids = {one.id for one in left}
        if self._left_by_node.get(view.node_id, ids) - ids:
            note(f"node/{view.node_id}: {len(ids)} left")
        self._left_by_node[view.node_id] = ids
