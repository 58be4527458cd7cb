"""The story that the demo tells: how it begins, its chapters, and how it ends.

Each chapter does what an operator, a client or a bad day would do, waits for what must follow, and
writes down how long it took. A wait that runs out of patience ends the story. The chapters can be
told one by one: each finds both encoders on air, and leaves them so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from hostler.cli.demo import faults, moves, opening
from hostler.cli.demo.stage import Stage

CHAPTERS: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {
    "lease": opening.run_on_a_lease,
    "partition": faults.cut_a_box_off,
    "node-loss": faults.lose_a_node,
    "rejection": moves.meet_a_node_that_refuses,
    "server-kill": faults.kill_the_server,
    "clock-jump": faults.set_the_clocks,
    "restart-all": faults.restart_everything,
    "spot-notice": moves.call_a_machine_back,
    "drain": moves.drain_both,
    "rollout": moves.break_a_version,
}
"""In the order in which they are told. Until `spot-notice` nothing may touch the backup."""

_MOVES_THE_BACKUP: Final = ("spot-notice", "drain", "rollout")


async def tell(stage: Stage, chapters: Collection[str], *, is_kept: bool) -> None:
    """Tell these chapters; with `is_kept`, stop short of taking everything down.

    Raises:
        DemoFailed: Something did not follow; what was measured until then is in `measures`.
    """
    await opening.begin(stage)
    is_counted = False
    for name, chapter in CHAPTERS.items():
        if name not in chapters:
            continue
        if name in _MOVES_THE_BACKUP and not is_counted:
            await opening.count_segments(stage)
            is_counted = True
        await chapter(stage)
    if not is_counted:
        await opening.count_segments(stage)
    if is_kept:
        await stage.world.dial_without_cables()
    else:
        await opening.close(stage)
