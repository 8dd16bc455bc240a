"""The compiled operators and their typed wrappers."""
