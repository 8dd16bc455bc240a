// Phases that are alike in every environment: placing, sensing and judging. A phase is a functor over
// one index, (robot, first world). A launcher runs every index of a phase before the next phase
// starts (that boundary is the only barrier), in any order.
#pragma once

#include "kernel/unravel.h"
#include "kernel/views.h"
#include "kernel/worlds.h"

namespace marinenav {

/// Writes observations (frame 0) as Env::observe gives them, and pushes older frames down.
template <class Env, class V>
struct SensePhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = true;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  ObservationView<Env, T> out;
  ObservationView<Env, T> previous;  // frames to push down; null after a reset: repeat frame 0
  int frames;
  int32_t steps_ahead;  // 1 inside a step (the judge counts it later), 0 after a reset
  const bool* only;     // [W] worlds to observe, or null for all

  // Up to so many worlds of a group are observed one by one rather than all lanes at once.
  static constexpr int kFewLanes = 2;

  /// Pushes older frames of an entry's row down; a single frame copies nothing.
  MN_HD void push_frames(T* to, const T* from, int size) const {
    for (int f = frames - 1; f > 0; --f) {
      const T* source = from == nullptr ? to : from + (f - 1) * size;
      copy(to + f * size, source, size);
    }
  }

  /// Writes a robot's row, which is the one `row - first_row` of `rows`.
  MN_HD void write_row(const ObservationView<Env, T>& rows, int64_t first_row, int64_t row,
                       const T* values, bool alive) const {
    MN_UNROLL
    for (int k = 0; k < Env::kEntries; ++k) {
      const int size = Env::entry_size(k);
      T* to = rows.entry[k] + (row - first_row) * frames * size;
      copy(to, values, size);
      values += size;
      if (frames == 1) continue;
      const T* before = alive ? previous.entry[k] : nullptr;
      push_frames(to, before == nullptr ? nullptr : before + row * frames * size, size);
    }
  }

  /// Whether world w + i of a group of lanes is to be observed.
  MN_HD bool wanted(int w, int i) const {
    return w + i < s.worlds && (only == nullptr || only[w + i]);
  }

  MN_HD void operator()(int r, int w) const {
    if constexpr (kLaneCount<V> == 1) {
      if (wanted(w, 0)) observe_lanes(r, w);
    } else {
      int count = 0;
      for (int i = 0; i < kLaneCount<V>; ++i) count += wanted(w, i) ? 1 : 0;
      if (count > kFewLanes) {
        observe_lanes(r, w);
      } else if (count > 0) {
        const SensePhase<Env, T> single{s, p, out, previous, frames, steps_ahead, only};
        for (int i = 0; i < kLaneCount<V>; ++i)
          if (wanted(w, i)) single.observe_lanes(r, w + i);
      }
    }
  }

  /// Whether the sensor has faults.
  MN_HD bool faulty() const {
    if constexpr (Env::kFaultySensor) return Env::faulty(p);
    return false;
  }

  MN_HD void observe_lanes(int r, int w) const {
    if constexpr (Env::kFaultySensor) {
      if (faulty()) return observe_faulty(r, w);
    }
    observe<false>(r, w, out, 0);
  }

  /// Out of line, so that code for faults takes no registers from a sensor without any.
  MN_HD_APART void observe_faulty(int r, int w) const { observe<true>(r, w, out, 0); }

  /// Observes world w, or its lanes, into `rows`, whose first is `first_row` of all.
  template <bool kFaulty>
  MN_HD void observe(int r, int w, const ObservationView<Env, T>& rows, int64_t first_row) const {
    auto alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
    if constexpr (kLaneCount<V> > 1) {
      for (int i = 0; i < kLaneCount<V>; ++i) alive[i] = wanted(w, i) ? alive[i] : 0;
    }
    constexpr int kWidth = padded<V>(Env::kObservationSize);
    constexpr int kValues = kWidth * kLaneCount<V>;
    alignas(64) T values[kValues];
    for (int i = Env::kObservationSize * kLaneCount<V>; i < kValues; ++i) values[i] = T(0);
    if (any(alive)) {
      const V zero = splat<V>(T(0));
      const auto put = [&](int i, V value) {
        store(values + i * kLaneCount<V>, select(alive, value, zero));
      };
      Env::template observe<kFaulty, V>(s, p, s.template random<V>(w, steps_ahead), r, w, alive, put);
    } else {
      for (int i = 0; i < kValues; ++i) values[i] = T(0);
    }
    if constexpr (kLaneCount<V> == 1) {
      if (wanted(w, 0)) write_row(rows, first_row, int64_t{w} * s.robots + r, values, alive);
    } else {
      alignas(64) T by_lane[kValues];
      unravel<V, kWidth>(values, by_lane);
      int32_t acts[kLaneCount<V>];  // a lane of a variable index costs a store of all
      store_int<V>(acts, alive);
      for (int i = 0; i < kLaneCount<V>; ++i) {
        if (!wanted(w, i)) continue;
        write_row(rows, first_row, int64_t{w + i} * s.robots + r, by_lane + i * kWidth,
                  acts[i] != 0);
      }
    }
  }
};

