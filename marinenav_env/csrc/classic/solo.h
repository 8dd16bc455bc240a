// What the classic control tasks share: one robot a world, one action between -1 and 1, one stage,
// and the returns and lengths of episodes as statistics.
//
// A task derives from Solo<task> and adds its fields (Robot, robot_names), Physics<T>, what it
// observes, and begin, integrate and judge. All follow Gymnasium's source operation by operation, so
// that float64 states and rewards agree with it to the bit, also where that one rounds to float32.
#pragma once

#include "kernel/params.h"
#include "kernel/run.h"

namespace marinenav {

#define MN_SOLO_WORLD(X)                                                              \
  X(kNextStage, "next_stage") X(kStage, "stage") X(kEpisode, "episode") X(kStep, "step") \
  X(kEnd, "end") X(kRobotSteps, "robot_steps")
#define MN_SOLO_OUTCOME(X) \
  X(kTimeout, "timeout") X(kMeanReturn, "mean_return") X(kLength, "length")
#define MN_SOLO_STATS(X)                                                        \
  X(kEpisodes, "episodes") X(kTimeouts, "timeouts") X(kReturnSum, "return_sum") \
  X(kLengthSum, "length_sum")

/// The nearest float32, in the type of the argument.
MN_HD float as_float(float a) { return a; }
MN_HD double as_float(double a) { return static_cast<double>(static_cast<float>(a)); }

/// a to the power of 2 by libm, as numpy has it: its last bit may differ from that of a * a.
MN_HD double squared(double a) {
#ifdef __CUDA_ARCH__
  return ::pow(a, 2.0);
#else
  const volatile double two = 2.0;  // the compiler takes a known exponent for a product
  return ::pow(a, two);
#endif
}
MN_HD double squared_as_float(double a) {
#ifdef __CUDA_ARCH__
  return static_cast<double>(::powf(static_cast<float>(a), 2.0f));
#else
  const volatile float two = 2.0f;
  return static_cast<double>(::powf(static_cast<float>(a), two));
#endif
}
#ifndef __CUDACC__
MN_HD PackF as_float(PackF a) { return a; }
#endif
template <class V>
MN_HD V squared(V a) {
  return a * a;
}
template <class V>
MN_HD V squared_as_float(V a) {
  return a * a;
}

/// A mask of no lane.
template <class V>
MN_HD Mask<V> nowhere() {
  return V{} != V{};
}

template <class Env>
struct Solo {
  struct World {
    enum : int { MN_SOLO_WORLD(MN_ENUMERATOR) kCount };
  };
  struct Outcome {
    enum : int { MN_SOLO_OUTCOME(MN_ENUMERATOR) kCount };
  };
  struct Stat {
    enum : int { MN_SOLO_STATS(MN_ENUMERATOR) kCount };
  };
  struct Stage {
    enum : int { kCount = 1 };
  };
  static constexpr const char* kWorldNames = MN_SOLO_WORLD(MN_NAME);
  static constexpr const char* kOutcomeNames = MN_SOLO_OUTCOME(MN_NAME);
  static constexpr const char* kStatNames = MN_SOLO_STATS(MN_NAME);
  static constexpr const char* kStageNames = "robots ";

  static TensorSpecs state() { return world_specs<Env>(); }
  static TensorSpecs tables() { return stage_specs<Env>(); }
  template <class T>
  using State = Worlds<Env, T>;

  template <class T>
  struct Params {
    typename Env::template Physics<T> physics;
    EpisodeParams<T> episode;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("physics", physics), visit("episode", episode);
    }
    void derive(const Params<double>&) {}
  };

  static constexpr int kEntries = 1;
  MN_HD static constexpr int entry_size(int) { return Env::kObservationSize; }
  static TensorSpecs observation() {
    return {{"state", Number::kReal, {"worlds", "robots", "frames", Env::kObservationSize},
             Env::kObservationNames}};
  }
  static constexpr bool kFaultySensor = false;
  static constexpr bool kUnrolls = true;
  /// The first fields of the state; a task that observes something else has its own.
  template <bool, class V, class S, class P, class Put>
  MN_HD static void observe(const S& s, const P&, const RandomStream<V>&, int r, int w, Mask<V>,
                            const Put& put) {
    for (int f = 0; f < Env::kObservationSize; ++f) put(f, load<V>(s.robot_at(f, r, w)));
  }

