// WAM-V 16: 3-DOF manoeuvring model (Fossen, Handbook of Marine Craft Hydrodynamics and Motion
// Control, ch. 6.5) with two thrusters astern. Vessels of further parameters share it.
#pragma once

#include "kernel/functions.h"
#include "kernel/params.h"
#include "kernel/views.h"
#include "marine/vessels/hull_terms.h"
#include "marine/water/component.h"

namespace marinenav {

constexpr int kThrustChoices = 5;

#define MN_WAMV16_PARAMS(X, XS)                                                                 \
  X(dt) X(substeps) X(length) X(width) X(radius) X(mass) X(izz)                                 \
  X(x_dot_u) X(y_dot_v) X(y_dot_r) X(n_dot_r) X(n_dot_v)                                        \
  X(x_u) X(x_uu) X(y_v) X(y_vv) X(y_r) X(y_rv) X(y_vr) X(y_rr)                                  \
  X(n_r) X(n_rr) X(n_v) X(n_vv) X(n_rv) X(n_vr)                                                 \
  X(x_g) X(x_uuu) X(cross_flow) X(thruster_spread) X(transport_term)                            \
  X(min_thrust) X(max_thrust) X(max_thrust_rate) X(power_coefficient)                           \
  XS(left_thrust_rates, kThrustChoices) XS(right_thrust_rates, kThrustChoices)
MN_PARAMS(Wamv16Params, MN_WAMV16_PARAMS)
#undef MN_WAMV16_PARAMS

// In the order of the published trajectory.
#define MN_WAMV16_FIELDS(X)                                                                     \
  /* m, m, rad in [0, 2 pi): north, east, clockwise */                                          \
  X(kX, "x") X(kY, "y") X(kHeading, "heading")                                                  \
  /* velocity through the water, world frame, m/s, m/s, rad/s */                                \
  X(kVxWater, "vx_water") X(kVyWater, "vy_water") X(kYawWater, "yaw_water")                     \
  /* velocity over ground, world frame */                                                       \
  X(kVx, "vx") X(kVy, "vy") X(kYaw, "yaw")                                                      \
  /* thruster azimuth, rad; thrust, N */                                                        \
  X(kLeftAngle, "left_angle") X(kRightAngle, "right_angle")                                     \
  X(kLeftThrust, "left_thrust") X(kRightThrust, "right_thrust")

struct Wamv16 {
  struct Field {
    enum : int { MN_WAMV16_FIELDS(MN_ENUMERATOR) kVesselFields };
  };
  static constexpr const char* kFieldNames = MN_WAMV16_FIELDS(MN_NAME);

  // Thrust rates of both sides, or the product of kThrustChoices each, left outermost.
  static constexpr int kContinuous = 2, kThrusters = 2;
  static constexpr int kDiscrete = kThrustChoices * kThrustChoices;

  template <class T>
  struct Params : Wamv16Params<T> {
    T inverse_mass_x;                  // 1 / (m - xDotU)
    T inv_yy, inv_yr, inv_ry, inv_rr;  // inverse of the sway-yaw block of M_RB + M_A
    T decision_time;                   // s, dt * substeps
    T lever;                           // m, of a thruster
    bool has_strips;                   // of cross-flow drag
    bool extended;                     // the hull has terms of hull_terms.h, or a transport term

    void derive(const Params<double>& v) {
      // M = M_RB + M_A (Fossen 2021, ch. 6.5); surge decouples from sway and yaw.
      const double moved = v.mass * v.x_g;
      const double yy = v.mass - v.y_dot_v, rr = v.izz - v.n_dot_r;
      const double yr = -(v.y_dot_r - moved), ry = -(v.n_dot_v - moved);
      const double det = yy * rr - yr * ry;
      inverse_mass_x = static_cast<T>(1.0 / (v.mass - v.x_dot_u));
      inv_yy = static_cast<T>(rr / det);
      inv_yr = static_cast<T>(-yr / det);
      inv_ry = static_cast<T>(-ry / det);
      inv_rr = static_cast<T>(yy / det);
      decision_time = static_cast<T>(v.dt * v.substeps);
      lever = static_cast<T>(0.5 * v.width * v.thruster_spread);
      has_strips = v.cross_flow != 0.0;
      extended = has_strips || v.x_g != 0.0 || v.x_uuu != 0.0 || v.transport_term != 0.0;
    }