/// Begins a new episode in the masked worlds.
template <class Env, class T>
struct BeginPhase {
  using Value = T;
  using World = typename Env::World;
  static constexpr bool kPerRobot = false;
  typename Env::template State<T> s;
  const bool* only;  // [W], or null for all

  MN_HD void operator()(int, int w) const {
    if (only != nullptr && !only[w]) return;
    *s.world_at(World::kStage, w) = s.stage_in(World::kNextStage, w);
    *s.world_at(World::kEpisode, w) += 1;
    *s.world_at(World::kStep, w) = 0;
    *s.world_at(World::kEnd, w) = kRunning;
  }
};

/// Looks for the first try that is accepted, one after another.
struct OneByOne {
  MN_HD void meet() const {}  // where several threads search together, all have come here

  template <class Accept>
  MN_HD int first(int begin, int end, const Accept& accept) const {
    while (begin < end && !accept(begin)) ++begin;
    return begin;
  }
};

/// Places the masked worlds as Env::place does.
template <class Env, class T>
struct PlacePhase {
  using Value = T;
  static constexpr bool kPerRobot = false;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  const bool* only;  // [W], or null for all
  bool* alive;       // [W, R] robots that act in the coming decision

  MN_HD bool wanted(int w) const { return w < s.worlds && (only == nullptr || only[w]); }

  MN_HD void operator()(int, int w) const {
    if (wanted(w)) place(w, OneByOne{});
  }

  /// Places a world. Several threads may do it together: all write the same, and they meet between
  /// what is written twice and its readers.
  template <class Search>
  MN_HD void place(int w, const Search& search) const {
    const int stage = s.stage_in(Env::World::kStage, w);
    const int robots = Env::place(s, p, s.template random<T>(w, 0), w,
                                  s.stage + stage * Env::Stage::kCount, search);
    for (int r = 0; r < s.robots; ++r) {
      const bool placed = r < robots;
      *s.status_at(r, w) = placed ? kAlive : 0;
      alive[int64_t{w} * s.robots + r] = placed;
    }
  }
};

/// What Env::judge says of a robot's decision.
template <class V>
struct Verdict {
  V reward;
  Mask<V> failed, reached;  // either ends the robot
};

/// Calls body(i) for the lanes of `left` worlds at most; a full group without a test for each.
template <class V, class Body>
MN_HD void for_lanes(int left, const Body& body) {
  if (left >= kLaneCount<V>) {
    MN_UNROLL
    for (int i = 0; i < kLaneCount<V>; ++i) body(i);
  } else {
    for (int i = 0; i < left; ++i) body(i);
  }
}

/// Rewards robots, and ends them, as Env::judge says.
template <class Env, class V>
struct JudgePhase {
  using Value = V;
  using T = Scalar<V>;
  using Robot = typename Env::Robot;
  static constexpr bool kPerRobot = true;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  StepView<T> out;

