// In place of torch's header: what CUDA C++ adds to C++, run on a host. Blocks run in random order, one
// after another, their threads as fibers.
#pragma once

#include <limits>
#include <numeric>

#include "block.h"

#define __global__
#define __device__
#define __shared__
#define __grid_constant__
#define __launch_bounds__(...)

namespace marinenav {
struct alignas(16) double2 {
  double x, y;
};
inline constexpr size_t kHostShared = 48 * 1024;
/// What a kernel declares as shared memory of unknown size.
double2 shared[kHostShared / sizeof(double2)];
}  // namespace marinenav

namespace c10::cuda {
struct HostStream {};
inline HostStream getCurrentCUDAStream() { return {}; }
}  // namespace c10::cuda

inline void __syncthreads() { HostBlock::synchronize(); }
inline void __syncwarp() { HostBlock::ballot(false); }
inline unsigned int __ballot_sync(unsigned int, bool vote) { return HostBlock::ballot(vote); }
inline int __popc(unsigned int bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

inline std::mt19937 host_random{1};
inline HostBlock host_block;  // of all kernels, since each runs its blocks one after another

/// Does what `kernel<<<blocks, threads, shared, stream>>>(arguments...)` does. What a block finds in
/// shared memory is no number.
template <class Kernel, class... Arguments>
void launch_on_host(const Kernel& kernel, int blocks, int threads, int bytes, c10::cuda::HostStream,
                    const Arguments&... arguments) {
  if (static_cast<size_t>(bytes) > marinenav::kHostShared) std::abort();
  std::vector<unsigned int> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), host_random);
  blockDim.x = static_cast<unsigned int>(threads);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const unsigned int index : order) {
    blockIdx.x = index;
    std::fill_n(marinenav::shared, static_cast<size_t>(bytes) / sizeof(marinenav::double2),
                marinenav::double2{nan, nan});
    host_block.run([&] { kernel(arguments...); });
  }
}
