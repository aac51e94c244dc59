// The library's plain C interface. Raise WINDTUNNEL_ABI_VERSION, and ABI_VERSION in library.py, with every change.
#pragma once

#include <cstdint>

#define WINDTUNNEL_ABI_VERSION 2
#define WINDTUNNEL_API extern "C" __attribute__((visibility("default")))

// Instruction sets: the widest that this processor has, or one by name.
enum { WINDTUNNEL_BEST = 0, WINDTUNNEL_BASELINE = 1, WINDTUNNEL_AVX2 = 2, WINDTUNNEL_AVX512 = 3 };

// Failures: scratch memory ran out, or the processor or the build lacks the instruction set.
enum { WINDTUNNEL_NO_MEMORY = 1, WINDTUNNEL_NO_SUCH_SET = 2 };

WINDTUNNEL_API int32_t windtunnel_abi_version();

// Rolling mean, sample standard deviation and z-score; rolling.cpp states the rules.
// `x` is T x C, `out` T x C x W x 3, both contiguous. Every instruction
// set gives the same bits. Returns 0, or one of the failures above.
WINDTUNNEL_API int32_t windtunnel_rolling_moments_f32(const float* x, float* out, int64_t rows, int64_t columns,
                                                      const int64_t* windows, int64_t window_count,
                                                      int64_t min_periods, int32_t threads, int32_t set);
WINDTUNNEL_API int32_t windtunnel_rolling_moments_f64(const double* x, double* out, int64_t rows, int64_t columns,
                                                      const int64_t* windows, int64_t window_count,
                                                      int64_t min_periods, int32_t threads, int32_t set);

// Copies each of `count` regions past the caches, on so many threads at once; regions do not overlap, and need no
// alignment.
WINDTUNNEL_API void windtunnel_stream_copy(void* const* targets, const void* const* sources, const int64_t* bytes,
                                           int64_t count, int32_t threads);
