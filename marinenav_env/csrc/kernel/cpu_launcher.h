// Runs phases on CPU threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/lane.h"

namespace marinenav {

/// Phases of one tile of worlds. No phase reads another world, so the boundary between two phases
/// holds tile by tile, and a tile stays in the cache from one phase to the next.
template <class Phase>
void run_tile(const Phase& phase, int robots, int begin, int end) {
  const int rows = Phase::kPerRobot ? robots : 1;
  for (int w = begin; w < end; w += kLaneCount<typename Phase::Value>)
    for (int r = 0; r < rows; ++r) phase(r, w);
}

/// `ParallelFor(count, body)` calls body(begin, end) over a partition of [0, count).
template <class ParallelFor>
struct CpuLauncher {
  ParallelFor parallel_for;

  template <class... Phases>
  void operator()(int worlds, int robots, const Phases&... phases) const {
    const int64_t tiles = (worlds + kRowAlignment - 1) / kRowAlignment;
    parallel_for(tiles, [&](int64_t first, int64_t last) {
      for (int64_t tile = first; tile < last; ++tile) {
        const int begin = static_cast<int>(tile) * kRowAlignment;
        const int end = std::min(begin + kRowAlignment, worlds);
        (run_tile(phases, robots, begin, end), ...);
      }
    });
  }
};

}  // namespace marinenav
