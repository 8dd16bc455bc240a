"""The algorithms: one file each, and one registry."""
