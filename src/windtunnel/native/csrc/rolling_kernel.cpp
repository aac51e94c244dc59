// The arithmetic of rolling moments, compiled once for each instruction set (WINDTUNNEL_ISA names it).
//
// Short windows: a block of one column is a lane, and as many lanes as fit a register advance together. Values are
// shifted by an anchor taken anew in every block, so that one pair of float64 prefix sums serves all windows. A bound
// on what those sums may have lost is held against each window's variance and mean; from the first row of a block
// where it does not hold (after a spike, say), that window slides instead, with compensated sums and a fresh anchor.
// NaN and infinity never enter a sum. No standard templates here: they would be shared between sets.
#include "rolling.h"
#include "rolling_slide.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 8;
#elif defined(__AVX2__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
// One register each: a compiler splits wider ones badly.
typedef double Vec __attribute__((vector_size(8 * kLanes)));
typedef int64_t Mask __attribute__((vector_size(8 * kLanes)));

constexpr int64_t kTileRows = 64;  // rows whose outputs stay in L1 while windows take turns

inline Vec splat(double value) { return Vec{} + value; }

inline Vec square_root(Vec value) {
  Vec root;
  for (int lane = 0; lane < kLanes; ++lane) root[lane] = __builtin_sqrt(value[lane]);
  return root;
}

inline bool any(Mask mask) {
  int64_t found = 0;
  for (int lane = 0; lane < kLanes; ++lane) found |= mask[lane];
  return found != 0;
}

// Blocks side by side, a lane each, and their scratch.
template <typename T>
struct Group {
  const Moments<T>& job;
  int64_t column[kLanes], begin[kLanes], length[kLanes];
  bool adjacent = true, dense = true;  // neighbouring columns of one block; every row there and finite
  int lanes = kLanes;
  T* out[kLanes];
  Vec *x, *sums, *squares, *runs, *counts, *infinites, *levels;  // the last three only where not dense
  Vec anchor{}, largest_sum{};

  Group(const Moments<T>& job, int64_t group, double* scratch) : job(job) {
    const int64_t rows = job.block_rows + job.halo_rows + 1;
    Vec** arrays[] = {&x, &sums, &squares, &runs, &counts, &infinites, &levels};
    Vec* next = reinterpret_cast<Vec*>(scratch);
    for (Vec** array : arrays) {
      *array = next;
      next += rows;
    }
    const int64_t tasks = block_count(job) * job.columns;
    lanes = static_cast<int>(smaller(kLanes, tasks - group * kLanes));
    for (int lane = 0; lane < kLanes; ++lane) {
      const int64_t task = smaller(group * kLanes + lane, tasks - 1);
      column[lane] = task % job.columns;
      begin[lane] = task / job.columns * job.block_rows;
      length[lane] = smaller(job.block_rows, job.rows - begin[lane]);
      out[lane] = job.out + (begin[lane] * job.columns + column[lane]) * job.window_count * 3;
      adjacent = adjacent && begin[lane] == begin[0] && column[lane] == column[0] + lane;
      dense = dense && begin[lane] >= job.halo_rows && length[lane] == job.block_rows;
    }
  }

  void load() {
    const int64_t rows = job.block_rows + job.halo_rows, stride = job.columns;
    if (adjacent && dense) {
      const T* from = job.x + (begin[0] - job.halo_rows) * stride + column[0];
      for (int64_t row = 0; row < rows; ++row, from += stride)
        for (int lane = 0; lane < kLanes; ++lane) x[row][lane] = static_cast<double>(from[lane]);
    } else {
      for (int lane = 0; lane < kLanes; ++lane) load_lane(lane);
    }
    Vec poison{};
    for (int64_t row = 0; row < rows; ++row) poison += x[row] * 0.0;
    dense = dense && !any(poison != 0.0);
  }

  void load_lane(int lane) {
    const int64_t first = begin[lane] - job.halo_rows, rows = job.block_rows + job.halo_rows;
    const int64_t low = larger(0, -first), high = smaller(rows, job.rows - first);
    const T* from = job.x + (first + low) * job.columns + column[lane];
    double* to = reinterpret_cast<double*>(x) + lane;
    for (int64_t row = 0; row < low; ++row) to[row * kLanes] = __builtin_nan("");
    for (int64_t row = low; row < high; ++row, from += job.columns) to[row * kLanes] = static_cast<double>(*from);
    for (int64_t row = larger(high, low); row < rows; ++row) to[row * kLanes] = __builtin_nan("");
  }