    /// Masses and damping in lanes that vary from these by the factors of a vessel.
    template <class S>
    MN_HD void vary(const Params<S>& p, const HullFactors<T>& by) {
      this->spread(p);
      this->mass = this->mass * by.mass, this->izz = this->izz * by.mass;
      this->n_dot_r = this->n_dot_r * by.added_inertia;
      this->x_u = this->x_u * by.surge, this->x_uu = this->x_uu * by.surge;
      this->x_uuu = this->x_uuu * by.surge, this->cross_flow = this->cross_flow * by.sway;
      this->y_v = this->y_v * by.sway, this->y_vv = this->y_vv * by.sway;
      this->y_r = this->y_r * by.sway, this->y_rv = this->y_rv * by.sway;
      this->y_vr = this->y_vr * by.sway, this->y_rr = this->y_rr * by.sway;
      this->n_r = this->n_r * by.yaw, this->n_rr = this->n_rr * by.yaw;
      this->n_v = this->n_v * by.yaw, this->n_vv = this->n_vv * by.yaw;
      this->n_rv = this->n_rv * by.yaw, this->n_vr = this->n_vr * by.yaw;
      const T yy = this->mass - this->y_dot_v, rr = this->izz - this->n_dot_r;
      const T moved = this->mass * this->x_g;
      const T yr = this->y_dot_r - moved, ry = this->n_dot_v - moved;
      const T det = yy * rr - yr * ry;
      inverse_mass_x = S(1) / (this->mass - this->x_dot_u);
      inv_yy = rr / det, inv_yr = yr / det;
      inv_ry = ry / det, inv_rr = yy / det;
      has_strips = p.has_strips, extended = p.extended;
    }
  };

  /// Motion state, world frame.
  template <class V>
  struct Motion {
    V x, y, heading;
    V vx_water, vy_water, yaw_water;
    V vx, vy, yaw;
  };

  template <class V, class T = Scalar<V>>
  MN_HD static Force<V> thrust_of(const Params<T>& p, V left, V right, V left_angle,
                                   V right_angle) {
    const SinCos<V> l = sincos_of(left_angle);
    const SinCos<V> r = sincos_of(right_angle);
    const V sway = left * l.sin + right * r.sin;
    return {left * l.cos + right * r.cos, sway,
            (left * l.cos - right * r.cos) * p.lever - sway * (p.length * T(0.5))};
  }

  /// Surge, sway and yaw acceleration in the body frame: M acc = tau - C_RB V - (C_A + D + D_n) V_r.
  template <class V>
  struct Acceleration {
    V u, v, r;
  };

  template <class V, class P>
  MN_HD static Acceleration<V> acceleration_of(const P& p, const Force<V>& tau, V u, V v,
                                               V u_r, V v_r, V r) {
    const V abs_v = absolute(v_r);
    const V abs_r = absolute(r);
    const V added_sway = v_r * p.y_dot_v + r * p.y_dot_r;
    const V surge =
        tau.surge + r * v * p.mass - added_sway * r + (p.x_u + absolute(u_r) * p.x_uu) * u_r;
    const V sway = tau.sway - r * u * p.mass + u_r * r * p.x_dot_u +
                   (p.y_v + abs_v * p.y_vv + abs_r * p.y_rv) * v_r +
                   (p.y_r + abs_v * p.y_vr + abs_r * p.y_rr) * r;
    const V turn = tau.yaw + (added_sway - v_r * p.x_dot_u) * u_r +
                   (p.n_v + abs_v * p.n_vv + abs_r * p.n_rv) * v_r +
                   (p.n_r + abs_v * p.n_vr + abs_r * p.n_rr) * r;
    return {surge * p.inverse_mass_x, sway * p.inv_yy + turn * p.inv_yr,
            sway * p.inv_ry + turn * p.inv_rr};
  }

