"""A provider to copy from: a machine is a folder on this host, and commands run in it."""

from hostler_sample.provider import PROVIDER

__all__ = ["PROVIDER"]
