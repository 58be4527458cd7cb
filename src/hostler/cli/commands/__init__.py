"""One module for each command or family of commands; each has `register(app)`.

Nothing but Typer loads before a command runs, so that `hostler --help` is quick.
"""
