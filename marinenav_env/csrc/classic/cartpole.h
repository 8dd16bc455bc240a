// CartPole-v1: keep a pole on a cart upright (Barto, Sutton and Anderson 1983).
#pragma once

#include "classic/solo.h"

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

struct CartPole : Solo<CartPole> {
  static constexpr const char* kName = "cartpole";
  struct Robot {
    enum : int { MN_CARTPOLE_FIELDS(MN_ENUMERATOR) kCount };
  };
  static std::string robot_names() { return MN_CARTPOLE_FIELDS(MN_NAME); }
  static constexpr int kContinuous = 0, kDiscrete = 2;  // push to the left, to the right
  static constexpr int kObservationSize = 4;
  static constexpr const char* kObservationNames = "x x_dot theta theta_dot";
  template <class T>
  using Physics = CartPoleParams<T>;

  /// All four numbers uniform in [-start, start).
  template <class T, class Put>
  MN_HD static void begin(const CartPoleParams<T>& c, const T* unit, const Put& put) {
    for (int f = 0; f < kObservationSize; ++f) put(f, around_zero(unit[f], c.start));
  }

  /// Euler's method, every derivative taken before the step.
  template <class V, class Field, class Put, class T = Scalar<V>>
  MN_HD static void integrate(const CartPoleParams<T>& c, V push, Mask<V>, const Field& field,
                              const Put& put) {
    const V x = field(Robot::kX), speed = field(Robot::kSpeed);
    const V angle = field(Robot::kAngle), turn = field(Robot::kTurn);
    const SinCos<V> a = sincos_of(angle);
    const T mass = c.pole_mass + c.cart_mass, moment = c.pole_mass * c.half_length;
    const V drive = (push * c.force + turn * turn * moment * a.sin) / splat<V>(mass);
    const V turned = (a.sin * c.gravity - a.cos * drive) /
                     ((splat<V>(T(4.0 / 3.0)) - a.cos * a.cos * c.pole_mass / splat<V>(mass)) *
                      c.half_length);
    const V moved = drive - turned * moment * a.cos / splat<V>(mass);
    put(Robot::kX, x + speed * c.dt), put(Robot::kSpeed, speed + moved * c.dt);
    put(Robot::kAngle, angle + turn * c.dt), put(Robot::kTurn, turn + turned * c.dt);
  }

  /// 1 for every decision, also the one in which the pole falls.
  template <class V, class S, class P, class T = Scalar<V>>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V>) {
    const V x = absolute(load<V>(s.robot_at(Robot::kX, r, w)));
    const V angle = absolute(load<V>(s.robot_at(Robot::kAngle, r, w)));
    const auto fell = either(x > splat<V>(p.physics.most_position),
                             angle > splat<V>(p.physics.most_angle));
    return {splat<V>(T(1)), fell, nowhere<V>()};
  }
};
#undef MN_CARTPOLE_FIELDS

}  // namespace marinenav
