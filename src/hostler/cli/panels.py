"""The headings of `hostler --help`."""

from typing import Final

START: Final = "Start"
LONG_WORK: Final = "Work that stays"
SHORT_WORK: Final = "Work that is short"
LOOK: Final = "See what is and why"
CARE: Final = "Look after nodes"
SETTINGS: Final = "Set up"
PROGRAM: Final = "This program"
