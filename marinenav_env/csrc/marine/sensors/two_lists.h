// Two lists of what is near, buoys and robots, without noise (Lin et al., ICRA 2024).
#pragma once

#include "marine/sensors/object_list.h"

namespace marinenav {

#define MN_TWO_LISTS_PARAMS(X, XS) X(range)
MN_PARAMS(TwoListsParams, MN_TWO_LISTS_PARAMS)
#undef MN_TWO_LISTS_PARAMS

/// The kObjects nearest buoys and the kObjects nearest robots by surface distance; padding is zero.
struct TwoLists {
  static constexpr int kBuoyFeatures = 3, kRobotFeatures = 4;
  static constexpr int kEntries = 2;
  static constexpr bool kFaulty = false;
  static constexpr int kSize = kObjects * (kBuoyFeatures + kRobotFeatures);
  MN_HD static constexpr int entry_size(int k) {
    return kObjects * (k == 0 ? kBuoyFeatures : kRobotFeatures);
  }
  static TensorSpecs observation() {
    return {{"static", Number::kReal, {"worlds", "robots", "frames", kObjects, kBuoyFeatures},
             "p_x p_y radius"},
            {"dynamic", Number::kReal, {"worlds", "robots", "frames", kObjects, kRobotFeatures},
             "p_x p_y v_x v_y"}};
  }
  static TensorSpecs tables() { return {}; }
  static TensorSpecs state() { return {}; }

  template <class T>
  struct Groups {
    TwoListsParams<T> perception;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("perception", perception);
    }
    void derive(const Groups<double>&) {}
  };

  template <class T>
  struct View {
    explicit View(const Tables&) {}
  };

  template <class V, class S, class P>
  MN_HD static void advance(const S&, const P&, int, Mask<V>) {}
  template <class Placement>
  MN_HD static void place(const Placement&) {}

  template <class V>
  struct Sighting {
    Mask<V> contact;
  };

  /// Sees one object, which is detected up to `size` (m) beyond the range: into the list, and true
  /// where it is touched.
  template <class V, class P, class T = Scalar<V>>
  MN_HD static Mask<V> see(const P& p, const Observer<V>& self, Mask<V> present,
                           const TrueObject<V>& object, V size, ObjectList<V>& list) {
    const Object<V> o = in_body_frame(self, object);
    const V distance = square_root(o.px * o.px + o.py * o.py);
    const auto detected = both(present, distance <= size + p.perception.range);
    const V gap = distance - object.radius - p.vessel.radius;
    insert(list, select(detected, gap, splat<V>(kUnseen<T>)), o);
    return both(detected, distance <= object.radius + self.hull);
  }

  /// `put(i, value)` writes the observation.
  template <bool, class V, class S, class P, class Put, class T = Scalar<V>>
  MN_HD static Sighting<V> observe(const S& s, const P& p, const RandomStream<V>&,
                                   const Observer<V>& self, V, V, int r, int w, const Put& put) {
    using F = typename S::Robot;
    const V zero = splat<V>(T(0));
    auto contact = zero > zero;
    ObjectList<V> near;
    near.clear();
    for (int b = 0; b < s.buoys; ++b) {
      const V radius = load<V>(s.buoy_at(2, b, w));
      const TrueObject<V> buoy{load<V>(s.buoy_at(0, b, w)), load<V>(s.buoy_at(1, b, w)), zero,
                               zero, radius};
      contact = either(contact, see(p, self, radius > zero, buoy, radius, near));
    }
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      const auto valid = near.holds(k);
      const Object<V>& o = near.object[k];
      const int at = k * kBuoyFeatures;
      put(at, select(valid, o.px, zero)), put(at + 1, select(valid, o.py, zero));
      put(at + 2, select(valid, o.radius, zero));
    }
    near.clear();
    const V detection = splat<V>(p.vessel.detection_radius);
    for (int j = 0; j < s.robots; ++j) {
      if (j == r) continue;
      const TrueObject<V> robot{load<V>(s.robot_at(F::kX, j, w)), load<V>(s.robot_at(F::kY, j, w)),
                                load<V>(s.robot_at(F::kVx, j, w)),
                                load<V>(s.robot_at(F::kVy, j, w)), splat<V>(p.vessel.radius)};
      const auto alive = is_set(load_int<V>(s.status_at(j, w)), kAlive);
      contact = either(contact, see(p, self, alive, robot, detection, near));
    }
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      const auto valid = near.holds(k);
      const Object<V>& o = near.object[k];
      const int at = kObjects * kBuoyFeatures + k * kRobotFeatures;
      put(at, select(valid, o.px, zero)), put(at + 1, select(valid, o.py, zero));
      put(at + 2, select(valid, o.vx, zero)), put(at + 3, select(valid, o.vy, zero));
    }
    return {contact};
  }
};

}  // namespace marinenav
