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

}  // namespace windtunnel
