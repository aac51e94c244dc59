// What a rolling moment is asked for, shared by window.cpp (blocks, choice of instruction set) and the arithmetic.
//
// A window at row t holds rows t - w + 1 .. t, fewer at the start. NaN and infinity are missing values and are
// skipped; fewer than min_periods values give NaN. docs/kernels.md has the rules in full.
#pragma once

#include <cstdint>

namespace windtunnel {

enum class Moment : int64_t { mean, sum, var, std, zscore, all };
constexpr int64_t kMoments = 5;  // `all` stands for those of them that have a place to go

// Rows may begin in the middle of a series: `origin` is the place of row 0 in it. Blocks are cut by places in the
// series, and no value depends on a later row, so a stream that is fed piece by piece gives the same bits.
template <typename T>
struct Job {
  const T* x;
  T* outs[kMoments];  // by moment; null where it is not wanted
  int64_t rows, columns, batches;
  int64_t x_row, x_column, x_batch;        // strides in elements
  int64_t out_row, out_column, out_batch;  // likewise
  int64_t window, min_periods;
  int64_t origin, first;  // rows before `first` are read and not written
  Moment moment;
  bool past_cache;  // results are too many for the cache: rows that are neighbours are written around it
};

// Rows between fresh starts of the sums, and rows whose results are trusted or done again together.
static inline int64_t block_rows(int64_t window) {
  int64_t rows = 1024;
  while (rows < 4 * window) rows *= 2;
  return rows;
}
static inline int64_t tile_rows(int64_t window) { return block_rows(window) / 16 < 128 ? 128 : block_rows(window) / 16; }

// Visits the moments that a job wants.
template <typename T, typename Visit>
static inline void each_wanted(const Job<T>& job, Visit visit) {
  for (int64_t m = 0; m < kMoments; ++m)
    if (job.outs[m] != nullptr) visit(static_cast<Moment>(m));
}

constexpr int64_t kStripColumns = 8;   // columns that advance together
constexpr int64_t kGroupColumns = 64;  // columns of a task: their rows stay in the cache

// Whether neighbouring rows, rather than neighbouring columns, are neighbours in memory.
template <typename T>
static inline bool is_series(const Job<T>& job) {
  return job.x_row == 1 && job.out_row == 1;
}

template <typename T>
static inline int64_t first_block(const Job<T>& job) {
  return (job.origin + job.first) / block_rows(job.window);
}

template <typename T>
static inline int64_t block_count(const Job<T>& job) {
  const int64_t size = block_rows(job.window);
  return (job.origin + job.rows + size - 1) / size - first_block(job);
}

template <typename T>
static inline int64_t group_count(const Job<T>& job) {
  const int64_t width = is_series(job) ? 1 : kGroupColumns;
  return (job.columns + width - 1) / width;
}

// Tasks of one call, which may run in any order and on any thread.
template <typename T>
static inline int64_t task_count(const Job<T>& job) {
  return job.rows <= job.first ? 0 : job.batches * group_count(job) * block_count(job);
}

#define WINDTUNNEL_DECLARE_WINDOW(ISA)                               \
  namespace ISA {                                                    \
  void run_window_task(const Job<float>& job, int64_t task);         \
  void run_window_task(const Job<double>& job, int64_t task);        \
  }

WINDTUNNEL_DECLARE_WINDOW(baseline)
#ifdef WINDTUNNEL_X86
WINDTUNNEL_DECLARE_WINDOW(avx2)
WINDTUNNEL_DECLARE_WINDOW(avx512)
#endif

}  // namespace windtunnel
