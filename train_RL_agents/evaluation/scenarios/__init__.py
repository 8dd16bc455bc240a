"""Scenarios as data: files, named sets, and their evaluation."""
