"""What `scripts/checks/fuzz.py` plays: configurations, damaged files, interrupted runs."""
