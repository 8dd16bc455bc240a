// Scenario placement: rejection sampling of starts, goals, vortices and buoys.
#pragma once

#include "philox.h"
#include "state.h"
#include "vessel.h"

namespace marinenav {

template <class T>
MN_HD T distance(T ax, T ay, T bx, T by) {
  return square_root((ax - bx) * (ax - bx) + (ay - by) * (ay - by));
}

template <class T>
MN_HD T between(T low, T high, uint32_t bits) {
  return low + (high - low) * uniform<T>(bits);
}

/// Places one world; every function places up to `wanted` of a kind and returns how many.
template <class T>
struct Spawner {
  const State<T>& s;
  const Params<T>& p;
  const RandomStream<T>& random;
  int w;
  int placed_robots = 0, placed_vortices = 0;

  /// Whether a point lies at least `clearance` from every start and goal.
  MN_HD bool clear_of_robots(T x, T y, T clearance) const {
    for (int j = 0; j < placed_robots; ++j) {
      if (distance(x, y, *s.robot_at(kX, j, w), *s.robot_at(kY, j, w)) < clearance ||
          distance(x, y, *s.robot_at(kGoalX, j, w), *s.robot_at(kGoalY, j, w)) < clearance)
        return false;
    }
    return true;
  }

  MN_HD bool fits_robot(T start_x, T start_y, T goal_x, T goal_y, T min_distance) const {
    if (distance(start_x, start_y, goal_x, goal_y) < min_distance) return false;
    for (int j = 0; j < placed_robots; ++j) {
      if (distance(start_x, start_y, *s.robot_at(kX, j, w), *s.robot_at(kY, j, w)) <=
              p.scenario.clear_radius ||
          distance(goal_x, goal_y, *s.robot_at(kGoalX, j, w), *s.robot_at(kGoalY, j, w)) <=
              p.scenario.clear_radius)
        return false;
    }
    return true;
  }

  MN_HD void place_robots(int wanted, T min_distance) {
    const T low = p.scenario.start_margin, high_x = p.scenario.width - low, high_y = p.scenario.height - low;
    const int tries = static_cast<int>(p.scenario.placement_tries);
    for (int i = 0; i < tries && placed_robots < wanted; ++i) {
      const Philox4<uint32_t> bits = random.draw(Purpose::kRobot, 0, i);
      const T start_x = between(low, high_x, bits.w0), start_y = between(low, high_y, bits.w1);
      const T goal_x = between(low, high_x, bits.w2), goal_y = between(low, high_y, bits.w3);
      if (!fits_robot(start_x, start_y, goal_x, goal_y, min_distance)) continue;
      for (int f = 0; f < kRobotFields; ++f) *s.robot_at(f, placed_robots, w) = T(0);
      *s.robot_at(kX, placed_robots, w) = start_x;
      *s.robot_at(kY, placed_robots, w) = start_y;
      *s.robot_at(kGoalX, placed_robots, w) = goal_x;
      *s.robot_at(kGoalY, placed_robots, w) = goal_y;
      ++placed_robots;
    }
  }

  MN_HD bool fits_vortex(T x, T y, T circulation) const {
    const T r = p.current.core_radius;
    if (x < r || x > p.scenario.width - r || y < r || y > p.scenario.height - r) return false;
    if (!clear_of_robots(x, y, r + p.scenario.clear_radius)) return false;
    const T two_pi = T(2) * kPi<T>;
    for (int i = 0; i < placed_vortices; ++i) {
      const T other = *s.vortex_at(2, i, w);
      const T d = distance(x, y, *s.vortex_at(0, i, w), *s.vortex_at(1, i, w));
      const T strong = larger(absolute(other), absolute(circulation));
      const T weak = smaller(absolute(other), absolute(circulation));
      if ((other > T(0)) == (circulation > T(0))) {
        // Currents run against each other between the two.
        if (d < (strong + weak) / (two_pi * p.current.same_sense_speed)) return false;
      } else {
        // Currents join; strong / (d - 2r) <= ratio * weak / r, with the 2 pi cancelled.
        if (d <= T(2) * r || strong * r > p.current.opposite_ratio * weak * (d - T(2) * r))
          return false;
      }
    }
    return true;
  }

