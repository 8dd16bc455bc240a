// Runs phases as CUDA kernels on the current stream, one thread an index.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>

#include "kernel/block_size.h"

namespace marinenav {

template <class Phase>
__global__ void run_phase(const Phase phase, int worlds, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) phase(i / worlds, i % worlds);
}

struct CudaLauncher {
  /// Threads a block; MARINENAV_BLOCK_SIZE overrides it (results do not depend on it).
  static int block_size() {
    static const int size = block_size_from(std::getenv("MARINENAV_BLOCK_SIZE"));
    return size;
  }

  template <class Phase>
  static void launch(const Phase& phase, int worlds, int robots) {
    const int count = worlds * (Phase::kPerRobot ? robots : 1);
    if (count == 0) return;  // CUDA takes a grid of no blocks for an error
    const int threads = block_size();
    run_phase<<<(count + threads - 1) / threads, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        phase, worlds, count);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  template <class... Phases>
  void operator()(int worlds, int robots, const Phases&... phases) const {
    (launch(phases, worlds, robots), ...);
  }
};

}  // namespace marinenav
