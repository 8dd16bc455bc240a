// Objects around a robot as they are: buoys and other robots.
#pragma once

#include "kernel/worlds.h"
#include "marine/purposes.h"

namespace marinenav {

template <class T>
constexpr T kUnseen = static_cast<T>(1e30);  // a distance (m) where there is nothing

/// An object as it is, world frame.
template <class V>
struct TrueObject {
  V x, y, vx, vy, radius;
};

/// Own pose, and the radius (m) within which own hull touches others.
template <class V>
struct Observer {
  V x, y, cos, sin, hull;
};

/// An object that may be there, and the counter of its noise.
template <class V>
struct Candidate {
  Mask<V> present;
  TrueObject<V> truth;
  Philox4<UInt<V>> counter;
};

/// Object `index` as robot r meets them: the buoys, then the other robots.
template <class V, class S, class P, class T = Scalar<V>>
MN_HD Candidate<V> candidate(const S& s, const P& p, const RandomStream<V>& random,
                             int r, int w, int index) {
  using F = typename S::Robot;
  const V zero = splat<V>(T(0));
  if (index < s.buoys) {
    const V radius = load<V>(s.buoy_at(2, index, w));
    return {radius > zero,
            {load<V>(s.buoy_at(0, index, w)), load<V>(s.buoy_at(1, index, w)), zero, zero, radius},
            random.counter(Purpose::kBuoyNoise, r, index)};
  }
  const int other = index - s.buoys, j = other < r ? other : other + 1;
  const auto counter = random.counter(Purpose::kRobotNoise, r, j);
  if (j >= s.robots) return {zero > zero, {zero, zero, zero, zero, zero}, counter};
  return {is_set(load_int<V>(s.status_at(j, w)), kAlive),
          {load<V>(s.robot_at(F::kX, j, w)), load<V>(s.robot_at(F::kY, j, w)),
           load<V>(s.robot_at(F::kVx, j, w)), load<V>(s.robot_at(F::kVy, j, w)), splat<V>(p.vessel.radius)},
          counter};
}

}  // namespace marinenav
