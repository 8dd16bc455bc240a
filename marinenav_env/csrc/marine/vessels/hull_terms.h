// What the hulls of further vessels have besides the terms of the WAM-V 16. docs/physics.md has the
// equations and their sources.
#pragma once

#include "kernel/functions.h"
#include "marine/water/component.h"

namespace marinenav {

constexpr int kStrips = 21;  // of the cross-flow drag, from the stern to the bow

/// Adds cross-flow drag: each strip resists its own sway, at x ahead of the middle v_r + x r.
template <class V, class P, class T = Scalar<V>>
MN_HD void add_cross_flow(const P& p, V v_r, V r, Force<V>& force) {
  const auto step = p.length * T(1.0 / (kStrips - 1));  // a number, or one of each lane
  V sway = splat<V>(T(0)), yaw = sway, x = sway + p.length * T(-0.5);
  for (int i = 0; i < kStrips; ++i) {
    const V across = v_r + x * r;
    const V drag = absolute(across) * across;
    sway = sway + drag;
    yaw = yaw + x * drag;
    x = x + step;
  }
  const auto factor = p.cross_flow * step;
  force.sway = force.sway - factor * sway;
  force.yaw = force.yaw - factor * yaw;
}

/// Adds what a centre of gravity x_g ahead of the origin does in C_RB, cubic drag and cross-flow.
template <class V, class P>
MN_HD void add_hull_terms(const P& p, V u_r, V v_r, V r, Force<V>& force) {
  const auto lever = p.mass * p.x_g;
  force.surge = force.surge + lever * r * r + p.x_uuu * u_r * u_r * u_r;
  force.yaw = force.yaw - lever * r * u_r;
  if (p.has_strips) add_cross_flow(p, v_r, r, force);
}

}  // namespace marinenav
