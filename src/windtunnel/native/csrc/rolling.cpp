// Rolling mean, sample standard deviation (n - 1) and z-score of every column over several windows.
//
// A window at row t holds rows t - w + 1 .. t, fewer at the start. NaN values are skipped; fewer than min_periods
// finite values give NaN; an infinity makes every window that holds it NaN, and nothing remains of it afterwards.
// The deviation of one value is NaN; that of equal values is exactly 0, and their z-score is 0. A row that is
// itself NaN has a mean and a deviation but no z-score.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "rolling.h"
#include "windtunnel.h"

namespace windtunnel {
namespace {

template <typename T>
struct Kernel {
  int64_t lanes;
  void (*group)(const Moments<T>&, int64_t, double*);
  void (*slide)(const Moments<T>&, int64_t, int64_t, int64_t, int64_t);
};

bool has_set(int32_t set) {
  if (set == WINDTUNNEL_BASELINE) return true;
#ifdef WINDTUNNEL_X86
  if (set == WINDTUNNEL_AVX2) return __builtin_cpu_supports("avx2");
  if (set == WINDTUNNEL_AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return false;
}

int32_t find_best_set() {
  int32_t set = WINDTUNNEL_AVX512;
  while (!has_set(set)) --set;
  return set;
}

template <typename T>
Kernel<T> choose_kernel(int32_t set) {
#ifdef WINDTUNNEL_X86
  if (set == WINDTUNNEL_AVX512) return {avx512::lane_count(), avx512::run_group, avx512::run_slide};
  if (set == WINDTUNNEL_AVX2) return {avx2::lane_count(), avx2::run_group, avx2::run_slide};
#endif
  (void)set;
  return {baseline::lane_count(), baseline::run_group, baseline::run_slide};
}

struct Free {
  void operator()(double* memory) const { std::free(memory); }
};
using Scratch = std::unique_ptr<double, Free>;

Scratch allocate_scratch(int64_t doubles) {
  constexpr int64_t line = 64;
  const int64_t bytes = (doubles * static_cast<int64_t>(sizeof(double)) + line - 1) / line * line;
  Scratch memory(static_cast<double*>(std::aligned_alloc(line, static_cast<size_t>(bytes))));
  if (!memory) throw std::bad_alloc();
  return memory;
}

// A block of a window that slides.
struct SlideTask {
  int64_t column, window, begin, end;
};

// Lengths cut to the data, the short ones first, each with its place in the output.
struct Order {
  std::vector<int64_t> lengths, slots;
  int64_t short_count = 0, longest_short = 1;

  Order(const int64_t* windows, int64_t count, int64_t rows) {
    for (const bool is_short : {true, false})
      for (int64_t slot = 0; slot < count; ++slot) {
        const int64_t length = std::min(windows[slot], rows);
        if ((length <= kLongWindow) != is_short) continue;
        lengths.push_back(length);
        slots.push_back(slot);
        if (!is_short) continue;
        ++short_count;
        longest_short = std::max(longest_short, length);
      }
  }
};

int64_t choose_block_rows(int64_t longest) {
  int64_t rows = 1024;
  while (rows < 2 * longest) rows *= 2;
  return rows;
}

template <typename T>
std::vector<SlideTask> list_slides(const Moments<T>& job) {
  std::vector<SlideTask> tasks;
  for (int64_t window = job.short_count; window < job.window_count; ++window) {
    const int64_t step = long_block_rows(job.windows[window]);
    for (int64_t begin = 0; begin < job.rows; begin += step)
      for (int64_t column = 0; column < job.columns; ++column)
        tasks.push_back({column, window, begin, std::min(begin + step, job.rows)});
  }
  return tasks;
}

// Share `part` of `parts` of all groups and slides.
template <typename T>
void run_part(const Moments<T>& job, const Kernel<T>& kernel, const std::vector<SlideTask>& slides, int64_t part,
              int64_t parts, double* scratch) {
  const int64_t groups = group_count(job, kernel.lanes), slide_count = static_cast<int64_t>(slides.size());
  for (int64_t group = groups * part / parts; group < groups * (part + 1) / parts; ++group)
    kernel.group(job, group, scratch);
  for (int64_t i = slide_count * part / parts; i < slide_count * (part + 1) / parts; ++i)
    kernel.slide(job, slides[i].column, slides[i].window, slides[i].begin, slides[i].end);
}

template <typename T>
void run_threads(const Moments<T>& job, const Kernel<T>& kernel, int64_t threads) {
  const std::vector<SlideTask> slides = list_slides(job);
  const int64_t tasks = std::max(group_count(job, kernel.lanes), static_cast<int64_t>(slides.size()));
  const int64_t parts = std::clamp<int64_t>(threads, 1, std::max<int64_t>(tasks, 1));
  std::vector<Scratch> scratch;
  for (int64_t part = 0; part < parts; ++part)
    scratch.push_back(allocate_scratch(scratch_doubles(job, kernel.lanes)));
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(parts));
  int64_t started = 1;
  try {
    for (; started < parts; ++started)
      others.emplace_back([&, started] { run_part(job, kernel, slides, started, parts, scratch[started].get()); });
  } catch (const std::system_error&) {
    // The machine gives no more threads: this one does their shares, with the same result.
  }
  run_part(job, kernel, slides, 0, parts, scratch[0].get());
  for (int64_t part = started; part < parts; ++part) run_part(job, kernel, slides, part, parts, scratch[part].get());
  for (std::thread& other : others) other.join();
}

template <typename T>
int32_t rolling_moments(const T* x, T* out, int64_t rows, int64_t columns, const int64_t* windows,
                        int64_t window_count, int64_t min_periods, int32_t threads, int32_t set) {
  if (set == WINDTUNNEL_BEST) set = find_best_set();
  if (!has_set(set)) return WINDTUNNEL_NO_SUCH_SET;
  if (rows == 0 || columns == 0 || window_count == 0) return 0;
  try {
    const Order order(windows, window_count, rows);
    const int64_t block_rows = choose_block_rows(order.longest_short);
    const Moments<T> job{x, out, rows, columns, min_periods, order.lengths.data(), order.slots.data(), window_count,
                         order.short_count, block_rows, order.longest_short - 1};
    run_threads(job, choose_kernel<T>(set), threads);
    return 0;
  } catch (const std::bad_alloc&) {
    return WINDTUNNEL_NO_MEMORY;
  }
}

}  // namespace
}  // namespace windtunnel

int32_t windtunnel_rolling_moments_f32(const float* x, float* out, int64_t rows, int64_t columns,
                                       const int64_t* windows, int64_t window_count, int64_t min_periods,
                                       int32_t threads, int32_t set) {
  return windtunnel::rolling_moments(x, out, rows, columns, windows, window_count, min_periods, threads, set);
}

int32_t windtunnel_rolling_moments_f64(const double* x, double* out, int64_t rows, int64_t columns,
                                       const int64_t* windows, int64_t window_count, int64_t min_periods,
                                       int32_t threads, int32_t set) {
  return windtunnel::rolling_moments(x, out, rows, columns, windows, window_count, min_periods, threads, set);
}
