// The door to rolling moments for those who bind them; knows nothing of torch.
#pragma once

#include "job.h"

namespace windtunnel {

enum class Set : int64_t { baseline = 1, avx2 = 2, avx512 = 3 };

bool has_set(Set set);
Set find_best_set();

// Task `task` of task_count(job). Every set gives the same bits.
template <typename T>
void run_window(const Job<T>& job, int64_t task, Set set);

// Several jobs over the same rows, which must differ in windows and outputs alone, in one pass: a task is a run of rows
// that all jobs go over while it is in the cache.
template <typename T>
struct Pass {
  const Job<T>* jobs;
  int64_t count;
  int64_t chunk_rows = 0;  // the longest block, of which all others are parts

  Pass(const Job<T>* jobs, int64_t count);
  int64_t first_chunk() const { return (jobs->origin + jobs->first) / chunk_rows; }
  int64_t chunk_count() const { return (jobs->origin + jobs->rows + chunk_rows - 1) / chunk_rows - first_chunk(); }
  int64_t task_count() const;
  void run(int64_t task, Set set) const;
};

}  // namespace windtunnel
