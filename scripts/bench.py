"""Measures throughput: ``python scripts/bench.py``; the program is `scripts.bench.main`."""

import sys

from scripts.bench.main import main

if __name__ == "__main__":
    sys.exit(main())
