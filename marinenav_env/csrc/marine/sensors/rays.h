// Rays of a range finder: from a hull's centre to the circles of buoys and other hulls.
#pragma once

#include "marine/sensors/faults.h"

namespace marinenav {

/// Parameters of a range finder: its faults, and the noise of what it measures.
#define MN_RAY_FAULTS(X, XS) X(range_std) MN_SENSOR_FAULTS(X, XS)
template <template <class> class Listed, class T>
struct RayParams : FaultyParams<Listed, T> {
  MN_HD bool faulty() const {
    return this->range_std > T(0) || FaultyParams<Listed, T>::faulty();
  }
};

/// A buoy or a hull around an observer, body frame: m, m, m/s, m/s over ground, m.
template <class V>
struct Circle {
  Mask<V> present;
  V x, y, vx, vy, radius;
};

/// Calls body(circle) for the buoys and then the other robots, as the sensor with these faults has
/// them; returns where one is touched in truth.
template <class V, class S, class P, class Faults, class Body, class T = Scalar<V>>
MN_HD Mask<V> each_circle(const S& s, const P& p, const RandomStream<V>& random,
                          const Faults& faults, const Observer<V>& self, int r, int w,
                          const Body& body) {
  const V zero = splat<V>(T(0));
  auto contact = zero > zero;
  for (int i = 0; i < s.buoys + s.robots - 1; ++i) {
    const Candidate<V> object = candidate(s, p, random, r, w, i);
    if (!any(object.present)) continue;
    const TrueObject<V>& truth = object.truth;
    const V true_dx = truth.x - self.x, true_dy = truth.y - self.y;
    const V reach = truth.radius + self.hull;
    const auto touched = true_dx * true_dx + true_dy * true_dy <= reach * reach;
    contact = either(contact, both(object.present, touched));
    const TrueObject<V>& o = faults.delayed(s, r, w, i, truth);
    const V dx = o.x - self.x, dy = o.y - self.y;
    body(Circle<V>{object.present, self.cos * dx + self.sin * dy, self.cos * dy - self.sin * dx,
                   self.cos * o.vx + self.sin * o.vy, self.cos * o.vy - self.sin * o.vx,
                   o.radius});
  }
  return contact;
}

/// Distance (m) along the ray of direction (cos, sin) to a circle; kUnseen where it misses. With b
/// the way to the point nearest to its centre and q = |centre|^2 - radius^2, it enters at
/// b - sqrt(b^2 - q).
template <class V, class Part, class T = Scalar<V>>
MN_HD V along_ray(const Circle<V>& circle, Part cos, Part sin) {
  const V zero = splat<V>(T(0));
  const V b = circle.x * cos + circle.y * sin;
  const V q = circle.x * circle.x + circle.y * circle.y - circle.radius * circle.radius;
  const V left = b * b - q;
  const auto hit = both(circle.present, both(b > zero, left >= zero));
  const V distance = larger(b - square_root(larger(left, zero)), zero);
  return select(hit, distance, splat<V>(kUnseen<T>));
}

/// Calls body(i, measured) with what each of so many rays measures of its `distance` (m), kUnseen
/// where nothing returns: beyond this episode's range, missed, or unseen anyway. The noise is
/// N(0, range_std), and what it gives is clamped to this episode's range.
template <class V, class P, class Body, class T = Scalar<V>>
MN_HD void measure(const P& p, const RandomStream<V>& random, const SensorFaults<V>& faults, int r,
                   int rays, const V* distance, const Body& body) {
  constexpr int kDrawn = 4;  // rays that share a draw
  const V zero = splat<V>(T(0)), std = faults.noise_factor * p.perception.range_std;
  for (int first = 0; first < rays; first += kDrawn) {
    Philox4<UInt<V>> chance{};
    if (p.perception.miss > T(0)) chance = random.draw(Purpose::kMiss, r, first / kDrawn);
    NormalPair<V> near{zero, zero}, far{zero, zero};
    if (p.perception.range_std > T(0)) {
      const auto bits = random.draw(Purpose::kRayNoise, r, first / kDrawn);
      near = normal_pair<V>(bits.w0, bits.w1), far = normal_pair<V>(bits.w2, bits.w3);
    }
    const UInt<V> word[kDrawn] = {chance.w0, chance.w1, chance.w2, chance.w3};
    const V noise[kDrawn] = {near.first, near.second, far.first, far.second};
    MN_UNROLL
    for (int n = 0; n < kDrawn; ++n) {
      if (first + n >= rays) break;
      const V truth = distance[first + n];
      const auto missed = either(faults.blind, uniform<V>(word[n]) < splat<V>(p.perception.miss));
      const V measured = smaller(larger(truth + noise[n] * std, zero), faults.range);
      body(first + n, select(both(truth <= faults.range, negate(missed)), measured,
                             splat<V>(kUnseen<T>)));
    }
  }
}

/// What a sighting by rays says besides the observation.
template <class V>
struct RaySighting {
  Mask<V> contact;
};

/// A sensor that observes `rows` rays or sectors with `kFeatures` numbers each, and a mask of hits.
template <int kRows, int kFeatures>
struct RowSensor : FaultySensor {
  static constexpr int kEntries = 2;
  static constexpr int kSize = kRows * (kFeatures + 1);
  MN_HD static constexpr int entry_size(int k) { return k == 0 ? kRows * kFeatures : kRows; }
  static TensorSpecs rows(const char* features) {
    return {{"rays", Number::kReal, {"worlds", "robots", "frames", kRows, kFeatures}, features},
            {"hits", Number::kReal, {"worlds", "robots", "frames", kRows}}};
  }
};

}  // namespace marinenav
