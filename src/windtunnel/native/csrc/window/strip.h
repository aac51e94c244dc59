// Neighbouring columns whose rows lie one after another: eight columns advance together, row by row.
#pragma once

#include "moments.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

template <Moment moment, typename T>
struct Strip {
  static_assert(kLanes == kStripColumns);
  const Job<T>& job;
  const Rules& rules;
  int64_t batch, column;
  int width;  // columns of it that there are
  const T* x;
  int64_t out;  // its place in each output
  Lanes lanes;
  bool counted = false;

  Strip(const Job<T>& job, const Rules& rules, int64_t batch, int64_t column)
      : job(job),
        rules(rules),
        batch(batch),
        column(column),
        width(static_cast<int>(sooner(kStripColumns, job.columns - column))),
        x(job.x + batch * job.x_batch + column * job.x_column),
        out(batch * job.out_batch + column * job.out_column) {}

  // Columns that are not there hold ones, and are never looked at.
  Vec load_row(int64_t row) const {
    const T* from = x + row * job.x_row;
    return width == kLanes ? load(from) : load_some(from, width, 1.0);
  }
  int all() const { return (1 << width) - 1; }

  // Fresh sums over the window that ends before `row`, of the columns whose bits are set.
  void restart(int64_t row, int columns) {
    Lanes fresh{};
    for (int64_t i = 0; i < width; ++i) lane(fresh.anchor, i) = choose_anchor(job, Column<T>(job, batch, column + i), row);
    for (int64_t at = later(-job.origin, row - job.window); at < row; ++at) {
      const Change<moment, true> change(load_row(at), nan_vec(), fresh.anchor);
      fresh.sum += change.sum;
      fresh.squares += change.squares;
      fresh.count += change.count;
    }
    fresh.peak = larger(find_peak<moment>(fresh), rules.floor);
    counted = counted || (lane_bits(fresh.count < rules.window) & columns & all());
    for (int64_t i = 0; i < kLanes; ++i) {
      if (!(columns >> i & 1)) continue;
      lane(lanes.anchor, i) = lane(fresh.anchor, i);
      lane(lanes.sum, i) = lane(fresh.sum, i);
      lane(lanes.squares, i) = lane(fresh.squares, i);
      lane(lanes.count, i) = lane(fresh.count, i);
      lane(lanes.peak, i) = lane(fresh.peak, i);
    }
  }

  void run_tile(int64_t row, int64_t stop, bool last) {
    int64_t good[kStripColumns];
    const bool missing = counted;
    const int bad = missing ? advance<true>(row, stop, good) : advance<false>(row, stop, good);
    if (bad == 0) return;
    for (int i = 0; i < width; ++i)
      if (bad >> i & 1) careful_rows(job, Column<T>(job, batch, column + i), good[i], stop);
    if (last) return;
    if (!missing) lanes.count = rules.window;
    restart(stop, bad);
  }

  // All eight columns up to and with the first row where one cannot be trusted; returns the row after it.
  int64_t advance_fast(Lanes& lanes, int64_t row, int64_t stop, int& bad, int64_t* good) const {
    const Rules rules = this->rules;
    const Job<T> job = this->job;
    const int64_t x_row = job.x_row, out_row = job.out_row;
    const T* from = x + row * x_row;
    const T* old = from - job.window * x_row;
    int64_t to = out + row * out_row;
    Lanes now = lanes;
    for (; row < stop && bad == 0; ++row, from += x_row, old += x_row, to += out_row) {
      const Vec value = load(from);
      const Change<moment, false> change(value, load(old), now.anchor);
      now.sum += change.sum;
      if constexpr (kSquares<moment>) now.squares += change.squares;
      now.peak = larger(find_peak<moment>(now), now.peak);
      Mask sound;
      put<moment>(job, find_moment<moment, false, T>(rules, now, value, now.peak * rules.loss, sound), to);
      bad = ~lane_bits(sound) & kAllLanes;
    }
    for (int i = 0; i < kStripColumns; ++i)
      if (bad >> i & 1) good[i] = row - 1;
    lanes = now;
    return row;
  }

  // Rows up to `stop`; the bits of columns that cannot be trusted, each from row good[column] on.
  template <bool missing>
  int advance(int64_t row, int64_t stop, int64_t* good) {
    const Rules rules = this->rules;
    Lanes now = lanes;
    int bad = 0;
    Vec least = rules.window;
    if constexpr (!missing)
      if (width == kStripColumns && row >= job.first) row = advance_fast(now, row, stop, bad, good);
    for (; row < stop; ++row) {
      const Vec value = load_row(row);
      const bool has_old = !missing || row - job.window >= -job.origin;
      const Change<moment, missing> change(value, has_old ? load_row(row - job.window) : nan_vec(), now.anchor);
      now.sum += change.sum;
      if constexpr (kSquares<moment>) now.squares += change.squares;
      if constexpr (missing) now.count += change.count;
      if constexpr (missing) least = smaller(now.count, least);
      now.peak = larger(find_peak<moment>(now), now.peak);
      Mask sound;
      const auto results = find_moment<moment, missing, T>(rules, now, value, now.peak * rules.loss, sound);
      if (row >= job.first) put<moment>(job, results, out + row * job.out_row, 0, width);
      const int unsound = ~lane_bits(sound) & all() & ~bad;
      if (__builtin_expect(unsound, 0)) {
        bad |= unsound;
        for (int i = 0; i < width; ++i)
          if (unsound >> i & 1) good[i] = row;
      }
    }
    lanes = now;
    if constexpr (missing) counted = lane_bits(least < rules.window) != 0;
    return bad;
  }
};

// All columns of a group through one block, tile by tile, so that a tile's rows stay in the cache.
template <Moment moment, typename T>
void run_strips(const Job<T>& job, int64_t batch, int64_t group, int64_t block) {
  const int64_t size = block_rows(job.window), tile = tile_rows(job.window);
  const int64_t begin = block * size - job.origin, end = sooner(begin + size, job.rows);
  const int64_t first = group * kGroupColumns, last = sooner(first + kGroupColumns, job.columns);
  const Rules rules(job);
  alignas(64) unsigned char memory[sizeof(Strip<moment, T>) * (kGroupColumns / kStripColumns)];
  auto* strips = reinterpret_cast<Strip<moment, T>*>(memory);
  int64_t count = 0;
  for (int64_t column = first; column < last; column += kStripColumns, ++count)
    (new (strips + count) Strip<moment, T>(job, rules, batch, column))->restart(begin, (1 << kStripColumns) - 1);
  for (int64_t row = begin; row < end; row += tile)
    for (int64_t i = 0; i < count; ++i) strips[i].run_tile(row, sooner(row + tile, end), row + tile >= end);
}

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
