"""Trials: what people reported as broken in systems like this one, each tried on ours.

A trial is a short script on a stage: a small fleet, one kind of fault, and what must come of it.
In every one of them the checks of `hostler.sim.trials.watch` hold too.
"""
