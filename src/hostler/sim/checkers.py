"""Checkers of every step: what leaves was durable, what was durable is loaded, what holds, holds.

They see the server from inside and the disk's truth. Leaks and convergence, which only time can
show, are in `hostler.sim.upkeep` and `hostler.sim.convergence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from hostler.base.errors import Defect
from hostler.core import invariants
from hostler.core.delta import Delta, Dispatch
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, AnyRequest, FullScan
from hostler.core.replies import Result
from hostler.core.step import step
from hostler.model import KINDS, Node, Replica, Trace
from hostler.model.node import NodePhase
from hostler.model.record import Record
from hostler.ports.store import Loaded
from hostler.sim.ceilings import check_ceilings
from hostler.sim.world import Violation, World
from hostler.store.codec import decode_record

if TYPE_CHECKING:
    from hostler.sim.disk import Disk
    from hostler.sim.promises import Promises

SCAN_EVERY_STEPS: Final = 24
"""A full scan costs as much as the fleet is large, so it follows every so many-th step only."""

ALL_EVERY_STEPS: Final = 8
"""After each step the invariants of all that it has changed are checked; after so many, of all that
there is, in case that something broke what is about another."""


class Checkers:
    """Everything that is looked at whenever the server does something."""

    def __init__(self, world: World, disk: Disk, promises: Promises) -> None:
        self._world = world
        self._disk = disk
        self.promises = promises
        self._digest_before = ""
        self.step_count = 0
        self.named: dict[str, None] = {}
        """Machines that some record has ever named."""
        self.nameless: dict[str, Node] = {}
        """Nodes that are over and never learnt which machine they had: none can ask for its end."""

    # -- steps -------------------------------------------------------------------------------

    def stepped(self, fleet: Fleet, delta: Delta, inputs: Sequence[AnyInput]) -> None:
        """Check a step before it is committed."""
        self.step_count += 1
        self.promises.attempted(inputs)
        _hold(fleet, delta, is_all=self.step_count % ALL_EVERY_STEPS == 0)
        if delta.dispatches and not delta.is_durable:
            raise Violation("dispatch_without_commit", "a command leaves that no commit holds")
        for record in delta.changes.values():
            if isinstance(record, Node) and record.machine_id is not None:
                self.named[record.machine_id] = None
            elif isinstance(record, Node) and record.phase is NodePhase.RETIRED:
                self.nameless[record.node_id] = record
        kinds = ",".join(str(type(one).__struct_config__.tag) for one in inputs)
        self._world.log(
            f"step {delta.revision} [{kinds}] changes={len(delta.changes)}"
            f" events={len(delta.events)} dispatches={len(delta.dispatches)}"
        )
        for event in delta.events:
            about = " ".join(event.about.values())
            self._world.log(f"event {event.kind.value} {about} {event.data or ''}")
            self._world.probe(f"event.{event.kind.value}")

    def kept(self, fleet: Fleet, delta: Delta) -> None:
        """Check the fleet after a step was made final."""
        if delta.is_durable and self._disk.revision != fleet.revision:
            raise Violation(
                "kept_before_durable",
                "a step was made final that the disk does not have",
                fleet=fleet.revision,
                disk=self._disk.revision,
            )
        check_ceilings(fleet)
        if self.step_count % SCAN_EVERY_STEPS == 0:
            _scan(fleet)

    def dropped(self, fleet: Fleet) -> None:
        """Check the fleet after a step was undone: it is what the disk holds."""
        self._world.probe("step.dropped")
        _hold(fleet)
        _same(fleet, self._disk.rows.load())

    def replied(self, fleet: Fleet, request: AnyRequest, result: Result | None) -> None:
        """Check an answer as it leaves."""
        if result is None:
            raise Violation("no_answer", "a request got no answer", request=request.request_id)
        if self._disk.revision < fleet.revision:
            raise Violation("reply_before_commit", "an answer leaves before its commit")
        self.promises.replied(fleet, request, result)

    def dispatched(self, fleet: Fleet, dispatch: Dispatch) -> None:
        """Check a command as it leaves: the disk must know it, as it is."""
        body = self._disk.rows.body("command", dispatch.command_id)
        if body is None:
            raise Violation(
                "effect_before_commit",
                "a command leaves that is not durable",
                command=dispatch.command_id,
            )
        entry = decode_record("command", dispatch.command_id, body)
        if entry != fleet.commands.get(dispatch.command_id):
            raise Violation(
                "outbox_differs", "a command differs on the disk", command=dispatch.command_id
            )

    # -- lives -------------------------------------------------------------------------------

    def loaded(self, fleet: Fleet, loaded: Loaded) -> None:
        """Check what a new life has loaded: all that is durable, and what was promised."""
        _same(fleet, loaded)
        self._world.log(f"server loaded revision {fleet.revision} {fleet.digest()}")
        self.promises.check(fleet)


def _hold(fleet: Fleet, delta: Delta | None = None, *, is_all: bool = True) -> None:
    try:
        if delta is not None:
            invariants.check_changed(fleet, delta)
        if is_all:
            invariants.check_all(fleet, is_history_left=delta is not None)
    except Defect as defect:
        raise Violation(defect.code, defect.message, **defect.fields) from defect


def _scan(fleet: Fleet) -> None:
    """Look at everything once more, at the same instant: nothing must be left to do."""
    at_ms = fleet.timers.next_at_ms()
    if at_ms is not None and at_ms <= fleet.now_ms:
        return  # another step is due at this very instant
    delta = step(fleet, [FullScan()], fleet.now_ms)
    changes = [
        _told(delta.before[name], new)
        for name, new in delta.changes.items()
        if not _is_wording(delta.before[name], new)
    ]
    fleet.drop(delta)
    if changes:
        raise Violation(
            "scan_found",
            "a full scan finds work that a step should have done",
            records="; ".join(changes[:10]),
        )


def _is_wording(old: Record | None, new: Record | None) -> bool:
    """Say whether only the explanation of a wait has changed: what else is there is as it was."""
    if isinstance(new, Trace):
        return True
    if not isinstance(old, Replica) or not isinstance(new, Replica):
        return False
    return replace(old, reason=new.reason, reason_detail=new.reason_detail) == new


def _told(old: Record | None, new: Record | None) -> str:
    """Say in a line what became of a record."""
    if old is None or new is None:
        known = new or old
        return f"{'+' if old is None else '-'}{known.KIND} {known.key}" if known else ""
    changed = [
        f"{name}: {before!r} -> {after!r}"
        for name in old.__struct_fields__
        if (before := getattr(old, name)) != (after := getattr(new, name))
    ]
    return f"{new.KIND} {new.key} ({', '.join(changed)})"


def _same(fleet: Fleet, loaded: Loaded) -> None:
    """Compare the fleet with the bytes on the disk."""
    for kind in KINDS:
        bodies = loaded.records.get(kind, {})
        rows = fleet.tables[kind].rows
        if rows.keys() != bodies.keys():
            differ = sorted(rows.keys() ^ bodies.keys())[:5]
            raise Violation("load_differs", "records differ from the disk", kind=kind, keys=differ)
        for key, body in bodies.items():
            if decode_record(kind, key, body) != rows[key]:
                raise Violation("load_differs", "a record differs from the disk", key=key)
