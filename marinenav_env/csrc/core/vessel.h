// Vessel motion: 3-DOF manoeuvring model (Fossen, Handbook of Marine Craft Hydrodynamics and Motion
// Control, ch. 6.5) with the published WAM-V 16 parameters, and the vortex current it moves in.
#pragma once

#include "functions.h"
#include "params.h"
#include "state.h"

namespace marinenav {

template <class V>
struct Vec2 {
  V x, y;
};

/// Water velocity (m/s, world frame) at a position: Rankine vortices, all add up.
template <class V, class T = Scalar<V>>
MN_HD Vec2<V> current_at(const State<T>& s, const Params<T>& p, int w, V x, V y) {
  Vec2<V> flow{splat<V>(T(0)), splat<V>(T(0))};
  const T core2 = p.current.core_radius * p.current.core_radius;
  for (int c = 0; c < s.vortices; ++c) {
    const V dx = load<V>(s.vortex_at(0, c, w)) - x;
    const V dy = load<V>(s.vortex_at(1, c, w)) - y;
    const V gamma = load<V>(s.vortex_at(2, c, w)) * (T(0.5) / kPi<T>);
    // Speed Gamma/(2 pi d) outside and Gamma d/(2 pi r^2) inside, times the unit vector / d.
    const V per_metre = gamma / larger(dx * dx + dy * dy, splat<V>(core2));
    flow.x = flow.x - dy * per_metre;
    flow.y = flow.y + dx * per_metre;
  }
  return flow;
}

/// Motion state, world frame.
template <class V>
struct Motion {
  V x, y, heading;
  V vx_water, vy_water, yaw_water;
  V vx, vy, yaw;
};

/// Propeller forces in the body frame: surge N, sway N, yaw N m.
template <class V>
struct Thrust {
  V surge, sway, yaw;
};

template <class V, class T = Scalar<V>>
MN_HD Thrust<V> thrust_of(const Params<T>& p, V left, V right, V left_angle, V right_angle) {
  const SinCos<V> l = sincos_of(left_angle);
  const SinCos<V> r = sincos_of(right_angle);
  const V sway = left * l.sin + right * r.sin;
  return {left * l.cos + right * r.cos, sway,
          (left * l.cos - right * r.cos) * (p.vessel.width * T(0.5)) - sway * (p.vessel.length * T(0.5))};
}

/// Surge, sway and yaw acceleration in the body frame: M acc = tau - C_RB V - (C_A + D + D_n) V_r.
template <class V>
struct Acceleration {
  V u, v, r;
};

template <class V, class T = Scalar<V>>
MN_HD Acceleration<V> acceleration_of(const Params<T>& p, const Thrust<V>& tau, V u, V v, V u_r,
                                      V v_r, V r) {
  const V abs_v = absolute(v_r);
  const V abs_r = absolute(r);
  const V added_sway = v_r * p.vessel.y_dot_v + r * p.vessel.y_dot_r;
  const V surge = tau.surge + r * v * p.vessel.mass - added_sway * r +
                  (p.vessel.x_u + absolute(u_r) * p.vessel.x_uu) * u_r;
  const V sway = tau.sway - r * u * p.vessel.mass + u_r * r * p.vessel.x_dot_u +
                 (p.vessel.y_v + abs_v * p.vessel.y_vv + abs_r * p.vessel.y_rv) * v_r +
                 (p.vessel.y_r + abs_v * p.vessel.y_vr + abs_r * p.vessel.y_rr) * r;
  const V turn = tau.yaw + (added_sway - v_r * p.vessel.x_dot_u) * u_r +
                 (p.vessel.n_v + abs_v * p.vessel.n_vv + abs_r * p.vessel.n_rv) * v_r +
                 (p.vessel.n_r + abs_v * p.vessel.n_vr + abs_r * p.vessel.n_rr) * r;
  return {surge * p.inverse_mass_x, sway * p.inv_yy + turn * p.inv_yr,
          sway * p.inv_ry + turn * p.inv_rr};
}

/// First half of a substep: velocity over ground from the current here, then position and heading.
template <class V, class T = Scalar<V>>
MN_HD void advance_pose(const State<T>& s, const Params<T>& p, int w, Motion<V>& m) {
  const Vec2<V> flow = current_at<V>(s, p, w, m.x, m.y);
  m.vx = m.vx_water + flow.x;
  m.vy = m.vy_water + flow.y;
  m.yaw = m.yaw_water;
  m.x = m.x + m.vx * p.vessel.dt;
  m.y = m.y + m.vy * p.vessel.dt;
  const V turn = splat<V>(T(2) * kPi<T>);
  V heading = m.heading + m.yaw * p.vessel.dt;
  heading = select(heading < splat<V>(T(0)), heading + turn, heading);
  m.heading = select(heading >= turn, heading - turn, heading);
}

/// Second half: acceleration at the advanced heading; velocity over ground keeps its value.
template <class V, class T = Scalar<V>>
MN_HD void advance_velocity(const Params<T>& p, const Thrust<V>& tau, Motion<V>& m) {
  const SinCos<V> h = sincos_of(m.heading);
  const V u_r = h.cos * m.vx_water + h.sin * m.vy_water;
  const V v_r = h.cos * m.vy_water - h.sin * m.vx_water;
  const V u = h.cos * m.vx + h.sin * m.vy;
  const V v = h.cos * m.vy - h.sin * m.vx;
  const Acceleration<V> a = acceleration_of(p, tau, u, v, u_r, v_r, m.yaw);
  const V u_next = u_r + a.u * p.vessel.dt;
  const V v_next = v_r + a.v * p.vessel.dt;
  m.vx_water = h.cos * u_next - h.sin * v_next;
  m.vy_water = h.sin * u_next + h.cos * v_next;
  m.yaw_water = m.yaw + a.r * p.vessel.dt;
}

}  // namespace marinenav
