// Chooses the widest instruction set of this processor, and cuts passes of several jobs.
#include "window.h"

namespace windtunnel {

bool has_set(Set set) {
#ifdef WINDTUNNEL_X86
  if (set == Set::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  if (set == Set::avx2) return __builtin_cpu_supports("avx2");
#endif
  return set == Set::baseline;
}

Set find_best_set() {
  static const Set best = has_set(Set::avx512) ? Set::avx512 : has_set(Set::avx2) ? Set::avx2 : Set::baseline;
  return best;
}

template <typename T>
void run_window(const Job<T>& job, int64_t task, Set set) {
#ifdef WINDTUNNEL_X86
  if (set == Set::avx512) return avx512::run_window_task(job, task);
  if (set == Set::avx2) return avx2::run_window_task(job, task);
#endif
  (void)set;
  baseline::run_window_task(job, task);
}

template void run_window(const Job<float>&, int64_t, Set);
template void run_window(const Job<double>&, int64_t, Set);

template <typename T>
Pass<T>::Pass(const Job<T>* jobs, int64_t count) : jobs(jobs), count(count) {
  for (int64_t i = 0; i < count; ++i)
    if (block_rows(jobs[i].window) > chunk_rows) chunk_rows = block_rows(jobs[i].window);
}

template <typename T>
int64_t Pass<T>::task_count() const {
  return count == 0 || jobs->rows <= jobs->first ? 0 : jobs->batches * group_count(*jobs) * chunk_count();
}

template <typename T>
void Pass<T>::run(int64_t task, Set set) const {
  const int64_t chunks = chunk_count(), chunk = first_chunk() + task % chunks, place = task / chunks;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = block_rows(jobs[i].window), blocks = block_count(jobs[i]), before = first_block(jobs[i]);
    for (int64_t block = chunk * chunk_rows / size; block < (chunk + 1) * chunk_rows / size; ++block)
      if (block >= before && block < before + blocks) run_window(jobs[i], place * blocks + block - before, set);
  }
}

template struct Pass<float>;
template struct Pass<double>;

}  // namespace windtunnel
