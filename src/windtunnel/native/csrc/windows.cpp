// Windows for the loader: gathered from a table in memory, or scattered from compressed chunks straight into their
// slots of a batch. A window is written once and not read again here, so stores go past the caches.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "windtunnel.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace {

using Lz4Decompress = int (*)(const char*, char*, int, int);
using ZstdCreate = void* (*)();
using ZstdDecompress = size_t (*)(void*, void*, size_t, const void*, size_t);
using ZstdFree = size_t (*)(void*);

// Runs `body(next)` on `threads` threads, the caller's own among them; fewer where no more can be started.
template <typename Body>
void run_threads(int32_t threads, Body body) {
  std::vector<std::thread> others;
  for (int32_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(body);
    } catch (const std::system_error&) {
      break;
    }
  }
  body();
  for (auto& other : others) other.join();
}

void finish_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

void copy_past_cache(uint8_t* out, const uint8_t* in, int64_t bytes) {
#if defined(__SSE2__)
  const int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<uintptr_t>(out) & 15);
  std::memcpy(out, in, head);
  int64_t at = head;
  for (; at + 64 <= bytes; at += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(in + at + 512), _MM_HINT_T0);
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at + 16));
    const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at + 32));
    const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + at + 48));
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + at), a);
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + at + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + at + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i*>(out + at + 48), d);
  }
  std::memcpy(out + at, in + at, bytes - at);
#else
  std::memcpy(out, in, bytes);
#endif
}

// Items [first, first + count) of a shuffled chunk of `items` items: byte k of every item is in plane k.
template <int kBytes, bool kPastCache>
void unshuffle(uint8_t* out, const uint8_t* planes, int64_t items, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    for (int k = 0; k < kBytes; ++k) out[i * kBytes + k] = planes[k * items + first + i];
}

#if defined(__SSE2__)
template <bool kPastCache>
void store16(__m128i* to, __m128i value) {
  if constexpr (kPastCache)
    _mm_stream_si128(to, value);
  else
    _mm_storeu_si128(to, value);
}

template <bool kPastCache>
void unshuffle4(uint8_t* out, const uint8_t* planes, int64_t items, int64_t first, int64_t count) {
  const uint8_t* p[4];
  for (int k = 0; k < 4; ++k) p[k] = planes + k * items + first;
  const auto copy_one = [&](int64_t i) {
    for (int k = 0; k < 4; ++k) out[4 * i + k] = p[k][i];
  };
  int64_t i = 0;
  for (; i < count && (reinterpret_cast<uintptr_t>(out + 4 * i) & 15) != 0; ++i) copy_one(i);
  for (; i + 16 <= count; i += 16) {
    const auto load = [&](int k) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p[k] + i)); };
    const __m128i a = load(0), b = load(1), c = load(2), d = load(3);
    const __m128i ab_low = _mm_unpacklo_epi8(a, b), ab_high = _mm_unpackhi_epi8(a, b);
    const __m128i cd_low = _mm_unpacklo_epi8(c, d), cd_high = _mm_unpackhi_epi8(c, d);
    __m128i* to = reinterpret_cast<__m128i*>(out + 4 * i);
    store16<kPastCache>(to, _mm_unpacklo_epi16(ab_low, cd_low));
    store16<kPastCache>(to + 1, _mm_unpackhi_epi16(ab_low, cd_low));
    store16<kPastCache>(to + 2, _mm_unpacklo_epi16(ab_high, cd_high));
    store16<kPastCache>(to + 3, _mm_unpackhi_epi16(ab_high, cd_high));
  }
  for (; i < count; ++i) copy_one(i);
}
template <>
void unshuffle<4, true>(uint8_t* out, const uint8_t* planes, int64_t items, int64_t first, int64_t count) {
  unshuffle4<true>(out, planes, items, first, count);
}
template <>
void unshuffle<4, false>(uint8_t* out, const uint8_t* planes, int64_t items, int64_t first, int64_t count) {
  unshuffle4<false>(out, planes, items, first, count);
}
#endif

