"""Benchmarks; `scripts/bench.py` is the command."""

NO_MEMORY = "warning: out of memory"
"""Begins a line about a row that `bench.py` could not measure; `gpu_check.py` looks for it."""
