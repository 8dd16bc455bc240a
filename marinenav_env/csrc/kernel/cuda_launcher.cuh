// Runs phases as one CUDA kernel on the current stream: a single phase with a thread an index, several
// with a block a tile of worlds, which runs them one after another.
#pragma once

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>

#include "kernel/block_size.h"
#include "kernel/phases.h"

#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1201
#error "marinenav: kernels of several phases take more than 4 KB of parameters: use CUDA 12.1 or later"
#endif

namespace marinenav {

constexpr int kWarp = 32;
constexpr unsigned int kWholeWarp = 0xffffffffu;

/// Looks for the first try that is accepted, with the lanes of a warp side by side.
struct WarpSearch {
  __device__ void meet() const { __syncwarp(); }

  template <class Accept>
  __device__ int first(int begin, int end, const Accept& accept) const {
    meet();
    for (; begin < end; begin += kWarp) {
      const int mine = begin + static_cast<int>(threadIdx.x) % kWarp;
      const unsigned int accepted = __ballot_sync(kWholeWarp, mine < end && accept(mine));
      if (accepted != 0) return begin + __ffs(static_cast<int>(accepted)) - 1;
    }
    return end;
  }
};

/// How a kernel divides worlds into tiles: a block has `rows` rows of `width` threads, and row r does
/// robots r, r + rows and so on.
struct Tiling {
  int worlds, robots, width, rows;
  int shared;  // bytes of memory in which a block gathers rows of observations; 0 for none

  int blocks() const { return (worlds + width - 1) / width; }
};

/// A thread's place in its tile.
struct Place {
  int first, row, world;  // the tile's first world; the thread's own, which may be beyond the last

  explicit __device__ Place(const Tiling& n)
      : first(static_cast<int>(blockIdx.x) * n.width),
        row(static_cast<int>(threadIdx.x) / n.width),
        world(first + static_cast<int>(threadIdx.x) % n.width) {}
};

template <class Body>
__device__ void for_robots(const Tiling& n, const Place& at, const Body& body) {
  if (at.world < n.worlds)
    for (int r = at.row; r < n.robots; r += n.rows) body(r);
}

template <class Phase>
__device__ void run_in_tile(const Tiling& n, const Place& at, const Phase& phase) {
  if constexpr (Phase::kPerRobot) {
    for_robots(n, at, [&](int r) { phase(r, at.world); });
  } else if (at.row == 0 && at.world < n.worlds) {
    phase(0, at.world);
  }
}

/// A few worlds are placed by a warp each, many by a lane each: it takes as long as the slowest world,
/// whose tries a warp makes 32 at a time.
template <class Env, class T>
__device__ void run_in_tile(const Tiling& n, const Place& at, const PlacePhase<Env, T>& phase) {
  constexpr int kFew = 4;  // worlds one after another
  const unsigned int wanted = __ballot_sync(kWholeWarp, phase.wanted(at.world));
  if (__popc(wanted) > kFew * n.rows) {
    if (at.row == 0) phase(0, at.world);
    return;
  }
  const int begin = at.world - static_cast<int>(threadIdx.x) % kWarp;
  int turn = 0;
  for (unsigned int left = wanted; left != 0; left &= left - 1, ++turn)
    if (turn % n.rows == at.row)
      phase.place(begin + __ffs(static_cast<int>(left)) - 1, WarpSearch{});
}

/// Copies `count` numbers with the threads of the block, 16 bytes at a time where that is possible.
template <class T>
__device__ void copy_by_block(T* to, const T* from, int count) {
  struct alignas(16) Group {
    T numbers[16 / sizeof(T)];
  };
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const bool aligned = reinterpret_cast<uintptr_t>(to) % sizeof(Group) == 0;
  const int groups = aligned ? count * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(Group)) : 0;
  for (int i = thread; i < groups; i += threads)
    reinterpret_cast<Group*>(to)[i] = reinterpret_cast<const Group*>(from)[i];
  for (int i = groups * static_cast<int>(sizeof(Group) / sizeof(T)) + thread; i < count; i += threads)
    to[i] = from[i];
}

/// Rows of all worlds are gathered in shared memory, and leave it as they lie in the observation:
/// written by a lane each, a row's numbers would touch as many sectors of memory as the warp has lanes.
template <class Env, class T>
__device__ void run_in_tile(const Tiling& n, const Place& at, const SensePhase<Env, T>& phase) {
  if (n.shared == 0 || phase.only != nullptr || phase.faulty()) {
    for_robots(n, at, [&](int r) { phase(r, at.world); });
    return;
  }
  extern __shared__ double2 shared[];  // aligned for 16 bytes
  const int64_t first_row = int64_t{at.first} * n.robots;
  ObservationView<Env, T> rows;
  T* free = reinterpret_cast<T*>(shared);
  for (int k = 0; k < Env::kEntries; ++k) {
    rows.entry[k] = free;
    free += n.width * n.robots * phase.frames * Env::entry_size(k);
  }
  for_robots(n, at, [&](int r) { phase.template observe<false>(r, at.world, rows, first_row); });
  __syncthreads();
  const int left = n.worlds - at.first;
  const int count = (left < n.width ? left : n.width) * n.robots * phase.frames;
  for (int k = 0; k < Env::kEntries; ++k) {
    const int size = Env::entry_size(k);
    copy_by_block(phase.out.entry[k] + first_row * phase.frames * size, rows.entry[k], count * size);
  }
}

