"""Machines on this host: each is an agent in a session of its own, with a declared shape.

For trying Hostler out, for demos and tests, and for using one large host as several small ones. The
machines outlive the server, as those of a cloud would.
"""

from hostler.providers.local.provider import PROVIDER

__all__ = ["PROVIDER"]
