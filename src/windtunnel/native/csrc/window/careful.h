// One window of one column moved row by row with compensated sums: where the fast sums cannot be trusted, after a
// spike, in a window of nearly equal values, or where a value is missing all of a sudden.
#pragma once

#include "job.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

constexpr double kRounding = 1.1102230246251565e-16;  // 2^-53

// What a result may have lost at most: of a mean, relative to the window's mean absolute value (float32: to the mean
// itself); of a variance, relative to itself.
template <typename T>
constexpr double mean_tolerance() {
  return sizeof(T) == 4 ? 1e-7 : 1e-9;
}
template <typename T>
constexpr double variance_tolerance() {
  return sizeof(T) == 4 ? 2e-6 : 1e-8;
}
constexpr double kCarefulMean = 1e-12;  // of the window's root mean square
template <typename T>
constexpr double careful_variance() {
  return sizeof(T) == 4 ? 1e-7 : 1e-8;
}

inline bool is_number(double value) { return value - value == 0.0; }
inline int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

// A column of one batch.
template <typename T>
struct Column {
  const T* x;
  int64_t x_row, out_row, out;  // `out` is its place in each output

  Column(const Job<T>& job, int64_t batch, int64_t column)
      : x(job.x + batch * job.x_batch + column * job.x_column),
        x_row(job.x_row),
        out_row(job.out_row),
        out(batch * job.out_batch + column * job.out_column) {}
  double at(int64_t row) const { return static_cast<double>(x[row * x_row]); }
  void put(const Job<T>& job, Moment moment, int64_t row, double value) const {
    if (row >= job.first) job.outs[static_cast<int64_t>(moment)][out + row * out_row] = static_cast<T>(value);
  }
};

// A float64 sum with the part that rounding took from it (Neumaier).
struct Sum {
  double high = 0, low = 0;
  void add(double value) {
    const double next = high + value;
    low += __builtin_fabs(high) >= __builtin_fabs(value) ? (high - next) + value : (value - next) + high;
    high = next;
  }
  double value() const { return high + low; }
};

template <typename T>
struct Slide {
  const Job<T>& job;
  const Column<T>& column;
  double anchor = 0, last = 0;
  Sum sum{}, squares{};
  double moved_sum = 0, moved_squares = 0;  // all that the sums ever were: bounds what compensation lost
  int64_t count = 0, equal_run = 0;

  // Rows before the series are not there.
  int64_t first_row(int64_t row) const { return later(-job.origin, row - job.window + 1); }

  void start(int64_t row) {
    for (int64_t i = first_row(row); i <= row; ++i) enter(column.at(i));
    refresh(row);
  }

  // Two passes over the window that ends at `row`; its mean, rounded to T, becomes the anchor.
  void refresh(int64_t row) {
    const double shift = equal_run > 0 ? last : 0;
    Sum total;
    for (int64_t i = first_row(row); i <= row; ++i)
      if (is_number(column.at(i))) total.add(column.at(i) - shift);
    anchor = count > 0 ? shift + total.value() / static_cast<double>(count) : 0;
    anchor = is_number(anchor) ? static_cast<double>(static_cast<T>(anchor)) : shift;
    sum = squares = Sum();
    moved_sum = moved_squares = 0;
    for (int64_t i = first_row(row); i <= row; ++i)
      if (is_number(column.at(i))) move(column.at(i) - anchor, 1.0);
  }

  void move(double d, double sign) {
    sum.add(sign * d);
    squares.add(sign * d * d);
    moved_sum += __builtin_fabs(sum.high) + __builtin_fabs(d);
    moved_squares += __builtin_fabs(squares.high) + d * d;
  }

  void enter(double value) {
    if (!is_number(value)) return;
    ++count;
    equal_run = equal_run > 0 && value == last ? equal_run + 1 : 1;
    last = value;
  }

  void step(int64_t row) {
    const double value = column.at(row);
    enter(value);
    if (is_number(value)) move(value - anchor, 1.0);
    if (row - job.window < -job.origin) return;
    const double old = column.at(row - job.window);
    if (!is_number(old)) return;
    --count;
    move(old - anchor, -1.0);
  }

  bool trusted(double mean, double deviations) const {
    const double n = static_cast<double>(count);
    const double lost_squares = kRounding * (4 * squares.value() + kRounding * moved_squares);
    const double lost_sum = kRounding * (__builtin_sqrt(n * squares.value()) + kRounding * moved_sum);
    const double scale = __builtin_sqrt(n * (deviations + n * mean * mean));
    return lost_squares <= careful_variance<T>() * deviations && lost_sum <= kCarefulMean * scale;
  }

  double find(Moment moment, int64_t row) {
    const double nan = __builtin_nan(""), n = static_cast<double>(count), value = column.at(row);
    const bool of_mean = moment == Moment::mean || moment == Moment::sum;
    if (count < job.min_periods || (!of_mean && count < 2)) return nan;
    if (moment == Moment::zscore && !is_number(value)) return nan;
    if (equal_run >= count) return of_mean ? (moment == Moment::mean ? last : last * n) : 0;
    double shifted = sum.value() / n, deviations = squares.value() - sum.value() * shifted;
    if (!trusted(anchor + shifted, deviations)) {
      refresh(row);
      shifted = sum.value() / n;
      deviations = squares.value() - sum.value() * shifted;
    }
    if (moment == Moment::mean) return anchor + shifted;
    if (moment == Moment::sum) return sum.value() + n * anchor;
    const double var = (deviations < 0 ? 0 : deviations) / (n - 1);
    if (moment == Moment::var) return var;
    const double std = __builtin_sqrt(var);
    if (moment == Moment::std) return std;
    return std == 0 ? 0 : (n * (value - anchor) - sum.value()) / (n * std);
  }
};

// From `row` on, as long as the whole window is one value; returns the first row where it is not.
template <typename T>
int64_t fill_constant(const Job<T>& job, const Column<T>& column, int64_t row, int64_t end) {
  const double value = column.at(row);
  int64_t from = row;
  while (from > -job.origin && from > row - job.window + 1 && column.at(from - 1) == value) --from;
  if (from > later(-job.origin, row - job.window + 1) || !is_number(value)) return row;
  for (; row < end && column.at(row) == value; ++row) {
    const int64_t count = sooner(job.window, row + job.origin + 1);
    each_wanted(job, [&](Moment moment) {
      double result = moment == Moment::mean ? value : moment == Moment::sum ? value * static_cast<double>(count) : 0;
      if (count < job.min_periods || (count < 2 && moment >= Moment::var)) result = __builtin_nan("");
      column.put(job, moment, row, result);
    });
  }
  return row;
}

template <typename T>
void careful_rows(const Job<T>& job, const Column<T>& column, int64_t row, int64_t end) {
  if (row < end) row = fill_constant(job, column, row, end);
  if (row >= end) return;
  Slide<T> slide{job, column};
  slide.start(row);
  for (;;) {
    each_wanted(job, [&](Moment moment) { column.put(job, moment, row, slide.find(moment, row)); });
    if (++row == end) return;
    slide.step(row);
  }
}

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
