"""How well placement packs a real cluster: the protocol of the FGD paper on the openb traces.

    python -m bench.openb --data FOLDER --trace openb_pod_list_default --seeds 42-51 [--json]

Every task arrives once in shuffled order, then tasks drawn at random until their GPU demand is
130 % of the cluster's. Each is placed at once or dropped, and nothing leaves. Reported is the share
of GPU capacity that is allocated when arrivals reach 100 % and 130 % of it (Weng et al., USENIX ATC
2023).

With the policy `hostler` each arrival is a bundle submitted to the core in a step of its own, and
whatever has no place in that step is deleted: filters, score and devices are those of production.
With `--migrations N`, up to N tasks for each 1,000 arrivals are moved while they run, when that
makes room for one that would be dropped (`openb_moves`); such results are reported apart.
`fgd` and `bestfit` run the yardstick `reference.py` that lies beside the data.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from bench.openb_moves import make_room
from hostler.base.ids import BundleId
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, DeleteBundle, SubmitBundle
from hostler.core.step import step
from hostler.model import Node, Settings
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import (
    WHOLE_MILLI,
    AttributeMatch,
    Capability,
    CapabilityRequest,
    Device,
    MatchRule,
    Requirement,
    Shape,
)
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool

NODES: Final = "openb_node_list_gpu_node.csv"
MARKS: Final = (100, 130)
MIB: Final = 2**20
PUBLISHED: Final = {
    "openb_pod_list_default": {"100": 95.23, "130": 95.39},
    "openb_pod_list_gpuspec33": {"100": 87.84, "130": 94.55},
}
"""Means of ten seeds with FGD in the paper's simulator (its repository's results, as the README of
the data gives them)."""


class Task(msgspec.Struct, frozen=True):
    """One task of the trace."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    models: tuple[str, ...]
    """Allowed GPU models; empty for any."""

    @property
    def demand_milli(self) -> int:
        """What it asks of GPUs in all."""
        return self.gpu_count * self.gpu_milli

    def requirement(self) -> Requirement:
        """Return the same in our words."""
        matches: tuple[AttributeMatch, ...] = ()
        if self.models:
            matches = (AttributeMatch(attribute="model", rule=MatchRule.IN, values=self.models),)
        gpu = CapabilityRequest(
            name="gpu", count=self.gpu_count, milli=self.gpu_milli, matches=matches
        )
        return Requirement(
            cores_milli=self.cpu_milli,
            memory_bytes=self.memory_mib * MIB,
            capabilities=(gpu,) if self.gpu_count else (),
        )


def rows(path: Path) -> list[dict[str, str]]:
    """Read a table."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def nodes_of(folder: Path) -> list[Node]:
    """Return the cluster."""
    return [
        a_node(
            row["sn"],
            shape=Shape(
                cores_milli=int(row["cpu_milli"]),
                memory_bytes=int(row["memory_mib"]) * MIB,
                capabilities=(
                    Capability(
                        name="gpu", count=int(row["gpu"]), attributes={"model": row["model"]}
                    ),
                ),
                devices=tuple(
                    Device(kind="gpu", device_id=str(number)) for number in range(int(row["gpu"]))
                ),
            ),
            incarnation=1,
        )
        for row in rows(folder / NODES)
    ]


def tasks_of(folder: Path, trace: str, models: frozenset[str]) -> list[Task]:
    """Return the tasks of a trace in its order."""
    found = []
    for row in rows(folder / f"{trace}.csv"):
        count = int(row["num_gpu"])
        allowed = {model for model in row["gpu_spec"].split("|") if model in models}
        found.append(
            Task(
                cpu_milli=int(row["cpu_milli"]),
                memory_mib=int(row["memory_mib"]),
                gpu_count=count,
                gpu_milli=int(row["gpu_milli"]) if count == 1 else WHOLE_MILLI if count else 0,
                models=tuple(sorted(allowed)),
            )
        )
    return found


def arrivals_of(tasks: Sequence[Task], capacity_milli: int, seed: int) -> list[Task]:
    """Return who arrives, in order: the very same draws as the yardstick's."""
    rng = np.random.default_rng(seed)
    arrivals = list(tasks)
    rng.shuffle(arrivals)
    demand = sum(task.demand_milli for task in tasks)
    while True:
        task = tasks[int(rng.integers(len(tasks)))]
        demand += task.demand_milli
        if demand > MARKS[-1] / 100 * capacity_milli:
            return arrivals
        arrivals.append(task)


