"""The C++ of the operators under the address and undefined-behaviour sanitizers."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WINDOW = ROOT / "src/windtunnel/native/csrc/window"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-std=c++17", "-O0", "-g1", "-ffp-contract=off", "-Wno-psabi", f"-I{WINDOW}", *SANITIZE]
SETS = {"baseline": [], "avx2": ["-mavx2"], "avx512": ["-mavx512f", "-mavx512dq", "-mavx512vl"]}


def compile_objects(compiler: str, folder: Path) -> list[str]:
    x86 = platform.machine() in ("x86_64", "AMD64")
    define = ["-DWINDTUNNEL_X86"] if x86 else []
    sets = SETS if x86 else {"baseline": []}
    sources = {
        **{
            f"{name}.o": [*flags, f"-DWINDTUNNEL_ISA={name}", WINDOW / "window_kernel.cpp"]
            for name, flags in sets.items()
        },
        "window.o": [WINDOW / "window.cpp"],
        "check.o": [Path(__file__).with_name("window_check.cpp")],
    }
    running = [
        subprocess.Popen([compiler, *FLAGS, *define, "-c", *map(str, arguments), "-o", str(folder / name)])
        for name, arguments in sources.items()
    ]
    assert [process.wait(timeout=300) for process in running] == [0] * len(running)
    return [str(folder / name) for name in sources]


def test_rolling_moments_stay_within_their_arrays_and_every_set_gives_the_same_bits(tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    program = str(tmp_path / "check")
    subprocess.run([compiler, *SANITIZE, *compile_objects(compiler, tmp_path), "-o", program], check=True, timeout=60)
    # The test runner may preload libraries that the address sanitizer wants to come before.
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    ended = subprocess.run([program], env=env, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
