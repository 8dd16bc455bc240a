// CartPole (Barto, Sutton and Anderson 1983), with the equations, numbers and order of operations of
// Gymnasium's CartPole-v1, so that float64 states agree with it to the bit.
#pragma once

#include "kernel/params.h"
#include "kernel/run.h"

namespace marinenav {

#define MN_CARTPOLE_PARAMS(X, XS)                                                              \
  X(gravity) X(cart_mass) X(pole_mass) X(half_length) X(force) X(dt) X(most_angle)             \
  X(most_position) X(start)
MN_PARAMS(CartPoleParams, MN_CARTPOLE_PARAMS)
#undef MN_CARTPOLE_PARAMS

#define MN_CARTPOLE_FIELDS(X)                                                                  \
  /* m, m/s, rad, rad/s */                                                                     \
  X(kX, "x") X(kSpeed, "x_dot") X(kAngle, "theta") X(kTurn, "theta_dot")                       \
  X(kReturn, "return") X(kSteps, "steps")
#define MN_CARTPOLE_WORLD(X)                                                                   \
  X(kNextStage, "next_stage") X(kStage, "stage") X(kEpisode, "episode") X(kStep, "step")       \
  X(kEnd, "end") X(kRobotSteps, "robot_steps")
#define MN_CARTPOLE_OUTCOME(X) \
  X(kFall, "fall") X(kTimeout, "timeout") X(kMeanReturn, "mean_return") X(kLength, "length")
#define MN_CARTPOLE_STATS(X) \
  X(kEpisodes, "episodes") X(kTimeouts, "timeouts") X(kReturnSum, "return_sum") \
  X(kLengthSum, "length_sum")

struct CartPole {
  static constexpr const char* kName = "cartpole";
  struct Robot {
    enum : int { MN_CARTPOLE_FIELDS(MN_ENUMERATOR) kCount };
  };
  struct World {
    enum : int { MN_CARTPOLE_WORLD(MN_ENUMERATOR) kCount };
  };
  struct Outcome {
    enum : int { MN_CARTPOLE_OUTCOME(MN_ENUMERATOR) kCount };
  };
  struct Stat {
    enum : int { MN_CARTPOLE_STATS(MN_ENUMERATOR) kCount };
  };
  struct Stage {
    enum : int { kCount = 1 };
  };
  static std::string robot_names() { return MN_CARTPOLE_FIELDS(MN_NAME); }
  static constexpr const char* kWorldNames = MN_CARTPOLE_WORLD(MN_NAME);
  static constexpr const char* kOutcomeNames = MN_CARTPOLE_OUTCOME(MN_NAME);
  static constexpr const char* kStatNames = MN_CARTPOLE_STATS(MN_NAME);
  static constexpr const char* kStageNames = "robots ";
  static constexpr int kContinuous = 0, kDiscrete = 2;

  static TensorSpecs state() { return world_specs<CartPole>(); }
  static TensorSpecs tables() { return stage_specs<CartPole>(); }
  template <class T>
  using State = Worlds<CartPole, T>;

  template <class T>
  struct Params {
    CartPoleParams<T> cartpole;
    EpisodeParams<T> episode;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("cartpole", cartpole), visit("episode", episode);
    }
    void derive(const Params<double>&) {}
  };

  static constexpr int kEntries = 1, kObservationSize = 4;
  MN_HD static constexpr int entry_size(int) { return kObservationSize; }
  static TensorSpecs observation() {
    return {{"state", Number::kReal, {"worlds", "robots", "frames", kObservationSize},
             "x x_dot theta theta_dot"}};
  }
  template <class V, class S, class P, class Put>
  MN_HD static void observe(const S& s, const P&, const RandomStream<V>&, int r, int w, Mask<V>,
                            const Put& put) {
    for (int f = 0; f < kObservationSize; ++f) put(f, load<V>(s.robot_at(f, r, w)));
  }

  /// Euler's method, every derivative taken before the step.
  template <class V>
  struct IntegratePhase {
    using Value = V;
    using T = Scalar<V>;
    static constexpr bool kPerRobot = true;
    State<T> s;
    Params<T> p;
    ActionView<T> action;

