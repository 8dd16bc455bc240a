// Run-time parameters, group by group as marinenav_env/config.py gives them. A parameter stands in one
// list below; its member, its name, its place and their number follow, and Python packs by name.
// Units and sources stand in config.py.
#pragma once

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "lane.h"

namespace marinenav {

constexpr int kThrustChoices = 5;
constexpr int kDiscreteActions = kThrustChoices * kThrustChoices;

// Each list takes a macro for one number, X(name), and one for several, XS(name, count).
#define MN_VESSEL(X, XS)                                                                        \
  X(dt) X(substeps) X(length) X(width) X(radius) X(mass) X(izz)                                 \
  X(x_dot_u) X(y_dot_v) X(y_dot_r) X(n_dot_r) X(n_dot_v)                                        \
  X(x_u) X(x_uu) X(y_v) X(y_vv) X(y_r) X(y_rv) X(y_vr) X(y_rr)                                  \
  X(n_r) X(n_rr) X(n_v) X(n_vv) X(n_rv) X(n_vr)                                                 \
  X(min_thrust) X(max_thrust) X(max_thrust_rate) X(power_coefficient)                           \
  XS(left_thrust_rates, kThrustChoices) XS(right_thrust_rates, kThrustChoices)
#define MN_PERCEPTION(X, XS) \
  X(range) X(angle) X(position_std) X(velocity_std) X(radius_mean_ratio)
#define MN_COLREGS(X, XS)                                                                       \
  X(min_speed) X(margin) X(crossing_x_min) X(crossing_x_max) X(crossing_y_min)                  \
  X(crossing_y_corner) X(head_on_x_max) X(head_on_y_half)
#define MN_REWARD(X, XS) X(timestep) X(colregs) X(collision) X(goal) X(goal_distance)
#define MN_CURRENT(X, XS) \
  X(core_radius) X(edge_speed_min) X(edge_speed_max) X(same_sense_speed) X(opposite_ratio)
#define MN_SCENARIO(X, XS)                                                                      \
  X(width) X(height) X(start_margin) X(clear_radius) X(buoy_margin) X(buoy_radius_min)          \
  X(buoy_radius_max) X(placement_tries)
#define MN_EPISODE(X, XS) X(max_steps) X(stop_on_collision)

/// G(list, Struct, member) for every group.
#define MN_GROUPS(G)                                                                            \
  G(MN_VESSEL, VesselParams, vessel) G(MN_PERCEPTION, PerceptionParams, perception)             \
  G(MN_COLREGS, ColregsParams, colregs) G(MN_REWARD, RewardParams, reward)                      \
  G(MN_CURRENT, CurrentParams, current) G(MN_SCENARIO, ScenarioParams, scenario)                \
  G(MN_EPISODE, EpisodeParams, episode)

#define MN_ONE(name) T name;
#define MN_SEVERAL(name, count) T name[count];
#define MN_STRUCT(list, Struct, member) \
  template <class T>                    \
  struct Struct {                       \
    list(MN_ONE, MN_SEVERAL)            \
  };
MN_GROUPS(MN_STRUCT)
#undef MN_STRUCT
#undef MN_SEVERAL
#undef MN_ONE

template <class T>
struct Params {
#define MN_MEMBER(list, Struct, member) Struct<T> member;
  MN_GROUPS(MN_MEMBER)
#undef MN_MEMBER

  // derived, computed by from_flat
  T inverse_mass_x;                  // 1 / (m - xDotU)
  T inv_yy, inv_yr, inv_ry, inv_rr;  // inverse of the sway-yaw block of M_RB + M_A
  T cos_half_angle;                  // of the field of view
  T decision_time;                   // s, dt * substeps

  static Params from_flat(const double* flat);
};

/// Calls visit(name, count, pointer to the first number) for every parameter, in the lists' order.
template <class T, class Visit>
void for_each_param(Params<T>& p, const Visit& visit) {
#define MN_ONE(name) visit(group, #name, 1, &part.name);
#define MN_SEVERAL(name, count) visit(group, #name, count, &part.name[0]);
#define MN_VISIT(list, Struct, member) \
  {                                    \
    const char* const group = #member; \
    Struct<T>& part = p.member;        \
    list(MN_ONE, MN_SEVERAL)           \
  }
  MN_GROUPS(MN_VISIT)
#undef MN_VISIT
#undef MN_SEVERAL
#undef MN_ONE
}

constexpr int count_params() {
  int total = 0;
#define MN_ONE(name) total += 1;
#define MN_SEVERAL(name, count) total += count;
#define MN_COUNT(list, Struct, member) list(MN_ONE, MN_SEVERAL)
  MN_GROUPS(MN_COUNT)
#undef MN_COUNT
#undef MN_SEVERAL
#undef MN_ONE
  return total;
}
constexpr int kParamCount = count_params();

/// Names as Python has them, "group.name" or "group.name.index", in the order of `from_flat`.
inline std::vector<std::string> param_names() {
  std::vector<std::string> names;
  Params<double> p;
  for_each_param(p, [&](const char* group, const char* name, int count, double*) {
    const std::string whole = std::string(group) + "." + name;
    for (int i = 0; i < count; ++i)
      names.push_back(count == 1 ? whole : whole + "." + std::to_string(i));
  });
  return names;
}

template <class T>
Params<T> Params<T>::from_flat(const double* flat) {
  Params p;
  Params<double> d;
  const auto fill = [flat](auto& params) {
    int next = 0;
    for_each_param(params, [&](const char*, const char*, int count, auto* numbers) {
      for (int i = 0; i < count; ++i) numbers[i] = static_cast<std::remove_pointer_t<decltype(numbers)>>(flat[next++]);
    });
  };
  fill(p);
  fill(d);
  const VesselParams<double>& v = d.vessel;
  // M = M_RB + M_A (Fossen 2021, ch. 6.5); surge decouples from sway and yaw.
  const double yy = v.mass - v.y_dot_v, yr = -v.y_dot_r, ry = -v.n_dot_v, rr = v.izz - v.n_dot_r;
  const double det = yy * rr - yr * ry;
  p.inverse_mass_x = static_cast<T>(1.0 / (v.mass - v.x_dot_u));
  p.inv_yy = static_cast<T>(rr / det);
  p.inv_yr = static_cast<T>(-yr / det);
  p.inv_ry = static_cast<T>(-ry / det);
  p.inv_rr = static_cast<T>(yy / det);
  // An object at distance d is in view if x >= d * cos(angle / 2): all of them for a full circle.
  p.cos_half_angle = static_cast<T>(std::cos(0.5 * d.perception.angle));
  p.decision_time = static_cast<T>(v.dt * v.substeps);
  return p;
}

}  // namespace marinenav
