"""`python -m bench.lease_server FOLDER NODES`: a durable server with warm nodes, for benchmarks.

The nodes' agents are not there; whatever is asked of them is done at once. Prints its URL.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hostler.api.links.links import AgentLinks
from hostler.api.listening import listen
from hostler.api.serve import run, serve
from hostler.base.ids import MachineId, NodeId
from hostler.core.inputs import AgentSaidHello, JoinAgent
from hostler.core.replies import Accepted
from hostler.engine.assemble import EngineOptions, assemble
from hostler.engine.translate import apply_configuration
from hostler.model.shape import Shape
from hostler.ports.agents import AgentCommand
from hostler.wire.agent import CommandAnswered
from hostler.wire.documents import read_config

CONFIG = "pools: {warm: {tiers: [{name: own, kind: fixed}]}}"


class ObligingAgents(AgentLinks):
    """Agents that do at once what they are told."""

    async def deliver(
        self,
        node_id: NodeId,  # noqa: ARG002 - all of them are alike
        command: AgentCommand,
    ) -> CommandAnswered:
        """Say that it is done."""
        return CommandAnswered(command_id=command.command_id, outcome="done")


async def main(folder: Path, node_count: int) -> None:
    """Serve until told to stop."""
    listening = listen("127.0.0.1", 0)
    engine = await assemble(
        EngineOptions(
            store_url=f"sqlite:///{folder / 'fleet.db'}", folder=folder, server_url=listening.url
        )
    )
    agents = ObligingAgents(engine)
    engine.attach(agents)
    await engine.start()
    document = read_config(CONFIG).require()
    await engine.submit(
        apply_configuration(
            document, now_ms=engine.clock.now_ms(), request_id="config", principal="bench"
        )
    )
    for number in range(node_count):
        joined = await engine.submit(
            JoinAgent(
                request_id=f"join-{number}",
                principal="bench",
                pool="warm",
                tier="own",
                machine_id=MachineId(f"m-{number}"),
            )
        )
        if not isinstance(joined, Accepted):
            raise SystemExit(f"a node was not taken: {joined}")
        await engine.observe(
            AgentSaidHello(
                node_id=NodeId(joined.subject_id), incarnation=1, shape=Shape(capacity=1)
            )
        )
    await serve(engine, agents, listening, on_ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    run(main(Path(sys.argv[1]), int(sys.argv[2])))
