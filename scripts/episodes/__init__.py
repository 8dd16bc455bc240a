"""Parts of ``scripts/episode.py``."""
