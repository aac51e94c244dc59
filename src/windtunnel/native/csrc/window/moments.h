// The fast sums of a window in eight lanes, and the moments that come of them with a bound on what they lost.
//
// Values are shifted by an anchor from the window at hand, so that float64 sums need no compensation. `peak` is the
// largest sum so far, with room: what rounding has taken grows with it, and a result that is not well above that is
// done again carefully.
#pragma once

#include "careful.h"
#include "vec.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

// Constants of one job.
struct Rules {
  double window, inverse, inverse_less, min_periods, loss, mean_loss, floor, ceiling, room;

  template <typename T>
  explicit Rules(const Job<T>& job)
      : window(static_cast<double>(job.window)),
        inverse(1 / window),
        inverse_less(1 / (window - 1)),
        min_periods(static_cast<double>(job.min_periods)) {
    const bool of_mean = job.moment == Moment::mean || job.moment == Moment::sum;
    const double steps = static_cast<double>(block_rows(job.window) + job.window);
    // By how much a result must be above what its sums lost, times the rounding of every step.
    mean_loss = kRounding * steps / mean_tolerance<T>();
    loss = of_mean ? mean_loss : 4 * kRounding * steps / variance_tolerance<T>();
    // Below the floor squares may have underflowed; above the ceiling float32 cannot hold the variance.
    floor = of_mean ? 0 : (sizeof(T) == 4 ? 1e-30 * window : 1e-280) / loss;
    ceiling = of_mean || sizeof(T) == 8 ? __builtin_inf() : 1e37;
    // How large sums are foreseen to become: of a mean, beside the sum of absolute values.
    room = of_mean ? 3 / __builtin_sqrt(window) : 4;
  }
};

struct Lanes {
  Vec anchor{}, sum{}, squares{}, count{}, peak{};
};

template <Moment moment>
constexpr bool kSquares = moment >= Moment::var;
template <Moment moment>
constexpr bool kHasMean = moment < Moment::var || moment == Moment::all;

// What a row adds to the sums and takes from them; `counted` where values may be missing.
template <Moment moment, bool counted>
struct Change {
  Vec sum, squares{}, count{};

  Change(Vec value, Vec old, Vec anchor) {
    if constexpr (counted) {
      const Mask here = is_finite(value), there = is_finite(old);
      const Vec come = pick(here, value - anchor, 0.0), gone = pick(there, old - anchor, 0.0);
      sum = come - gone;
      if constexpr (kSquares<moment>) squares = come * come - gone * gone;
      count = pick(here, 1.0, 0.0) - pick(there, 1.0, 0.0);
    } else if constexpr (kSquares<moment>) {
      const Vec come = value - anchor, gone = old - anchor;
      sum = come - gone;
      squares = (come - gone) * (come + gone);
    } else {
      sum = value - old;
    }
  }
};

// The sum whose largest value tells what may have been lost.
template <Moment moment>
inline Vec find_peak(const Lanes& lanes) {
  return kSquares<moment> ? lanes.squares : absolute(lanes.sum);
}

// The results of each lane, by moment: one of them, or all.
template <typename T>
struct Results {
  typename Narrow<T>::type of[kMoments];
};

// Writes the wanted results of lanes begin .. end - 1; `place` is that of lane 0.
template <Moment moment, typename T>
inline void put(const Job<T>& job, const Results<T>& results, int64_t place, int64_t begin = 0, int64_t end = kLanes,
                bool around = false) {
  for (int64_t m = 0; m < kMoments; ++m) {
    if (moment == Moment::all ? job.outs[m] == nullptr : moment != static_cast<Moment>(m)) continue;
    if (begin == 0 && end == kLanes && around)
      stream(results.of[m], job.outs[m] + place);
    else if (begin == 0 && end == kLanes)
      store(results.of[m], job.outs[m] + place);
    else
      store_some(results.of[m], job.outs[m] + place, begin, end);
  }
}

