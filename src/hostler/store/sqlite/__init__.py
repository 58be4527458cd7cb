"""The embedded store: one SQLite file, one server.

`store` is the port's face and owns the threads; `writer` commits and knows what a failure proves;
`reader` answers pages beside it; `schema` creates, upgrades and refuses files; `backup`, `lock` and
`failures` are what their names say.
"""
