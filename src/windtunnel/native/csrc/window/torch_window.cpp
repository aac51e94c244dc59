// Binds rolling moments to torch by its stable C interface: one build serves every torch from 2.10 on, and no symbol of
// Python's is used. Schemas are defined in windtunnel.kernels.schema.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <vector>

#include "window.h"

namespace windtunnel {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int64_t kElementsPerThread = 32768;  // fewer cost more to hand over than to compute

constexpr int64_t kCacheBytes = 64 << 20;  // results of more are hardly read from the cache afterwards

struct Request {
  Moment moment;
  int64_t window, min_periods, origin = 0, first = 0;
};

// B x T x C, T x C or T: absent dimensions have size 1 and stride 0.
struct Shape {
  int64_t batches = 1, rows, columns = 1, batch = 0, row, column = 0;

  explicit Shape(const Tensor& x) {
    const int64_t time = x.dim() == 1 ? 0 : x.dim() - 2;
    rows = x.size(time);
    row = x.stride(time);
    if (x.dim() > 1) columns = x.size(time + 1), column = x.stride(time + 1);
    if (x.dim() == 3) batches = x.size(0), batch = x.stride(0);
  }
  bool is_series() const { return row == 1 || columns * rows <= 1; }
  bool is_strip() const { return column == 1 && columns > 1; }
  bool fits() const { return is_series() || is_strip(); }
  int64_t extent() const {
    return batches * rows * columns == 0 ? 0 : 1 + (batches - 1) * batch + (rows - 1) * row + (columns - 1) * column;
  }
};

void check(const Tensor& x, const Request& request) {
  const ScalarType type = x.scalar_type();
  STD_TORCH_CHECK(type == ScalarType::Float || type == ScalarType::Double, "x: expected float32 or float64");
  STD_TORCH_CHECK(x.dim() >= 1 && x.dim() <= 3, "x has ", x.dim(), " dimensions, expected T, T x C or B x T x C");
  STD_TORCH_CHECK(request.window >= 1, "window=", request.window, ": expected 1 row or more");
  STD_TORCH_CHECK(request.min_periods >= 1 && request.min_periods <= request.window,
                  "min_periods=", request.min_periods, ": expected 1 to window=", request.window);
  STD_TORCH_CHECK(request.origin >= 0 && request.first >= 0, "origin and first: expected 0 or more");
  const int64_t size = block_rows(request.window), begin = (request.origin + request.first) / size * size;
  STD_TORCH_CHECK(request.origin <= std::max<int64_t>(0, begin - request.window), "x lacks rows before the first asked for");
}

bool is_past_cache(const Tensor& out) { return out.numel() * static_cast<int64_t>(out.element_size()) >= kCacheBytes; }

// Without a place for results; `like` has their strides.
template <typename T>
Job<T> make_job(const Tensor& x, const Tensor& like, const Request& request, bool past_cache) {
  const Shape in(x), to(like);
  Job<T> job{static_cast<const T*>(x.const_data_ptr()), {}, in.rows, in.columns, in.batches,
             in.row, in.column, in.batch, to.row, to.column, to.batch,
             request.window, request.min_periods, request.origin, request.first, request.moment, past_cache};
  if (in.is_series() && to.is_series()) job.x_row = job.out_row = 1;
  return job;
}

template <typename T>
void run_pass(const Pass<T>& pass) {
  const Set set = find_best_set();
  const Job<T>& job = *pass.jobs;
  const int64_t elements = pass.chunk_rows * pass.count * std::min(job.columns, is_series(job) ? 1 : kGroupColumns);
  torch::stable::parallel_for(0, pass.task_count(), std::max<int64_t>(1, kElementsPerThread / elements),
                              [&](int64_t begin, int64_t end) {
                                for (int64_t task = begin; task < end; ++task) pass.run(task, set);
                              });
}

template <typename T>
void run(const Tensor& x, const Tensor& out, const Request& request) {
  Job<T> job = make_job<T>(x, out, request, is_past_cache(out));
  job.outs[static_cast<int64_t>(request.moment)] = static_cast<T*>(out.mutable_data_ptr());
  run_pass(Pass<T>(&job, 1));
}

void run_typed(const Tensor& x, const Tensor& out, const Request& request) {
  if (x.numel() == 0) return;
  x.scalar_type() == ScalarType::Float ? run<float>(x, out, request) : run<double>(x, out, request);
}

Tensor roll(const Tensor& x, const Request& request) {
  check(x, request);
  const Tensor fit = Shape(x).fits() ? x : torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(fit);
  run_typed(fit, out, request);
  return out;
}

bool overlap(const Tensor& x, const Tensor& out) {
  const auto bytes = static_cast<int64_t>(x.element_size());
  const char* a = static_cast<const char*>(x.const_data_ptr());
  const char* b = static_cast<const char*>(out.const_data_ptr());
  const int64_t size = out.dim() > x.dim() ? out.numel() : Shape(out).extent();
  return a < b + size * bytes && b < a + Shape(x).extent() * bytes;
}

void roll_into(const Tensor& x, Tensor& out, const Request& request) {
  check(x, request);
  STD_TORCH_CHECK(out.scalar_type() == x.scalar_type() && out.dim() == x.dim(), "out: expected x's dtype and shape");
  for (int64_t dim = 0; dim < x.dim(); ++dim)
    STD_TORCH_CHECK(out.size(dim) == x.size(dim), "out has size ", out.size(dim), " in dimension ", dim, ", expected ",
                    x.size(dim));
  STD_TORCH_CHECK(!overlap(x, out), "out shares memory with x, whose old rows are still needed: give another");
  const Shape in(x), to(out);
  if ((in.is_series() && to.is_series()) || (in.is_strip() && to.is_strip())) {
    run_typed(x, out, request);
  } else if (to.fits()) {
    Tensor fit = torch::stable::empty_like(out);
    torch::stable::copy_(fit, x);
    run_typed(fit, out, request);
  } else {
    torch::stable::copy_(out, roll(x, request));
  }
}

template <Moment moment>
Tensor rolling(Tensor x, int64_t window, int64_t min_periods) {
  return roll(x, {moment, window, min_periods});
}

template <Moment moment>
void rolling_out(Tensor x, int64_t window, int64_t min_periods, Tensor out) {
  roll_into(x, out, {moment, window, min_periods});
}

Tensor rolling_resume(Tensor x, int64_t moment, int64_t window, int64_t min_periods, int64_t origin, int64_t first) {
  STD_TORCH_CHECK(moment >= 0 && moment <= static_cast<int64_t>(Moment::zscore), "moment=", moment, ": expected 0 to 4");
  Tensor out = roll(x, {static_cast<Moment>(moment), window, min_periods, origin, first});
  return torch::stable::narrow(out, x.dim() == 1 ? 0 : x.dim() - 2, first, x.size(x.dim() == 1 ? 0 : x.dim() - 2) - first);
}

// Features of one specification: feature i is moment[i] of window[i], and goes to out[i].
struct Features {
  const std::vector<int64_t>&moments, &windows, &min_periods;
  int64_t origin, first;

