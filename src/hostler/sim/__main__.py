"""`python -m hostler.sim`."""

import sys

from hostler.sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
