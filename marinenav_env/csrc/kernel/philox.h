// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a pure function of (seed, world, episode, step, robot, purpose).
#pragma once

#include "kernel/functions.h"

namespace marinenav {

template <class U>
struct Philox4 {
  U w0, w1, w2, w3;
};

/// Replaces N counters by their words; several at once are independent work for a processor.
template <int N, class U>
MN_HD void philox(Philox4<U> (&c)[N], uint32_t key0, uint32_t key1) {
  MN_UNROLL
  for (int round = 0; round < 10; ++round) {
    MN_UNROLL
    for (int n = 0; n < N; ++n) {
      U high0, low0, high1, low1;
      multiply_wide(c[n].w0, 0xD2511F53u, high0, low0);
      multiply_wide(c[n].w2, 0xCD9E8D57u, high1, low1);
      c[n] = {high1 ^ c[n].w1 ^ key0, low1, high0 ^ c[n].w3 ^ key1, low0};
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

template <class U>
MN_HD Philox4<U> philox(Philox4<U> c, uint32_t key0, uint32_t key1) {
  Philox4<U> words[1] = {c};
  philox(words, key0, key1);
  return words[0];
}

/// Identity of the draws of some worlds at one decision.
template <class V>
struct RandomStream {
  UInt<V> world;    // global world index
  UInt<V> episode;  // episodes begun in this world
  UInt<V> step;     // decisions taken in this episode
  uint32_t key0, key1;

  /// Counter of a draw; `purpose` (one byte, a different one for every use) keeps uses apart, `index`
  /// numbers the draws of one (robot, purpose).
  MN_HD Philox4<UInt<V>> counter(uint32_t purpose, uint32_t robot, uint32_t index) const {
    const uint32_t tag = (purpose << 24) | (robot << 16) | index;
    return {world, episode, step, UInt<V>{} + tag};
  }
  /// 128 random bits.
  MN_HD Philox4<UInt<V>> draw(uint32_t purpose, uint32_t robot, uint32_t index) const {
    return philox(counter(purpose, robot, index), key0, key1);
  }
};

MN_HD float unit_real(uint32_t bits, float) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
MN_HD double unit_real(uint32_t bits, double) { return static_cast<double>(bits >> 8) * 0x1p-24; }
#ifndef __CUDACC__
MN_HD PackF unit_real(PackU bits, PackF) {
  return __builtin_convertvector((PackI)(bits >> 8), PackF) * 0x1p-24f;
}
#endif

/// Uniform in [0, 1) from the top 24 bits; the same numbers in float32 and float64.
template <class V>
MN_HD V uniform(UInt<V> bits) {
  return unit_real(bits, V{});
}

/// Two independent standard normal numbers (Box and Muller 1958).
template <class V>
struct NormalPair {
  V first, second;
};
template <class V>
MN_HD NormalPair<V> normal_pair(UInt<V> radius_bits, UInt<V> angle_bits) {
  using T = Scalar<V>;
  // 1 - u is in (0, 1], so the logarithm is finite.
  const V u = splat<V>(T(1)) - uniform<V>(radius_bits);
  const V radius = square_root(log_of(u) * T(-2));
  const SinCos<V> direction = sincos_of(uniform<V>(angle_bits) * (T(2) * kPi<T>));
  return {radius * direction.cos, radius * direction.sin};
}

}  // namespace marinenav