  /// As `acceleration_of`, of a hull with further terms. The velocity is kept in the world frame,
  /// which turns the body's components with the heading; what C_RB holds of that is taken out by the
  /// transport term, with C_RB of the velocity through the water (Fossen 2021, property 10.1).
  template <class V, class P, class T = Scalar<V>>
  MN_HD static Acceleration<V> extended_acceleration_of(const P& p, Force<V> tau, V u, V v, V u_r,
                                                        V v_r, V r) {
    const V transport = V{} + p.transport_term;
    const auto once = transport > splat<V>(T(0));
    add_hull_terms(p, u_r, v_r, r, tau);
    const Acceleration<V> a =
        acceleration_of(p, tau, select(once, u_r, u), select(once, v_r, v), u_r, v_r, r);
    return {a.u - transport * r * v_r, a.v + transport * r * u_r, a.r};
  }

  /// Thrust rates (N/s) of robot `row` = w * R + r; false if the action cannot be used.
  template <class T>
  MN_HD static bool command(const Params<T>& p, const ActionView<T>& action, int64_t row,
                            T (&rates)[kContinuous]) {
    if (action.continuous != nullptr) {
      const T left = action.continuous[2 * row], right = action.continuous[2 * row + 1];
      const bool finite = left - left == T(0) && right - right == T(0);
      rates[0] = finite ? smaller(larger(left, T(-1)), T(1)) * p.max_thrust_rate : T(0);
      rates[1] = finite ? smaller(larger(right, T(-1)), T(1)) * p.max_thrust_rate : T(0);
      return finite;
    }
    const int64_t index = action.discrete[row];
    const bool known = index >= 0 && index < kDiscrete;
    rates[0] = known ? p.left_thrust_rates[index / kThrustChoices] : T(0);
    rates[1] = known ? p.right_thrust_rates[index % kThrustChoices] : T(0);
    return known;
  }

  /// One vessel's decision under way.
  template <class V>
  struct Decision {
    Motion<V> motion;
    V left, right;  // thrusts after the change
    V left_angle, right_angle;
    Force<V> tau;
  };

  /// `field(number)` reads the vessel's fields.
  template <class V, class T, class Field_>
  MN_HD static Decision<V> begin(const Params<T>& p, const V (&rates)[kContinuous],
                                 const Field_& field) {
    Decision<V> d;
    d.motion = {field(Field::kX), field(Field::kY), field(Field::kHeading),
                field(Field::kVxWater), field(Field::kVyWater), field(Field::kYawWater),
                field(Field::kVx), field(Field::kVy), field(Field::kYaw)};
    // The first substep moves with the old velocity, then the thrusts change for all ten.
    const V low = splat<V>(p.min_thrust), high = splat<V>(p.max_thrust);
    d.left = smaller(larger(field(Field::kLeftThrust) + rates[0] * p.decision_time, low), high);
    d.right = smaller(larger(field(Field::kRightThrust) + rates[1] * p.decision_time, low), high);
    d.left_angle = field(Field::kLeftAngle), d.right_angle = field(Field::kRightAngle);
    d.tau = thrust_of<V>(p, d.left, d.right, d.left_angle, d.right_angle);
    return d;
  }

  /// Lets `fault(thrusts)` change what the thrusters give, not what they were told.
  template <class V, class T, class Fault>
  MN_HD static void drive(const Params<T>& p, Decision<V>& d, const Fault& fault) {
    V thrust[kThrusters] = {d.left, d.right};
    fault(thrust);
    d.tau = thrust_of<V>(p, thrust[0], thrust[1], d.left_angle, d.right_angle);
  }

  /// A substep in water that flows with `flow` where the vessel is; `push(hull, force)` adds forces.
  /// A hull that is `extended` needs kExtended, which other ones may have.
  template <bool kExtended, class V, class P, class Push>
  MN_HD static void substep(const P& p, const Vec2<V>& flow, Decision<V>& d,
                            const Push& push) {
    advance_pose(p, flow, d.motion);
    advance_velocity<kExtended>(p, d.tau, d.motion, push);
  }

