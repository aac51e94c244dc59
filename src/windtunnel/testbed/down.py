"""`testbed down`: remove every process, namespace and file of a testbed, by the record of what it made."""

import os
import shutil
from pathlib import Path

from windtunnel.errors import ClusterError
from windtunnel.process import run_command
from windtunnel.testbed.places import SUBFOLDERS, half_written, state_file
from windtunnel.testbed.processes import is_inside, kill_processes
from windtunnel.testbed.state import ClusterState, lock_folder, read_state


def run_down(folder: Path) -> bool:
    """Remove the testbed in `folder`, also a half-made one; False where there is none."""
    if not folder.is_dir():
        return False
    with lock_folder(folder):
        state = read_state(folder)
        if state is None:
            return False
        if is_inside(state):
            raise ClusterError("`testbed down` cannot run inside the testbed that it removes: leave it first")
        remove_testbed(state)
    return True


def remove_testbed(state: ClusterState) -> None:
    """Processes first, then mounts, then files, the record last: whoever is interrupted here can start over."""
    folder = state.spec.folder
    killed = kill_processes(state)
    unmounted = unmount_below(folder)
    for name in SUBFOLDERS:
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for path in (*half_written(folder), state_file(folder)):
        path.unlink()
    if state.made_folder:
        shutil.rmtree(folder)
    print(f"testbed: removed {killed} processes and {unmounted} namespaces in {folder}", flush=True)


def unmount_below(folder: Path) -> int:
    """Unmount what is mounted below `folder` (namespaces are kept by mounts), and return how many there were."""
    mounts = [path for path in _mount_points() if folder in path.parents]
    for path in reversed(mounts):
        run_command(["umount", str(path)])
    return len(mounts)


def _mount_points() -> list[Path]:
    # The fifth field is the mount point, with spaces and the like as octal escapes: proc(5).
    lines = os.fsencode(Path("/proc/self/mountinfo").read_text(errors="surrogateescape")).splitlines()
    return [Path(os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1"))) for line in lines]
