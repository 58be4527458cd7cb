"""Links to agents: one WebSocket each, dialled by the agent, resumed after a break."""
