"""Puts the project's root on the import path: what does damage is the benchmarks', so that both do the same."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
