"""marinenav's simulator: many marine worlds at once, on the CPU and on CUDA."""
