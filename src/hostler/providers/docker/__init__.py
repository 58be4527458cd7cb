"""Containers as machines, on one host, through the socket of Docker or podman.

They run no agent of ours and need no network: commands go in through the engine. An image needs a
shell at `/bin/sh`, a few tools (busybox is enough) and a `/tmp` that can be written.
"""

from hostler.providers.docker.provider import PROVIDER

__all__ = ["PROVIDER"]
