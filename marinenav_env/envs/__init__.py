"""Environments: the TorchRL face of the kernel, and what each type observes and draws."""
