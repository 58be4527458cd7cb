"""The `hostler` command: what people type. Knows the wire and the client, not the core."""