  MN_HD void operator()(int r, int w) const {
    auto status = load_int<V>(s.status_at(r, w));
    const auto alive = is_set(status, kAlive);
    const V zero = splat<V>(T(0)), one = splat<V>(T(1));
    const Verdict<V> verdict = Env::template judge<V>(s, p, r, w, alive);
    const auto failed = both(alive, verdict.failed), reached = both(alive, verdict.reached);
    const V reward = select(alive, verdict.reward, zero);
    const auto ended = either(failed, reached);
    status = select(alive, status | kActed, status & ~kActed);
    status = select(failed, status | kFailed, status);
    status = select(reached, status | kReached, status);
    status = select(ended, status & ~kAlive, status);
    store_int<V>(s.status_at(r, w), status);
    auto add = [&](int f, V value) {
      store(s.robot_at(f, r, w), load<V>(s.robot_at(f, r, w)) + select(alive, value, zero));
    };
    add(Robot::kReturn, reward), add(Robot::kSteps, one);
    const Int<V> none{};
    const auto flags = select(alive, none + 1, none) | select(ended, none + 2, none);
    for_lanes<V>(s.worlds - w, [&](int i) {
      const int64_t row = int64_t{w + i} * s.robots + r;
      const int32_t f = lane<V>(flags, i);
      out.reward[row] = lane<V>(reward, i);
      out.acted[row] = (f & 1) != 0;
      out.terminated[row] = (f & 2) != 0;
    });
  }
};

/// Ends worlds after a decision, with their statistics, and changes what is no robot.
template <class Env, class V>
struct EndPhase {
  using Value = V;
  using T = Scalar<V>;
  using World = typename Env::World;
  static constexpr bool kPerRobot = false;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  StepView<T> out;

  MN_HD void operator()(int, int w) const {
    auto end = load_int<V>(s.world_at(World::kEnd, w));
    const auto running = end == kRunning;
    auto failed = negate(either(running, negate(running)));  // nowhere yet
    auto acting = load_int<V>(s.world_at(World::kRobotSteps, w));
    auto alive = failed, ended = failed;
    for (int r = 0; r < s.robots; ++r) {
      const auto status = load_int<V>(s.status_at(r, w));
      const auto acted = is_set(status, kActed);
      acting = select(acted, acting + 1, acting);
      failed = either(failed, both(acted, is_set(status, kFailed)));
      alive = either(alive, is_set(status, kAlive));
      ended = either(ended, both(acted, negate(is_set(status, kAlive))));
    }
    store_int<V>(s.world_at(World::kRobotSteps, w), acting);
    auto step = load_int<V>(s.world_at(World::kStep, w));
    step = select(running, step + 1, step);
    store_int<V>(s.world_at(World::kStep, w), step);
    Env::template advance<V>(s, p, w, running);
    auto terminated = negate(alive);
    if (p.episode.stop_on_collision > T(0)) terminated = either(terminated, failed);
    if (p.episode.stop_on_end > T(0)) terminated = either(terminated, ended);
    terminated = both(running, terminated);
    const auto late = step >= Int<V>{} + static_cast<int32_t>(p.episode.max_steps);
    const auto truncated = both(both(running, negate(terminated)), late);
    end = select(terminated, Int<V>{} + static_cast<int32_t>(kTerminated), end);
    end = select(truncated, Int<V>{} + static_cast<int32_t>(kTruncated), end);
    store_int<V>(s.world_at(World::kEnd, w), end);
    finish(w, either(terminated, truncated), end);
  }

  /// Who is under way when a world ends, by a limit or by another robot's failure, is truncated.
  /// Writes the worlds' ends, empties finished worlds and books their episodes.
  MN_HD void finish(int w, Mask<V> finished, Int<V> end) const {
    for (int r = 0; r < s.robots; ++r) {
      const auto status = load_int<V>(s.status_at(r, w)) & ~kActed;
      const auto alive = is_set(status, kAlive);
      store_int<V>(s.status_at(r, w), select(finished, status & ~kAlive, status));
      const Int<V> none{};
      const auto flags = select(both(alive, finished), none + 1, none) |
                         select(both(alive, negate(finished)), none + 2, none);
      for_lanes<V>(s.worlds - w, [&](int i) {
        const int64_t row = int64_t{w + i} * s.robots + r;
        const int32_t f = lane<V>(flags, i);
        out.truncated[row] = (f & 1) != 0;
        out.alive[row] = (f & 2) != 0;
      });
    }
    for (int i = 0; i < kLaneCount<V> && w + i < s.worlds; ++i) {
      const int32_t e = lane<V>(end, i);
      out.done[w + i] = e != kRunning;
      out.world_terminated[w + i] = e == kTerminated;
      out.world_truncated[w + i] = e == kTruncated;
      if (lane<V>(finished, i) != 0) Env::book(s, p, w + i, e == kTruncated);
    }
  }
};

}  // namespace marinenav
