"""Tests of the programs in `scripts`."""