  /// First half: velocity over ground from the current here, then position and heading.
  template <class V, class P, class T = Scalar<V>>
  MN_HD static void advance_pose(const P& p, const Vec2<V>& flow, Motion<V>& m) {
    m.vx = m.vx_water + flow.x;
    m.vy = m.vy_water + flow.y;
    m.yaw = m.yaw_water;
    m.x = m.x + m.vx * p.dt;
    m.y = m.y + m.vy * p.dt;
    const V turn = splat<V>(T(2) * kPi<T>);
    V heading = m.heading + m.yaw * p.dt;
    heading = select(heading < splat<V>(T(0)), heading + turn, heading);
    m.heading = select(heading >= turn, heading - turn, heading);
  }

  /// Second half: acceleration at the advanced heading; velocity over ground keeps its value.
  template <bool kExtended, class V, class P, class Push>
  MN_HD static void advance_velocity(const P& p, Force<V> tau, Motion<V>& m, const Push& push) {
    const SinCos<V> h = sincos_of(m.heading);
    const V u_r = h.cos * m.vx_water + h.sin * m.vy_water;
    const V v_r = h.cos * m.vy_water - h.sin * m.vx_water;
    const V u = h.cos * m.vx + h.sin * m.vy;
    const V v = h.cos * m.vy - h.sin * m.vx;
    push(Hull<V>{m.x, m.y, h, u, v}, tau);
    const Acceleration<V> a = [&] {
      if constexpr (kExtended) {
        if (p.extended) return extended_acceleration_of(p, tau, u, v, u_r, v_r, m.yaw);
      }
      return acceleration_of(p, tau, u, v, u_r, v_r, m.yaw);
    }();
    const V u_next = u_r + a.u * p.dt;
    const V v_next = v_r + a.v * p.dt;
    m.vx_water = h.cos * u_next - h.sin * v_next;
    m.vy_water = h.sin * u_next + h.cos * v_next;
    m.yaw_water = m.yaw + a.r * p.dt;
  }

  /// `put(number, value)` writes the vessel's fields.
  template <class V, class Put>
  MN_HD static void end(const Decision<V>& d, const Put& put) {
    const Motion<V>& m = d.motion;
    put(Field::kX, m.x), put(Field::kY, m.y), put(Field::kHeading, m.heading);
    put(Field::kVxWater, m.vx_water), put(Field::kVyWater, m.vy_water);
    put(Field::kYawWater, m.yaw_water);
    put(Field::kVx, m.vx), put(Field::kVy, m.vy), put(Field::kYaw, m.yaw);
    put(Field::kLeftThrust, d.left), put(Field::kRightThrust, d.right);
  }

  /// Begins at rest in the water, so it drifts with the current.
  template <class T, class Put>
  MN_HD static void release(const Params<T>&, T, uint32_t, const Vec2<T>& flow, const Put& put) {
    put(Field::kVx, flow.x), put(Field::kVy, flow.y);
  }

  /// Begins with a speed ahead through the water, and the thrust that keeps it in still water.
  template <class T, class Put>
  MN_HD static void set_out(const Params<T>& p, T heading, T speed, const Vec2<T>& flow,
                            const Put& put) {
    const SinCos<T> h = sincos_of(heading);
    const T thrust = -(p.x_u + (p.x_uu + p.x_uuu * speed) * speed) * speed * T(0.5);
    put(Field::kVxWater, speed * h.cos), put(Field::kVyWater, speed * h.sin);
    put(Field::kVx, speed * h.cos + flow.x), put(Field::kVy, speed * h.sin + flow.y);
    put(Field::kLeftThrust, thrust), put(Field::kRightThrust, thrust);
  }

  /// Energy of the decision, N s.
  template <class V, class T>
  MN_HD static V energy(const Params<T>& p, const Decision<V>& d) {
    const V effort = absolute(d.left) + absolute(d.right);
    return effort * (p.power_coefficient * p.decision_time);
  }

  /// What a vessel observes of itself besides its velocity in the body frame.
  static constexpr int kEgo = 3;
  static constexpr const char* kEgoNames = "r left_thrust right_thrust";

  template <class Field_, class Put>
  MN_HD static void observe(const Field_& field, const Put& put) {
    put(0, field(Field::kYaw)), put(1, field(Field::kLeftThrust)), put(2, field(Field::kRightThrust));
  }
};
#undef MN_WAMV16_FIELDS

}  // namespace marinenav