  void scan_dense() {
    Vec sum{}, square{}, run{}, last = splat(__builtin_nan(""));
    anchor = x[0];
    sums[0] = squares[0] = sum;
    for (int64_t row = 0; row < job.block_rows + job.halo_rows; ++row) {
      const Vec d = x[row] - anchor;
      sums[row + 1] = sum += d;
      squares[row + 1] = square += d * d;
      runs[row] = run = (x[row] == last ? run : Vec{}) + 1.0;
      last = x[row];
      const Vec size = sum < 0.0 ? -sum : sum;
      largest_sum = size > largest_sum ? size : largest_sum;
    }
  }

  void scan_sparse() {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int64_t row = job.block_rows + job.halo_rows; row-- > 0;)
        if (is_finite(x[row][lane])) anchor[lane] = x[row][lane];
    Vec sum{}, square{}, run{}, count{}, infinite{}, last = splat(__builtin_nan(""));
    sums[0] = squares[0] = counts[0] = infinites[0] = sum;
    for (int64_t row = 0; row < job.block_rows + job.halo_rows; ++row) {
      const Mask valid = x[row] - x[row] == 0.0, number = x[row] == x[row];
      const Vec d = valid ? x[row] - anchor : Vec{};
      sums[row + 1] = sum += d;
      squares[row + 1] = square += d * d;
      counts[row + 1] = count += valid ? splat(1) : Vec{};
      infinites[row + 1] = infinite += (number & ~valid) ? splat(1) : Vec{};
      const Vec longer = (x[row] == last ? run : Vec{}) + 1.0;
      runs[row] = run = valid ? longer : run;
      levels[row] = last = valid ? x[row] : last;
      const Vec size = sum < 0.0 ? -sum : sum;
      largest_sum = size > largest_sum ? size : largest_sum;
    }
  }

  void store(int64_t row, int64_t window, Vec mean, Vec std, Vec score) {
    const int64_t offset = (row * job.columns * job.window_count + job.slots[window]) * 3;
    for (int lane = 0; lane < lanes; ++lane) {
      if (!dense && row >= length[lane]) continue;
      T* to = out[lane] + offset;
      to[0] = static_cast<T>(mean[lane]);
      to[1] = static_cast<T>(std[lane]);
      to[2] = static_cast<T>(score[lane]);
    }
  }
};

// The least sum of squared deviations, and the least square of the scale, at which a window can be trusted.
struct Limits {
  Vec deviations, scale;
};

template <typename T>
Limits find_limits(const Group<T>& group, double window) {
  const Vec squares = group.squares[group.job.block_rows + group.job.halo_rows];
  const Vec loss = group.largest_sum * (window * kRounding / kMeanTolerance);
  return {squares * (4 * window * kRounding / variance_tolerance<T>()), loss * loss / window};
}

// Every row of the tile holds `window` finite values. `sound` marks lanes still trusted; `rows` counts their rows.
template <typename T>
void tile_dense(Group<T>& group, int64_t window, int64_t tile, const Limits& limits, Mask& sound, Mask& rows) {
  const Moments<T>& job = group.job;
  const int64_t length = job.windows[window];
  const double n = static_cast<double>(length), inverse = 1 / n, inverse_less = 1 / (n - 1);
  const Vec flat_value = splat(length > 1 ? 0.0 : __builtin_nan(""));
  const int64_t end = smaller(tile + kTileRows, job.block_rows);
  Mask good = sound, trusted_rows = rows;
  for (int64_t row = tile; row < end; ++row) {
    const int64_t at = row + job.halo_rows;
    const Vec value = group.x[at];
    const Vec sum = group.sums[at + 1] - group.sums[at + 1 - length];
    const Vec shifted = sum * inverse;
    const Vec deviations = (group.squares[at + 1] - group.squares[at + 1 - length]) - sum * shifted;
    const Mask constant = group.runs[at] >= n;
    const Vec mean = shifted + group.anchor;
    good &= constant | ((deviations >= limits.deviations) & (deviations + mean * mean * n >= limits.scale));
    trusted_rows -= good;
    const Vec std = square_root(deviations < 0.0 ? Vec{} : deviations * inverse_less);
    const Vec score = ((value - group.anchor) - shifted) / std;
    group.store(row, window, constant ? value : mean, constant ? flat_value : std,
                constant | (std == 0.0) ? flat_value : score);
  }
  sound = good;
  rows = trusted_rows;
}

