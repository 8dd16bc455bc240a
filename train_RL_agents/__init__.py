"""Training, evaluation and export of navigation policies."""
