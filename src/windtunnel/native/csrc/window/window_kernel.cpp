// The arithmetic of rolling moments, compiled once for each instruction set (WINDTUNNEL_ISA names it).
#include <new>

#include "series.h"
#include "strip.h"

namespace windtunnel {
namespace WINDTUNNEL_ISA {
namespace {

template <Moment moment, typename T>
void run_moment(const Job<T>& job, int64_t batch, int64_t group, int64_t block) {
  if (is_series(job))
    Series<moment, T>(job, batch, group).run(block);
  else
    run_strips<moment>(job, batch, group, block);
}

template <typename T>
void run_blocks(const Job<T>& job, int64_t task) {
  const int64_t blocks = block_count(job), groups = group_count(job);
  const int64_t block = first_block(job) + task % blocks, group = task / blocks % groups, batch = task / blocks / groups;
  switch (job.moment) {
    case Moment::mean: return run_moment<Moment::mean>(job, batch, group, block);
    case Moment::sum: return run_moment<Moment::sum>(job, batch, group, block);
    case Moment::var: return run_moment<Moment::var>(job, batch, group, block);
    case Moment::std: return run_moment<Moment::std>(job, batch, group, block);
    case Moment::zscore: return run_moment<Moment::zscore>(job, batch, group, block);
    case Moment::all: return run_moment<Moment::all>(job, batch, group, block);
  }
}

template <typename T>
void run_task(const Job<T>& job, int64_t task) {
  run_blocks(job, task);
  if (job.past_cache) finish_streams();
}

}  // namespace

void run_window_task(const Job<float>& job, int64_t task) { run_task(job, task); }
void run_window_task(const Job<double>& job, int64_t task) { run_task(job, task); }

}  // namespace WINDTUNNEL_ISA
}  // namespace windtunnel
