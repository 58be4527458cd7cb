"""The engine: the shell around the core. One writer, one fleet, effects only after the commit.

`hostler.engine.engine.Engine` is its face; `hostler.engine.assemble` builds one.
"""
