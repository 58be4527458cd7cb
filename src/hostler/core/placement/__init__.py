"""Placement: where a replica should go, as arithmetic on values.

Nothing here writes. `places` shows nodes and their free room, `demand` says what a replica asks,
`feasible` refuses nodes with the first reason that holds, `resilience` tells which rules a place
would break, `score` orders what is left, `buy` picks a machine to launch, `walk` puts them together
over pools and tiers, and `trace` keeps why. The placing controller acts on the verdict.
"""
