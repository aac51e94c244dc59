// A copy of memory that is not read again soon: past the caches, so that no line is fetched only to be overwritten.
#include "windtunnel.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

void windtunnel_stream_copy(void* target, const void* source, int64_t bytes) {
  auto* to = static_cast<char*>(target);
  const auto* from = static_cast<const char*>(source);
#if defined(__SSE2__)
  // Streaming stores want aligned targets, and a whole cache line at a time.
  constexpr int64_t line = 64;
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & (line - 1));
  if (bytes >= head + line) {
    std::memcpy(to, from, head);
    to += head, from += head, bytes -= head;
    for (; bytes >= line; to += line, from += line, bytes -= line) {
      for (int64_t at = 0; at < line; at += 16) {
        const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
      }
    }
    _mm_sfence();
  }
#endif
  std::memcpy(to, from, bytes);
}
