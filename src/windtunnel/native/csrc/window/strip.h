// Neighbouring columns whose rows lie one after another: eight columns advance together, row by row.
#pragma once

#include "moments.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

template <Moment moment, typename T>
struct Strip {
  static constexpr int kVecs = 2;
  static_assert(kVecs * kLanes == kStripColumns);
  const Job<T>& job;
  const Rules& rules;
  int64_t batch, column;
  int width;  // columns of it that there are
  const T* x;
  T* out;
  Lanes lanes[kVecs];
  bool counted = false;

  Strip(const Job<T>& job, const Rules& rules, int64_t batch, int64_t column)
      : job(job),
        rules(rules),
        batch(batch),
        column(column),
        width(static_cast<int>(sooner(kStripColumns, job.columns - column))),
        x(job.x + batch * job.x_batch + column * job.x_column),
        out(job.out + batch * job.out_batch + column * job.out_column) {}

  // Columns that are not there hold ones, and are never looked at.
  Vec load_row(int64_t row, int vec) const {
    const T* from = x + row * job.x_row + vec * kLanes;
    return width == kStripColumns ? load(from) : load_some(from, present(vec), 1.0);
  }
  int64_t present(int vec) const { return later(0, sooner(kLanes, width - vec * kLanes)); }
  int all() const { return (1 << width) - 1; }

  // Fresh sums over the window that ends before `row`, of the columns whose bits are set.
  void restart(int64_t row, int columns) {
    for (int vec = 0; vec < kVecs && present(vec) > 0; ++vec) {
      Lanes fresh{};
      for (int64_t lane = 0; lane < present(vec); ++lane)
        fresh.anchor[lane] = choose_anchor(job, Column<T>(job, batch, column + vec * kLanes + lane), row);
      for (int64_t at = later(-job.origin, row - job.window); at < row; ++at) {
        const Change<moment, true> change(load_row(at, vec), nan_vec(), fresh.anchor);
        fresh.sum += change.sum;
        fresh.squares += change.squares;
        fresh.count += change.count;
      }
      fresh.limit = larger(find_loss<moment>(rules, fresh), splat(rules.floor));
      const int bits = columns >> (vec * kLanes);
      const Mask chosen{-(bits & 1), -(bits >> 1 & 1), -(bits >> 2 & 1), -(bits >> 3 & 1)};
      counted = counted || (lane_bits(fresh.count < rules.window) & bits & ((1 << present(vec)) - 1));
      Lanes& kept = lanes[vec];
      kept.anchor = chosen ? fresh.anchor : kept.anchor;
      kept.sum = chosen ? fresh.sum : kept.sum;
      kept.squares = chosen ? fresh.squares : kept.squares;
      kept.count = chosen ? fresh.count : splat(rules.window);
      kept.limit = chosen ? fresh.limit : kept.limit;
    }
  }

  void run_tile(int64_t row, int64_t stop, bool last) {
    int64_t good[kStripColumns];
    const bool missing = counted;
    const int bad = missing ? advance<true>(row, stop, good) : advance<false>(row, stop, good);
    if (bad == 0) return;
    for (int lane = 0; lane < width; ++lane)
      if (bad >> lane & 1) careful_rows(job, Column<T>(job, batch, column + lane), good[lane], stop);
    if (!last) restart_after(stop, bad, missing);
  }

  void restart_after(int64_t stop, int bad, bool missing) {
    Vec counts[kVecs];
    for (int vec = 0; vec < kVecs; ++vec) counts[vec] = lanes[vec].count;
    restart(stop, bad);
    for (int vec = 0; vec < kVecs && missing; ++vec)
      for (int lane = 0; lane < kLanes; ++lane)
        if (!(bad >> (vec * kLanes + lane) & 1)) lanes[vec].count[lane] = counts[vec][lane];
  }

  // All eight columns up to and with the first row where one cannot be trusted; returns the row after it.
  int64_t advance_fast(Lanes* lanes, int64_t row, int64_t stop, int& bad, int64_t* good) const {
    const Rules rules = this->rules;
    const int64_t x_row = job.x_row, out_row = job.out_row;
    const T* from = x + row * x_row;
    const T* old = from - job.window * x_row;
    T* to = out + row * out_row;
    Lanes one = lanes[0], two = lanes[1];
    for (; row < stop && bad == 0; ++row, from += x_row, old += x_row, to += out_row) {
      const Vec value = load(from), value_two = load(from + kLanes);
      add(one, Change<moment, false>(value, load(old), one.anchor));
      add(two, Change<moment, false>(value_two, load(old + kLanes), two.anchor));
      Mask sound, sound_two;
      const auto result = find_moment<moment, false, T>(rules, one, value, sound);
      const auto result_two = find_moment<moment, false, T>(rules, two, value_two, sound_two);
      store(result, to);
      store(result_two, to + kLanes);
      if (__builtin_expect(lane_bits(sound & sound_two) != 15, 0))
        bad = ~(lane_bits(sound) | lane_bits(sound_two) << kLanes) & all();
    }
    for (int lane = 0; lane < kStripColumns; ++lane)
      if (bad >> lane & 1) good[lane] = row - 1;
    lanes[0] = one;
    lanes[1] = two;
    return row;
  }

  void add(Lanes& lanes, const Change<moment, false>& change) const {
    lanes.sum += change.sum;
    if constexpr (kSquares<moment>) lanes.squares += change.squares;
    lanes.limit = larger(find_loss<moment>(rules, lanes), lanes.limit);
  }

  // Rows up to `stop`; the bits of columns that cannot be trusted, each from row good[column] on.
  template <bool missing>
  int advance(int64_t row, int64_t stop, int64_t* good) {
    const Rules rules = this->rules;
    const int64_t x_row = job.x_row, out_row = job.out_row, old = job.window * x_row;
    Lanes now[kVecs] = {lanes[0], lanes[1]};
    int bad = 0;
    Vec least = splat(rules.window);
    if constexpr (!missing)
      if (width == kStripColumns && row >= job.first) row = advance_fast(now, row, stop, bad, good);
    for (; row < stop; ++row) {
      const T* from = x + row * x_row;
      T* to = out + row * out_row;
      const bool has_old = !missing || row - job.window >= -job.origin;
      Mask sound[kVecs];
      for (int vec = 0; vec < kVecs; ++vec, from += kLanes, to += kLanes) {
        Lanes& at = now[vec];
        const int64_t here = present(vec);
        const Vec value = here == kLanes ? load(from) : load_some(from, here, 1.0);
        Vec gone = nan_vec();
        if (has_old) gone = here == kLanes ? load(from - old) : load_some(from - old, here, 1.0);
        const Change<moment, missing> change(value, gone, at.anchor);
        at.sum += change.sum;
        if constexpr (kSquares<moment>) at.squares += change.squares;
        if constexpr (missing) at.count += change.count;
        if constexpr (missing) least = at.count < least ? at.count : least;
        at.limit = larger(find_loss<moment>(rules, at), at.limit);
        const auto result = find_moment<moment, missing, T>(rules, at, value, sound[vec]);
        if (row < job.first) continue;
        here == kLanes ? store(result, to) : store_some(result, to, here);
      }
      const int unsound = ~(lane_bits(sound[0]) | lane_bits(sound[1]) << kLanes) & all() & ~bad;
      if (__builtin_expect(unsound, 0)) {
        bad |= unsound;
        for (int lane = 0; lane < width; ++lane)
          if (unsound >> lane & 1) good[lane] = row;
      }
    }
    lanes[0] = now[0];
    lanes[1] = now[1];
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
