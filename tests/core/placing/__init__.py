"""Placing, admission and recovery: what happens to bundles, tested step by step."""
