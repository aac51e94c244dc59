// One column whose rows are neighbours in memory: four rows at a time, summed up by a scan in registers.
#pragma once

#include "moments.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

template <Moment moment, typename T>
struct Series {
  const Job<T>& job;
  const Column<T> column;
  const Rules rules;
  Lanes lanes{};
  bool counted = false;

  Series(const Job<T>& job, int64_t batch, int64_t index) : job(job), column(job, batch, index), rules(job) {}

  // Fresh sums over the window that ends before `row`.
  void restart(int64_t row) {
    const double anchor = choose_anchor(job, column, row);
    const int64_t first = later(-job.origin, row - job.window);
    Vec sum{}, squares{}, count{};
    for (int64_t at = first; at < row; at += kLanes) {
      const Vec value = at + kLanes <= row ? load(column.x + at) : load_some(column.x + at, row - at, __builtin_nan(""));
      const Change<moment, true> change(value, nan_vec(), splat(anchor));
      sum += change.sum;
      squares += change.squares;
      count += change.count;
    }
    lanes.anchor = splat(anchor);
    lanes.sum = splat(add_up(sum));
    lanes.squares = splat(add_up(squares));
    lanes.count = splat(add_up(count));
    lanes.limit = larger(splat(rules.floor), (kSquares<moment> ? lanes.squares : absolute(lanes.sum)) * rules.loss);
    counted = counted || lanes.count[0] < rules.window;
  }

  static double add_up(Vec v) { return (v[0] + v[1]) + (v[2] + v[3]); }

  void run(int64_t block) {
    const int64_t size = block_rows(job.window), tile = tile_rows(job.window);
    const int64_t begin = block * size - job.origin, end = sooner(begin + size, job.rows);
    restart(begin);
    for (int64_t row = begin; row < end; row += tile) {
      const int64_t stop = sooner(row + tile, end);
      const int64_t good = counted ? advance<true>(row, stop) : advance<false>(row, stop);
      if (good == stop) continue;
      careful_rows(job, column, good, stop);
      if (stop < end) restart(stop);
    }
  }

  // Rows up to `stop`; returns the first that cannot be trusted, and leaves no sums behind then.
  template <bool missing>
  int64_t advance(int64_t row, int64_t stop) {
    const Rules rules = this->rules;
    Lanes before = lanes;
    Vec least = splat(rules.window);
    for (; row < stop; row += kLanes) {
      const int64_t width = sooner(kLanes, stop - row);
      const double fill = missing ? __builtin_nan("") : before.anchor[0];
      const Vec value = width == kLanes ? load(column.x + row) : load_some(column.x + row, width, fill);
      const Change<moment, missing> change(value, load_old<missing>(row, width, fill), before.anchor);
      Lanes now = before;
      now.sum += scan(change.sum);
      if constexpr (kSquares<moment>) now.squares += scan(change.squares);
      if constexpr (missing) now.count += scan(change.count);
      if constexpr (missing) least = now.count < least ? now.count : least;
      const Vec loss = find_loss<moment>(rules, now);
      if (__builtin_expect(lane_bits(loss > now.limit), 0)) now.limit = raise_limit(now.limit, loss);
      Mask sound;
      const auto result = find_moment<moment, missing, T>(rules, now, value, sound);
      before.sum = spread_last(now.sum);
      if constexpr (kSquares<moment>) before.squares = spread_last(now.squares);
      if constexpr (missing) before.count = spread_last(now.count);
      before.limit = spread_last(now.limit);
      if (__builtin_expect(width == kLanes && row >= job.first, 1))
        store(result, column.out + row);
      else
        for (int64_t lane = later(0, job.first - row); lane < width; ++lane) column.out[row + lane] = result[lane];
      const int bad = ~lane_bits(sound) & ((1 << width) - 1);
      if (__builtin_expect(bad, 0)) return row + __builtin_ctz(static_cast<unsigned>(bad));
    }
    lanes = before;
    if constexpr (missing) counted = lane_bits(least < rules.window) != 0;
    return stop;
  }

  template <bool missing>
  Vec load_old(int64_t row, int64_t width, double fill) const {
    const int64_t from = row - job.window, absent = -job.origin - from;
    if (missing && absent > 0) {
      Vec value = splat(fill);
      for (int64_t lane = absent; lane < width; ++lane) value[lane] = static_cast<double>(column.x[from + lane]);
      return value;
    }
    return width == kLanes ? load(column.x + from) : load_some(column.x + from, width, fill);
  }

  // Each lane's limit from the rows up to its own, with room, so that this happens seldom.
  __attribute__((noinline)) static Vec raise_limit(Vec limit, Vec loss) {
    double last = limit[0];
    for (int lane = 0; lane < kLanes; ++lane) {
      if (loss[lane] > last) last = 1.5 * loss[lane];
      limit[lane] = last;
    }
    return limit;
  }
};

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
