"""Fixed hosts as machines, reached by ssh: one machine is the use of one host by one fleet.

Hosts need an sshd, a shell and the usual tools; nothing of ours is installed there. A host whose
machine is stopped is cleaned and free again, and one that cannot be cleaned is left alone.
"""

from hostler.providers.ssh.provider import PROVIDER

__all__ = ["PROVIDER"]
