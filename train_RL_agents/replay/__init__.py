"""The replay buffer on the device."""