template <typename T>
void tile_sparse(Group<T>& group, int64_t window, int64_t tile, const Limits& limits, Mask& sound, Mask& rows) {
  const Moments<T>& job = group.job;
  const int64_t length = job.windows[window];
  const double least = static_cast<double>(job.min_periods);
  const Vec nan = splat(__builtin_nan(""));
  const int64_t end = smaller(tile + kTileRows, job.block_rows);
  for (int64_t row = tile; row < end; ++row) {
    const int64_t at = row + job.halo_rows, before = at + 1 - length;
    const Vec value = group.x[at], count = group.counts[at + 1] - group.counts[before];
    const Vec sum = group.sums[at + 1] - group.sums[before];
    const Vec shifted = sum / count;
    const Vec deviations = (group.squares[at + 1] - group.squares[before]) - sum * shifted;
    const Mask constant = group.runs[at] >= count;
    const Vec mean = shifted + group.anchor;
    const Mask held = (count >= least) & (group.infinites[at + 1] - group.infinites[before] == 0.0);
    const Vec scale = deviations + mean * mean * count;
    sound &= ~held | constant | ((deviations >= limits.deviations) & (scale >= limits.scale));
    rows -= sound;
    const Vec std = square_root(deviations < 0.0 ? Vec{} : deviations / (count - 1.0));
    const Mask flat = constant | (std == 0.0), several = held & (count > 1.0), valid = value - value == 0.0;
    const Vec score = flat ? Vec{} : ((value - group.anchor) - shifted) / std;
    group.store(row, window, held ? (constant ? group.levels[at] : mean) : nan,
                several ? (constant ? Vec{} : std) : nan, several & valid ? score : nan);
  }
}

// From the first row that cannot be trusted, the window slides to its block's end.
template <typename T>
void repair(Group<T>& group, int64_t window, Mask rows) {
  for (int lane = 0; lane < group.lanes; ++lane)
    if (rows[lane] < group.length[lane])
      slide_rows(group.job, group.column[lane], window, group.begin[lane] + rows[lane],
                 group.begin[lane] + group.length[lane]);
}

template <typename T>
void group_rows(const Moments<T>& job, int64_t index, double* scratch) {
  Group<T> group(job, index, scratch);
  group.load();
  group.dense ? group.scan_dense() : group.scan_sparse();
  Mask* state = reinterpret_cast<Mask*>(scratch + 7 * kLanes * (job.block_rows + job.halo_rows + 1));
  for (int64_t window = 0; window < job.short_count; ++window) {
    state[2 * window] = ~Mask{};
    state[2 * window + 1] = Mask{};
  }
  for (int64_t tile = 0; tile < job.block_rows; tile += kTileRows)
    for (int64_t window = 0; window < job.short_count; ++window) {
      const Limits limits = find_limits(group, static_cast<double>(job.windows[window]));
      Mask &sound = state[2 * window], &rows = state[2 * window + 1];
      if (group.dense)
        tile_dense(group, window, tile, limits, sound, rows);
      else
        tile_sparse(group, window, tile, limits, sound, rows);
    }
  for (int64_t window = 0; window < job.short_count; ++window) repair(group, window, state[2 * window + 1]);
}

}  // namespace

int64_t lane_count() { return kLanes; }
void run_group(const Moments<float>& job, int64_t group, double* scratch) { group_rows(job, group, scratch); }
void run_group(const Moments<double>& job, int64_t group, double* scratch) { group_rows(job, group, scratch); }
void run_slide(const Moments<float>& job, int64_t column, int64_t window, int64_t begin, int64_t end) {
  slide_rows(job, column, window, begin, end);
}
void run_slide(const Moments<double>& job, int64_t column, int64_t window, int64_t begin, int64_t end) {
  slide_rows(job, column, window, begin, end);
}

}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
