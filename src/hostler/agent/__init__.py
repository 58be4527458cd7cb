"""What runs on a node: takes commands from a server, runs the work, tells what becomes of it.

`core` decides, without I/O; `runtime` holds processes through one small supervisor each; `link`
talks to the server; `main` ties them together. `docs/agent.md` tells the whole.
"""
