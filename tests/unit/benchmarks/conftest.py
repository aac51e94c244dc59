"""Puts the project's root on the import path: `benchmarks` are programs beside the package, not part of it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
