// MountainCar-v0 and MountainCarContinuous-v0: a car too weak for the hill (Moore 1990).
#pragma once

#include "classic/solo.h"

namespace marinenav {

#define MN_MOUNTAIN_CAR_PARAMS(X, XS)                                                       \
  X(gravity) X(power) X(max_speed) X(min_position) X(max_position) X(goal) X(goal_speed)    \
  X(step_reward) X(goal_reward) X(action_cost) X(start_low) X(start_high)
MN_PARAMS(MountainCarParams, MN_MOUNTAIN_CAR_PARAMS)
#undef MN_MOUNTAIN_CAR_PARAMS

#define MN_MOUNTAIN_CAR_FIELDS(X)                                       \
  /* along the track, a decision's change, and a decision's cost */     \
  X(kPosition, "position") X(kSpeed, "velocity") X(kCost, "cost")       \
  X(kReturn, "return") X(kSteps, "steps")

/// What both versions share. `Env::kRounds` says that the state is float32, as the continuous one's.
template <class Env>
struct MountainCarBase : Solo<Env> {
  struct Robot {
    enum : int { MN_MOUNTAIN_CAR_FIELDS(MN_ENUMERATOR) kCount };
  };
  static std::string robot_names() { return MN_MOUNTAIN_CAR_FIELDS(MN_NAME); }
  static constexpr int kObservationSize = 2;
  static constexpr const char* kObservationNames = "position velocity";
  template <class T>
  using Physics = MountainCarParams<T>;

  template <class T, class Put>
  MN_HD static void begin(const MountainCarParams<T>& c, const T* unit, const Put& put) {
    put(Robot::kPosition, c.start_low + unit[0] * (c.start_high - c.start_low));
  }

  template <class X>
  MN_HD static X rounded(X a) {
    if constexpr (Env::kRounds) {
      return as_float(a);
    } else {
      return a;
    }
  }

  /// Gymnasium's float32 state is still float64 in an episode's first decision.
  template <class V, class Field, class Put, class T = Scalar<V>>
  MN_HD static void integrate(const MountainCarParams<T>& c, V push, Mask<V> first,
                              const Field& field, const Put& put) {
    const auto kept = [&](V a) { return select(first, a, rounded(a)); };
    const V start = field(Robot::kPosition);
    const V slope = rounded(sincos_of(kept(start * T(3))).cos * -c.gravity);
    const V gained = rounded(rounded(push * rounded(c.power)) + slope);
    const V limit = splat<V>(rounded(c.max_speed));
    const V low = splat<V>(rounded(c.min_position)), high = splat<V>(rounded(c.max_position));
    V speed = smaller(larger(kept(field(Robot::kSpeed) + gained), -limit), limit);
    const V position = smaller(larger(kept(start + speed), low), high);
    const V zero = splat<V>(T(0));
    speed = select(both(position == low, speed < zero), zero, speed);
    put(Robot::kPosition, rounded(position)), put(Robot::kSpeed, rounded(speed));
    put(Robot::kCost, squared(push) * c.action_cost);
  }

  template <class V, class S, class P, class T = Scalar<V>>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V>) {
    const auto& c = p.physics;
    const V position = load<V>(s.robot_at(Robot::kPosition, r, w));
    const auto there = both(position >= splat<V>(rounded(c.goal)),
                            load<V>(s.robot_at(Robot::kSpeed, r, w)) >= splat<V>(c.goal_speed));
    const V gained = select(there, splat<V>(c.goal_reward), splat<V>(T(0))) + c.step_reward;
    return {gained - load<V>(s.robot_at(Robot::kCost, r, w)), nowhere<V>(), there};
  }
};
#undef MN_MOUNTAIN_CAR_FIELDS

struct MountainCar : MountainCarBase<MountainCar> {
  static constexpr const char* kName = "mountain_car";
  static constexpr int kContinuous = 0, kDiscrete = 3;  // accelerate to the left, not, to the right
  static constexpr bool kRounds = false;
};

struct MountainCarContinuous : MountainCarBase<MountainCarContinuous> {
  static constexpr const char* kName = "mountain_car_continuous";
  static constexpr int kContinuous = 1, kDiscrete = 0;
  static constexpr bool kRounds = true;
};

}  // namespace marinenav
