"""Figures and videos of what happened in a world."""
