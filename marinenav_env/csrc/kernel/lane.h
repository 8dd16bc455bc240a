// Lanes: one source for a CUDA thread, a scalar CPU loop and a SIMD register.
//
// Simulator code is written once against a value type V. On CUDA, and wherever a single world is
// handled, V is plain float or double. On the CPU V is also a GCC/Clang vector of kLanes floats, one
// world per lane. Every operation is elementwise and correctly rounded (contraction is switched off,
// fused multiply-adds are explicit), so a lane computes the same bits as a scalar would.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#ifdef __CUDACC__
#define MN_HD __host__ __device__ __forceinline__
#define MN_HD_APART __host__ __device__ __noinline__
#define MN_UNROLL _Pragma("unroll")
#else
#ifndef MN_HD  // tests without optimisation give `inline` alone, which compiles twice as fast
#define MN_HD inline __attribute__((always_inline))
#endif
#define MN_HD_APART __attribute__((noinline))
#define MN_UNROLL _Pragma("GCC unroll 16")
#endif

namespace marinenav {

// ---- scalar value types ------------------------------------------------------------------------

/// What belongs to a value type: here to a plain number, further down to a vector.
template <class V>
struct LaneTraits {
  using Scalar = V;
  using Int = int32_t;
  using UInt = uint32_t;
  using Mask = bool;
  static constexpr int kCount = 1;
};

template <class V>
using Scalar = typename LaneTraits<V>::Scalar;
template <class V>
using Int = typename LaneTraits<V>::Int;
template <class V>
using UInt = typename LaneTraits<V>::UInt;
template <class V>
using Mask = typename LaneTraits<V>::Mask;
template <class V>
constexpr int kLaneCount = LaneTraits<V>::kCount;

MN_HD float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
MN_HD double fused(double a, double b, double c) { return ::fma(a, b, c); }
MN_HD float square_root(float a) { return ::sqrtf(a); }
MN_HD double square_root(double a) { return ::sqrt(a); }
MN_HD float absolute(float a) { return ::fabsf(a); }
MN_HD double absolute(double a) { return ::fabs(a); }
MN_HD float select(bool m, float a, float b) { return m ? a : b; }
MN_HD double select(bool m, double a, double b) { return m ? a : b; }
MN_HD int32_t select(bool m, int32_t a, int32_t b) { return m ? a : b; }
MN_HD bool any(bool m) { return m; }
MN_HD bool both(bool a, bool b) { return a && b; }
MN_HD bool either(bool a, bool b) { return a || b; }
MN_HD bool negate(bool a) { return !a; }
MN_HD bool is_set(int32_t bits, int32_t flag) { return (bits & flag) != 0; }

MN_HD int32_t float_bits(float a) {
#ifdef __CUDA_ARCH__
  return __float_as_int(a);
#else
  int32_t i;
  std::memcpy(&i, &a, sizeof i);
  return i;
#endif
}
MN_HD float bits_float(int32_t i) {
#ifdef __CUDA_ARCH__
  return __int_as_float(i);
#else
  float a;
  std::memcpy(&a, &i, sizeof a);
  return a;
#endif
}

/// High and low 32 bits of a * m.
MN_HD void multiply_wide(uint32_t a, uint32_t m, uint32_t& high, uint32_t& low) {
  const uint64_t product = static_cast<uint64_t>(a) * m;
  high = static_cast<uint32_t>(product >> 32);
  low = static_cast<uint32_t>(product);
}

MN_HD float to_real(int32_t a, float) { return static_cast<float>(a); }
MN_HD double to_real(int32_t a, double) { return static_cast<double>(a); }
MN_HD int32_t to_int(float a) { return static_cast<int32_t>(a); }
MN_HD int32_t to_int(double a) { return static_cast<int32_t>(a); }

/// Table entries at `index`, lane by lane.
MN_HD float gather(const float* table, int32_t index) { return table[index]; }
MN_HD double gather(const double* table, int32_t index) { return table[index]; }

// ---- SIMD value type ---------------------------------------------------------------------------

/// Worlds per SIMD group, fixed, because state rows are padded to a multiple of it.
constexpr int kRowAlignment = 16;

#ifndef __CUDACC__
#if defined(__AVX512F__) || !defined(__AVX2__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float PackF __attribute__((vector_size(kLanes * 4)));
typedef int32_t PackI __attribute__((vector_size(kLanes * 4)));
typedef uint32_t PackU __attribute__((vector_size(kLanes * 4)));

template <>
struct LaneTraits<PackF> {
  using Scalar = float;
  using Int = PackI;
  using UInt = PackU;
  using Mask = PackI;
  static constexpr int kCount = kLanes;
};

MN_HD PackF select(PackI m, PackF a, PackF b) { return m ? a : b; }
MN_HD PackI select(PackI m, PackI a, PackI b) { return m ? a : b; }
MN_HD PackI both(PackI a, PackI b) { return a & b; }
MN_HD PackI either(PackI a, PackI b) { return a | b; }
MN_HD PackI negate(PackI a) { return ~a; }
MN_HD PackI is_set(PackI bits, int32_t flag) { return (bits & flag) != 0; }
MN_HD PackI float_bits(PackF a) { return (PackI)a; }
MN_HD PackF bits_float(PackI i) { return (PackF)i; }
MN_HD PackF absolute(PackF a) { return (PackF)((PackI)a & 0x7fffffff); }
MN_HD PackF to_real(PackI a, PackF) { return __builtin_convertvector(a, PackF); }
MN_HD PackI to_int(PackF a) { return __builtin_convertvector(a, PackI); }

#if defined(__AVX512F__)
MN_HD PackF fused(PackF a, PackF b, PackF c) {
  return (PackF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
MN_HD PackF square_root(PackF a) { return (PackF)_mm512_sqrt_ps((__m512)a); }
MN_HD bool any(PackI m) { return _mm512_test_epi32_mask((__m512i)m, (__m512i)m) != 0; }
MN_HD PackF gather(const float* table, PackI index) {
  return (PackF)_mm512_i32gather_ps((__m512i)index, table, 4);
}
MN_HD void multiply_wide(PackU a, uint32_t m, PackU& high, PackU& low) {
  const __m512i factor = _mm512_set1_epi32(static_cast<int32_t>(m));
  const __m512i even = _mm512_mul_epu32((__m512i)a, factor);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), factor);
  high = (PackU)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  low = (PackU)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
#elif defined(__AVX2__) && defined(__FMA__)
MN_HD PackF fused(PackF a, PackF b, PackF c) {
  return (PackF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
MN_HD PackF square_root(PackF a) { return (PackF)_mm256_sqrt_ps((__m256)a); }
MN_HD bool any(PackI m) { return _mm256_testz_si256((__m256i)m, (__m256i)m) == 0; }
MN_HD PackF gather(const float* table, PackI index) {
  return (PackF)_mm256_i32gather_ps(table, (__m256i)index, 4);
}
MN_HD void multiply_wide(PackU a, uint32_t m, PackU& high, PackU& low) {
  const __m256i factor = _mm256_set1_epi32(static_cast<int32_t>(m));
  const __m256i even = _mm256_mul_epu32((__m256i)a, factor);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), factor);
  high = (PackU)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low = (PackU)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
#else  // any other processor: the compiler splits the vectors, or loops
MN_HD PackF fused(PackF a, PackF b, PackF c) {
  PackF r;
  for (int i = 0; i < kLanes; ++i) r[i] = ::fmaf(a[i], b[i], c[i]);
  return r;
}
MN_HD PackF square_root(PackF a) {
  PackF r;
  for (int i = 0; i < kLanes; ++i) r[i] = ::sqrtf(a[i]);
  return r;
}
MN_HD bool any(PackI m) {
  int32_t r = 0;
  for (int i = 0; i < kLanes; ++i) r |= m[i];
  return r != 0;
}
MN_HD PackF gather(const float* table, PackI index) {
  PackF r;
  for (int i = 0; i < kLanes; ++i) r[i] = table[index[i]];
  return r;
}
MN_HD void multiply_wide(PackU a, uint32_t m, PackU& high, PackU& low) {
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t product = static_cast<uint64_t>(a[i]) * m;
    high[i] = static_cast<uint32_t>(product >> 32);
    low[i] = static_cast<uint32_t>(product);
  }
}
#endif
#endif  // !__CUDACC__

// ---- for any value type ------------------------------------------------------------------------

/// A value with every lane equal to a.
template <class V>
MN_HD V splat(Scalar<V> a) {
  return V{} + a;
}

template <class V>
MN_HD V smaller(V a, V b) {
  return select(a < b, a, b);
}
template <class V>
MN_HD V larger(V a, V b) {
  return select(a > b, a, b);
}

/// Entries `p[0..kLaneCount)`: neighbouring worlds of one row.
template <class V>
MN_HD V load(const Scalar<V>* p) {
  if constexpr (kLaneCount<V> == 1) {
    return *p;
  } else {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class V>
MN_HD void store(Scalar<V>* p, V v) {
  if constexpr (kLaneCount<V> == 1) {
    *p = v;
  } else {
    std::memcpy(p, &v, sizeof v);
  }
}
template <class V>
MN_HD Int<V> load_int(const int32_t* p) {
  Int<V> v;
  if constexpr (kLaneCount<V> == 1) {
    v = *p;
  } else {
    std::memcpy(&v, p, sizeof v);
  }
  return v;
}
template <class V>
MN_HD void store_int(int32_t* p, Int<V> v) {
  if constexpr (kLaneCount<V> == 1) {
    *p = v;
  } else {
    std::memcpy(p, &v, sizeof v);
  }
}

/// Copies `count` numbers.
template <class T>
MN_HD void copy(T* to, const T* from, int count) {
#ifdef __CUDA_ARCH__
  for (int i = 0; i < count; ++i) to[i] = from[i];
#else
  std::memcpy(to, from, sizeof(T) * count);
#endif
}

/// Lane i of v.
template <class V, class X>
MN_HD auto lane(X v, int i) {
  if constexpr (kLaneCount<V> == 1) {
    (void)i;
    return v;
  } else {
    return v[i];
  }
}

/// World indices first, first + 1, ... of the lanes of V.
template <class V>
MN_HD UInt<V> lane_indices(uint32_t first) {
  if constexpr (kLaneCount<V> == 1) {
    return first;
  } else {
    UInt<V> v;
    for (int i = 0; i < kLaneCount<V>; ++i) v[i] = first + static_cast<uint32_t>(i);
    return v;
  }
}

}  // namespace marinenav