// The moment of each lane, and in `sound` whether it can be trusted: it must be above `limit`, peak times loss.
template <Moment moment, bool counted, typename T>
inline Results<T> find_moment(const Rules& rules, const Lanes& lanes, Vec value, Vec limit, Mask& sound) {
  Results<T> results;
  const auto result = [&](Moment which) -> auto& { return results.of[static_cast<int64_t>(which)]; };
  const Vec n = counted ? lanes.count : Vec(rules.window);
  const Vec shifted = counted ? lanes.sum / n : lanes.sum * rules.inverse;
  const Mask held = n >= rules.min_periods;
  sound = held | ~held;
  if constexpr (kHasMean<moment>) {
    const Vec total = lanes.sum + n * lanes.anchor;
    // Of float64, a mean near zero is held against the value at hand, which is part of the mean absolute value.
    const Vec part = counted ? pick(is_finite(value), absolute(value), 0.0) : absolute(value);
    const Vec size = sizeof(T) == 8 ? larger(absolute(total), part) : absolute(total);
    const Vec lost = kSquares<moment> ? square_root(lanes.peak * rules.window) * rules.mean_loss : limit;
    sound &= size > lost;  // not where both are infinite
    // Equal values have exactly their own mean, which float64 sums miss by their rounding: these are done carefully.
    if constexpr (sizeof(T) == 8) sound &= absolute(n * (value - lanes.anchor) - lanes.sum) > lost * mean_tolerance<T>();
    const Vec mean = lanes.anchor + shifted;
    result(Moment::mean) = narrow<T>(counted ? pick(held, mean, nan_vec()) : mean);
    result(Moment::sum) = narrow<T>(counted ? pick(held, total, nan_vec()) : total);
  }
  if constexpr (kSquares<moment>) {
    const Vec deviations = lanes.squares - lanes.sum * shifted;
    sound &= deviations >= limit;
    const Vec var = counted ? deviations / (n - 1.0) : deviations * rules.inverse_less;
    if constexpr (sizeof(T) == 4 && moment != Moment::var) sound &= var <= rules.ceiling;
    const auto spread = square_root(narrow<T>(var));
    // Not value less mean: this way a float32 value at the mean has a score of exactly 0.
    const Vec above = n * (value - lanes.anchor) - lanes.sum;
    const auto score = narrow<T>(counted ? above / n : above * rules.inverse) / spread;
    const Mask shown = held & (n >= 2.0);
    const auto show = [&](auto v, Mask where) {
      if constexpr (counted) return narrow<T>(pick(where, widen(v), nan_vec()));
      return v;
    };
    result(Moment::var) = show(narrow<T>(var), shown);
    result(Moment::std) = show(spread, shown);
    result(Moment::zscore) = show(score, shown & is_finite(value));
  }
  if constexpr (counted) sound |= ~(kHasMean<moment> ? held : held & (n >= 2.0));
  return results;
}

// The same numbers in fewer steps, of full windows. `sound` is true of no row that find_moment would not trust, given
// is_moderate(peak), and seldom false of one that it would.
template <Moment moment, typename T>
inline Results<T> find_moment_fast(const Rules& rules, const Lanes& lanes, Vec value, Mask& sound) {
  const Vec limit = lanes.peak * rules.loss, shifted = lanes.sum * rules.inverse;
  if constexpr (moment == Moment::sum) return find_moment<moment, false, T>(rules, lanes, value, limit, sound);
  Results<T> results;
  const auto result = [&](Moment which) -> auto& { return results.of[static_cast<int64_t>(which)]; };
  if constexpr (kHasMean<moment>) {
    const Vec lost = kSquares<moment> ? square_root(lanes.peak * rules.window) * rules.mean_loss : limit;
    const Vec mean = lanes.anchor + shifted, part_lost = lost * (rules.inverse * 1.000001);
    sound = absolute(mean) > part_lost;
    if constexpr (sizeof(T) == 8) sound &= absolute(value - lanes.anchor - shifted) > part_lost * (2 * mean_tolerance<T>());
    result(Moment::mean) = narrow<T>(mean);
    if constexpr (moment == Moment::all) result(Moment::sum) = narrow<T>(lanes.sum + rules.window * lanes.anchor);
  }
  if constexpr (kSquares<moment>) {
    const Vec deviations = lanes.squares - lanes.sum * shifted;
    sound = kHasMean<moment> ? sound & (deviations >= limit) : deviations >= limit;
    const auto var = narrow<T>(deviations * rules.inverse_less), spread = square_root(var);
    result(Moment::var) = var;
    result(Moment::std) = spread;
    result(Moment::zscore) =
        narrow<T>((rules.window * (value - lanes.anchor) - lanes.sum) * rules.inverse) / spread;
  }
  return results;
}

// Whether no variance under this peak can be above the ceiling.
template <Moment moment, typename T>
inline bool is_moderate(const Rules& rules, double peak) {
  return sizeof(T) == 8 || !kSquares<moment> || moment == Moment::var || peak * rules.inverse_less < 0.99 * rules.ceiling;
}

constexpr int64_t kSamples = 16;

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
