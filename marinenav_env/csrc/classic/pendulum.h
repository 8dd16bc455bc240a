// Pendulum-v1: swing a pendulum up and hold it there.
#pragma once

#include "classic/solo.h"

namespace marinenav {

#define MN_PENDULUM_PARAMS(X, XS)                                                         \
  X(gravity) X(mass) X(length) X(dt) X(max_torque) X(max_turn) X(turn_cost) X(torque_cost) \
  X(start_angle) X(start_turn)
MN_PARAMS(PendulumParams, MN_PENDULUM_PARAMS)
#undef MN_PENDULUM_PARAMS

#define MN_PENDULUM_FIELDS(X)                  \
  /* rad from upright, rad/s, and of a decision */ \
  X(kAngle, "theta") X(kTurn, "theta_dot") X(kCost, "cost") \
  X(kReturn, "return") X(kSteps, "steps")

/// Angle within [-pi, pi), by the remainder of Python's %.
MN_HD double half_turn(double angle) {
  const double turn = 2.0 * kPi<double>;
  double rest = ::fmod(angle + kPi<double>, turn);
  if (rest < 0.0) rest += turn;
  return rest - kPi<double>;
}
template <class V>
MN_HD V half_turn(V angle) {
  const V rounder = splat<V>(12582912.0f);  // 1.5 * 2^23: rounds to the nearest whole number
  const V turns = fused(angle, splat<V>(0.159154943091895336f), rounder) - rounder;
  return fused(turns, splat<V>(-6.28318530717958648f), angle);
}

struct Pendulum : Solo<Pendulum> {
  static constexpr const char* kName = "pendulum";
  struct Robot {
    enum : int { MN_PENDULUM_FIELDS(MN_ENUMERATOR) kCount };
  };
  static std::string robot_names() { return MN_PENDULUM_FIELDS(MN_NAME); }
  static constexpr int kContinuous = 1, kDiscrete = 0;  // torque
  static constexpr int kObservationSize = 3;
  static constexpr const char* kObservationNames = "cos_theta sin_theta theta_dot";
  template <class T>
  using Physics = PendulumParams<T>;

  template <bool, class V, class S, class P, class Put>
  MN_HD static void observe(const S& s, const P&, const RandomStream<V>&, int r, int w, Mask<V>,
                            const Put& put) {
    const SinCos<V> a = sincos_of(load<V>(s.robot_at(Robot::kAngle, r, w)));
    put(0, a.cos), put(1, a.sin), put(2, load<V>(s.robot_at(Robot::kTurn, r, w)));
  }

  template <class T, class Put>
  MN_HD static void begin(const PendulumParams<T>& c, const T* unit, const Put& put) {
    put(Robot::kAngle, around_zero(unit[0], c.start_angle));
    put(Robot::kTurn, around_zero(unit[1], c.start_turn));
  }

  /// The cost is that of the state before the decision; the torque stays float32.
  template <class V, class Field, class Put, class T = Scalar<V>>
  MN_HD static void integrate(const PendulumParams<T>& c, V push, Mask<V>, const Field& field,
                              const Put& put) {
    const V angle = field(Robot::kAngle), turn = field(Robot::kTurn);
    const V torque = as_float(push * c.max_torque);
    const V effort = as_float(squared_as_float(torque) * as_float(c.torque_cost));
    put(Robot::kCost, squared(half_turn(angle)) + squared(turn) * c.turn_cost + effort);
    const T weight = T(3) * c.gravity / (T(2) * c.length);
    const T inertia = T(3) / (c.mass * c.length * c.length);
    const V turned = sincos_of(angle).sin * weight + as_float(torque * as_float(inertia));
    const V next = smaller(larger(turn + turned * c.dt, V{} - c.max_turn), V{} + c.max_turn);
    put(Robot::kTurn, next), put(Robot::kAngle, angle + next * c.dt);
  }

  template <class V, class S, class P>
  MN_HD static Verdict<V> judge(const S& s, const P&, int r, int w, Mask<V>) {
    return {-load<V>(s.robot_at(Robot::kCost, r, w)), nowhere<V>(), nowhere<V>()};
  }
};
#undef MN_PENDULUM_FIELDS

}  // namespace marinenav
