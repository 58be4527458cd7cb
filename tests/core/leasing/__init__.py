"""Leasing: who gets a slot, when, and how it ends."""
