"""Deputies: the agents of machines that run none of ours. They live in the server.

A provider without agents (`ProviderKind.has_agents`) reaches into its machines. For each node of it
the server runs an agent's core of its own, which speaks the agents' link with the server as every
agent does, and has leased commands run by the provider. To the core of the fleet such a node is
like any other: it is heard or silent, ready or lost, by the same rules.
"""
