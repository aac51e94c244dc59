// Chooses the widest instruction set of this processor.
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

}  // namespace windtunnel