  template <class V>
  struct IntegratePhase {
    using Value = V;
    using T = Scalar<V>;
    static constexpr bool kPerRobot = true;
    State<T> s;
    Params<T> p;
    ActionView<T> action;

    MN_HD void operator()(int r, int w) const {
      const auto alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
      if (!any(alive)) return;
      const auto first = load_int<V>(s.world_at(World::kStep, w)) == 0;
      const auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
      Env::template integrate<V>(p.physics, push(r, w, alive), first, field, [&](int f, V value) {
        store(s.robot_at(f, r, w), select(alive, value, field(f)));
      });
    }

    /// Actions as numbers from -1 to 1, indices evenly from the first to the last. An unusable one
    /// does not push.
    MN_HD V push(int r, int w, Mask<V> alive) const {
      alignas(64) T share[kLaneCount<V>];
      alignas(64) int32_t bad[kLaneCount<V>];
      for (int i = 0; i < kLaneCount<V>; ++i) {
        const int world = w + i < s.worlds ? w + i : s.worlds - 1;  // padding reads the last row
        const bool known = read(int64_t{world} * s.robots + r, share[i]);
        share[i] = known ? share[i] : T(0);
        bad[i] = known ? 0 : 1;
      }
      const auto before = load_int<V>(s.bad_at(r, w));
      store_int<V>(s.bad_at(r, w), select(alive, before + load_int<V>(bad), before));
      return load<V>(share);
    }

    MN_HD bool read(int64_t row, T& share) const {
      if constexpr (Env::kDiscrete > 0) {
        const int64_t index = action.discrete[row];
        share = T(2) * static_cast<T>(index) / T(Env::kDiscrete - 1) - T(1);
        return index >= 0 && index < Env::kDiscrete;
      } else {
        share = as_float(smaller(larger(action.continuous[row], T(-1)), T(1)));
        return action.continuous[row] - action.continuous[row] == T(0);  // finite
      }
    }
  };

  template <class S, class P>
  MN_HD static void book(const S& s, const P&, int w, bool truncated) {
    using T = typename S::Real;
    const T late = truncated ? T(1) : T(0);
    const T sum = *s.robot_at(Env::Robot::kReturn, 0, w);
    const T length = *s.robot_at(Env::Robot::kSteps, 0, w);
    *s.outcome_at(Outcome::kTimeout, w) = late;
    *s.outcome_at(Outcome::kMeanReturn, w) = sum;
    *s.outcome_at(Outcome::kLength, w) = length;
    if (s.stats == nullptr) return;
    const int stage = s.stage_in(World::kStage, w);
    auto add = [&](int field, T value) { *s.stat_at(stage, field, w) += value; };
    add(Stat::kEpisodes, T(1)), add(Stat::kTimeouts, late);
    add(Stat::kReturnSum, sum), add(Stat::kLengthSum, length);
  }

  template <class V, class S, class P>
  MN_HD static void advance(const S&, const P&, int, Mask<V>) {}

  /// Begins with numbers uniform in [0, 1), from which Env::begin makes the state.
  template <class T, class Search>
  MN_HD static int place(const State<T>& s, const Params<T>& p, const RandomStream<T>& random,
                         int w, const T*, const Search&) {
    constexpr uint32_t kStart = 1;  // what the draw is for
    const Philox4<uint32_t> bits = random.draw(kStart, 0, 0);
    const T unit[4] = {uniform<T>(bits.w0), uniform<T>(bits.w1), uniform<T>(bits.w2),
                       uniform<T>(bits.w3)};
    for (int f = 0; f < Env::Robot::kCount; ++f) *s.robot_at(f, 0, w) = T(0);
    Env::begin(p.physics, unit, [&](int f, T value) { *s.robot_at(f, 0, w) = value; });
    return 1;
  }

  /// Uniform in [-most, most).
  template <class T>
  MN_HD static T around_zero(T unit, T most) {
    return (unit * T(2) - T(1)) * most;
  }
};
#undef MN_SOLO_WORLD
#undef MN_SOLO_OUTCOME
#undef MN_SOLO_STATS

}  // namespace marinenav
