"""The version of the core's decisions; a journal of another version may replay differently."""

CORE_VERSION = 4
