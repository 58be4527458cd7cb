"""Hostler: a control plane for fleets of machines that must be ready now.

The packages are rooms with few doors; `docs/architecture.md` draws them. Importing this package
loads none of them, so that the command line starts quickly and the agent stays small.
"""

from typing import Final

__version__: Final = "0.1.0"
