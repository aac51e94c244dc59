// The number that says which functions this library has; library.py refuses any other.
#include "windtunnel.h"

int32_t windtunnel_abi_version() { return WINDTUNNEL_ABI_VERSION; }
