"""A disk that takes no more, as far as a process without privileges can make one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most_bytes(count: int) -> Iterator[None]:
    """Files may grow to `count` bytes: the kernel then takes only a part of a write, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
