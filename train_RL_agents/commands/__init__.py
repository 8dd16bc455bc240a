"""What the entry points share, and the parts of the longer ones."""
