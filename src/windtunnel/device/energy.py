"""Joules of a host's processors by RAPL, the counters that Linux shows below /sys/class/powercap; no torch here.

Most hosts let root alone read them; where nobody may, the energy is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
RAPL = "rapl"


@dataclass(frozen=True)
class Counter:
    """One package's energy so far, which begins again at `range_uj`."""

    energy_uj: int
    range_uj: int


def read_rapl(root: Path = POWERCAP) -> dict[str, Counter]:
    """Counters of this host's packages by name; none where there are none, or where one may not be read."""
    try:
        zones = sorted(path for path in root.iterdir() if path.name.count(":") == 1 and "rapl" in path.name)
        return {zone.name: _read_counter(zone) for zone in zones}
    except (OSError, ValueError):
        return {}


def count_joules(before: Mapping[str, Counter], after: Mapping[str, Counter]) -> float | None:
    """Energy of all packages between two readings less than one round of a counter apart; None without a source."""
    if not before or before.keys() != after.keys():
        return None
    used_uj = sum((after[name].energy_uj - start.energy_uj) % start.range_uj for name, start in before.items())
    return used_uj / 1e6


def _read_counter(zone: Path) -> Counter:
    return Counter(int((zone / "energy_uj").read_text()), int((zone / "max_energy_range_uj").read_text()) + 1)
