// A vessel of kinematics alone: it holds its heading's direction through the water and chooses
// acceleration and turn rate (Lin et al., ICRA 2024, arXiv 2402.11799).
#pragma once

#include "kernel/functions.h"
#include "kernel/params.h"
#include "kernel/views.h"
#include "marine/water/component.h"

namespace marinenav {

constexpr int kRateChoices = 3;

#define MN_KINEMATIC_PARAMS(X, XS)                                                              \
  X(dt) X(substeps) X(radius) X(detection_radius) X(max_speed) X(drag)                          \
  X(max_acceleration) X(max_turn_rate)                                                          \
  XS(accelerations, kRateChoices) XS(turn_rates, kRateChoices)
MN_PARAMS(ListedKinematicParams, MN_KINEMATIC_PARAMS)
#undef MN_KINEMATIC_PARAMS

// In the order of the published trajectory.
#define MN_KINEMATIC_FIELDS(X)                                                                  \
  /* m, m, rad in [0, 2 pi), m/s through the water */                                           \
  X(kX, "x") X(kY, "y") X(kHeading, "heading") X(kSpeed, "speed")                               \
  /* velocity over ground, world frame, m/s */                                                  \
  X(kVx, "vx") X(kVy, "vy")

struct KinematicVessel {
  struct Field {
    enum : int { MN_KINEMATIC_FIELDS(MN_ENUMERATOR) kVesselFields };
  };
  static constexpr const char* kFieldNames = MN_KINEMATIC_FIELDS(MN_NAME);

  // Acceleration and turn rate, or the product of kRateChoices each, accelerations outermost.
  static constexpr int kContinuous = 2, kThrusters = 0;
  static constexpr int kDiscrete = kRateChoices * kRateChoices;

  template <class T>
  struct Params : ListedKinematicParams<T> {
    T decision_time;  // s, dt * substeps
    static constexpr bool extended = false;

    void derive(const Params<double>& v) { decision_time = static_cast<T>(v.dt * v.substeps); }

    /// Has neither mass nor damping to vary.
    template <class S>
    MN_HD void vary(const Params<S>& p, const HullFactors<T>&) {
      this->spread(p);
      decision_time = T{} + p.decision_time;
    }
  };

  /// Acceleration (m/s^2) and turn rate (rad/s) of robot `row` = w * R + r; false if the action
  /// cannot be used.
  template <class T>
  MN_HD static bool command(const Params<T>& p, const ActionView<T>& action, int64_t row,
                            T (&rates)[kContinuous]) {
    if (action.continuous != nullptr) {
      const T push = action.continuous[2 * row], turn = action.continuous[2 * row + 1];
      const bool finite = push - push == T(0) && turn - turn == T(0);
      rates[0] = finite ? smaller(larger(push, T(-1)), T(1)) * p.max_acceleration : T(0);
      rates[1] = finite ? smaller(larger(turn, T(-1)), T(1)) * p.max_turn_rate : T(0);
      return finite;
    }
    const int64_t index = action.discrete[row];
    const bool known = index >= 0 && index < kDiscrete;
    rates[0] = known ? p.accelerations[index / kRateChoices] : T(0);
    rates[1] = known ? p.turn_rates[index % kRateChoices] : T(0);
    return known;
  }

  template <class V>
  struct Motion {
    V x, y, heading, speed;
    V vx, vy;
  };

  /// One vessel's decision under way.
  template <class V>
  struct Decision {
    Motion<V> motion;
    V acceleration, turn_rate;
  };

  /// `field(number)` reads the vessel's fields.
  template <class V, class T, class Field_>
  MN_HD static Decision<V> begin(const Params<T>&, const V (&rates)[kContinuous],
                                 const Field_& field) {
    return {{field(Field::kX), field(Field::kY), field(Field::kHeading), field(Field::kSpeed),
             field(Field::kVx), field(Field::kVy)},
            rates[0], rates[1]};
  }

  /// Has no thrusters that could fail.
  template <class V, class P, class Fault>
  MN_HD static void drive(const P&, Decision<V>&, const Fault&) {}

  /// A substep in water that flows with `flow` where the vessel is: position, speed, then heading.
  /// Forces do not move it.
  template <bool kExtended, class V, class P, class Push, class T = Scalar<V>>
  MN_HD static void substep(const P& p, const Vec2<V>& flow, Decision<V>& d, const Push&) {
    Motion<V>& m = d.motion;
    const SinCos<V> h = sincos_of(m.heading);
    m.vx = m.speed * h.cos + flow.x;
    m.vy = m.speed * h.sin + flow.y;
    m.x = m.x + m.vx * p.dt;
    m.y = m.y + m.vy * p.dt;
    const V speed = m.speed + (d.acceleration - m.speed * p.drag) * p.dt;
    m.speed = smaller(larger(speed, splat<V>(T(0))), V{} + p.max_speed);
    const V turn = splat<V>(T(2) * kPi<T>);
    V heading = m.heading + d.turn_rate * p.dt;
    heading = select(heading < splat<V>(T(0)), heading + turn, heading);
    m.heading = select(heading >= turn, heading - turn, heading);
  }

  /// `put(number, value)` writes the vessel's fields.
  template <class V, class Put>
  MN_HD static void end(const Decision<V>& d, const Put& put) {
    const Motion<V>& m = d.motion;
    put(Field::kX, m.x), put(Field::kY, m.y), put(Field::kHeading, m.heading);
    put(Field::kSpeed, m.speed), put(Field::kVx, m.vx), put(Field::kVy, m.vy);
  }

  /// Effort of the decision: the shares of the largest acceleration and turn rate.
  template <class V, class T>
  MN_HD static V energy(const Params<T>& p, const Decision<V>& d) {
    return absolute(d.acceleration) / splat<V>(p.max_acceleration) +
           absolute(d.turn_rate) / splat<V>(p.max_turn_rate);
  }

  /// Begins with a speed uniform in [0, max_speed), which as published leaves out the current.
  template <class T, class Put>
  MN_HD static void release(const Params<T>& p, T heading, uint32_t bits, const Vec2<T>&,
                            const Put& put) {
    const T speed = uniform<T>(bits) * p.max_speed;
    const SinCos<T> h = sincos_of(heading);
    put(Field::kSpeed, speed), put(Field::kVx, speed * h.cos), put(Field::kVy, speed * h.sin);
  }

  /// Begins with a speed ahead, which leaves out the current as `release` does.
  template <class T, class Put>
  MN_HD static void set_out(const Params<T>&, T heading, T speed, const Vec2<T>&, const Put& put) {
    const SinCos<T> h = sincos_of(heading);
    put(Field::kSpeed, speed), put(Field::kVx, speed * h.cos), put(Field::kVy, speed * h.sin);
  }

  /// What a vessel observes of itself besides its velocity in the body frame.
  static constexpr int kEgo = 0;
  static constexpr const char* kEgoNames = "";

  template <class Field_, class Put>
  MN_HD static void observe(const Field_&, const Put&) {}
};
#undef MN_KINEMATIC_FIELDS

}  // namespace marinenav
