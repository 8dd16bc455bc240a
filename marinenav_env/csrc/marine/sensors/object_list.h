// The nearest objects, as a robot has them in its own frame.
#pragma once

#include "marine/colregs.h"
#include "marine/sensors/objects.h"

namespace marinenav {

constexpr int kObjects = 5;  // nearest objects in an observation

/// An object of the world in the body frame of an observer; velocities are over ground.
template <class V>
MN_HD Object<V> in_body_frame(const Observer<V>& self, const TrueObject<V>& o) {
  const V dx = o.x - self.x;
  const V dy = o.y - self.y;
  return {self.cos * dx + self.sin * dy, self.cos * dy - self.sin * dx,
          self.cos * o.vx + self.sin * o.vy, self.cos * o.vy - self.sin * o.vx, o.radius};
}

/// The kObjects nearest objects seen so far, nearest first.
template <class V>
struct ObjectList {
  V key[kObjects];  // surface distance, m; kUnseen where there is no object
  Object<V> object[kObjects];

  MN_HD void clear() {
    using T = Scalar<V>;
    const V zero = splat<V>(T(0));
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      key[k] = splat<V>(kUnseen<T>);
      object[k] = {zero, zero, zero, zero, zero};
    }
  }
  /// Where entry k holds an object.
  MN_HD Mask<V> holds(int k) const { return key[k] < splat<V>(kUnseen<Scalar<V>>); }
};

/// Adds an object; among equal keys the earlier one stays in front.
template <class V>
MN_HD void insert(ObjectList<V>& list, V key, Object<V> o) {
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

}  // namespace marinenav
