// Launchers for tests: other orders in which a launcher may run the indices of a phase.
#pragma once

#include <algorithm>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/cpu_launcher.h"

namespace marinenav::test {

/// A parallel-for that is one call.
struct OneThread {
  template <class Body>
  void operator()(int64_t count, const Body& body) const {
    body(0, count);
  }
};

/// A parallel-for over `kThreads` threads, uneven parts.
struct SomeThreads {
  static constexpr int64_t kThreads = 3;

  template <class Body>
  void operator()(int64_t count, const Body& body) const {
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < kThreads; ++i)
      threads.emplace_back(
          [&body, first = count * i / kThreads, last = count * (i + 1) / kThreads] {
            body(first, last);
          });
    for (std::thread& thread : threads) thread.join();
  }
};

/// Runs each phase whole, as CUDA does, its indices in random order.
struct RandomOrder {
  mutable std::mt19937 random{1};

  template <class Phase>
  void run(const Phase& phase, int worlds, int robots) const {
    std::vector<std::pair<int, int>> indices;
    for (int w = 0; w < worlds; w += kLaneCount<typename Phase::Value>)
      for (int r = 0; r < (Phase::kPerRobot ? robots : 1); ++r) indices.emplace_back(r, w);
    std::shuffle(indices.begin(), indices.end(), random);
    for (const auto& [r, w] : indices) phase(r, w);
  }

  template <class... Phases>
  void operator()(int worlds, int robots, const Phases&... phases) const {
    (run(phases, worlds, robots), ...);
  }
};

/// A phase compiled once, however many launchers run it: what keeps the compile time down.
template <class Phase>
struct Outlined {
  using Value = typename Phase::Value;
  static constexpr bool kPerRobot = Phase::kPerRobot;
  Phase phase;
  __attribute__((noinline)) void operator()(int r, int w) const { phase(r, w); }
};

template <class Launcher>
struct Outlining {
  Launcher launcher;

  template <class... Phases>
  void operator()(int worlds, int robots, const Phases&... phases) const {
    launcher(worlds, robots, Outlined<Phases>{phases}...);
  }
};

using InOrder = Outlining<CpuLauncher<OneThread>>;
using OverThreads = Outlining<CpuLauncher<SomeThreads>>;
using Shuffled = Outlining<RandomOrder>;

}  // namespace marinenav::test
