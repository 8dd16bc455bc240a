"""Episodes in the published JSON format: reading, writing, recording, replaying, comparing."""
