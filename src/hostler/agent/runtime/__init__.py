"""Ways to run an allocation. The first is the process runtime: a supervisor and a process group.

A runtime carries out the core's effects about allocations and posts what it sees as inputs.
"""
