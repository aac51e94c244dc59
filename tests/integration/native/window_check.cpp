// Runs rolling moments on arrays of exact size, so that sanitizers see every step beyond them, and holds them against
// two passes over each window; every instruction set of this processor must give the same bits.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "window.h"

using namespace windtunnel;

namespace {

struct Case {
  int64_t rows, columns, window, min_periods;
  int kind;
  bool series;
};

template <typename T>
std::vector<T> make_values(const Case& c, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> chance;
  std::vector<T> x(static_cast<size_t>(c.rows * c.columns));
  for (T& value : x) {
    value = static_cast<T>(c.kind == 1 ? std::round(normal(random)) : normal(random));
    if (c.kind == 2 && chance(random) < 0.05) value = static_cast<T>(NAN);
    if (c.kind == 3 && chance(random) < 0.01) value = static_cast<T>(chance(random) < 0.5 ? INFINITY : 1e30);
  }
  return x;
}

template <typename T>
std::vector<T> run(const Case& c, const std::vector<T>& x, Moment moment, Set set) {
  std::vector<T> out(x.size(), static_cast<T>(-7));
  const int64_t row = c.series ? 1 : c.columns, column = c.series ? c.rows : 1;
  Job<T> job{x.data(), {}, c.rows, c.columns, 1, row, column, 0, row, column, 0, c.window, c.min_periods, 0, 0, moment, false};
  job.outs[static_cast<int64_t>(moment)] = out.data();
  for (int64_t task = 0; task < task_count(job); ++task) run_window(job, task, set);
  return out;
}

// All moments in one pass, beside a second job of a longer window.
template <typename T>
std::vector<std::vector<T>> run_pass(const Case& c, const std::vector<T>& x, Set set, bool past_cache) {
  std::vector<std::vector<T>> outs(kMoments + 1, std::vector<T>(x.size(), static_cast<T>(-7)));
  const int64_t row = c.series ? 1 : c.columns, column = c.series ? c.rows : 1;
  Job<T> job{x.data(), {}, c.rows, c.columns, 1, row, column, 0, row, column, 0, c.window, c.min_periods, 0, 0, Moment::all, past_cache};
  Job<T> jobs[2] = {job, job};
  jobs[1].window = 600;
  for (size_t m = 0; m < kMoments; ++m) jobs[0].outs[m] = outs[m].data();
  jobs[1].outs[2] = outs[kMoments].data();
  const Pass<T> pass(jobs, 2);
  for (int64_t task = 0; task < pass.task_count(); ++task) pass.run(task, set);
  return outs;
}

template <typename T>
double find_truth(const Case& c, const std::vector<T>& x, Moment moment, int64_t row, int64_t column) {
  const auto at = [&](int64_t i) {
    return static_cast<long double>(x[static_cast<size_t>(c.series ? column * c.rows + i : i * c.columns + column)]);
  };
  long double sum = 0, squares = 0, n = 0;
  const int64_t first = row < c.window ? 0 : row - c.window + 1;
  for (int64_t i = first; i <= row; ++i)
    if (std::isfinite(at(i))) sum += at(i), ++n;
  for (int64_t i = first; i <= row; ++i)
    if (std::isfinite(at(i))) squares += (at(i) - sum / n) * (at(i) - sum / n);
  const bool of_mean = moment == Moment::mean || moment == Moment::sum;
  if (n < c.min_periods || (!of_mean && n < 2)) return NAN;
  if (of_mean) return static_cast<double>(moment == Moment::mean ? sum / n : sum);
  const long double var = squares / (n - 1);
  if (moment == Moment::var) return static_cast<double>(var);
  if (moment == Moment::std) return static_cast<double>(std::sqrt(var));
  if (!std::isfinite(at(row))) return NAN;
  return var == 0 ? 0 : static_cast<double>((at(row) - sum / n) / std::sqrt(var));
}

bool is_near(double ours, double truth) {
  if (std::isnan(ours) || std::isnan(truth)) return std::isnan(ours) && std::isnan(truth);
  return std::fabs(ours - truth) <= 2e-6 * (1e-3 + std::fabs(truth)) || (std::isinf(ours) && std::fabs(truth) > 3e38);
}

template <typename T>
int check(const Case& c, std::mt19937_64& random) {
  const std::vector<T> x = make_values<T>(c, random);
  int wrong = 0;
  for (int64_t m = 0; m <= static_cast<int64_t>(Moment::zscore); ++m) {
    const auto moment = static_cast<Moment>(m);
    const std::vector<T> ours = run(c, x, moment, Set::baseline);
    for (Set set : {Set::avx2, Set::avx512})
      if (has_set(set)) {
        const std::vector<T> other = run(c, x, moment, set);
        wrong += !ours.empty() && std::memcmp(ours.data(), other.data(), ours.size() * sizeof(T)) != 0;
      }
    for (int64_t row = 0; row < c.rows; row += 1 + c.rows / 40)
      for (int64_t column = 0; column < c.columns; ++column) {
        const double found = static_cast<double>(ours[static_cast<size_t>(c.series ? column * c.rows + row : row * c.columns + column)]);
        wrong += !is_near(found, find_truth(c, x, moment, row, column));
      }
  }
  const auto together = run_pass<T>(c, x, Set::baseline, false);
  for (Set set : {Set::avx2, Set::avx512})
    if (has_set(set))
      for (size_t m = 0; m < together.size(); ++m) {
        const auto other = run_pass<T>(c, x, set, true);
        wrong += !x.empty() && std::memcmp(together[m].data(), other[m].data(), x.size() * sizeof(T)) != 0;
      }
  const Case longer{c.rows, c.columns, 600, c.min_periods, c.kind, c.series};
  for (int64_t row = 0; row < c.rows; row += 1 + c.rows / 40)
    for (int64_t column = 0; column < c.columns; ++column) {
      const auto place = static_cast<size_t>(c.series ? column * c.rows + row : row * c.columns + column);
      for (size_t m = 0; m < kMoments; ++m)
        wrong += !is_near(static_cast<double>(together[m][place]), find_truth(c, x, static_cast<Moment>(m), row, column));
      wrong += !is_near(static_cast<double>(together[kMoments][place]), find_truth(longer, x, Moment::var, row, column));
    }
  if (wrong > 0)
    std::printf("%ld wrong: %ld x %ld, window %ld, min_periods %ld, kind %d, %s\n", static_cast<long>(wrong),
                static_cast<long>(c.rows), static_cast<long>(c.columns), static_cast<long>(c.window),
                static_cast<long>(c.min_periods), c.kind, c.series ? "series" : "strip");
  return wrong;
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  int wrong = 0, cases = 0;
  for (int64_t rows : {1, 3, 130, 1060})
    for (int64_t columns : {1, 3, 11, 66})
      for (int64_t window : {1, 2, 7, 200})
        for (int kind = 0; kind < 4; ++kind)
          for (bool series : {true, false}) {
            if (columns > 3 && rows > 130) continue;
            const Case c{rows, columns, window, window > 3 ? 3 : 1, kind, series};
            wrong += check<float>(c, random) + check<double>(c, random);
            ++cases;
          }
  std::printf("%d cases, %d wrong\n", cases, wrong);
  return wrong != 0;
}