    MN_HD void operator()(int r, int w) const {
      const CartPoleParams<T>& c = p.cartpole;
      const auto alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
      if (!any(alive)) return;
      auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
      auto put = [&](int f, V value) {
        store(s.robot_at(f, r, w), select(alive, value, field(f)));
      };
      const V x = field(Robot::kX), speed = field(Robot::kSpeed);
      const V angle = field(Robot::kAngle), turn = field(Robot::kTurn);
      const SinCos<V> a = sincos_of(angle);
      const T mass = c.pole_mass + c.cart_mass, moment = c.pole_mass * c.half_length;
      const V push = (force(r, w, alive) + turn * turn * moment * a.sin) / splat<V>(mass);
      const V turned = (a.sin * c.gravity - a.cos * push) /
                       ((splat<V>(T(4.0 / 3.0)) - a.cos * a.cos * c.pole_mass / splat<V>(mass)) *
                        c.half_length);
      const V moved = push - turned * moment * a.cos / splat<V>(mass);
      put(Robot::kX, x + speed * c.dt), put(Robot::kSpeed, speed + moved * c.dt);
      put(Robot::kAngle, angle + turn * c.dt), put(Robot::kTurn, turn + turned * c.dt);
    }

    /// Force (N) on the carts: 1 pushes to the right, 0 to the left; anything else not at all.
    MN_HD V force(int r, int w, Mask<V> alive) const {
      V newtons;
      Int<V> bad;
      for (int i = 0; i < kLaneCount<V>; ++i) {
        const int world = w + i < s.worlds ? w + i : s.worlds - 1;  // padding reads the last row
        const int64_t index = action.discrete[int64_t{world} * s.robots + r];
        const bool known = index == 0 || index == 1;
        const T push = index == 1 ? p.cartpole.force : -p.cartpole.force;
        if constexpr (kLaneCount<V> == 1) {
          newtons = known ? push : T(0);
          bad = known ? 0 : 1;
        } else {
          newtons[i] = known ? push : T(0);
          bad[i] = known ? 0 : 1;
        }
      }
      const auto before = load_int<V>(s.bad_at(r, w));
      store_int<V>(s.bad_at(r, w), select(alive, before + bad, before));
      return newtons;
    }
  };

  template <class V, class S, class P, class T = Scalar<V>>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V>) {
    const V x = absolute(load<V>(s.robot_at(Robot::kX, r, w)));
    const V angle = absolute(load<V>(s.robot_at(Robot::kAngle, r, w)));
    const auto fell = either(x > splat<V>(p.cartpole.most_position),
                             angle > splat<V>(p.cartpole.most_angle));
    return {splat<V>(T(1)), fell, both(fell, negate(fell))};
  }

  template <class S, class P>
  MN_HD static void book(const S& s, const P&, int w, bool truncated) {
    using T = typename S::Real;
    const T sum = *s.robot_at(Robot::kReturn, 0, w), length = *s.robot_at(Robot::kSteps, 0, w);
    *s.outcome_at(Outcome::kFall, w) = truncated ? T(0) : T(1);
    *s.outcome_at(Outcome::kTimeout, w) = truncated ? T(1) : T(0);
    *s.outcome_at(Outcome::kMeanReturn, w) = sum;
    *s.outcome_at(Outcome::kLength, w) = length;
    if (s.stats == nullptr) return;
    const int stage = *s.world_at(World::kStage, w);
    auto add = [&](int field, T value) { *s.stat_at(stage, field, w) += value; };
    add(Stat::kEpisodes, T(1)), add(Stat::kTimeouts, truncated ? T(1) : T(0));
    add(Stat::kReturnSum, sum), add(Stat::kLengthSum, length);
  }

  template <class V, class S, class P>
  MN_HD static void advance(const S&, const P&, int, Mask<V>) {}

  /// All four numbers uniform in [-start, start).
  template <class T>
  MN_HD static int place(const State<T>& s, const Params<T>& p, const RandomStream<T>& random,
                         int w, const T*) {
    constexpr uint32_t kStart = 1;  // what the draw is for
    const Philox4<uint32_t> bits = random.draw(kStart, 0, 0);
    for (int f = 0; f < Robot::kCount; ++f) *s.robot_at(f, 0, w) = T(0);
    auto start = [&](uint32_t word) {
      return (uniform<T>(word) * T(2) - T(1)) * p.cartpole.start;
    };
    *s.robot_at(Robot::kX, 0, w) = start(bits.w0);
    *s.robot_at(Robot::kSpeed, 0, w) = start(bits.w1);
    *s.robot_at(Robot::kAngle, 0, w) = start(bits.w2);
    *s.robot_at(Robot::kTurn, 0, w) = start(bits.w3);
    return 1;
  }
};
#undef MN_CARTPOLE_FIELDS
#undef MN_CARTPOLE_WORLD
#undef MN_CARTPOLE_OUTCOME
#undef MN_CARTPOLE_STATS

}  // namespace marinenav
