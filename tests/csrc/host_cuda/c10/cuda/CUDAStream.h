// In place of torch's header: what CUDA C++ adds to C++, run on a host. A kernel's threads run one
// after another, its blocks in random order.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#define __global__

struct HostIndex {
  unsigned int x = 0;
};
inline thread_local HostIndex blockIdx, blockDim, threadIdx;

namespace c10::cuda {
struct HostStream {};
inline HostStream getCurrentCUDAStream() { return {}; }
}  // namespace c10::cuda

/// Does what `kernel<<<blocks, threads, shared, stream>>>(arguments...)` does.
template <class Kernel, class... Arguments>
void launch_on_host(Kernel kernel, int blocks, int threads, int, c10::cuda::HostStream,
                    const Arguments&... arguments) {
  static thread_local std::mt19937 random{1};
  std::vector<unsigned int> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  blockDim.x = static_cast<unsigned int>(threads);
  for (const unsigned int block : order) {
    blockIdx.x = block;
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(arguments...);
  }
}
