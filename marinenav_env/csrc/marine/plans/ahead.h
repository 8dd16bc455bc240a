// Vessels moved ahead from one observation: their own model in calm water, no noise, and what they
// see at constant velocity. The frame is a vessel's body frame at the decision, which stays at rest.
#pragma once

#include <limits>

#include "marine/sensors/nearest_objects.h"
#include "marine/vessels/wamv16.h"

namespace marinenav {

/// Entry n of every lane; lanes beyond the last vessel repeat it.
template <class V, class Read>
MN_HD V read_lanes(int n, int count, const Read& read) {
  if constexpr (kLaneCount<V> == 1) {
    return read(n);
  } else {
    V v;
    for (int i = 0; i < kLaneCount<V>; ++i) v[i] = read(n + i < count ? n + i : count - 1);
    return v;
  }
}

/// write(n, value) for every lane that is a vessel.
template <class V, class Write>
MN_HD void write_lanes(int n, int count, V v, const Write& write) {
  for (int i = 0; i < kLaneCount<V> && n + i < count; ++i) write(n + i, lane<V>(v, i));
}

/// Observations of one frame, [N, 7], [N, kObjects, 5], [N, kObjects].
template <class T>
struct SightView {
  int count;
  const T *ego, *objects, *mask;
};

/// What a vessel has around it. An object that looks larger than the largest buoy is a vessel; any
/// other one is taken as the largest buoy, and as at rest (noise only makes radii look smaller).
template <class V>
struct Surroundings {
  V goal_x, goal_y;            // m
  Object<V> object[kObjects];  // velocity over ground; radius as observed
  V radius[kObjects];          // m, of the object's class
  Mask<V> present[kObjects];

  template <class P, class T = Scalar<V>>
  MN_HD Surroundings(const P& p, const SightView<T>& sight, int n) {
    const auto ego = [&](int f) {
      return read_lanes<V>(n, sight.count, [&](int i) { return sight.ego[int64_t{i} * 7 + f]; });
    };
    goal_x = ego(0), goal_y = ego(1);
    // More than float32 rounds: in float64 a buoy of 1.2 m observed in float32 has 1.2000000477 m.
    const V largest_buoy = splat<V>(p.scenario.buoy_radius_max * T(1 + 1e-6));
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      const auto entry = [&](int f) {
        return read_lanes<V>(n, sight.count, [&](int i) {
          return sight.objects[(int64_t{i} * kObjects + k) * kObjectFeatures + f];
        });
      };
      const V seen = entry(4), zero = splat<V>(T(0));
      const auto vessel = seen > largest_buoy;
      object[k] = {entry(0), entry(1), select(vessel, entry(2), zero),
                   select(vessel, entry(3), zero), seen};
      radius[k] = select(vessel, larger(seen, splat<V>(p.vessel.radius)),
                         splat<V>(p.scenario.buoy_radius_max));
      present[k] = read_lanes<V>(n, sight.count, [&](int i) {
                     return sight.mask[int64_t{i} * kObjects + k];
                   }) > splat<V>(T(0.5));
    }
  }

  /// Squared distance of object k from a position, `time` s after the decision, m^2.
  MN_HD V squared_distance(int k, V x, V y, Scalar<V> time) const {
    const V dx = object[k].px + object[k].vx * time - x;
    const V dy = object[k].py + object[k].vy * time - y;
    return dx * dx + dy * dy;
  }
};

/// A vessel under way, as it observes itself. A vessel observes the velocity with which it moved
/// last, so a substep here is the acceleration, then the move, and the thrusts change between those
/// two of the first substep: the simulator's own sequence from another beginning.
template <class V>
struct Ahead {
  typename Wamv16::Motion<V> motion;
  V left, right;  // thrusts, N

  static constexpr int kRows = 8;  // x y heading vx vy yaw left right

  template <class T = Scalar<V>>
  MN_HD void begin(const SightView<T>& sight, int n) {
    const auto ego = [&](int f) {
      return read_lanes<V>(n, sight.count, [&](int i) { return sight.ego[int64_t{i} * 7 + f]; });
    };
    const V zero = splat<V>(T(0));
    motion = {zero, zero, zero, ego(2), ego(3), ego(4), ego(2), ego(3), ego(4)};
    left = ego(5), right = ego(6);
  }

  /// `row(number)` reads what `write` wrote.
  template <class Row>
  MN_HD void read(const Row& row) {
    const V vx = row(3), vy = row(4), yaw = row(5);
    motion = {row(0), row(1), row(2), vx, vy, yaw, vx, vy, yaw};
    left = row(6), right = row(7);
  }
  template <class Row>
  MN_HD void write(const Row& row) const {
    row(0, motion.x), row(1, motion.y), row(2, motion.heading), row(3, motion.vx);
    row(4, motion.vy), row(5, motion.yaw), row(6, left), row(7, right);
  }

  /// Begins a decision at thrust rates (N/s).
  template <class P>
  MN_HD void begin_decision(const P& vessel, const V (&rates)[2]) {
    const V low = splat<V>(vessel.min_thrust), high = splat<V>(vessel.max_thrust);
    tau = thrust(vessel);
    left = smaller(larger(left + rates[0] * vessel.decision_time, low), high);
    right = smaller(larger(right + rates[1] * vessel.decision_time, low), high);
  }

  /// Substep i of 1, 2, ... of a decision.
  template <class P>
  MN_HD void substep(const P& vessel, int i) {
    const V zero = splat<V>(Scalar<V>(0));
    if (vessel.extended) {
      motion = accelerated(vessel, tau, motion);
    } else {
      Wamv16::advance_velocity<false>(vessel, tau, motion, [](const Hull<V>&, Force<V>&) {});
    }
    Wamv16::advance_pose(vessel, Vec2<V>{zero, zero}, motion);
    if (i == 1) tau = thrust(vessel);
  }

 private:
  Force<V> tau;

  /// Out of line, so that the terms of other hulls do not slow down those without.
  template <class P>
  MN_HD_APART static typename Wamv16::Motion<V> accelerated(const P& vessel, Force<V> tau,
                                                            typename Wamv16::Motion<V> m) {
    Wamv16::advance_velocity<true>(vessel, tau, m, [](const Hull<V>&, Force<V>&) {});
    return m;
  }

  template <class P>
  MN_HD Force<V> thrust(const P& vessel) const {
    const V zero = splat<V>(Scalar<V>(0));
    return Wamv16::thrust_of<V>(vessel, left, right, zero, zero);
  }
};

/// Distance left to the goal, m; 0 from the arrival on, which `before` may tell.
template <class V>
MN_HD V distance_left(const Surroundings<V>& around, const Ahead<V>& at, Scalar<V> reached,
                      V before) {
  const V goal = splat<V>(reached);
  const V now = distance(around.goal_x, around.goal_y, at.motion.x, at.motion.y);
  return select(either(before <= goal, now <= goal), splat<V>(Scalar<V>(0)), now);
}

/// A vector (x, y) in the frame of a heading.
template <class V>
MN_HD Vec2<V> in_body(const SinCos<V>& h, V x, V y) {
  return {h.cos * x + h.sin * y, h.cos * y - h.sin * x};
}

}  // namespace marinenav
