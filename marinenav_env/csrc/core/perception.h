// What a robot sees: detection with noise, the nearest objects, contact and COLREGs.
#pragma once

#include "colregs.h"
#include "philox.h"
#include "state.h"

namespace marinenav {

/// The kObjects nearest objects seen so far, nearest first.
template <class V>
struct NearestObjects {
  V key[kObjects];  // surface distance, m; kUnseen where there is no object
  Object<V> object[kObjects];
};

template <class T>
constexpr T kUnseen = static_cast<T>(1e30);

/// Adds an object; among equal keys the earlier one stays in front.
template <class V>
MN_HD void insert(NearestObjects<V>& list, V key, Object<V> o) {
  auto shift = key < list.key[0];
  MN_UNROLL
  for (int k = 0; k < kObjects; ++k) {
    shift = either(shift, key < list.key[k]);
    const V old_key = list.key[k];
    const Object<V> old = list.object[k];
    list.key[k] = select(shift, key, old_key);
    list.object[k] = {select(shift, o.px, old.px), select(shift, o.py, old.py),
                      select(shift, o.vx, old.vx), select(shift, o.vy, old.vy),
                      select(shift, o.radius, old.radius)};
    key = select(shift, old_key, key);
    o = {select(shift, old.px, o.px), select(shift, old.py, o.py), select(shift, old.vx, o.vx),
         select(shift, old.vy, o.vy), select(shift, old.radius, o.radius)};
  }
}

/// An object as it is, world frame.
template <class V>
struct TrueObject {
  V x, y, vx, vy, radius;
};

/// Sensor noise: N(0, std) on position and velocity in the world frame; radius times
/// mean_ratio + (1 - mean_ratio) * vonMises(0, kappa) / pi.
template <class V, class T = Scalar<V>>
MN_HD TrueObject<V> add_noise(const Params<T>& p, const State<T>& s, const RandomStream<V>& random,
                              Purpose purpose, uint32_t robot, uint32_t object,
                              const TrueObject<V>& o) {
  const auto bits = random.draw(purpose, robot, object);
  const NormalPair<V> position = normal_pair<V>(bits.w0, bits.w1);
  const NormalPair<V> velocity = normal_pair<V>(bits.w2, bits.w3);
  // The uniforms above use the top 24 bits of each word; the low bytes make a fifth number.
  const auto spare = ((bits.w0 & 0xffu) << 24) | ((bits.w1 & 0xffu) << 16) | ((bits.w2 & 0xffu) << 8);
  const V at = uniform<V>(spare) * T(kNoiseTable);
  const auto index = to_int(at);
  const V fraction = at - to_real(index, V{});
  const V low = gather(s.radius_noise, index);
  const V high = gather(s.radius_noise + 1, index);
  const V radius_factor = (low + (high - low) * fraction) * (T(1) - p.radius_mean_ratio) +
                          p.radius_mean_ratio;
  return {o.x + position.first * p.position_std, o.y + position.second * p.position_std,
          o.vx + velocity.first * p.velocity_std, o.vy + velocity.second * p.velocity_std,
          o.radius * radius_factor};
}

/// Own pose as perception needs it.
template <class V>
struct Observer {
  V x, y, cos, sin;
};

/// Sees one object: into the list if detected, and true where it is detected and touched.
template <class V, class T = Scalar<V>>
MN_HD Mask<V> sense(const Params<T>& p, const Observer<V>& self, Mask<V> present,
                    const TrueObject<V>& truth, const TrueObject<V>& seen,
                    NearestObjects<V>& list) {
  const V dx = seen.x - self.x;
  const V dy = seen.y - self.y;
  const Object<V> o{self.cos * dx + self.sin * dy, self.cos * dy - self.sin * dx,
                    self.cos * seen.vx + self.sin * seen.vy,
                    self.cos * seen.vy - self.sin * seen.vx, seen.radius};
  const V distance = square_root(o.px * o.px + o.py * o.py);
  const auto detected = both(present, both(distance <= seen.radius + p.range,
                                           o.px >= distance * p.cos_half_angle));
  insert(list, select(detected, distance - seen.radius, splat<V>(kUnseen<T>)), o);
  const V true_dx = truth.x - self.x;
  const V true_dy = truth.y - self.y;
  const V reach = truth.radius + p.radius;
  return both(detected, true_dx * true_dx + true_dy * true_dy <= reach * reach);
}

template <class T>
MN_HD bool is_noisy(const Params<T>& p) {
  return p.position_std > T(0) || p.velocity_std > T(0) || p.radius_mean_ratio < T(1);
}

/// Looks around: fills `list` and returns where the robot touches a detected object.
template <class V, class T = Scalar<V>>
MN_HD Mask<V> look_around(const State<T>& s, const Params<T>& p, const RandomStream<V>& random,
                          const Observer<V>& self, int r, int w, NearestObjects<V>& list) {
  const V zero = splat<V>(T(0));
  const bool noisy = is_noisy(p);
  MN_UNROLL
  for (int k = 0; k < kObjects; ++k) {
    list.key[k] = splat<V>(kUnseen<T>);
    list.object[k] = {zero, zero, zero, zero, zero};
  }
  auto contact = zero > zero;
  // Buoys first: on equal distance they are listed before robots.
  for (int b = 0; b < s.buoys; ++b) {
    const TrueObject<V> truth{load<V>(s.buoy_at(0, b, w)), load<V>(s.buoy_at(1, b, w)), zero, zero,
                              load<V>(s.buoy_at(2, b, w))};
    const auto present = truth.radius > zero;
    if (!any(present)) continue;
    const TrueObject<V> seen = noisy ? add_noise(p, s, random, Purpose::kBuoyNoise, r, b, truth)
                                     : truth;
    contact = either(contact, sense(p, self, present, truth, seen, list));
  }
  for (int j = 0; j < s.robots; ++j) {
    const auto present = is_set(load_int<V>(s.status_at(j, w)), kActive);
    if (j == r || !any(present)) continue;
    const TrueObject<V> truth{load<V>(s.robot_at(kX, j, w)), load<V>(s.robot_at(kY, j, w)),
                              load<V>(s.robot_at(kVx, j, w)), load<V>(s.robot_at(kVy, j, w)),
                              splat<V>(p.radius)};
    const TrueObject<V> seen = noisy ? add_noise(p, s, random, Purpose::kRobotNoise, r, j, truth)
                                     : truth;
    contact = either(contact, sense(p, self, present, truth, seen, list));
  }
  return contact;
}

/// phi (rad) of the nearest object that COLREGs ask to give way to, else 0.
template <class V, class T = Scalar<V>>
MN_HD V colregs_angle(const Params<T>& p, const NearestObjects<V>& list, V u, V v) {
  const V zero = splat<V>(T(0));
  V real = splat<V>(T(1)), imaginary = zero;
  auto found = zero > zero;
  MN_UNROLL
  for (int k = 0; k < kObjects; ++k) {
    const TurnAngle<V> z = turn_angle(p, list.object[k], u, v);
    const auto take = both(both(z.applies, negate(found)), list.key[k] < splat<V>(kUnseen<T>));
    real = select(take, z.real, real);
    imaginary = select(take, z.imaginary, imaginary);
    found = either(found, take);
  }
  if (!any(found)) return zero;
  return select(found, atan2_of(imaginary, real), zero);
}

}  // namespace marinenav