  size_t count() const { return moments.size(); }
};

void check_features(const Tensor& x, const Features& features) {
  STD_TORCH_CHECK(features.count() > 0, "moments: expected one feature or more");
  STD_TORCH_CHECK(features.windows.size() == features.count() && features.min_periods.size() == features.count(),
                  "windows and min_periods: expected one of each for each of ", features.count(), " moments");
  for (size_t i = 0; i < features.count(); ++i) {
    STD_TORCH_CHECK(features.moments[i] >= 0 && features.moments[i] < kMoments, "moment=", features.moments[i],
                    ": expected 0 to 4");
    check(x, {Moment::all, features.windows[i], features.min_periods[i], features.origin, features.first});
  }
}

// One job for all moments of equal windows; a moment that is asked for twice is one of the next job.
template <typename T>
std::vector<Job<T>> make_jobs(const Tensor& x, const Tensor& out, const Features& features) {
  std::vector<Job<T>> jobs;
  const Tensor like = torch::stable::select(out, 0, 0);
  for (size_t i = 0; i < features.count(); ++i) {
    const auto moment = static_cast<size_t>(features.moments[i]);
    auto job = std::find_if(jobs.begin(), jobs.end(), [&](const Job<T>& known) {
      return known.window == features.windows[i] && known.min_periods == features.min_periods[i] && !known.outs[moment];
    });
    if (job == jobs.end())
      job = jobs.insert(job, make_job<T>(x, like, {Moment::all, features.windows[i], features.min_periods[i],
                                                   features.origin, features.first}, is_past_cache(out)));
    job->outs[moment] = static_cast<T*>(out.mutable_data_ptr()) + static_cast<int64_t>(i) * out.stride(0);
  }
  return jobs;
}

template <typename T>
void run_features(const Tensor& x, const Tensor& out, const Features& features) {
  const std::vector<Job<T>> jobs = make_jobs<T>(x, out, features);
  run_pass(Pass<T>(jobs.data(), static_cast<int64_t>(jobs.size())));
}

void fuse_into(const Tensor& x, Tensor& out, const Features& features) {
  check_features(x, features);
  if (x.numel() == 0) return;
  const Tensor fit = torch::stable::contiguous(x);
  x.scalar_type() == ScalarType::Float ? run_features<float>(fit, out, features) : run_features<double>(fit, out, features);
}

Tensor fused_features(Tensor x, std::vector<int64_t> moments, std::vector<int64_t> windows,
                      std::vector<int64_t> min_periods, int64_t origin, int64_t first) {
  std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end());
  sizes.insert(sizes.begin(), static_cast<int64_t>(moments.size()));
  Tensor out = torch::stable::new_empty(x, sizes);
  fuse_into(x, out, {moments, windows, min_periods, origin, first});
  const int64_t time = x.dim() == 1 ? 0 : x.dim() - 2;
  return first == 0 ? out : torch::stable::narrow(out, time + 1, first, x.size(time) - first);
}

