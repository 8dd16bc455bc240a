// Run-time parameters, as marinenav_env/config.py gives them: one flat list of numbers whose names
// Python compares with kParamNames before use. Units and sources stand in config.py.
#pragma once

#include <cstddef>

#include "lane.h"

namespace marinenav {

constexpr int kThrustChoices = 5;
constexpr int kDiscreteActions = kThrustChoices * kThrustChoices;

template <class T>
struct Params {
  // vessel
  T dt, substeps, length, width, radius, mass, izz;
  T x_dot_u, y_dot_v, y_dot_r, n_dot_r, n_dot_v;
  T x_u, x_uu, y_v, y_vv, y_r, y_rv, y_vr, y_rr, n_r, n_rr, n_v, n_vv, n_rv, n_vr;
  T min_thrust, max_thrust, max_thrust_rate, power_coefficient;
  T left_thrust_rates[kThrustChoices], right_thrust_rates[kThrustChoices];
  // perception
  T range, angle, position_std, velocity_std, radius_mean_ratio;
  // COLREGs
  T colregs_min_speed, colregs_margin, crossing_x_min, crossing_x_max, crossing_y_min,
      crossing_y_corner, head_on_x_max, head_on_y_half;
  // reward
  T timestep_penalty, colregs_penalty, collision_penalty, goal_reward, goal_distance;
  // current
  T core_radius, core_edge_speed_min, core_edge_speed_max, core_same_sense_speed,
      core_opposite_ratio;
  // scenario
  T map_width, map_height, start_margin, clear_radius, buoy_margin, buoy_radius_min,
      buoy_radius_max, placement_tries;
  // episode
  T max_steps, stop_on_collision;

  // derived, computed by from_flat
  T inverse_mass_x;                             // 1 / (m - xDotU)
  T inv_yy, inv_yr, inv_ry, inv_rr;             // inverse of the sway-yaw block of M_RB + M_A
  T cos_half_angle;                             // of the field of view
  T decision_time;                              // s, dt * substeps

  static Params from_flat(const double* flat);
};

constexpr const char* kParamNames[] = {
    "vessel.dt", "vessel.substeps", "vessel.length", "vessel.width", "vessel.radius",
    "vessel.mass", "vessel.izz", "vessel.x_dot_u", "vessel.y_dot_v", "vessel.y_dot_r",
    "vessel.n_dot_r", "vessel.n_dot_v", "vessel.x_u", "vessel.x_uu", "vessel.y_v", "vessel.y_vv",
    "vessel.y_r", "vessel.y_rv", "vessel.y_vr", "vessel.y_rr", "vessel.n_r", "vessel.n_rr",
    "vessel.n_v", "vessel.n_vv", "vessel.n_rv", "vessel.n_vr", "vessel.min_thrust",
    "vessel.max_thrust", "vessel.max_thrust_rate", "vessel.power_coefficient",
    "vessel.left_thrust_rates.0", "vessel.left_thrust_rates.1", "vessel.left_thrust_rates.2",
    "vessel.left_thrust_rates.3", "vessel.left_thrust_rates.4", "vessel.right_thrust_rates.0",
    "vessel.right_thrust_rates.1", "vessel.right_thrust_rates.2", "vessel.right_thrust_rates.3",
    "vessel.right_thrust_rates.4", "perception.range", "perception.angle",
    "perception.position_std", "perception.velocity_std", "perception.radius_mean_ratio",
    "colregs.min_speed", "colregs.margin", "colregs.crossing_x_min", "colregs.crossing_x_max",
    "colregs.crossing_y_min", "colregs.crossing_y_corner", "colregs.head_on_x_max",
    "colregs.head_on_y_half", "reward.timestep", "reward.colregs", "reward.collision",
    "reward.goal", "reward.goal_distance", "current.core_radius", "current.edge_speed_min",
    "current.edge_speed_max", "current.same_sense_speed", "current.opposite_ratio",
    "scenario.width", "scenario.height", "scenario.start_margin", "scenario.clear_radius",
    "scenario.buoy_margin", "scenario.buoy_radius_min", "scenario.buoy_radius_max",
    "scenario.placement_tries", "episode.max_steps", "episode.stop_on_collision"};
constexpr int kParamCount = sizeof(kParamNames) / sizeof(kParamNames[0]);
static_assert(offsetof(Params<double>, inverse_mass_x) == kParamCount * sizeof(double),
              "kParamNames and the fields of Params must match one to one");

template <class T>
Params<T> Params<T>::from_flat(const double* flat) {
  Params p;
  T* fields = &p.dt;  // the named fields are contiguous (asserted above)
  for (int i = 0; i < kParamCount; ++i) fields[i] = static_cast<T>(flat[i]);
  Params<double> d;
  if constexpr (sizeof(T) == sizeof(double)) {
    d = p;
  } else {
    double* exact = &d.dt;
    for (int i = 0; i < kParamCount; ++i) exact[i] = flat[i];
  }
  // M = M_RB + M_A (Fossen 2021, ch. 6.5); surge decouples from sway and yaw.
  const double yy = d.mass - d.y_dot_v, yr = -d.y_dot_r, ry = -d.n_dot_v, rr = d.izz - d.n_dot_r;
  const double det = yy * rr - yr * ry;
  p.inverse_mass_x = static_cast<T>(1.0 / (d.mass - d.x_dot_u));
  p.inv_yy = static_cast<T>(rr / det);
  p.inv_yr = static_cast<T>(-yr / det);
  p.inv_ry = static_cast<T>(-ry / det);
  p.inv_rr = static_cast<T>(yy / det);
  // An object at distance d is in view if x >= d * cos(angle / 2): all of them for a full circle.
  p.cos_half_angle = static_cast<T>(std::cos(0.5 * d.angle));
  p.decision_time = static_cast<T>(d.dt * d.substeps);
  return p;
}

}  // namespace marinenav
