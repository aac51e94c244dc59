// Four float64 lanes in GCC's vector extension. Four on every instruction set, so that all give the same bits.
// Everything here and in the headers beside it has internal linkage: sets must not share a copy of a function.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

constexpr int kLanes = 4;
typedef double Vec __attribute__((vector_size(32)));
typedef int64_t Mask __attribute__((vector_size(32)));
typedef float Vec32 __attribute__((vector_size(16)));

template <typename T>
struct Narrow;
template <>
struct Narrow<float> {
  using type = Vec32;
};
template <>
struct Narrow<double> {
  using type = Vec;
};

inline Vec splat(double value) { return Vec{value, value, value, value}; }
inline Vec nan_vec() { return splat(__builtin_nan("")); }
inline Vec absolute(Vec value) { return reinterpret_cast<Vec>(reinterpret_cast<Mask>(value) & INT64_MAX); }
inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }
inline Mask is_finite(Vec value) { return value - value == 0.0; }

// Bit i tells lane i.
inline int lane_bits(Mask mask) {
#if defined(__AVX__)
  return _mm256_movemask_pd(reinterpret_cast<__m256d>(mask));
#else
  int bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= static_cast<int>(mask[lane] & 1) << lane;
  return bits;
#endif
}

inline Vec square_root(Vec v) {
  return Vec{__builtin_sqrt(v[0]), __builtin_sqrt(v[1]), __builtin_sqrt(v[2]), __builtin_sqrt(v[3])};
}
inline Vec32 square_root(Vec32 v) {
  return Vec32{__builtin_sqrtf(v[0]), __builtin_sqrtf(v[1]), __builtin_sqrtf(v[2]), __builtin_sqrtf(v[3])};
}

template <typename T>
inline Vec load(const T* from) {
  typename Narrow<T>::type narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Vec);
}

#if defined(__AVX__)
// What the compiler makes of the general form goes through memory.
inline Vec load(const float* from) { return reinterpret_cast<Vec>(_mm256_cvtps_pd(_mm_loadu_ps(from))); }
#endif

// The first `count` lanes; the others are `fill`.
template <typename T>
__attribute__((noinline)) Vec load_some(const T* from, int64_t count, double fill) {
  return Vec{count > 0 ? static_cast<double>(from[0]) : fill, count > 1 ? static_cast<double>(from[1]) : fill,
             count > 2 ? static_cast<double>(from[2]) : fill, count > 3 ? static_cast<double>(from[3]) : fill};
}

template <typename V, typename T>
inline void store(V value, T* to) {
  std::memcpy(to, &value, sizeof value);
}

template <typename V, typename T>
inline void store_some(V value, T* to, int64_t count) {
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = value[lane];
}

// Running sums of the lanes from lane 0 on: a lane depends on those before it alone.
inline Vec scan(Vec value) {
  const Vec zero{};
  value += __builtin_shuffle(value, zero, Mask{4, 0, 1, 2});
  value += __builtin_shuffle(value, zero, Mask{4, 5, 0, 1});
  return value;
}
inline Vec spread_last(Vec value) { return __builtin_shuffle(value, Mask{3, 3, 3, 3}); }

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
