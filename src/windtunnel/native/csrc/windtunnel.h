// The library's plain C interface. Raise WINDTUNNEL_ABI_VERSION, and ABI_VERSION in library.py, with every change.
#pragma once

#include <cstdint>

#define WINDTUNNEL_ABI_VERSION 2
#define WINDTUNNEL_API extern "C" __attribute__((visibility("default")))

WINDTUNNEL_API int32_t windtunnel_abi_version();
