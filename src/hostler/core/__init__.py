"""The decider: all policy, as a deterministic machine without input or output of its own.

`step(fleet, inputs, now_ms)` is the one way in. No clock, socket, file, thread, random source, log
or `await` is to be found here; the same core runs in the server, embedded, and in the simulator.
"""
