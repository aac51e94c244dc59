// One window of one column, moved row by row with compensated sums: for windows too long to share prefix sums, and
// where those cannot be trusted. Scalar; every instruction set compiles its own copy, hence the namespaces.
#pragma once

#include "rolling.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

constexpr double kRounding = 1.1102230246251565e-16;  // 2^-53
constexpr double kMeanTolerance = 1e-12;              // of the window's root mean square

// Relative loss allowed in a variance.
template <typename T>
constexpr double variance_tolerance();
template <>
constexpr double variance_tolerance<float>() {
  return 1e-7;
}
template <>
constexpr double variance_tolerance<double>() {
  return 1e-8;
}

inline bool is_finite(double value) { return value - value == 0.0; }
inline double absolute(double value) { return __builtin_fabs(value); }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// A float64 sum with the part that rounding took from it (Neumaier).
struct Sum {
  double high = 0, low = 0;
  void add(double value) {
    const double next = high + value;
    low += absolute(high) >= absolute(value) ? (high - next) + value : (value - next) + high;
    high = next;
  }
  double value() const { return high + low; }
};

// One window of one column, moved row by row.
template <typename T>
struct Slide {
  const T* x;
  int64_t stride, window, min_periods;
  double anchor = 0, last = 0;
  Sum sum{}, squares{};
  double moved_sum = 0, moved_squares = 0;  // all that the sums ever were: bounds what compensation lost
  int64_t count = 0, infinite = 0, equal_run = 0;

  double at(int64_t row) const { return static_cast<double>(x[row * stride]); }

  void start(int64_t row) {
    for (int64_t i = larger(0, row - window + 1); i <= row; ++i) enter(at(i));
    refresh(row);
  }

  // Two passes over the window that ends at `row`; its mean becomes the anchor.
  void refresh(int64_t row) {
    const int64_t first = larger(0, row - window + 1);
    const double shift = equal_run > 0 ? last : 0;
    Sum total;
    for (int64_t i = first; i <= row; ++i)
      if (is_finite(at(i))) total.add(at(i) - shift);
    anchor = count > 0 ? shift + total.value() / static_cast<double>(count) : 0;
    if (!is_finite(anchor)) anchor = shift;
    sum = squares = Sum();
    moved_sum = moved_squares = 0;
    for (int64_t i = first; i <= row; ++i)
      if (is_finite(at(i))) move(at(i) - anchor, 1.0);
  }

  void move(double d, double sign) {
    sum.add(sign * d);
    squares.add(sign * d * d);
    moved_sum += absolute(sum.high) + absolute(d);
    moved_squares += absolute(squares.high) + d * d;
  }

  void enter(double value) {
    if (is_finite(value)) {
      ++count;
      equal_run = equal_run > 0 && value == last ? equal_run + 1 : 1;
      last = value;
    } else if (value == value) {
      ++infinite;
    }
  }

  void leave(double value) {
    if (is_finite(value))
      --count;
    else if (value == value)
      --infinite;
  }

  void step(int64_t row) {
    const double value = at(row);
    enter(value);
    if (is_finite(value)) move(value - anchor, 1.0);
    if (row < window) return;
    const double old = at(row - window);
    leave(old);
    if (is_finite(old)) move(old - anchor, -1.0);
  }

  bool trusted(double mean, double deviations) const {
    const double n = static_cast<double>(count);
    const double lost_squares = kRounding * (4 * squares.value() + kRounding * moved_squares);
    const double lost_sum = kRounding * (__builtin_sqrt(n * squares.value()) + kRounding * moved_sum);
    const double scale = __builtin_sqrt(n * (deviations + n * mean * mean));
    return lost_squares <= variance_tolerance<T>() * deviations && lost_sum <= kMeanTolerance * scale;
  }

  void write(int64_t row, T* out) {
    const double nan = __builtin_nan("");
    out[0] = out[1] = out[2] = static_cast<T>(nan);
    if (infinite > 0 || count < min_periods) return;
    const double value = at(row);
    if (equal_run >= count) {
      out[0] = static_cast<T>(last);
      if (count > 1) out[1] = 0;
      if (count > 1 && is_finite(value)) out[2] = 0;
      return;
    }
    const double n = static_cast<double>(count);
    double shifted = sum.value() / n;
    double deviations = squares.value() - sum.value() * shifted;
    if (!trusted(anchor + shifted, deviations)) {
      refresh(row);
      shifted = sum.value() / n;
      deviations = squares.value() - sum.value() * shifted;
    }
    const double std = __builtin_sqrt((deviations < 0 ? 0 : deviations) / (n - 1));
    out[0] = static_cast<T>(anchor + shifted);
    out[1] = static_cast<T>(std);
    if (is_finite(value)) out[2] = static_cast<T>(std == 0 ? 0 : ((value - anchor) - shifted) / std);
  }
};

template <typename T>
void slide_rows(const Moments<T>& job, int64_t column, int64_t window, int64_t begin, int64_t end) {
  Slide<T> slide{job.x + column, job.columns, job.windows[window], job.min_periods};
  T* out = job.out + (column * job.window_count + job.slots[window]) * 3;
  const int64_t out_stride = job.columns * job.window_count * 3;
  slide.start(begin);
  slide.write(begin, out + begin * out_stride);
  for (int64_t row = begin + 1; row < end; ++row) {
    slide.step(row);
    slide.write(row, out + row * out_stride);
  }
}

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
