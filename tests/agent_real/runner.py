"""Runs an agent as its own process, so that a test can kill it. Argument: options as JSON."""

import asyncio
import sys

import msgspec

from hostler.agent.main import AgentOptions, run_agent

if __name__ == "__main__":

    def from_text(kind: type, value: object) -> object:
        return kind(value)

    options = msgspec.json.decode(sys.argv[1], type=AgentOptions, dec_hook=from_text)
    sys.exit(asyncio.run(run_agent(options)))
