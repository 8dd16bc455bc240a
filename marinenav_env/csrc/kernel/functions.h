// Elementary functions on lanes.
//
// float32 uses polynomials (coefficients: S. Moshier, Cephes single-precision library) so that every
// lane width and every device returns the same bits; float64, the reference precision, uses libm.
#pragma once

#include "kernel/lane.h"

namespace marinenav {

template <class T>
constexpr T kPi = static_cast<T>(3.14159265358979323846);

template <class V>
struct SinCos {
  V sin, cos;
};

MN_HD SinCos<double> sincos_of(double a) { return {::sin(a), ::cos(a)}; }

/// Sine and cosine, |a| < 8192; error below 2 units in the last place of 1.
template <class V>
MN_HD SinCos<V> sincos_of(V a) {
  // Quadrant by round to nearest (the constant is 1.5 * 2^23), then Cody-Waite reduction.
  const V rounder = splat<V>(12582912.0f);
  const V shifted = fused(a, splat<V>(0.636619772367581343f), rounder);
  const auto quadrant = float_bits(shifted);
  const V q = shifted - rounder;
  V x = fused(q, splat<V>(-1.5703125f), a);
  x = fused(q, splat<V>(-4.837512969970703125e-4f), x);
  x = fused(q, splat<V>(-7.549789948768648e-8f), x);
  const V z = x * x;
  V s = fused(z, splat<V>(-1.9515295891e-4f), splat<V>(8.3321608736e-3f));
  s = fused(s, z, splat<V>(-1.6666654611e-1f));
  s = fused(s * z, x, x);
  V c = fused(z, splat<V>(2.443315711809948e-5f), splat<V>(-1.388731625493765e-3f));
  c = fused(c, z, splat<V>(4.166664568298827e-2f));
  c = fused(c * z, z, fused(z, splat<V>(-0.5f), splat<V>(1.0f)));
  const auto swap = is_set(quadrant, 1);
  const V sine = select(swap, c, s);
  const V cosine = select(swap, s, c);
  return {select(is_set(quadrant, 2), -sine, sine),
          select(is_set(quadrant + 1, 2), -cosine, cosine)};
}

MN_HD double log_of(double a) { return ::log(a); }

/// Natural logarithm of a normal positive number.
template <class V>
MN_HD V log_of(V a) {
  // a = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const auto bits = float_bits(a);
  auto e = (bits >> 23) - 126;
  V m = bits_float((bits & 0x007fffff) | 0x3f000000);
  const auto low = m < splat<V>(0.707106781186547524f);
  e = select(low, e - 1, e);
  m = select(low, m + m, m) - 1.0f;
  const V z = m * m;
  V y = fused(m, splat<V>(7.0376836292e-2f), splat<V>(-1.1514610310e-1f));
  y = fused(y, m, splat<V>(1.1676998740e-1f));
  y = fused(y, m, splat<V>(-1.2420140846e-1f));
  y = fused(y, m, splat<V>(1.4249322787e-1f));
  y = fused(y, m, splat<V>(-1.6668057665e-1f));
  y = fused(y, m, splat<V>(2.0000714765e-1f));
  y = fused(y, m, splat<V>(-2.4999993993e-1f));
  y = fused(y, m, splat<V>(3.3333331174e-1f));
  y = y * m * z;
  const V exponent = to_real(e, V{});
  y = fused(exponent, splat<V>(-2.12194440e-4f), y);
  y = fused(z, splat<V>(-0.5f), y);
  return fused(exponent, splat<V>(0.693359375f), m + y);
}

MN_HD double atan2_of(double y, double x) { return ::atan2(y, x); }

/// Angle of (x, y) in (-pi, pi]; 0 at the origin.
template <class V>
MN_HD V atan2_of(V y, V x) {
  const V ax = absolute(x);
  const V ay = absolute(y);
  const V big = larger(ax, ay);
  const V tiny = splat<V>(1e-30f);
  // Ratio in [0, 1]; above tan(pi/8) the argument is turned by pi/4.
  const V t = smaller(ax, ay) / larger(big, tiny);
  const auto turned = t > splat<V>(0.414213562373095f);
  const V r = select(turned, (t - 1.0f) / (t + 1.0f), t);
  const V z = r * r;
  V p = fused(z, splat<V>(8.05374449538e-2f), splat<V>(-1.38776856032e-1f));
  p = fused(p, z, splat<V>(1.99777106478e-1f));
  p = fused(p, z, splat<V>(-3.33329491539e-1f));
  V angle = fused(p * z, r, r) + select(turned, splat<V>(0.785398163397448f), splat<V>(0.0f));
  angle = select(ay > ax, splat<V>(1.570796326794897f) - angle, angle);
  angle = select(x < splat<V>(0.0f), splat<V>(3.141592653589793f) - angle, angle);
  return select(y < splat<V>(0.0f), -angle, angle);
}

}  // namespace marinenav
