"""Machines that do not exist, for trying settings out and for tests of programs.

They take their time, fail and run out as their tier's options say; commands in them answer from a
short list. What there is outlives the server, in its data folder.
"""

from hostler.providers.fake.provider import PROVIDER

__all__ = ["PROVIDER"]
