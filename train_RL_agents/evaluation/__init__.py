"""Fixed episodes, their table and figures."""
