import shutil
import subprocess
from pathlib import Path

import pytest

from windtunnel.errors import ClusterError
from windtunnel.native.library import ABI_VERSION, LIBRARY_FILE, OPERATORS_FILE, load_library, open_library


def test_the_built_library_has_the_interface_that_python_expects() -> None:
    assert load_library().windtunnel_abi_version() == ABI_VERSION


def test_the_library_needs_neither_torch_nor_python() -> None:
    content = LIBRARY_FILE.read_bytes()
    assert not [name for name in (b"libtorch", b"libc10", b"libpython") if name in content]


def test_the_operators_use_no_symbol_of_python_and_of_torch_its_stable_ones_alone() -> None:
    content = OPERATORS_FILE.read_bytes()
    assert b"libtorch_cpu.so" in content
    assert b"torch_parallel_for" in content
    assert not [name for name in (b"libpython", b"PyObject", b"_ZN2at", b"_ZN3c1010TensorImpl") if name in content]


def test_a_missing_library_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"libnone\.so does not exist: run `make build`"):
        open_library(tmp_path / "libnone.so")


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libbad.so"
    path.write_text("not a library")
    with pytest.raises(ClusterError, match=r"does not load .*run `make build` again"):
        open_library(path)


def test_a_library_of_another_interface_is_refused(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source, path = tmp_path / "old.cpp", tmp_path / "libold.so"
    source.write_text('extern "C" int windtunnel_abi_version() { return 999; }\n')
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(source)], check=True)
    with pytest.raises(ClusterError, match=rf"has interface 999, expected {ABI_VERSION}"):
        open_library(path)
