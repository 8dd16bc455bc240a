"""Checks that take minutes or a GPU."""
