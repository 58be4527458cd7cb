"""Stores: where a fleet is kept, behind `hostler.ports.store`.

`open_store` (in `open.py`) picks one by url; `codec` turns records into rows. A store knows bytes
and revisions, never what a record means.
"""