void fused_features_out(Tensor x, std::vector<int64_t> moments, std::vector<int64_t> windows,
                        std::vector<int64_t> min_periods, Tensor out) {
  const auto count = static_cast<int64_t>(moments.size());
  STD_TORCH_CHECK(out.scalar_type() == x.scalar_type() && out.dim() == x.dim() + 1 && out.size(0) == count,
                  "out: expected x's dtype and ", count, " features before x's dimensions");
  STD_TORCH_CHECK(out.is_contiguous(), "out: expected contiguous memory");
  for (int64_t dim = 0; dim < x.dim(); ++dim)
    STD_TORCH_CHECK(out.size(dim + 1) == x.size(dim), "out has size ", out.size(dim + 1), " in dimension ", dim + 1,
                    ", expected ", x.size(dim));
  STD_TORCH_CHECK(!overlap(x, out), "out shares memory with x, whose old rows are still needed: give another");
  fuse_into(x, out, {moments, windows, min_periods, 0, 0});
}

}  // namespace
}  // namespace windtunnel

#define WINDTUNNEL_BIND_MOMENT(NAME)                                                                   \
  m.impl("rolling_" #NAME, TORCH_BOX(&windtunnel::rolling<windtunnel::Moment::NAME>));                 \
  m.impl("rolling_" #NAME ".out", TORCH_BOX(&windtunnel::rolling_out<windtunnel::Moment::NAME>));

STABLE_TORCH_LIBRARY_IMPL(windtunnel, CPU, m) {
  WINDTUNNEL_BIND_MOMENT(mean)
  WINDTUNNEL_BIND_MOMENT(sum)
  WINDTUNNEL_BIND_MOMENT(var)
  WINDTUNNEL_BIND_MOMENT(std)
  WINDTUNNEL_BIND_MOMENT(zscore)
  m.impl("rolling_resume", TORCH_BOX(&windtunnel::rolling_resume));
  m.impl("fused_features", TORCH_BOX(&windtunnel::fused_features));
  m.impl("fused_features.out", TORCH_BOX(&windtunnel::fused_features_out));
}