// Parameters stay where the launch put them: a phase that calls a function out of line passes its own
// address, for which every thread would copy all of them to its stack.

/// Blocks of the largest size that a multiprocessor is to hold, which bounds a thread's registers: two
/// leave 128. In float64 the phases need more than that.
template <class... Phases>
constexpr int kBlocksAtOnce = (... && (sizeof(typename Phases::Value) == sizeof(float))) ? 2 : 1;

template <class Phase>
__global__ void __launch_bounds__(kLargestBlock, kBlocksAtOnce<Phase>)
    run_phase(const __grid_constant__ Phase phase, int worlds, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) phase(i / worlds, i % worlds);
}

/// Phases of the tile of a block, one after another.
struct InBlock {
  Tiling tiling;
  Place place;

  explicit __device__ InBlock(const Tiling& n) : tiling(n), place(n) {}

  template <class... Phases>
  __device__ void operator()(int, int, const Phases&... phases) const {
    ((run_in_tile(tiling, place, phases), __syncthreads()), ...);
  }
};

template <class... Phases>
__global__ void __launch_bounds__(kLargestBlock, kBlocksAtOnce<Phases...>)
    run_tiles(const Tiling tiling, const __grid_constant__ Phases... phases) {
  InBlock{tiling}(tiling.worlds, tiling.robots, phases...);
}

template <class Body>
__global__ void __launch_bounds__(kLargestBlock, kBlocksAtOnce<Body>)
    unroll_tiles(const Tiling tiling, const int turns, const __grid_constant__ Body body) {
  const InBlock block(tiling);
  for (int turn = 0; turn < turns; ++turn) body(turn, block);
}

/// Bytes of observation that a phase writes for a robot.
template <class Phase>
int row_bytes(const Phase&) {
  return 0;
}
template <class Env, class T>
int row_bytes(const SensePhase<Env, T>& phase) {
  return phase.frames * Env::kObservationSize * static_cast<int>(sizeof(T));
}

struct CudaLauncher {
  static constexpr int kSharedBytes = 48 * 1024;  // of a block, without asking for more

  /// Threads a block, or the next larger number that whole rows need; MARINENAV_BLOCK_SIZE overrides
  /// it (results do not depend on it).
  static int block_size() {
    static const int size = block_size_from(std::getenv("MARINENAV_BLOCK_SIZE"));
    return size;
  }

  template <class Phase>
  void operator()(int worlds, int robots, const Phase& phase) const {
    const int count = launched(worlds, Phase::kPerRobot ? robots : 1), threads = block_size();
    if (count == 0) return;  // CUDA takes a grid of no blocks for an error
    run_phase<<<(count + threads - 1) / threads, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        phase, worlds, count);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  /// The tiling of worlds whose robots write so many bytes of observation each.
  static Tiling tiling_of(int worlds, int robots, int row_bytes) {
    constexpr int kMostRows = kLargestBlock / kWarp;
    const int turns = (robots + kMostRows - 1) / kMostRows;
    const int rows = (robots + turns - 1) / turns;  // as many robots in every turn as can be
    const int warps = block_size() / (kWarp * rows);
    const int width = kWarp * (warps > 1 ? warps : 1);
    const int64_t bytes = int64_t{width} * robots * row_bytes;
    return {worlds, robots, width, rows, bytes <= kSharedBytes ? static_cast<int>(bytes) : 0};
  }

  template <class First, class Second, class... More>
  void operator()(int worlds, int robots, const First& first, const Second& second,
                  const More&... more) const {
    if (worlds == 0 || robots == 0) return;
    const Tiling n = tiling_of(worlds, robots,
                               row_bytes(first) + row_bytes(second) + (0 + ... + row_bytes(more)));
    run_tiles<<<n.blocks(), n.width * n.rows, n.shared, c10::cuda::getCurrentCUDAStream()>>>(
        n, first, second, more...);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  template <class Body>
  void unroll(int worlds, int robots, int turns, const Body& body) const {
    if (worlds == 0 || robots == 0) return;
    const Tiling n = tiling_of(worlds, robots, body.frames * Body::kRowBytes);
    unroll_tiles<<<n.blocks(), n.width * n.rows, n.shared, c10::cuda::getCurrentCUDAStream()>>>(
        n, turns, body);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

}  // namespace marinenav
