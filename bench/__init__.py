"""Benchmarks: `make bench` measures what DESIGN promises and writes `bench/results.json`.

Each `bench_*.py` holds the rows of one subject; `registry` says what a row is, `runner` measures.
No test looks at these numbers: a busy machine must not fail a build.
"""
