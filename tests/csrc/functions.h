// Elementary functions and random numbers against the C library and published answers.
#pragma once

#include <cmath>

#include "report.h"
#include "worlds.h"

namespace marinenav::test {

// ---- elementary functions ----------------------------------------------------------------------

/// |got - exact| in units of the last place of a float32 of exact's size.
inline double ulps(float got, double exact) {
  const float size = static_cast<float>(std::fabs(exact));
  return std::fabs(got - exact) / (std::nextafter(size, INFINITY) - size);
}

inline void raise_to(double& worst, double error) {
  if (!(error <= worst)) worst = error;
}

inline void test_sincos() {
  double worst = 0.0;
  for (int i = -200000; i <= 200000; ++i) {
    const float a = static_cast<float>(i) * 0.04095f;  // up to 8190
    for (const float x : {a, std::nextafter(a, 1e9f), a * 1e-3f, a * 1e-6f}) {
      const SinCos<float> f = sincos_of(x);
      raise_to(worst, std::fabs(f.sin - std::sin(static_cast<double>(x))));
      raise_to(worst, std::fabs(f.cos - std::cos(static_cast<double>(x))));
    }
  }
  report_error(worst, 0x1p-23, "float32 sine and cosine, |a| < 8192, absolute");
  worst = 0.0;
  for (float x = 1e-12f; x < 0.7f; x *= 1.001f)
    raise_to(worst, ulps(sincos_of(x).sin, std::sin(static_cast<double>(x))));
  report_error(worst, 1.0, "float32 sine, small arguments, ulp");
}

inline void test_log() {
  double worst = 0.0;
  for (float x = 1.2e-38f; x < 3.3e38f; x *= 1.0003f)
    raise_to(worst, ulps(log_of(x), std::log(static_cast<double>(x))));
  for (int i = 1; i < 1 << 20; ++i) {  // the numbers that Box and Muller's method draws, near 1
    const float x = 1.0f - static_cast<float>(i) * 0x1p-24f;
    raise_to(worst, ulps(log_of(x), std::log(static_cast<double>(x))));
  }
  report_error(worst, 1.0, "float32 logarithm, all normal numbers, ulp");
  report(log_of(1.0f) == 0.0f, "float32 logarithm of 1 is 0");
}

inline void test_atan2() {
  double worst = 0.0;
  for (int i = 0; i < 400000; ++i) {
    const double angle = (i - 200000) * 1.57079e-5;
    for (const double size : {1e-25, 1e-3, 1.0, 1e4, 1e25}) {
      const float x = static_cast<float>(size * std::cos(angle));
      const float y = static_cast<float>(size * std::sin(angle));
      raise_to(worst, std::fabs(atan2_of(y, x) - std::atan2(double{y}, double{x})));
    }
  }
  report_error(worst, 3e-7, "float32 atan2, sizes 1e-25 to 1e25, absolute");
  worst = 0.0;
  const float pi = static_cast<float>(kPi<double>);
  const float axes[][3] = {{0, 0, 0},      {0, 2, 0},       {2, 2, pi / 4},       {2, 0, pi / 2},
                           {0, -2, pi},    {2, -2, 3 * pi / 4}, {-2, 0, -pi / 2}, {-2, 2, -pi / 4}};
  for (const auto& [y, x, angle] : axes)
    raise_to(worst, std::fabs(atan2_of(y, x) - angle));
  report_error(worst, 2.5e-7, "float32 atan2 on the axes, the diagonals and at the origin");
}

/// A lane of a function returns the bits that the scalar function returns.
inline void test_lanes_of_functions() {
  bool same = true;
  for (int i = 0; i < 20000; ++i) {
    PackF a, b;
    for (int k = 0; k < kLanes; ++k) {
      a[k] = static_cast<float>((hashed(i, k) - 0.5) * 200.0);
      b[k] = static_cast<float>((hashed(i, k + 100) - 0.5) * std::exp(hashed(i, k + 200) * 20.0));
    }
    const SinCos<PackF> f = sincos_of(a);
    const PackF l = log_of(absolute(a)), angle = atan2_of(a, b), root = square_root(absolute(b));
    for (int k = 0; k < kLanes; ++k) {
      const SinCos<float> g = sincos_of(float{a[k]});
      const float positive = absolute(float{a[k]});
      same = same && f.sin[k] == g.sin && f.cos[k] == g.cos && l[k] == log_of(positive) &&
             angle[k] == atan2_of(float{a[k]}, float{b[k]}) &&
             root[k] == square_root(absolute(float{b[k]}));
    }
  }
  report(same, "lanes of sine, cosine, logarithm, atan2 and root equal the scalar functions");
}

// ---- random numbers ----------------------------------------------------------------------------

/// Known answers of philox4x32-10 from the Random123 library's kat_vectors.
inline void test_philox() {
  struct Known {
    Philox4<uint32_t> counter;
    uint32_t key0, key1;
    Philox4<uint32_t> words;
  };
  const uint32_t ones = 0xffffffffu;
  const Known known[] = {
      {{0, 0, 0, 0}, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
      {{ones, ones, ones, ones}, ones, ones,
       {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
      {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, 0xa4093822u, 0x299f31d0u,
       {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}}};
  bool scalar = true, lanes = true;
  for (const Known& k : known) {
    const auto w = philox(k.counter, k.key0, k.key1);
    scalar = scalar && w.w0 == k.words.w0 && w.w1 == k.words.w1 && w.w2 == k.words.w2 &&
             w.w3 == k.words.w3;
    const PackU zero{};
    const auto p = philox(Philox4<PackU>{zero + k.counter.w0, zero + k.counter.w1,
                                         zero + k.counter.w2, zero + k.counter.w3},
                          k.key0, k.key1);
    for (int i = 0; i < kLanes; ++i)
      lanes = lanes && p.w0[i] == w.w0 && p.w1[i] == w.w1 && p.w2[i] == w.w2 && p.w3[i] == w.w3;
  }
  report(scalar, "philox4x32-10 gives the three published known answers");
  report(lanes, "so does every lane");
}

inline void test_functions() {
  test_sincos();
  test_log();
  test_atan2();
  test_lanes_of_functions();
  test_philox();
}

}  // namespace marinenav::test
