// The fast sums of a window in four lanes, and the moments that come of them with a bound on what they lost.
//
// Values are shifted by an anchor from the window at hand, so that float64 sums need no compensation. `limit` grows
// with the largest sum so far: a result below it may have lost more than is allowed, and is done again carefully.
#pragma once

#include "careful.h"
#include "vec.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

// Constants of one job.
struct Rules {
  double window, inverse, inverse_less, min_periods, loss, floor, ceiling;

  template <typename T>
  explicit Rules(const Job<T>& job)
      : window(static_cast<double>(job.window)),
        inverse(1 / window),
        inverse_less(1 / (window - 1)),
        min_periods(static_cast<double>(job.min_periods)) {
    const bool of_mean = job.moment == Moment::mean || job.moment == Moment::sum;
    const double steps = static_cast<double>(block_rows(job.window) + job.window);
    loss = kRounding * steps * (of_mean ? 1 / mean_tolerance<T>() : 4 / variance_tolerance<T>());
    // Below the floor squares may have underflowed; above the ceiling float32 cannot hold the variance.
    floor = of_mean ? 0 : sizeof(T) == 4 ? 1e-30 * window : 1e-280;
    ceiling = of_mean || sizeof(T) == 8 ? __builtin_inf() : 1e37;
  }
};

struct Lanes {
  Vec anchor{}, sum{}, squares{}, count{}, limit{};
};

template <Moment moment>
constexpr bool kSquares = moment >= Moment::var;

// What a row adds to the sums and takes from them; `counted` where values may be missing.
template <Moment moment, bool counted>
struct Change {
  Vec sum, squares{}, count{};

  Change(Vec value, Vec old, Vec anchor) {
    if constexpr (counted) {
      const Mask here = is_finite(value), there = is_finite(old);
      const Vec come = here ? value - anchor : Vec{}, gone = there ? old - anchor : Vec{};
      sum = come - gone;
      if constexpr (kSquares<moment>) squares = come * come - gone * gone;
      count = (here ? splat(1) : Vec{}) - (there ? splat(1) : Vec{});
    } else if constexpr (kSquares<moment>) {
      const Vec come = value - anchor, gone = old - anchor;
      sum = come - gone;
      squares = (come - gone) * (come + gone);
    } else {
      sum = value - old;
    }
  }
};

template <typename T>
inline typename Narrow<T>::type narrow(Vec value) {
  return __builtin_convertvector(value, typename Narrow<T>::type);
}

// What the present sums may have lost, in the units that find_moment compares.
template <Moment moment>
inline Vec find_loss(const Rules& rules, const Lanes& lanes) {
  return (kSquares<moment> ? lanes.squares : absolute(lanes.sum)) * rules.loss;
}

// The moment of each lane, and in `sound` whether it can be trusted.
template <Moment moment, bool counted, typename T>
inline typename Narrow<T>::type find_moment(const Rules& rules, const Lanes& lanes, Vec value, Mask& sound) {
  const Vec n = counted ? lanes.count : splat(rules.window);
  const Vec shifted = counted ? lanes.sum / n : lanes.sum * rules.inverse;
  const Mask held = n >= (kSquares<moment> && rules.min_periods < 2 ? 2.0 : rules.min_periods);
  if constexpr (!kSquares<moment>) {
    const Vec total = lanes.sum + n * lanes.anchor;
    // Of float64, a mean near zero is held against the value at hand, which is part of the mean absolute value.
    const Vec part = counted ? (is_finite(value) ? absolute(value) : Vec{}) : absolute(value);
    sound = (sizeof(T) == 8 ? larger(absolute(total), part) : absolute(total)) > lanes.limit;  // not where both are inf
    // Equal values have exactly their own mean, which float64 sums miss by their rounding: these are done carefully.
    if constexpr (sizeof(T) == 8)
      sound &= absolute(n * (value - lanes.anchor) - lanes.sum) > lanes.limit * mean_tolerance<T>();
    if constexpr (counted) sound |= ~held;
    const Vec result = moment == Moment::mean ? lanes.anchor + shifted : total;
    return narrow<T>(counted ? (held ? result : nan_vec()) : result);
  } else {
    const Vec deviations = lanes.squares - lanes.sum * shifted;
    sound = deviations >= lanes.limit;
    const Vec var = counted ? deviations / (n - 1.0) : deviations * rules.inverse_less;
    if constexpr (sizeof(T) == 4 && moment != Moment::var) sound &= var <= rules.ceiling;
    if constexpr (counted) sound |= ~held;
    auto result = narrow<T>(var);
    if constexpr (moment != Moment::var) result = square_root(result);
    // Not value less mean: this way a float32 value at the mean has a score of exactly 0.
    if constexpr (moment == Moment::zscore) {
      const Vec above = n * (value - lanes.anchor) - lanes.sum;
      result = narrow<T>(counted ? above / n : above * rules.inverse) / result;
    }
    if constexpr (counted) {
      const Mask shown = moment == Moment::zscore ? held & is_finite(value) : held;
      result = narrow<T>(shown ? __builtin_convertvector(result, Vec) : nan_vec());
    }
    return result;
  }
}

constexpr int64_t kSamples = 32;

// A value of the window that ends before `row`, or the series' first: the middle one of three.
template <typename T>
double choose_value(const Job<T>& job, const Column<T>& column, int64_t row) {
  if (row + job.origin == 0) return is_number(column.at(row)) ? column.at(row) : 0;
  const int64_t first = later(-job.origin, row - job.window), last = row - 1;
  double a = column.at(first), b = column.at(first + (last - first) / 2), c = column.at(last);
  for (int64_t i = last; i > first && !is_number(c); --i) c = column.at(i - 1);
  if (!is_number(c)) return 0;
  if (!is_number(a)) a = c;
  if (!is_number(b)) b = c;
  const double low = a < b ? a : b, high = a < b ? b : a;
  return c < low ? low : c > high ? high : c;
}

// About the mean of that window, so that sums stay small; one of its values where they are all equal.
template <typename T>
double choose_anchor(const Job<T>& job, const Column<T>& column, int64_t row) {
  const double value = choose_value(job, column, row);
  const int64_t first = later(-job.origin, row - job.window), step = 1 + (row - first) / kSamples;
  double sum = 0, count = 0;
  for (int64_t at = first; at < row; at += step)
    if (is_number(column.at(at))) sum += column.at(at) - value, ++count;
  const double anchor = count > 0 ? static_cast<double>(static_cast<T>(value + sum / count)) : value;
  return is_number(anchor) ? anchor : value;
}

}  // namespace
}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
