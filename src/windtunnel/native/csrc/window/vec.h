// Eight float64 lanes: one register of AVX-512, two of AVX2. Eight, and one order of sums, on every instruction set, so
// that all give the same bits. Everything here and in the headers beside it has internal linkage: sets must not share
// a copy of a function.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

constexpr int kLanes = 8;
constexpr int kAllLanes = (1 << kLanes) - 1;

// GCC's vector extension; the operators below are the only ones that a Vec has.
#if defined(__AVX512F__)
typedef double Part __attribute__((vector_size(64)));
struct Vec {
  Part part{};
  Vec() = default;
  Vec(double value) : part{value, value, value, value, value, value, value, value} {}
  explicit Vec(Part part) : part(part) {}
};
struct Mask {
  __mmask8 bits;
};
#define WINDTUNNEL_ARITHMETIC(OP) \
  inline Vec operator OP(Vec a, Vec b) { return Vec(a.part OP b.part); }
#define WINDTUNNEL_COMPARISON(OP, CODE) \
  inline Mask operator OP(Vec a, Vec b) { return {_mm512_cmp_pd_mask(__m512d(a.part), __m512d(b.part), CODE)}; }
inline Mask operator&(Mask a, Mask b) { return {static_cast<__mmask8>(a.bits & b.bits)}; }
inline Mask operator|(Mask a, Mask b) { return {static_cast<__mmask8>(a.bits | b.bits)}; }
inline Mask operator~(Mask a) { return {static_cast<__mmask8>(~a.bits)}; }
inline int lane_bits(Mask mask) { return mask.bits; }
inline Vec pick(Mask mask, Vec yes, Vec no) { return Vec(Part(_mm512_mask_mov_pd(no.part, mask.bits, yes.part))); }
inline Vec absolute(Vec v) { return Vec(Part(_mm512_abs_pd(v.part))); }
inline Vec square_root(Vec v) { return Vec(Part(_mm512_sqrt_pd(v.part))); }
#else
typedef double Part __attribute__((vector_size(32)));
typedef int64_t PartMask __attribute__((vector_size(32)));
struct Vec {
  Part low{}, high{};
  Vec() = default;
  Vec(double value) : low{value, value, value, value}, high(low) {}
  Vec(Part low, Part high) : low(low), high(high) {}
};
struct Mask {
  PartMask low, high;
};
#define WINDTUNNEL_ARITHMETIC(OP) \
  inline Vec operator OP(Vec a, Vec b) { return {a.low OP b.low, a.high OP b.high}; }
#define WINDTUNNEL_COMPARISON(OP, CODE) \
  inline Mask operator OP(Vec a, Vec b) { return {a.low OP b.low, a.high OP b.high}; }
inline Mask operator&(Mask a, Mask b) { return {a.low & b.low, a.high & b.high}; }
inline Mask operator|(Mask a, Mask b) { return {a.low | b.low, a.high | b.high}; }
inline Mask operator~(Mask a) { return {~a.low, ~a.high}; }
inline Vec pick(Mask mask, Vec yes, Vec no) {
  return {mask.low ? yes.low : no.low, mask.high ? yes.high : no.high};
}
inline Part absolute(Part v) { return reinterpret_cast<Part>(reinterpret_cast<PartMask>(v) & INT64_MAX); }
inline Vec absolute(Vec v) { return {absolute(v.low), absolute(v.high)}; }
inline Part square_root(Part v) {
  return Part{__builtin_sqrt(v[0]), __builtin_sqrt(v[1]), __builtin_sqrt(v[2]), __builtin_sqrt(v[3])};
}
inline Vec square_root(Vec v) { return {square_root(v.low), square_root(v.high)}; }
inline int part_bits(PartMask mask) {
#if defined(__AVX__)
  return _mm256_movemask_pd(reinterpret_cast<__m256d>(mask));
#else
  return static_cast<int>((mask[0] & 1) | (mask[1] & 2) | (mask[2] & 4) | (mask[3] & 8));
#endif
}
inline int lane_bits(Mask mask) { return part_bits(mask.low) | part_bits(mask.high) << 4; }
#endif

WINDTUNNEL_ARITHMETIC(+)
WINDTUNNEL_ARITHMETIC(-)
WINDTUNNEL_ARITHMETIC(*)
WINDTUNNEL_ARITHMETIC(/)
WINDTUNNEL_COMPARISON(<, _CMP_LT_OQ)
WINDTUNNEL_COMPARISON(<=, _CMP_LE_OQ)
WINDTUNNEL_COMPARISON(>, _CMP_GT_OQ)
WINDTUNNEL_COMPARISON(>=, _CMP_GE_OQ)
WINDTUNNEL_COMPARISON(==, _CMP_EQ_OQ)
#undef WINDTUNNEL_ARITHMETIC
#undef WINDTUNNEL_COMPARISON

inline Vec& operator+=(Vec& a, Vec b) { return a = a + b; }
inline Mask& operator&=(Mask& a, Mask b) { return a = a & b; }
inline Mask& operator|=(Mask& a, Mask b) { return a = a | b; }

