"""What crosses between processes: messages of the agent link and documents of the public API.

Only shapes and their codecs live here, and the sans-IO part of the link that both ends share
(`hostler.wire.link`). Nothing in this room opens a socket or decides anything.
"""
