"""Benchmarks; `scripts/bench.py` is the command."""
