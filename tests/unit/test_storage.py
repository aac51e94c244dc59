import errno

import pytest

from windtunnel.errors import StorageError
from windtunnel.storage import find_storage_fault, name_storage_faults


def _raise_from(fault: BaseException) -> BaseException:
    try:
        try:
            raise fault
        except OSError as error:
            raise ValueError("while saving") from error
    except ValueError as error:
        return error


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.ESTALE])
def test_a_fault_is_found_behind_what_was_raised_from_it(code):
    fault = OSError(code, "words")
    assert find_storage_fault(_raise_from(fault)) is fault


def test_a_missing_file_is_no_fault_of_the_file_system():
    assert find_storage_fault(_raise_from(FileNotFoundError(errno.ENOENT, "no such file"))) is None


def test_a_fault_is_told_with_its_file_and_the_way_out():
    with (
        pytest.raises(StorageError, match=r"^store: No space left on device: make room; what runs goes on"),
        name_storage_faults("store"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_fault_names_its_own_file_where_it_knows_it():
    with (
        pytest.raises(StorageError, match=r"^/store/x: Disk quota exceeded: make room"),
        name_storage_faults("store"),
    ):
        raise OSError(errno.EDQUOT, "no", "/store/x")


def test_another_error_passes_unchanged():
    with pytest.raises(PermissionError), name_storage_faults("store"):
        raise PermissionError(errno.EACCES, "no", "/store/x")
