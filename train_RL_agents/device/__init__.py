"""What a run asks of its machine: device, memory, several processes, CUDA graphs."""
