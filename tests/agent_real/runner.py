"""Runs an agent as its own process, so that a test can kill it. Argument: options as JSON."""

import asyncio
import sys

import msgspec

from hostler.agent.main import AgentOptions, run_agent

if __name__ == "__main__":
    sys.exit(asyncio.run(run_agent(msgspec.json.decode(sys.argv[1], type=AgentOptions))))
