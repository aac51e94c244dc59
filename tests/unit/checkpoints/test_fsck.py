"""Checkpoints as people look at them."""

import json

import pytest

from saved_state import publish_files
from windtunnel.artifacts import write_artifact
from windtunnel.checkpoints.blocks import BLOCK_BYTES, hash_blocks
from windtunnel.checkpoints.fsck import Damage, explain_checkpoint, find_checkpoints
from windtunnel.checkpoints.manifest import CheckpointIndex, CheckpointManifest, Chunk, TensorRecord
from windtunnel.checkpoints.publish import publish_checkpoint, set_aside, start_checkpoint
from windtunnel.cli.main import main
from windtunnel.errors import InputFileError


def _publish_tensors(folder, step):
    """Two tensors in one file; the second begins in its second block."""
    temporary = start_checkpoint(folder, step=step)
    (temporary / "rank-00000.bin").write_bytes(b"a" * BLOCK_BYTES + b"b" * 100)
    first = TensorRecord("uint8", (BLOCK_BYTES,), (Chunk((0,), (BLOCK_BYTES,), "rank-00000.bin", 0, BLOCK_BYTES),))
    second = TensorRecord("uint8", (100,), (Chunk((0,), (100,), "rank-00000.bin", BLOCK_BYTES, 100),))
    write_artifact(temporary / "INDEX.json", CheckpointIndex({"first": first, "second": second}))
    files = [hash_blocks(temporary / name) for name in ("rank-00000.bin", "INDEX.json")]
    return publish_checkpoint(temporary, CheckpointManifest("t", step, 1, "", ""), files)


def _flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_damage_is_told_by_the_tensors_that_it_touches(tmp_path):
    path = _publish_tensors(tmp_path, 10)
    assert explain_checkpoint(path).damages == ()
    _flip(path / "rank-00000.bin", BLOCK_BYTES + 7)
    told = explain_checkpoint(path)
    assert told.damages == (Damage("rank-00000.bin", BLOCK_BYTES, BLOCK_BYTES + 99, ("second",)),)
    assert [name for name, *_ in told.tensors] == ["first", "second"]


def test_a_file_cut_off_is_damage_to_all_that_lay_behind(tmp_path):
    path = _publish_tensors(tmp_path, 10)
    with (path / "rank-00000.bin").open("r+b") as file:
        file.truncate(5)
    assert [item.tensors for item in explain_checkpoint(path).damages] == [("first",), ("second",)]


def test_verify_says_which_one_a_resume_takes_and_fails(tmp_path, capsys):
    for step in (10, 20):
        publish_files(tmp_path / "checkpoints", step, {"weights": b"w" * step}, train_loss=0.5)
    _flip(tmp_path / "checkpoints/step-00000020/weights", 0)
    assert main(["fsck", "checkpoints", "verify", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "train loss 0.5000: damaged: step-00000020/weights: bytes 0 to 19" in lines[0]
    assert lines[1].endswith(": whole")
    assert lines[2] == "a resume goes on from step 10"


def test_list_reads_nothing_and_names_what_was_set_aside(tmp_path, capsys):
    for step in (10, 20):
        publish_files(tmp_path / "checkpoints", step, {"weights": b"w"})
    set_aside(tmp_path / "checkpoints/step-00000020")
    _flip(tmp_path / "checkpoints/step-00000010/weights", 0)
    assert main(["fsck", "checkpoints", "list", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(item["step"], item["reasons"]) for item in told["checkpoints"]] == [(10, [])]
    assert len(told["set_aside"]) == 1


def test_one_checkpoint_a_trial_and_its_checkpoints_are_all_places_to_look(tmp_path):
    path = publish_files(tmp_path / "checkpoints", 10, {"weights": b"w"})
    assert (
        find_checkpoints(tmp_path) == find_checkpoints(tmp_path / "checkpoints") == find_checkpoints(path) == [path]
    )
    with pytest.raises(InputFileError, match="holds no checkpoints"):
        find_checkpoints(path.parent.parent / "attempts")


def test_a_checkpoint_without_a_manifest_is_explained_as_damaged(tmp_path, capsys):
    path = publish_files(tmp_path, 10, {"weights": b"w"})
    (path / "MANIFEST.json").unlink()
    assert main(["fsck", "checkpoints", "explain", str(path)]) == 1
    assert "no whole MANIFEST.json" in capsys.readouterr().out
