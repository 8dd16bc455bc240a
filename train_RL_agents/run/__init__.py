"""What a run leaves on the disk: checkpoints, provenance, several seeds."""
