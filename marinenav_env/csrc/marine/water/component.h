// What a component of the water and the air may do, and what it does unless it says otherwise.
#pragma once

#include "kernel/functions.h"
#include "kernel/tables.h"
#include "marine/vec2.h"

namespace marinenav {

/// A force on a hull in its body frame: surge N, sway N, yaw N m.
template <class V>
struct Force {
  V surge, sway, yaw;
};

/// A hull that may be pushed: place (m, world frame), heading, velocity over ground (m/s, body frame).
template <class V>
struct Hull {
  V x, y;
  SinCos<V> heading;
  V u, v;
};

/// Factors on a hull's masses and damping.
template <class V>
struct HullFactors {
  V mass, added_inertia, surge, sway, yaw;
};

/// Nothing. A component derives from it, and hides what it does:
///
///   flow(s, p, w, x, y, sum)       adds its water velocity (m/s, world frame) at a position
///   disturbs(p)                    whether it does any of the next three
///   push(s, p, w, elapsed, hull, force)   adds its force on a hull, seconds into the decision
///   drives(p), drive(s, p, r, w, elapsed, thrust)   changes what the thrusters of robot r give
///   vary(s, p, w, factors, rate)          changes the factors of hulls and of thrust rates
///   place(placement, stage)        draws what an episode begins with
///   set_out(placement)             begins what follows from how vessels were released
///   advance(s, p, w, running)      moves its own state on by a decision
///   touches(placement, x, y, r)    whether a disc touches something solid
struct Component {
  template <class... Any>
  MN_HD static void flow(const Any&...) {}
  template <class Params>
  MN_HD static bool disturbs(const Params&) {
    return false;
  }
  template <class... Any>
  MN_HD static void push(const Any&...) {}
  template <class Params>
  MN_HD static bool drives(const Params&) {
    return false;
  }
  template <class... Any>
  MN_HD static void drive(const Any&...) {}
  template <class... Any>
  MN_HD static void vary(const Any&...) {}
  template <class... Any>
  MN_HD static void place(const Any&...) {}
  template <class... Any>
  MN_HD static void set_out(const Any&...) {}
  template <class V, class S, class P>
  MN_HD static void advance(const S&, const P&, int, Mask<V>) {}
  template <class... Any>
  MN_HD static bool touches(const Any&...) {
    return false;
  }
};

}  // namespace marinenav
