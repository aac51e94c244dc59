import gzip
import io
import os
import subprocess
import sys
import zipfile

import pytest

from windtunnel.errors import InputFileError
from windtunnel.ingest.files import count_lines, cut_lines, find_raw_file, read_ahead, read_blocks
from windtunnel.ingest.unpack import list_members, open_member


def test_a_missing_an_empty_and_a_folder_are_refused_by_name(tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InputFileError, match=r"gone\.csv does not exist: correct data\.files"):
        find_raw_file(str(tmp_path / "gone.csv"))
    with pytest.raises(InputFileError, match=r"empty\.csv is empty"):
        find_raw_file(str(tmp_path / "empty.csv"))
    with pytest.raises(InputFileError, match="is no file"):
        find_raw_file(str(tmp_path))


def test_a_relative_path_is_from_the_working_folder_and_named_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x")
    assert find_raw_file("a.csv").spec == "a.csv"
    with pytest.raises(InputFileError, match=f"b.csv does not exist in {tmp_path}"):
        find_raw_file("b.csv")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "a.csv").chmod(0)
    with pytest.raises(InputFileError, match="Permission denied"):
        find_raw_file(str(tmp_path / "a.csv"))


def test_a_file_inside_a_package_is_found_without_importing_it(tmp_path):
    package = tmp_path / "my_data_package"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "data/a.csv").write_text("Date,x\n")
    code = (
        "from windtunnel.ingest.files import find_raw_file as f; print(f('package:my_data_package/data/a.csv').bytes)"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout == "7\n"


def test_packages_that_are_not_there_are_refused_by_name():
    with pytest.raises(InputFileError, match=r"package 'no_such_package', which is not installed: pip install"):
        find_raw_file("package:no_such_package/a.csv")
    with pytest.raises(InputFileError, match=r"package:windtunnel/none\.csv does not exist"):
        find_raw_file("package:windtunnel/none.csv")
    for spec in ("package:windtunnel", "package:/a.csv", "package:windtunnel/../a.csv", "package:a.b/c.csv"):
        with pytest.raises(InputFileError, match="is not package:<name>/<path>"):
            find_raw_file(spec)


def read(stream, max_lines, block_bytes=1000):
    return list(read_ahead(read_blocks(stream, max_lines, block_bytes=block_bytes)))


def test_reading_stops_after_the_asked_lines():
    data = b"".join(b"%d\n" % number for number in range(10_000))
    stream = io.BytesIO(data)
    assert read(stream, 3) == [b"0\n1\n2\n"]
    assert stream.tell() == 1000
    with gzip.open(io.BytesIO(gzip.compress(data))) as packed:
        assert b"".join(read(packed, 7_000)).endswith(b"\n6999\n")


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("data", [b"", b"a", b"a\nbb\n\nccccc\nd", b"a\nbb\n", b"long line without an end"])
def test_blocks_are_whole_lines_and_together_the_text(data, block_bytes):
    blocks = read(io.BytesIO(data), None, block_bytes)
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    for count in (1, 2, 3, 9):
        cut = b"".join(data.splitlines(keepends=True)[:count])
        assert b"".join(read(io.BytesIO(data), count, block_bytes)) == cut


def test_an_error_while_reading_ahead_is_raised_to_the_reader():
    class Torn(io.BytesIO):
        def read(self, size=-1, /):
            if self.tell():
                raise EOFError("torn")
            return super().read(size)

    with pytest.raises(EOFError, match="torn"):
        read(Torn(b"a\n" * 1000), None)


def test_lines_are_counted_and_cut_with_or_without_a_last_newline():
    assert [count_lines(data) for data in (b"a\nb\n", b"a\nb", b"a\n\nb")] == [2, 2, 3]
    assert cut_lines(b"a\nb\nc", 2) == b"a\nb\n"
    assert cut_lines(b"a\nb\nc", 3) == b"a\nb\nc"


def test_a_zip_is_inflated_by_whichever_method_it_has_and_its_checksum_holds(tmp_path):
    data = b"1,2,3\n" * 50_000
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = tmp_path / f"{method}.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("a.csv", data)
        raw = find_raw_file(str(path))
        (member,) = list_members(raw)
        with open_member(raw, member) as stream:
            assert b"".join(read_blocks(stream, None)) == data
    damaged = bytearray((tmp_path / "0.zip").read_bytes())
    damaged[1000] ^= 1
    (tmp_path / "0.zip").write_bytes(bytes(damaged))
    raw = find_raw_file(str(tmp_path / "0.zip"))
    with pytest.raises(InputFileError, match="is a damaged zip"), open_member(raw, member) as stream:
        stream.read()
