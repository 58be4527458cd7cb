"""Measures what supervisors cost: memory, start time, and processor time while their jobs run.

    python tools/measure_supervisors.py [COUNT]

Starts COUNT (100) supervisors as the agent does, each with a `sleep` for a job, and prints what
docs/agent.md quotes. Memory is from /proc/PID/smaps_rollup, processor time from /proc/PID/stat.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from hostler.agent.core.inputs import AllocationKey, Input
from hostler.agent.folder import DataFolder
from hostler.agent.runtime import supervised
from hostler.agent.runtime.environment import NodeIdentity
from hostler.agent.runtime.process import ProcessRuntime
from hostler.agent.tasks import Tasks
from hostler.wire.agent import StartAllocation
from hostler.wire.work import Identity, Launch

IDLE_S = 10
LAUNCH = Launch(
    argv=["sleep", "3600"],
    disconnect="keep",
    identity=Identity(fleet_id="f", bundle_id="b", job="j"),
)


async def measure(folder: Path, count: int) -> None:
    """Start, look, and stop."""
    data = DataFolder(folder)
    data.open()
    changed = asyncio.Event()

    def post(_: Input) -> None:
        changed.set()

    def fail(failure: BaseException) -> None:
        raise failure

    runtime = ProcessRuntime(data, NodeIdentity(node_id="n", machine_id=None), post, Tasks(fail))
    runtime.open()
    keys = [AllocationKey(f"a-{number}", 1) for number in range(count)]
    began_s = time.perf_counter()
    spent_s = time.process_time()
    for key in keys:
        start = StartAllocation(
            command_id="c", node_epoch=1, allocation_id=key[0], epoch=1, launch=LAUNCH
        )
        runtime.start(key, start)
    spent_s = time.process_time() - spent_s
    while not all(has_pid(runtime.folder(key)) for key in keys):
        changed.clear()
        await changed.wait()
    took_s = time.perf_counter() - began_s
    pids = [supervised.holder_pid(runtime.folder(key)) or 0 for key in keys]
    before = [ticks(pid) for pid in pids]
    await asyncio.sleep(IDLE_S)
    idle_ticks = sum(ticks(pid) for pid in pids) - sum(before)
    memory = [smaps(pid) for pid in pids]
    per_second = os.sysconf("SC_CLK_TCK")
    print(f"supervisors            {count}")
    print(f"all jobs running after {took_s * 1_000:.0f} ms ({took_s / count * 1_000:.1f} ms each)")
    print(f"the agent's own share  {spent_s / count * 1_000:.2f} ms each")
    print(f"processor, each start  {sum(before) / per_second / count * 1_000:.1f} ms")
    for name in ("Rss", "Pss", "Private_Dirty"):
        print(f"{name:<22} {sum(each[name] for each in memory) / count / 1_024:.1f} MiB each")
    print(f"processor while idle   {idle_ticks / per_second * 1_000:.0f} ms in {IDLE_S} s, all")
    for key in keys:
        runtime.stop(key, "SIGTERM", 1_000)
    while any(supervised.holder_pid(runtime.folder(key)) for key in keys):
        changed.clear()
        await changed.wait()
    runtime.close()
    data.close()


def has_pid(folder: Path) -> bool:
    """Say whether the job was started."""
    state = supervised.read_state(folder)
    return state is not None and state.pid is not None


def ticks(pid: int) -> int:
    """Processor time of a process so far."""
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(words[11]) + int(words[12])


def smaps(pid: int) -> dict[str, int]:
    """Memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) for line in lines}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
        asyncio.run(measure(Path(temporary), count))
