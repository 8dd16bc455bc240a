// Rays of a range finder: from a hull's centre to the circles of buoys and other hulls.
#pragma once

#include "marine/sensors/nearest_objects.h"

namespace marinenav {

/// A buoy or a hull around an observer, body frame: m, m, m/s, m/s over ground, m.
template <class V>
struct Circle {
  Mask<V> present;
  V x, y, vx, vy, radius;
};

/// Calls body(circle) for the buoys and then the other robots; returns where one is touched.
template <class V, class S, class P, class Body, class T = Scalar<V>>
MN_HD Mask<V> each_circle(const S& s, const P& p, const RandomStream<V>& random,
                          const Observer<V>& self, int r, int w, const Body& body) {
  const V zero = splat<V>(T(0));
  auto contact = zero > zero;
  for (int i = 0; i < s.buoys + s.robots - 1; ++i) {
    const Candidate<V> object = candidate(s, p, random, r, w, i);
    if (!any(object.present)) continue;
    const TrueObject<V>& o = object.truth;
    const V dx = o.x - self.x, dy = o.y - self.y, reach = o.radius + self.hull;
    contact = either(contact, both(object.present, dx * dx + dy * dy <= reach * reach));
    body(Circle<V>{object.present, self.cos * dx + self.sin * dy, self.cos * dy - self.sin * dx,
                   self.cos * o.vx + self.sin * o.vy, self.cos * o.vy - self.sin * o.vx,
                   o.radius});
  }
  return contact;
}

/// Distance (m) along the ray of direction (cos, sin) to a circle; kUnseen where it misses. With b
/// the way to the point nearest to its centre and q = |centre|^2 - radius^2, it enters at
/// b - sqrt(b^2 - q).
template <class V, class T = Scalar<V>>
MN_HD V along_ray(const Circle<V>& circle, T cos, T sin) {
  const V zero = splat<V>(T(0));
  const V b = circle.x * cos + circle.y * sin;
  const V q = circle.x * circle.x + circle.y * circle.y - circle.radius * circle.radius;
  const V left = b * b - q;
  const auto hit = both(circle.present, both(b > zero, left >= zero));
  const V distance = larger(b - square_root(larger(left, zero)), zero);
  return select(hit, distance, splat<V>(kUnseen<T>));
}

/// What a sighting by rays says besides the observation.
template <class V>
struct RaySighting {
  Mask<V> contact;
};

/// A sensor without a state of its own.
struct StatelessSensor {
  static TensorSpecs state() { return {}; }
  template <class V, class S, class P>
  MN_HD static void advance(const S&, const P&, int, Mask<V>) {}
  template <class Placement>
  MN_HD static void place(const Placement&) {}
};

/// A sensor that observes `rows` rays or sectors with `kFeatures` numbers each, and a mask of hits.
template <int kRows, int kFeatures>
struct RowSensor : StatelessSensor {
  static constexpr int kEntries = 2;
  static constexpr bool kFaulty = false;
  static constexpr int kSize = kRows * (kFeatures + 1);
  MN_HD static constexpr int entry_size(int k) { return k == 0 ? kRows * kFeatures : kRows; }
  static TensorSpecs rows(const char* features) {
    return {{"rays", Number::kReal, {"worlds", "robots", "frames", kRows, kFeatures}, features},
            {"hits", Number::kReal, {"worlds", "robots", "frames", kRows}}};
  }
};

}  // namespace marinenav
