"""HTTP on the engine: requests become inputs, records become views, agents dial in.

Nothing is decided here but who may ask. `hostler.api.app.create_app` makes the application,
`hostler.api.serve.serve` runs it on a port.
"""
