"""`python -m hostler.agent OPTIONS.json`: an agent whose options are in a file.

Providers start agents so: a file can be for its owner's eyes alone, a command line cannot.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from hostler.agent.main import AgentOptions, run_agent
from hostler.base.errors import Rejected


def main(options_path: str) -> int:
    """Run an agent; the exit code is the process's."""
    try:
        options = msgspec.json.decode(Path(options_path).read_bytes(), type=AgentOptions)
        return asyncio.run(run_agent(options))
    except (OSError, msgspec.MsgspecError) as error:
        return _refuse(f"{options_path}: {error}")
    except Rejected as refusal:
        return _refuse(str(refusal))


def _refuse(told: str) -> int:
    sys.stderr.write(f"hostler agent: {told}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
