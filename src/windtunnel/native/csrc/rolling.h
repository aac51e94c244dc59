// What rolling.cpp (checks, threads, choice of instruction set) and rolling_kernel.cpp (arithmetic) share.
#pragma once

#include <cstdint>

namespace windtunnel {

constexpr int64_t kLongWindow = 4096;  // longer windows slide one by one instead of sharing prefix sums

// One call. Windows are at most `rows` long; the short ones come first. Everything that fixes the order of
// additions (blocks, lanes) depends on shapes and windows alone, so results do not depend on `threads`.
template <typename T>
struct Moments {
  const T* x;
  T* out;
  int64_t rows, columns, min_periods;
  const int64_t* windows;  // length of each window
  const int64_t* slots;    // where each stands in the output
  int64_t window_count, short_count;
  int64_t block_rows, halo_rows;  // of the short windows: rows of a block, and rows before it that windows reach
};

// Internal linkage, here and below: the linker must not pick the copy of a wider instruction set.
// Doubles of scratch that each thread needs.
template <typename T>
static inline int64_t scratch_doubles(const Moments<T>& job, int64_t lanes) {
  const int64_t rows = job.block_rows + job.halo_rows + 1;
  return lanes * (7 * rows + 2 * job.short_count);
}

template <typename T>
static inline int64_t block_count(const Moments<T>& job) {
  return (job.rows + job.block_rows - 1) / job.block_rows;
}

template <typename T>
static inline int64_t group_count(const Moments<T>& job, int64_t lanes) {
  return job.short_count == 0 ? 0 : (block_count(job) * job.columns + lanes - 1) / lanes;
}

// Rows in a task of a window that slides: its start costs a whole window.
static inline int64_t long_block_rows(int64_t window) { return 4 * window; }

#define WINDTUNNEL_DECLARE_KERNEL(ISA)                                                                          \
  namespace ISA {                                                                                               \
  int64_t lane_count();                                                                                         \
  void run_group(const Moments<float>& job, int64_t group, double* scratch);                                    \
  void run_group(const Moments<double>& job, int64_t group, double* scratch);                                   \
  void run_slide(const Moments<float>& job, int64_t column, int64_t window, int64_t begin, int64_t end);        \
  void run_slide(const Moments<double>& job, int64_t column, int64_t window, int64_t begin, int64_t end);       \
  }

WINDTUNNEL_DECLARE_KERNEL(baseline)
#ifdef WINDTUNNEL_X86
WINDTUNNEL_DECLARE_KERNEL(avx2)
WINDTUNNEL_DECLARE_KERNEL(avx512)
#endif

}  // namespace windtunnel