// Items of a chunk as they were before its bytes were shuffled. Columns are aligned to their items.
template <bool kPastCache>
void copy_items(const WindtunnelColumn& column, bool is_shuffled, const uint8_t* flat, const WindtunnelCopy& copy,
                uint8_t* out) {
  const int64_t items = column.chunk_bytes / column.item_bytes;
  const int64_t first = copy.from_byte / column.item_bytes, count = copy.bytes / column.item_bytes;
  if (!is_shuffled || column.item_bytes == 1) return copy_past_cache(out, flat + copy.from_byte, copy.bytes);
  if (column.item_bytes == 2) return unshuffle<2, kPastCache>(out, flat, items, first, count);
  if (column.item_bytes == 4) return unshuffle<4, kPastCache>(out, flat, items, first, count);
  if (column.item_bytes == 8) return unshuffle<8, kPastCache>(out, flat, items, first, count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < column.item_bytes; ++k) out[i * column.item_bytes + k] = flat[k * items + first + i];
}

// HDF5's checksum: Fletcher's over big-endian words of two bytes, modulo 65535.
uint32_t fletcher32(const uint8_t* data, int64_t bytes) {
  uint32_t low = 0, high = 0;
  int64_t words = bytes / 2;
  while (words > 0) {
    const int64_t block = words > 360 ? 360 : words;  // as many as 32 bits hold without overflow
    for (int64_t i = 0; i < block; ++i, data += 2) {
      low += static_cast<uint32_t>(data[0]) << 8 | data[1];
      high += low;
    }
    words -= block;
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  }
  if (bytes % 2 != 0) {
    low += static_cast<uint32_t>(*data) << 8;
    high += low;
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
  }
  low = (low & 0xffff) + (low >> 16);
  high = (high & 0xffff) + (high >> 16);
  return high << 16 | low;
}

uint64_t read_big_endian(const uint8_t* data, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | data[i];
  return value;
}

// The form of HDF5's LZ4 filter: size of all, size of a block, and each block behind its packed size.
bool unpack_lz4(Lz4Decompress decompress, const uint8_t* in, int64_t bytes, uint8_t* out, int64_t out_bytes) {
  if (bytes < 12 || read_big_endian(in, 8) != static_cast<uint64_t>(out_bytes)) return false;
  const int64_t block_bytes = static_cast<int64_t>(read_big_endian(in + 8, 4));
  if (block_bytes <= 0) return false;
  int64_t at = 12;
  for (int64_t done = 0; done < out_bytes; done += block_bytes) {
    const int64_t raw = std::min(block_bytes, out_bytes - done);
    if (at + 4 > bytes) return false;
    const int64_t packed = static_cast<int64_t>(read_big_endian(in + at, 4));
    at += 4;
    if (packed > bytes - at) return false;
    const auto* from = reinterpret_cast<const char*>(in + at);
    if (packed == raw)
      std::memcpy(out + done, from, raw);
    else if (decompress(from, reinterpret_cast<char*>(out + done), static_cast<int>(packed), static_cast<int>(raw)) != raw)
      return false;
    at += packed;
  }
  return true;
}

