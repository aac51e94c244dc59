"""Damage done to a published checkpoint of two ranks, one kind at a time: is it named, and is it passed over?"""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults_state import save_by_ranks
from benchmarks.harness import PartResult, make_share_row
from windtunnel.checkpoints.manifest import checkpoint_name
from windtunnel.checkpoints.verify import choose_checkpoint, verify_checkpoint

PAGE_BYTES = 4096
_BEFORE, _NEWEST = 1, 2
_BEFORE_MIB, _NEWEST_MIB = 0.1, 6.0


@dataclass(frozen=True)
class Bed:
    """A folder of checkpoints, of which the newest is damaged, and the same step as another run wrote it."""

    folder: Path
    newest: Path
    whole: Mapping[str, bytes]
    """The newest one's files."""
    others: Mapping[str, bytes]
    """Files of the same names and sizes from a run that differs."""


Damage = Callable[[Bed, random.Random], str]
"""Does it, and says what was done; empty when what it chose would have changed nothing."""


def run_corruption(quick: bool) -> PartResult:
    """Kinds in turn; between two of them the checkpoint is made whole again, and at the end it must verify."""
    cases, seed = (7 if quick else 1001), random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        bed = make_bed(Path(folder), newest_mib=0.1 if quick else _NEWEST_MIB)
        found = plant(bed, cases, random.Random(seed))
        check_control(bed)
    fraction = sum(sum(each) for each in found.values()) / cases
    rows = tuple(make_share_row(f"found: {kind}", each) for kind, each in found.items())
    return PartResult({"corruption_found_fraction": fraction}, {"corruption_found_fraction": cases}, rows)


def make_bed(root: Path, *, before_mib: float = _BEFORE_MIB, newest_mib: float = _NEWEST_MIB) -> Bed:
    """Two checkpoints by two ranks: the newest spans several blocks a file; another run's has other bytes."""
    folder, other = root / "checkpoints", root / "other"
    save_by_ranks(folder, _BEFORE, ranks=2, mib=before_mib)
    save_by_ranks(folder, _NEWEST, ranks=2, mib=newest_mib)
    save_by_ranks(other, _NEWEST, ranks=2, mib=newest_mib, state_of=_NEWEST + 1)
    newest = folder / checkpoint_name(_NEWEST)
    bed = Bed(folder, newest, _read_files(newest), _read_files(other / checkpoint_name(_NEWEST)))
    check_control(bed)
    return bed


def check_control(bed: Bed) -> None:
    """Undamaged, it must verify and be chosen: a check that calls everything damaged finds all damage too."""
    assert verify_checkpoint(bed.newest) == []
    assert choose_checkpoint(bed.folder).path == bed.newest


def plant(bed: Bed, cases: int, generator: random.Random) -> dict[str, list[bool]]:
    """Whether each damage was found, by kind."""
    found: dict[str, list[bool]] = {kind: [] for kind in DAMAGES}
    done: Counter[str] = Counter()
    while done.total() < cases:
        kind = list(DAMAGES)[done.total() % len(DAMAGES)]
        what = DAMAGES[kind](bed, generator)
        if what:
            found[kind].append(is_found(bed))
            done[kind] += 1
            if not found[kind][-1]:
                print(f"faults: not found: {what}", flush=True)
        mend(bed)
    return found


def is_found(bed: Bed) -> bool:
    """Whether verification names the damage, and a resume would take the one before."""
    named = verify_checkpoint(bed.newest)
    choice = choose_checkpoint(bed.folder)
    return (
        bool(named) and choice.passed_over == (bed.newest,) and choice.path == bed.folder / checkpoint_name(_BEFORE)
    )


def mend(bed: Bed) -> None:
    """Put back what is not as it was."""
    for name, data in bed.whole.items():
        path = bed.newest / name
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


def flip_bit(bed: Bed, generator: random.Random) -> str:
    """One bit of any byte of any file."""
    name = _choose_file(bed, generator)
    at, bit = generator.randrange(len(bed.whole[name])), generator.randrange(8)
    _write_at(bed.newest / name, at, bytes([bed.whole[name][at] ^ 1 << bit]))
    return f"bit {bit} of byte {at} of {name}"


def replace_byte(bed: Bed, generator: random.Random) -> str:
    """Any byte by any other: white space by white space among them, which changes no meaning."""
    name = _choose_file(bed, generator)
    at, value = generator.randrange(len(bed.whole[name])), generator.choice([generator.randrange(256), *b" \t\r\n"])
    if bed.whole[name][at] == value:
        return ""
    _write_at(bed.newest / name, at, bytes([value]))
    return f"byte {at} of {name} as {value}"


def truncate(bed: Bed, generator: random.Random) -> str:
    """Cut off by a byte, at a page, or anywhere."""
    name = _choose_file(bed, generator)
    size = len(bed.whole[name])
    kept = generator.choice([size - 1, size // PAGE_BYTES * PAGE_BYTES, generator.randrange(size)])
    os.truncate(bed.newest / name, kept)
    return f"{name} cut to {kept} of {size} bytes" if kept < size else ""


def zero_page(bed: Bed, generator: random.Random) -> str:
    """A page that never reached the disk."""
    name = _choose_file(bed, generator)
    at = generator.randrange(0, len(bed.whole[name]), PAGE_BYTES)
    page = bed.whole[name][at : at + PAGE_BYTES]
    _write_at(bed.newest / name, at, bytes(len(page)))
    return f"zeros from byte {at} of {name}" if any(page) else ""


def swap_files(bed: Bed, generator: random.Random) -> str:
    """Two files under each other's names; the shards of the ranks are of one size."""
    one, other = generator.choice([("rank-00000.bin", "rank-00001.bin"), generator.sample(sorted(bed.whole), 2)])
    (bed.newest / one).write_bytes(bed.whole[other])
    (bed.newest / other).write_bytes(bed.whole[one])
    return f"{one} and {other} swapped"


def mix_steps(bed: Bed, generator: random.Random) -> str:
    """A file of another save in its place, as after a save over an old one that was cut off."""
    name = _choose_file(bed, generator)
    (bed.newest / name).write_bytes(bed.others[name])
    return f"{name} of another save" if bed.others[name] != bed.whole[name] else ""


def remove_file(bed: Bed, generator: random.Random) -> str:
    """A file that is gone."""
    name = _choose_file(bed, generator)
    (bed.newest / name).unlink()
    return f"{name} missing"


DAMAGES: dict[str, Damage] = {
    "flipped bits": flip_bit,
    "replaced bytes": replace_byte,
    "truncations": truncate,
    "zeroed pages": zero_page,
    "swapped files": swap_files,
    "files of another save": mix_steps,
    "missing files": remove_file,
}


def _choose_file(bed: Bed, generator: random.Random) -> str:
    return generator.choice(sorted(bed.whole))


def _read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _write_at(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
