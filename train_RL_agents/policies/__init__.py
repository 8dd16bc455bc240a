"""Policies in files: loading, shipping, exporting."""
