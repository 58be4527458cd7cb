"""Placement as arithmetic: which node, which new machine, or why neither. Pure, and on its own."""
