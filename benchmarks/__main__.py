"""`python -m benchmarks NAME`: runs one benchmark and ends with one line of JSON."""

import importlib
import json
import sys

from benchmarks.harness import choose_parts, is_quick, read_part_names, run_benchmark
from windtunnel.errors import WindtunnelError

PROGRAMS = ("faults", "ingest", "kernels", "loader", "placement", "planner", "sweep", "training")


def main(argv: list[str]) -> int:
    if len(argv) != 1 or argv[0] not in PROGRAMS:
        print(f"usage: make bench NAME=<name>; names: {' '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    name = argv[0]
    try:
        parts = choose_parts(importlib.import_module(f"benchmarks.{name}").PARTS, read_part_names())
        said = run_benchmark(name, parts, quick=is_quick())
    except WindtunnelError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