  MN_HD void place_vortices(int wanted) {
    for (int c = 0; c < s.vortices; ++c) *s.vortex_at(2, c, w) = T(0);
    const int tries = static_cast<int>(p.scenario.placement_tries);
    for (int i = 0; i < tries && placed_vortices < wanted; ++i) {
      const Philox4<uint32_t> bits = random.draw(Purpose::kCore, 0, i);
      const T x = between(T(0), p.scenario.width, bits.w0), y = between(T(0), p.scenario.height, bits.w1);
      const T speed = between(p.current.edge_speed_min, p.current.edge_speed_max, bits.w2);
      const T strength = T(2) * kPi<T> * p.current.core_radius * speed;
      const T circulation = (bits.w3 >> 31) != 0 ? strength : -strength;
      if (!fits_vortex(x, y, circulation)) continue;
      *s.vortex_at(0, placed_vortices, w) = x;
      *s.vortex_at(1, placed_vortices, w) = y;
      *s.vortex_at(2, placed_vortices, w) = circulation;
      ++placed_vortices;
    }
  }

  MN_HD bool fits_buoy(T x, T y, T r, int placed) const {
    if (x < r || x > p.scenario.width - r || y < r || y > p.scenario.height - r) return false;
    if (!clear_of_robots(x, y, r + p.scenario.clear_radius)) return false;
    for (int c = 0; c < placed_vortices; ++c) {
      if (distance(x, y, *s.vortex_at(0, c, w), *s.vortex_at(1, c, w)) <= p.current.core_radius + r)
        return false;
    }
    for (int b = 0; b < placed; ++b) {
      if (distance(x, y, *s.buoy_at(0, b, w), *s.buoy_at(1, b, w)) <= *s.buoy_at(2, b, w) + r)
        return false;
    }
    return true;
  }

  MN_HD int place_buoys(int wanted) {
    for (int b = 0; b < s.buoys; ++b) *s.buoy_at(2, b, w) = T(0);
    const T low = p.scenario.buoy_margin, high_x = p.scenario.width - low, high_y = p.scenario.height - low;
    const int tries = static_cast<int>(p.scenario.placement_tries);
    int placed = 0;
    for (int i = 0; i < tries && placed < wanted; ++i) {
      const Philox4<uint32_t> bits = random.draw(Purpose::kBuoy, 0, i);
      const T x = between(low, high_x, bits.w0), y = between(low, high_y, bits.w1);
      const T r = between(p.scenario.buoy_radius_min, p.scenario.buoy_radius_max, bits.w2);
      if (!fits_buoy(x, y, r, placed)) continue;
      *s.buoy_at(0, placed, w) = x;
      *s.buoy_at(1, placed, w) = y;
      *s.buoy_at(2, placed, w) = r;
      ++placed;
    }
    return placed;
  }

  /// Headings are uniform; vessels rest in the water, so they drift with the current.
  MN_HD void release_robots() {
    for (int j = 0; j < placed_robots; ++j) {
      const Philox4<uint32_t> bits = random.draw(Purpose::kHeading, j, 0);
      const T heading = uniform<T>(bits.w0) * (T(2) * kPi<T>);
      *s.robot_at(kHeading, j, w) = heading < T(2) * kPi<T> ? heading : T(0);  // rounding up
      const Vec2<T> flow = current_at<T>(s, p, w, *s.robot_at(kX, j, w), *s.robot_at(kY, j, w));
      *s.robot_at(kVx, j, w) = flow.x;
      *s.robot_at(kVy, j, w) = flow.y;
    }
  }
};

}  // namespace marinenav
