// COLREGs: in which encounters a vessel should turn to starboard, and by how much.
#pragma once

#include "kernel/functions.h"

namespace marinenav {

/// An observed object in the body frame: m, m/s over ground, m.
template <class V>
struct Object {
  V px, py, vx, vy, radius;
};

/// Angle phi (rad) that the vessel's course lies to port of the course COLREGs ask for.
///
/// With b = r_obj + margin, d the object's distance and t = sqrt(d^2 - b^2), the desired course is
/// arg(p) + asin(b/d) + atan2(R, t); asin(b/d) = arg(t + ib) and atan2(R, t) = arg(t + iR), so
/// phi = arg z with z = p (t + ib)(t + iR) conj(v): one atan2, already wrapped, and phi > 0 is
/// Im z > 0.
template <class V>
struct TurnAngle {
  Mask<V> applies;
  V real, imaginary;
};

template <class V, class Params, class T = Scalar<V>>
MN_HD TurnAngle<V> turn_angle(const Params& p, const Object<V>& o, V u, V v) {
  const V zero = splat<V>(T(0));
  const V object_speed2 = o.vx * o.vx + o.vy * o.vy;
  const V own_speed2 = u * u + v * v;
  const V min_speed2 = splat<V>(p.colregs.min_speed * p.colregs.min_speed);
  auto applies = both(object_speed2 >= min_speed2, own_speed2 >= min_speed2);

  // Own position and velocity in the object's velocity frame, times the object's speed: scaling the
  // zone's limits instead saves the division.
  const V speed = square_root(object_speed2);
  const V x = zero - (o.vx * o.px + o.vy * o.py);
  const V y = o.vy * o.px - o.vx * o.py;
  const V wx = o.vx * u + o.vy * v;
  const V wy = o.vx * v - o.vy * u;

  // The front corner of the crossing zone is cut off along the line through (crossing_x_max,
  // crossing_y_corner) and the object.
  const V slope = splat<V>(p.colregs.crossing_y_corner / p.colregs.crossing_x_max);
  const auto cut = y - speed * p.colregs.crossing_y_corner > slope * (x - speed * p.colregs.crossing_x_max);
  const auto crossing_zone =
      both(both(both(x >= speed * p.colregs.crossing_x_min, x <= speed * p.colregs.crossing_x_max),
                both(y >= speed * p.colregs.crossing_y_min, y <= zero)),
           negate(cut));
  const auto crossing = both(crossing_zone, wy >= absolute(wx));  // angle in [pi/4, 3pi/4]
  const auto head_on_zone = both(both(x >= zero, x <= speed * p.colregs.head_on_x_max),
                                 absolute(y) <= speed * p.colregs.head_on_y_half);
  const auto head_on = both(head_on_zone, absolute(wy) < zero - wx);  // |angle| > 3pi/4
  applies = both(applies, either(crossing, head_on));

  const V b = o.radius + p.colregs.margin;
  const V distance2 = o.px * o.px + o.py * o.py;
  const V t2 = distance2 - b * b;
  applies = both(applies, t2 >= zero);
  const V t = square_root(larger(t2, zero));
  const V turn_real = t2 - b * p.vessel.radius;
  const V turn_imag = t * (b + p.vessel.radius);
  const V course_real = o.px * u + o.py * v;
  const V course_imag = o.py * u - o.px * v;
  const V real = turn_real * course_real - turn_imag * course_imag;
  const V imaginary = turn_real * course_imag + turn_imag * course_real;
  return {both(applies, imaginary > zero), real, imaginary};
}

}  // namespace marinenav