bool read_all(int file, uint8_t* out, int64_t bytes, int64_t at) {
  while (bytes > 0) {
    const ssize_t got = pread(file, out, bytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got, bytes -= got, at += got;
  }
  return true;
}

// One thread's private memory: chunks are unpacked where they stay in its own cache.
struct Unpacker {
  const WindtunnelDecoders& decoders;
  std::vector<uint8_t> packed, flat, own;
  void* zstd = nullptr;

  ~Unpacker() {
    if (zstd != nullptr) reinterpret_cast<ZstdFree>(decoders.zstd_free)(zstd);
  }

  int32_t run(const WindtunnelColumn& column, const WindtunnelChunk& chunk, const WindtunnelCopy* copies) {
    if (packed.size() < static_cast<size_t>(chunk.bytes)) packed.resize(chunk.bytes);
    if (flat.size() < static_cast<size_t>(column.chunk_bytes)) flat.resize(column.chunk_bytes);
    if (!read_all(static_cast<int>(chunk.file), packed.data(), chunk.bytes, chunk.offset)) return WINDTUNNEL_UNREAD;
    int64_t bytes = chunk.bytes;
    if (chunk.stages & WINDTUNNEL_CHECKSUM) {
      if (bytes < 4) return WINDTUNNEL_ALTERED;
      bytes -= 4;
      uint32_t kept = 0;
      for (int i = 3; i >= 0; --i) kept = kept << 8 | packed[bytes + i];
      if (fletcher32(packed.data(), bytes) != kept) return WINDTUNNEL_ALTERED;
    }
    const uint8_t* data = packed.data();
    if (chunk.stages & (WINDTUNNEL_LZ4 | WINDTUNNEL_ZSTD)) {
      if (!unpack(chunk.stages, bytes, column.chunk_bytes)) return WINDTUNNEL_ALTERED;
      data = flat.data();
    } else if (bytes != column.chunk_bytes) {
      return WINDTUNNEL_ALTERED;
    }
    const bool is_shuffled = (chunk.stages & WINDTUNNEL_SHUFFLE) != 0;
    if (column.out == 0) {
      if (own.size() < static_cast<size_t>(column.chunk_bytes)) own.resize(column.chunk_bytes);
      copy_items<false>(column, is_shuffled, data, {0, 0, column.chunk_bytes}, own.data());
      return 0;
    }
    for (int64_t i = chunk.first_copy; i < chunk.end_copy; ++i)
      copy_items<true>(column, is_shuffled, data, copies[i], reinterpret_cast<uint8_t*>(column.out) + copies[i].to_byte);
    return 0;
  }

  bool unpack(int64_t stages, int64_t bytes, int64_t out_bytes) {
    if (stages & WINDTUNNEL_LZ4)
      return unpack_lz4(reinterpret_cast<Lz4Decompress>(decoders.lz4_decompress), packed.data(), bytes, flat.data(),
                        out_bytes);
    if (zstd == nullptr) zstd = reinterpret_cast<ZstdCreate>(decoders.zstd_create)();
    if (zstd == nullptr) return false;
    const auto decompress = reinterpret_cast<ZstdDecompress>(decoders.zstd_decompress);
    return decompress(zstd, flat.data(), out_bytes, packed.data(), bytes) == static_cast<size_t>(out_bytes);
  }
};

}  // namespace

int32_t windtunnel_gather_windows(const void* table, int64_t row_bytes, const int64_t* first_rows, int64_t count,
                                  int64_t window_rows, void* out, int32_t threads) {
  const int64_t bytes = row_bytes * window_rows;
  std::atomic<int64_t> next{0};
  const auto body = [&] {
    constexpr int64_t kAtOnce = 8;
    for (int64_t at = next.fetch_add(kAtOnce); at < count; at = next.fetch_add(kAtOnce))
      for (int64_t i = at; i < std::min(at + kAtOnce, count); ++i)
        copy_past_cache(static_cast<uint8_t*>(out) + i * bytes,
                        static_cast<const uint8_t*>(table) + first_rows[i] * row_bytes, bytes);
    finish_stores();
  };
  run_threads(static_cast<int32_t>(std::min<int64_t>(threads, count)), body);
  return 0;
}

int64_t windtunnel_scatter_chunks(const WindtunnelColumn* columns, const WindtunnelChunk* chunks, int64_t count,
                                  const WindtunnelCopy* copies, const WindtunnelDecoders* decoders, int32_t threads) {
  std::atomic<int64_t> next{0}, failed{0};
  const auto body = [&] {
    Unpacker unpacker{*decoders, {}, {}, {}};
    for (int64_t i = next++; i < count && failed.load() == 0; i = next++) {
      int32_t why;
      try {
        why = unpacker.run(columns[chunks[i].column], chunks[i], copies);
      } catch (const std::bad_alloc&) {
        why = WINDTUNNEL_NO_MEMORY;
      }
      if (why != 0) failed = i * 8 + why;
    }
    finish_stores();
  };
  run_threads(static_cast<int32_t>(std::min<int64_t>(threads, count)), body);
  return failed;
}