inline Vec nan_vec() { return Vec(__builtin_nan("")); }
inline Vec larger(Vec a, Vec b) { return pick(a > b, a, b); }
inline Vec smaller(Vec a, Vec b) { return pick(a < b, a, b); }
inline Mask is_finite(Vec value) { return value - value == 0.0; }

// One lane, through memory: for what is seldom done.
inline double& lane(Vec& v, int64_t i) { return reinterpret_cast<double*>(&v)[i]; }
inline double lane(const Vec& v, int64_t i) { return reinterpret_cast<const double*>(&v)[i]; }

// Eight values of the type of the result.
typedef float Vec32 __attribute__((vector_size(32)));
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

inline Vec32 square_root(Vec32 v) {
#if defined(__AVX__)
  return Vec32(_mm256_sqrt_ps(__m256(v)));
#else
  for (int i = 0; i < kLanes; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}

inline Vec widen(Vec v) { return v; }
inline Vec widen(Vec32 v) {
#if defined(__AVX512F__)
  return Vec(Part(_mm512_cvtps_pd(__m256(v))));
#elif defined(__AVX__)
  return {Part(_mm256_cvtps_pd(_mm256_castps256_ps128(__m256(v)))), Part(_mm256_cvtps_pd(_mm256_extractf128_ps(__m256(v), 1)))};
#else
  return {Part{v[0], v[1], v[2], v[3]}, Part{v[4], v[5], v[6], v[7]}};
#endif
}

template <typename T>
typename Narrow<T>::type narrow(Vec v);
template <>
inline Vec narrow<double>(Vec v) {
  return v;
}
template <>
inline Vec32 narrow<float>(Vec v) {
#if defined(__AVX512F__)
  return Vec32(_mm512_cvtpd_ps(v.part));
#elif defined(__AVX__)
  return Vec32(_mm256_set_m128(_mm256_cvtpd_ps(v.high), _mm256_cvtpd_ps(v.low)));
#else
  Vec32 result;
  for (int i = 0; i < kLanes; ++i) result[i] = static_cast<float>(i < 4 ? v.low[i] : v.high[i - 4]);
  return result;
#endif
}

template <typename T>
inline Vec load(const T* from) {
  typename Narrow<T>::type v;
  std::memcpy(static_cast<void*>(&v), from, sizeof v);
  return widen(v);
}

// The first `count` lanes; the others are `fill`.
template <typename T>
__attribute__((noinline)) Vec load_some(const T* from, int64_t count, double fill) {
  Vec v(fill);
  for (int64_t i = 0; i < count; ++i) lane(v, i) = static_cast<double>(from[i]);
  return v;
}

template <typename V, typename T>
inline void store(V value, T* to) {
  std::memcpy(to, &value, sizeof value);
}

// Around the cache where `to` begins a line and the value fills it (halves of lines are slower so), which spares reading
// what is written over; ordered by finish_streams alone.
template <typename V, typename T>
inline void stream(V value, T* to) {
#if defined(__AVX__)
  if constexpr (sizeof value == 64) {
    if (reinterpret_cast<uintptr_t>(to) % 64 == 0) {
      const auto* part = reinterpret_cast<const __m256i*>(&value);
      auto* line = reinterpret_cast<__m256i*>(to);
#if defined(__AVX512F__)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(line), *reinterpret_cast<const __m512i*>(part));
#else
      _mm256_stream_si256(line, part[0]);
      _mm256_stream_si256(line + 1, part[1]);
#endif
      return;
    }
  }
#endif
  store(value, to);
}
inline void finish_streams() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

template <typename V, typename T>
inline void store_some(V value, T* to, int64_t begin, int64_t end) {
  T all[kLanes];
  std::memcpy(all, &value, sizeof all);
  for (int64_t i = begin; i < end; ++i) to[i] = all[i];
}

// Running sums of the lanes from lane 0 on: a lane depends on those before it alone.
#if defined(__AVX512F__)
inline Vec spread_last(Vec v) { return Vec(Part(_mm512_permutexvar_pd(_mm512_set1_epi64(7), v.part))); }
inline Vec scan(Vec v) {
  v.part += Part(_mm512_maskz_movedup_pd(0xAA, v.part));
  v.part += Part(_mm512_maskz_permutex_pd(0xCC, v.part, 0x55));
  v.part += Part(_mm512_maskz_permutexvar_pd(0xF0, _mm512_set1_epi64(3), v.part));
  return v;
}
#else
inline Vec spread_last(Vec v) {
  const Part last = __builtin_shuffle(v.high, PartMask{3, 3, 3, 3});
  return {last, last};
}
inline Part scan(Part v) {
  const Part zero{};
  v += __builtin_shuffle(v, zero, PartMask{4, 0, 4, 2});
  v += __builtin_shuffle(v, zero, PartMask{4, 4, 1, 1});
  return v;
}
inline Vec scan(Vec v) {
  const Part low = scan(v.low), last = __builtin_shuffle(low, PartMask{3, 3, 3, 3});
  return {low, scan(v.high) + last};
}
#endif
inline double add_up(Vec v) { return lane(scan(v), kLanes - 1); }

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
