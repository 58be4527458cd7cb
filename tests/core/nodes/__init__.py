"""Nodes from request to retirement."""
