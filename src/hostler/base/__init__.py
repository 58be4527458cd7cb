"""The leaf of the house: ids, units, errors, lifecycles, random streams and the canonical encoding.

Nothing here knows what Hostler does. Every other room may import this one; it imports none.
"""
