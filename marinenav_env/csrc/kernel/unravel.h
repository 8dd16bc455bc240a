// Turns values with a world a lane into rows, one a world.
#pragma once

#include "kernel/lane.h"

namespace marinenav {

/// How many rows of lanes `unravel` needs for `count` values: blocks are square.
constexpr int kBlock = 8;
template <class V>
constexpr int padded(int count) {
  return kLaneCount<V> == 1 ? count : (count + kBlock - 1) / kBlock * kBlock;
}

/// Turns `from[kBlock][kLaneCount<V>]` of neighbouring lanes into `to[kBlock][width]`.
template <class V>
MN_HD void unravel_block(const Scalar<V>* from, Scalar<V>* to, int width) {
#if defined(__AVX2__) && !defined(__CUDACC__)
  __m256 pair[8], quad[8];
  MN_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const __m256 even = _mm256_loadu_ps(from + i * kLaneCount<V>);
    const __m256 odd = _mm256_loadu_ps(from + (i + 1) * kLaneCount<V>);
    pair[i] = _mm256_unpacklo_ps(even, odd), pair[i + 1] = _mm256_unpackhi_ps(even, odd);
  }
  MN_UNROLL
  for (int i = 0; i < 8; i += 2) {
    const int first = i / 4 * 4 + i % 4 / 2;
    quad[i] = _mm256_shuffle_ps(pair[first], pair[first + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[first], pair[first + 2], 0xee);
  }
  MN_UNROLL
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * width, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * width, _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31));
  }
#else
  for (int i = 0; i < kBlock; ++i)
    for (int k = 0; k < kBlock; ++k) to[i * width + k] = from[k * kLaneCount<V> + i];
#endif
}

/// Turns N values of every lane, `from[N][kLaneCount<V>]`, into a row for each, `to[kLaneCount<V>][N]`.
template <class V, int N>
MN_HD void unravel(const Scalar<V>* from, Scalar<V>* to) {
  static_assert(N % kBlock == 0 && kLaneCount<V> % kBlock == 0);
  for (int i = 0; i < kLaneCount<V>; i += kBlock)
    for (int k = 0; k < N; k += kBlock)
      unravel_block<V>(from + k * kLaneCount<V> + i, to + i * N + k, N);
}

}  // namespace marinenav
