// The library's plain C interface. Raise WINDTUNNEL_ABI_VERSION, and ABI_VERSION in library.py, with every change.
#pragma once

#include <cstdint>

#define WINDTUNNEL_ABI_VERSION 4
#define WINDTUNNEL_API extern "C" __attribute__((visibility("default")))

// Failures: scratch memory ran out; a chunk could not be read to its end, or is not what was written.
enum { WINDTUNNEL_NO_MEMORY = 1, WINDTUNNEL_UNREAD = 3, WINDTUNNEL_ALTERED = 4 };

WINDTUNNEL_API int32_t windtunnel_abi_version();

// Copies each of `count` regions past the caches, on so many threads at once; regions do not overlap, and need no
// alignment.
WINDTUNNEL_API void windtunnel_stream_copy(void* const* targets, const void* const* sources, const int64_t* bytes,
                                           int64_t count, int32_t threads);

// Copies `count` windows of `window_rows` rows, each from row `first_rows[i]` of `table` to slot i of `out`.
WINDTUNNEL_API int32_t windtunnel_gather_windows(const void* table, int64_t row_bytes, const int64_t* first_rows,
                                                 int64_t count, int64_t window_rows, void* out, int32_t threads);

// What was done to a chunk when it was written, in this order.
enum { WINDTUNNEL_SHUFFLE = 1, WINDTUNNEL_LZ4 = 2, WINDTUNNEL_ZSTD = 4, WINDTUNNEL_CHECKSUM = 8 };

// Library functions that unpack, as addresses: LZ4_decompress_safe and zstd's decompression context.
struct WindtunnelDecoders {
  int64_t lz4_decompress, zstd_create, zstd_decompress, zstd_free;
};

// A column: bytes of an unpacked chunk and of an item, and the address that its copies go to; 0 where chunks are only
// to be verified and unpacked, whole, in each thread's own memory.
struct WindtunnelColumn {
  int64_t chunk_bytes, item_bytes, out;
};

// A stored chunk: `bytes` at `offset` of an open file, its column, its stages, and copies [first_copy, end_copy).
struct WindtunnelChunk {
  int64_t file, offset, bytes, column, stages, first_copy, end_copy;
};

// Bytes of an unpacked chunk (whole items) and where in the column's output they go.
struct WindtunnelCopy {
  int64_t from_byte, to_byte, bytes;
};

// Reads, verifies and unpacks each chunk once and makes its copies. Returns 0, or 8 x the number of a chunk that
// failed plus one of the failures above.
WINDTUNNEL_API int64_t windtunnel_scatter_chunks(const WindtunnelColumn* columns, const WindtunnelChunk* chunks,
                                                 int64_t count, const WindtunnelCopy* copies,
                                                 const WindtunnelDecoders* decoders, int32_t threads);
