"""Damage done to a published dataset, one file and one kind at a time: does `fsck` name just that file?"""

import contextlib
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import PartResult, make_share_row
from windtunnel.settings.data import DataSettings
from windtunnel.shards.fsck import check_dataset

CASES = 1002
_FILES, _ROWS = 3, 3000
_FIRST_MS = 1_700_000_000_000


def run_fsck(quick: bool) -> PartResult:
    """Kinds in turn, on shards, manifest and quarantine; between two of them the file is made whole again."""
    cases = 9 if quick else CASES
    with tempfile.TemporaryDirectory(prefix="wt-") as folder:
        manifest = make_dataset(Path(folder))
        assert check_dataset(manifest).damages == ()  # a check that calls everything damaged finds all damage too
        found = plant(manifest, cases, random.Random(random.randrange(2**32)))
        assert check_dataset(manifest).damages == ()
    fraction = sum(sum(each) for each in found.values()) / cases
    rows = tuple(make_share_row(f"found: {kind}", each) for kind, each in found.items())
    return PartResult({"fsck_found_fraction": fraction}, {"fsck_found_fraction": cases}, rows)


def make_dataset(root: Path) -> Path:
    """Files of several shards each, with a row for the quarantine; returns the manifest's path."""
    # Here, since another part must set polars' threads before it is imported.
    from windtunnel.comm.single import SingleComm
    from windtunnel.ingest.run import run_ingest

    generator = random.Random(1)
    for number in range(_FILES):
        rows = (f"{_FIRST_MS + i},{generator.gauss(100, 5):.2f},{generator.randrange(900)}\n" for i in range(_ROWS))
        (root / f"f{number}.csv").write_text("ts,price,size\n" + "".join(rows) + "no row\n")
    files = tuple(str(root / f"f{number}.csv") for number in range(_FILES))
    settings = DataSettings(dataset="d", source="delimited", files=files, chunk_rows=512, shard_text=40_000)
    with contextlib.redirect_stdout(io.StringIO()):
        run_ingest(settings, out=root / "out/MANIFEST.json", comm=SingleComm())
    return root / "out/MANIFEST.json"


def plant(manifest: Path, cases: int, generator: random.Random) -> dict[str, list[bool]]:
    """Whether each damage was found, and nothing else called damaged, by kind."""
    names = sorted(path.name for path in manifest.parent.iterdir() if path.is_file())
    found: dict[str, list[bool]] = {kind: [] for kind in DAMAGES}
    for case in range(cases):
        kind = list(DAMAGES)[case % len(DAMAGES)]
        path = manifest.parent / generator.choice(names)
        whole = path.read_bytes()
        DAMAGES[kind](path, whole, generator)
        found[kind].append([damage.file for damage in check_dataset(manifest).damages] == [path.name])
        path.write_bytes(whole)
    return found


def _flip(path: Path, whole: bytes, generator: random.Random) -> None:
    data = bytearray(whole)
    data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    path.write_bytes(bytes(data))


def _cut(path: Path, whole: bytes, generator: random.Random) -> None:
    path.write_bytes(whole[: generator.randrange(len(whole))])


def _remove(path: Path, whole: bytes, generator: random.Random) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path, bytes, random.Random], None]] = {
    "one bit flipped": _flip,
    "cut off": _cut,
    "missing": _remove,
}
