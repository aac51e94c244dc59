// One column whose rows are neighbours in memory: eight rows at a time, summed up by a scan in registers.
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
    if (!add_window<false>(row, anchor)) add_window<true>(row, anchor);
    lanes.anchor = anchor;
    counted = counted || lane(lanes.count, 0) < rules.window;
  }

  // Returns whether the sums are finite, as they must be where no missing value is looked for.
  template <bool missing>
  bool add_window(int64_t row, Vec anchor) {
    const int64_t first = later(-job.origin, row - job.window);
    const double fill = missing ? __builtin_nan("") : lane(anchor, 0);
    Lanes fresh{};
    for (int64_t at = first; at < row; at += kLanes) {
      const bool whole = at + kLanes <= row;
      const Vec value = whole ? load(column.x + at) : load_some(column.x + at, row - at, fill);
      if constexpr (missing) {
        const Change<moment, true> change(value, nan_vec(), anchor);
        fresh.sum += change.sum;
        fresh.squares += change.squares;
        fresh.count += change.count;
        fresh.peak += absolute(change.sum);
      } else {
        const Vec come = value - anchor;
        fresh.sum += come;
        if constexpr (kSquares<moment>) fresh.squares += come * come;
        fresh.peak += absolute(come);
      }
    }
    lanes.sum = add_up(fresh.sum);
    lanes.squares = add_up(fresh.squares);
    lanes.count = missing ? add_up(fresh.count) : static_cast<double>(row - first);
    lanes.peak = larger(rules.room * (kSquares<moment> ? lanes.squares : Vec(add_up(fresh.peak))), rules.floor);
    return is_number(lane(lanes.sum, 0)) && is_number(lane(lanes.squares, 0));
  }

  void run(int64_t block) {
    const int64_t size = block_rows(job.window), tile = tile_rows(job.window);
    const int64_t begin = block * size - job.origin, end = sooner(begin + size, job.rows);
    restart(begin);
    for (int64_t row = begin; row < end;) {
      const bool missing = counted;
      const int64_t stop = missing ? sooner(row + tile, end) : end;
      const int64_t good = missing ? advance<true>(row, stop) : advance<false>(row, stop);
      row = good == stop ? stop : sooner(begin + ((good - begin) / tile + 1) * tile, end);
      if (good == stop) continue;
      careful_rows(job, column, good, row);
      if (row < end) restart(row);
    }
  }

  // Rows up to `stop`; returns the first that cannot be trusted, and leaves no sums behind then.
  template <bool missing>
  int64_t advance(int64_t row, int64_t stop) {
    Lanes now = lanes;
    Vec least = rules.window;
    while (row < stop) {
      if constexpr (!missing)
        if (row >= job.first && is_moderate<moment, T>(rules, lane(now.peak, 0))) row = advance_fast(now, row, stop);
      if (row == stop) break;
      const int64_t width = sooner(kLanes, stop - row);
      const int bad = ~step<missing>(now, row, width) & ((1 << width) - 1);
      if (bad) return row + __builtin_ctz(static_cast<unsigned>(bad));
      if constexpr (missing) least = smaller(now.count, least);
      row += width;
    }
    lanes = now;
    if constexpr (missing) counted = lane_bits(least < rules.window) != 0;
    return stop;
  }

  // Eight rows at a time as long as all is well; returns the row where step must look closer.
  int64_t advance_fast(Lanes& lanes, int64_t row, int64_t stop) const {
    const Rules rules = this->rules;
    const Job<T> job = this->job;
    const Column<T> column = this->column;
    const T* from = column.x;
    const T* old = column.x - job.window;
    Lanes now = lanes;
    Vec sum = lanes.sum, squares = lanes.squares;
    for (; row + kLanes <= stop; row += kLanes) {
      const Vec value = load(from + row);
      const Change<moment, false> change(value, load(old + row), now.anchor);
      const Vec sums = scan(change.sum), more = kSquares<moment> ? scan(change.squares) : Vec();
      now.sum = sum + sums;
      now.squares = squares + more;
      Mask sound;
      const Results<T> results = find_moment_fast<moment, T>(rules, now, value, sound);
      sound &= find_peak<moment>(now) <= now.peak;
      if (__builtin_expect(lane_bits(sound) != kAllLanes, 0)) break;
      put<moment>(job, results, column.out + row, 0, kLanes, job.past_cache);
      sum += spread_last(sums);
      if constexpr (kSquares<moment>) squares += spread_last(more);
    }
    lanes.sum = sum;
    lanes.squares = squares;
    return row;
  }

  // Eight rows, or `width` of them; returns the bits of those that can be trusted.
  template <bool missing>
  __attribute__((noinline)) int step(Lanes& lanes, int64_t row, int64_t width) const {
    const double fill = missing ? __builtin_nan("") : lane(lanes.anchor, 0);
    const Vec value = width == kLanes ? load(column.x + row) : load_some(column.x + row, width, fill);
    const Change<moment, missing> change(value, load_old<missing>(row, width, fill), lanes.anchor);
    const Vec sums = scan(change.sum), more = scan(change.squares), counts = scan(change.count);
    Lanes now = lanes;
    now.sum += sums;
    now.squares += more;
    now.count += counts;
    const Vec peak = find_peak<moment>(now);
    if (lane_bits(peak > now.peak)) now.peak = raise_peak(now.peak, peak);
    Mask sound;
    const Results<T> results = find_moment<moment, missing, T>(rules, now, value, now.peak * rules.loss, sound);
    put<moment>(job, results, column.out + row, later(0, job.first - row), width);
    lanes.sum += spread_last(sums);
    lanes.squares += spread_last(more);
    lanes.count += spread_last(counts);
    lanes.peak = spread_last(now.peak);
    return lane_bits(sound);
  }

  template <bool missing>
  Vec load_old(int64_t row, int64_t width, double fill) const {
    const int64_t from = row - job.window, absent = -job.origin - from;
    if (missing && absent > 0) {
      Vec value(fill);
      for (int64_t i = absent; i < width; ++i) lane(value, i) = static_cast<double>(column.x[from + i]);
      return value;
    }
    return width == kLanes ? load(column.x + from) : load_some(column.x + from, width, fill);
  }

  // Each lane's peak from the rows up to its own, with room, so that this happens seldom.
  static Vec raise_peak(Vec peak, Vec found) {
    double last = lane(peak, 0);
    for (int64_t i = 0; i < kLanes; ++i) {
      if (lane(found, i) > last) last = (kSquares<moment> ? 4 : 1.5) * lane(found, i);
      lane(peak, i) = last;
    }
    return peak;
  }
};

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
