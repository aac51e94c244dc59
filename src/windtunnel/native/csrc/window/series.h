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
    Lanes now = lanes;
    Vec least = splat(rules.window);
    while (row < stop) {
      if constexpr (!missing)
        if (row >= job.first) row = advance_fast(now, row, stop);
      for (const int64_t soon = sooner(stop, row + 2 * kLanes); row < soon; row += kLanes) {
        const int64_t width = sooner(kLanes, stop - row);
        const int bad = ~step<missing>(now, row, width) & ((1 << width) - 1);
        if (bad) return row + __builtin_ctz(static_cast<unsigned>(bad));
        if constexpr (missing) least = now.count < least ? now.count : least;
      }
    }
    lanes = now;
    if constexpr (missing) counted = lane_bits(least < rules.window) != 0;
    return stop;
  }

  // Eight rows at a time as long as all is well; returns the row where step must look closer.
  int64_t advance_fast(Lanes& lanes, int64_t row, int64_t stop) const {
    const Rules rules = this->rules;
    const T* from = column.x;
    const T* old = column.x - job.window;
    T* out = column.out;
    Lanes one = lanes, two = lanes;
    Vec sum = lanes.sum, squares = lanes.squares;
    for (; row + 2 * kLanes <= stop; row += 2 * kLanes) {
      const Vec first = load(from + row), second = load(from + row + kLanes);
      const Change<moment, false> a(first, load(old + row), one.anchor), b(second, load(old + row + kLanes), one.anchor);
      const Vec a_sum = scan(a.sum), b_sum = scan(b.sum), middle = sum + spread_last(a_sum);
      one.sum = sum + a_sum;
      two.sum = middle + b_sum;
      Vec squares_after = squares;
      if constexpr (kSquares<moment>) {
        const Vec a_squares = scan(a.squares), b_squares = scan(b.squares), halfway = squares + spread_last(a_squares);
        one.squares = squares + a_squares;
        two.squares = halfway + b_squares;
        squares_after = halfway + spread_last(b_squares);
      }
      Mask sound, sound_two;
      const auto result = find_moment<moment, false, T>(rules, one, first, sound);
      const auto result_two = find_moment<moment, false, T>(rules, two, second, sound_two);
      sound &= sound_two & (find_loss<moment>(rules, one) <= one.limit) & (find_loss<moment>(rules, two) <= one.limit);
      if (__builtin_expect(lane_bits(sound) != 15, 0)) break;
      store(result, out + row);
      store(result_two, out + row + kLanes);
      sum = middle + spread_last(b_sum);
      squares = squares_after;
    }
    lanes.sum = sum;
    lanes.squares = squares;
    return row;
  }

  // Four rows; returns the bits of those that can be trusted.
  template <bool missing>
  __attribute__((noinline)) int step(Lanes& lanes, int64_t row, int64_t width) const {
    const double fill = missing ? __builtin_nan("") : lanes.anchor[0];
    const Vec value = width == kLanes ? load(column.x + row) : load_some(column.x + row, width, fill);
    const Change<moment, missing> change(value, load_old<missing>(row, width, fill), lanes.anchor);
    Lanes now = lanes;
    now.sum += scan(change.sum);
    if constexpr (kSquares<moment>) now.squares += scan(change.squares);
    if constexpr (missing) now.count += scan(change.count);
    const Vec loss = find_loss<moment>(rules, now);
    if (lane_bits(loss > now.limit)) now.limit = raise_limit(now.limit, loss);
    Mask sound;
    const auto result = find_moment<moment, missing, T>(rules, now, value, sound);
    if (width == kLanes && row >= job.first)
      store(result, column.out + row);
    else
      for (int64_t lane = later(0, job.first - row); lane < width; ++lane) column.out[row + lane] = result[lane];
    lanes.sum = spread_last(now.sum);
    lanes.squares = spread_last(now.squares);
    lanes.count = spread_last(now.count);
    lanes.limit = spread_last(now.limit);
    return lane_bits(sound);
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
  static Vec raise_limit(Vec limit, Vec loss) {
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
