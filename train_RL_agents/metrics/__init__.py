"""Statistics of a run: reduced on the device, copied once, written."""
