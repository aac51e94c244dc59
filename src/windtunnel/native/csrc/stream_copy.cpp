// Copies of memory that is not read again soon: past the caches, so that no line is fetched only to be overwritten.
#include "windtunnel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

// Small enough that a thread which loses its core holds up the others for a millisecond at most.
constexpr int64_t piece_bytes = int64_t{4} << 20;

void stream(char* to, const char* from, int64_t bytes) {
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

}  // namespace

void windtunnel_stream_copy(void* const* targets, const void* const* sources, const int64_t* bytes, int64_t count,
                            int32_t threads) {
  std::vector<int64_t> ends(count);  // where each region ends, were they one behind the other
  int64_t total = 0;
  for (int64_t region = 0; region < count; ++region) ends[region] = total += bytes[region];

  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t begin; (begin = next.fetch_add(piece_bytes)) < total;) {
      const int64_t end = std::min(begin + piece_bytes, total);
      for (auto region = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin(); begin < end; ++region) {
        const int64_t offset = begin - (ends[region] - bytes[region]);
        const int64_t part = std::min(ends[region], end) - begin;
        stream(static_cast<char*>(targets[region]) + offset, static_cast<const char*>(sources[region]) + offset, part);
        begin += part;
      }
    }
  };
  const int64_t pieces = (total + piece_bytes - 1) / piece_bytes;
  std::vector<std::thread> helpers;
  for (int64_t helper = 1; helper < std::min<int64_t>(threads, pieces); ++helper) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // no more threads for this process: fewer do the work
    }
  }
  work();
  for (auto& helper : helpers) helper.join();
}
