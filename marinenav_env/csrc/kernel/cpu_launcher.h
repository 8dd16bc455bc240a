// Runs phases on CPU threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/lane.h"

namespace marinenav {

/// Phases of one tile of worlds. No phase reads another world, so the boundary between two phases
/// holds tile by tile, and a tile stays in the cache from one phase to the next.
struct InTile {
  int begin, end;

  template <class Phase>
  void run(const Phase& phase, int robots) const {
    const int rows = Phase::kPerRobot ? robots : 1;
    for (int w = begin; w < end; w += kLaneCount<typename Phase::Value>)
      for (int r = 0; r < rows; ++r) phase(r, w);
  }

  template <class... Phases>
  void operator()(int, int robots, const Phases&... phases) const {
    (run(phases, robots), ...);
  }
};

/// `ParallelFor(count, body)` calls body(begin, end) over a partition of [0, count).
template <class ParallelFor>
struct CpuLauncher {
  ParallelFor parallel_for;

  template <class Body>
  void for_tiles(int worlds, const Body& body) const {
    const int64_t tiles = (worlds + kRowAlignment - 1) / kRowAlignment;
    parallel_for(tiles, [&](int64_t first, int64_t last) {
      for (int64_t tile = first; tile < last; ++tile) {
        const int begin = static_cast<int>(tile) * kRowAlignment;
        body(InTile{begin, std::min(begin + kRowAlignment, worlds)});
      }
    });
  }

  template <class... Phases>
  void operator()(int worlds, int robots, const Phases&... phases) const {
    for_tiles(worlds, [&](const InTile& tile) { tile(worlds, robots, phases...); });
  }

  template <class Body>
  void unroll(int worlds, int, int turns, const Body& body) const {
    for_tiles(worlds, [&](const InTile& tile) {
      for (int turn = 0; turn < turns; ++turn) body(turn, tile);
    });
  }
};

}  // namespace marinenav
