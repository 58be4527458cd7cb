"""Kills real processes of a whole fleet at random instants and judges what is left.

A server on a SQLite file, two own boxes, elastic local machines, a primary and a backup that keep
records of their own, and lessees. By hand: `python -m tests.e2e.chaos --seed 7 --kills 200`.
The schedule follows from the seed; what it hits depends on the machine, as always with real
processes, so a failure is kept as the account of what was done and the world's folder.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from hostler.base.errors import HostlerError
from hostler.client import Client
from tests.e2e import chaos_checks
from tests.e2e.chaos_lessees import Lessees
from tests.e2e.chaos_world import OWN, ChaosWorld
from tests.eventually import eventually_async, pause

KINDS = (
    *["server"] * 4,
    *["own agent"] * 3,
    *["machine's agent"] * 3,
    *["supervisor"] * 3,
    *["work"] * 3,
    *["box"] * 2,
    *["machine"] * 2,
    "everything",
    "all but work",
)
"""What is struck, as a deck of cards that is shuffled again when it is used up."""

STALLS = (*["stall server"] * 2, *["stall agent"] * 4)
"""Shuffled in where things are to stand still as well."""

LESSEE_COUNT = 3
SETTLED_WITHIN_S = 60.0
END_WITHIN_S = 30.0


class ChaosFailed(AssertionError):
    """Something did not hold; the message tells what, and what had been done."""


async def run(seed: int, kill_count: int, pause_s_max: float, stall_s_max: float = 0.0) -> str:
    """Run one seed and return its account.

    Raises:
        ChaosFailed: Something did not hold. The world's folder is kept.
    """
    world = ChaosWorld.create(seed)
    world.stall_s_max = stall_s_max
    try:
        async with Client(world.demo.url, retry_ms=30_000) as client:
            told = await _run(world, client, kill_count, pause_s_max)
    except BaseException as error:
        await _forget(world, is_kept=True)
        if isinstance(error, (AssertionError, HostlerError)):
            done = "\n".join(f"  {kill.at_s:7.2f} {kill.what}" for kill in world.kills)
            raise ChaosFailed(f"seed {seed}, {world.demo.root}: {error}\n{done}") from error
        raise
    await _forget(world, is_kept=False)
    return f"seed {seed}: {told}"


async def _run(world: ChaosWorld, client: Client, kill_count: int, pause_s_max: float) -> str:
    world.demo.start_server()
    for name in OWN:
        world.demo.start_agent(name)
    await client.submit_bundle(world.bundle())
    await _settle(world, client)
    lessees = Lessees(world, client)
    living = [asyncio.create_task(lessees.live(f"lessee-{n}")) for n in range(LESSEE_COUNT)]
    deck: list[str] = []
    for _ in range(kill_count):
        if not deck:
            cards = KINDS + (STALLS if world.stall_s_max else ())
            deck = world.rng.sample(cards, len(cards))
        await pause(world.rng.uniform(0, pause_s_max))
        world.strike(deck.pop())
    began = time.monotonic()
    await world.all_restarted()
    lessees.is_over.set()
    await asyncio.wait_for(asyncio.gather(*living), SETTLED_WITHIN_S)
    await _settle(world, client)
    settled_s = time.monotonic() - began
    await _end(world, client)
    wrong = chaos_checks.doubled(world.records) + lessees.wrong
    if wrong:
        raise AssertionError("\n".join(wrong))
    return (
        f"{len(world.kills)} kills, settled after {settled_s:.1f} s,"
        f" {len(chaos_checks.lives(world.records))} lives, {lessees.run_count} commands run"
    )


async def _settle(world: ChaosWorld, client: Client) -> None:
    told: list[str] = []

    async def is_settled() -> bool:
        told[:] = await chaos_checks.unsettled(world, client)
        return not told

    try:
        await eventually_async(is_settled, within_s=SETTLED_WITHIN_S)
    except AssertionError:
        raise AssertionError("not settled: " + "\n".join(told)) from None


async def _end(world: ChaosWorld, client: Client) -> None:
    """Delete the bundle, Ctrl-C everything, and look at what is left."""
    await client.delete_bundle(chaos_checks.BUNDLE_ID)

    async def is_gone() -> bool:
        return not await client.bundles()

    await eventually_async(is_gone, within_s=END_WITHIN_S, what="the bundle is gone")
    for process in (world.demo.server, *world.demo.agents.values()):
        if not await asyncio.to_thread(world.demo.interrupt, process, END_WITHIN_S):
            raise AssertionError(f"{process!r} did not end cleanly on Ctrl-C")

    async def is_nothing_left() -> bool:
        return not chaos_checks.left_over(world)

    await eventually_async(is_nothing_left, within_s=2, what=f"{chaos_checks.left_over(world)} end")


async def _forget(world: ChaosWorld, *, is_kept: bool) -> None:
    """End everything, and remove the folder unless somebody is to look at it."""
    for task in list(world.restarts):
        task.cancel()
    await asyncio.gather(*world.restarts, return_exceptions=True)
    world.demo.clean_up(is_kept=is_kept)


def main() -> int:
    """Run seeds one after another; stop at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--kills", type=int, default=20, help="of each seed")
    parser.add_argument("--pause", type=float, default=2.0, help="longest between two, seconds")
    parser.add_argument("--stall", type=float, default=0.0, help="longest of processes, seconds")
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            sys.stdout.write(
                asyncio.run(run(seed, options.kills, options.pause, options.stall)) + "\n"
            )
        except ChaosFailed as failure:
            sys.stdout.write(f"FAILED {failure}\n")
            return 1
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