class Cluster:
    """The cluster under our core."""

    def __init__(self, nodes: Sequence[Node], migrations: int = 0) -> None:
        self.migrations = migrations
        """Moves that are allowed for each 1,000 arrivals."""
        self.move_count = 0
        self.fleet = Fleet()
        records = [Settings(fleet_id="f-openb"), a_pool(tiers=(a_fixed_tier(),)), *nodes]
        self.fleet.load(records, revision=1, event_seq=0, now_ms=0)
        self.dropped: list[AnyInput] = []
        self.seconds: list[float] = []

    def offer(self, number: int, task: Task) -> bool:
        """Submit a task; say whether it has a place. One without is deleted with the next."""
        name = BundleId(f"t{number}")
        asked = SubmitBundle(
            request_id=name,
            principal="openb",
            bundle_id=name,
            pool="p",
            jobs=(a_job(requirement=task.requirement()),),
        )
        began = time.process_time()
        self.fleet.keep(step(self.fleet, [*self.dropped, asked], 1))
        self.seconds.append(time.process_time() - began)
        is_placed = self._is_placed(name)
        may_move = self.move_count < self.migrations * (number + 1) // 1_000
        if not is_placed and may_move and make_room(self.fleet, task.requirement(), 1):
            self.move_count += 1
            is_placed = self._is_placed(name)
        gone = DeleteBundle(request_id=f"d-{name}", principal="openb", bundle_id=name)
        self.dropped = [] if is_placed else [gone]
        return is_placed

    def _is_placed(self, name: str) -> bool:
        return self.fleet.replicas[f"{name}/main/0"].phase is ReplicaPhase.PLACED


def run(folder: Path, trace: str, seed: int, migrations: int = 0) -> dict[str, float]:
    """Play one seed on our core; return the percentage at each mark."""
    nodes = nodes_of(folder)
    gpus = {node.node_id: node.shape.capabilities or () for node in nodes}
    capacity = sum(c.count * WHOLE_MILLI for each in gpus.values() for c in each)
    models = frozenset(c.attributes["model"] for each in gpus.values() for c in each)
    cluster = Cluster(nodes, migrations)
    arrived = placed = 0
    found: dict[str, float] = {}
    for number, task in enumerate(arrivals_of(tasks_of(folder, trace, models), capacity, seed)):
        arrived += task.demand_milli
        placed += task.demand_milli if cluster.offer(number, task) else 0
        if "100" not in found and arrived >= capacity:
            found["100"] = round(100 * placed / capacity, 2)
    found["130"] = round(100 * placed / capacity, 2)
    if migrations:
        found["moves"] = cluster.move_count
    found["step_p50_ms"] = round(statistics.median(cluster.seconds) * 1_000, 3)
    return found


def run_yardstick(folder: Path, trace: str, seed: int, policy: str) -> dict[str, float]:
    """Play one seed with the yardstick."""
    spec = importlib.util.spec_from_file_location("openb_reference", folder / "reference.py")
    if spec is None or spec.loader is None:
        sys.exit(f"{folder} has no reference.py")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {
        str(mark): float(share) for mark, share in module.run(folder, trace, seed, policy).items()
    }


def seeds_of(text: str) -> list[int]:
    """Read seeds such as `42-51` or `42,43`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def results(arguments: argparse.Namespace) -> Iterator[tuple[int, dict[str, float]]]:
    """Play every seed."""
    play: Callable[[int], dict[str, float]] = lambda seed: run(  # noqa: E731  # one of two
        arguments.data, arguments.trace, seed, arguments.migrations
    )
    if arguments.policy != "hostler":
        play = lambda seed: run_yardstick(  # noqa: E731  # the other
            arguments.data, arguments.trace, seed, arguments.policy
        )
    for seed in seeds_of(arguments.seeds):
        yield seed, play(seed)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the traces")
    parser.add_argument("--trace", default="openb_pod_list_default", help="file name without .csv")
    parser.add_argument("--seeds", default="42-51", help="such as 42-51 or 42,43")
    parser.add_argument("--policy", default="hostler", choices=["hostler", "fgd", "bestfit"])
    parser.add_argument(
        "--migrations", type=int, default=0, help="moves allowed for each 1,000 arrivals; 0: none"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    arguments = parser.parse_args()
    by_seed: dict[int, dict[str, float]] = {}
    for seed, found in results(arguments):
        by_seed[seed] = found
        if not arguments.json:
            print(arguments.trace, arguments.policy, seed, found, flush=True)
    means = {
        str(mark): round(statistics.mean(found[str(mark)] for found in by_seed.values()), 3)
        for mark in MARKS
    }
    if arguments.json:
        report = {
            "trace": arguments.trace,
            "policy": arguments.policy,
            "migrations": arguments.migrations,
            "by_seed": by_seed,
            "mean": means,
            "published_fgd": PUBLISHED.get(arguments.trace),
        }
        print(json.dumps(report, indent=1))
    else:
        print("mean", means, "published FGD", PUBLISHED.get(arguments.trace), flush=True)


if __name__ == "__main__":
    main()
