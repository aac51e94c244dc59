import json

import pytest

from windtunnel.checkpoints.format import (
    MANIFEST,
    CheckpointManifest,
    checkpoint_name,
    choose_checkpoint,
    keep_newest,
    list_checkpoints,
    publish_checkpoint,
    read_manifest,
    remove_leftovers,
    start_checkpoint,
    verify_checkpoint,
)
from windtunnel.errors import CheckpointError

FILES = {"weights.bin": b"w" * 1000, ".index": b"i" * 100}


def _publish(folder, step, files=FILES):
    temporary = start_checkpoint(folder)
    for name, data in files.items():
        (temporary / name).write_bytes(data)
    return publish_checkpoint(temporary, CheckpointManifest("trial", step, 2, "settings", "source", ()))


def _flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_a_published_checkpoint_verifies_and_lists_all_its_files(tmp_path):
    path = _publish(tmp_path, 100)
    assert path == tmp_path / "step-00000100"
    assert verify_checkpoint(path) == []
    manifest = read_manifest(path)
    assert {item.file for item in manifest.files} == set(FILES)
    assert (manifest.bytes, manifest.step, manifest.world_size) == (1100, 100, 2)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("position", [0, 57, -1])
def test_a_flipped_bit_anywhere_in_a_file_is_found(tmp_path, name, position):
    path = _publish(tmp_path, 100)
    _flip(path / name, position)
    assert [name in reason and "SHA-256" in reason for reason in verify_checkpoint(path)] == [True]


def test_a_cut_and_a_missing_file_are_found(tmp_path):
    path = _publish(tmp_path, 100)
    (path / "weights.bin").write_bytes(b"w" * 999)
    (path / ".index").unlink()
    assert verify_checkpoint(path) == [
        "step-00000100/.index is missing",
        "step-00000100/weights.bin has 999 bytes, its manifest says 1000",
    ]


def test_an_altered_manifest_does_not_verify(tmp_path):
    path = _publish(tmp_path, 100)
    document = json.loads((path / MANIFEST).read_text())
    document["content"]["world_size"] = 4
    (path / MANIFEST).write_text(json.dumps(document))
    assert "was altered" in verify_checkpoint(path)[0]


@pytest.mark.parametrize("text", ["", "{", '{"schema": "other/1"}'])
def test_a_damaged_manifest_does_not_verify(tmp_path, text):
    path = _publish(tmp_path, 100)
    (path / MANIFEST).write_text(text)
    assert f"no whole {MANIFEST}" in verify_checkpoint(path)[0]


def test_a_renamed_checkpoint_does_not_verify(tmp_path):
    path = _publish(tmp_path, 100)
    moved = path.rename(tmp_path / checkpoint_name(200))
    assert "its manifest is of step 100" in verify_checkpoint(moved)[0]


def test_checkpoints_are_listed_newest_first_without_what_was_cut_off(tmp_path):
    assert list_checkpoints(tmp_path / "none") == []
    for step in (50, 200, 100):
        _publish(tmp_path, step)
    start_checkpoint(tmp_path)
    assert [path.name for path in list_checkpoints(tmp_path)] == [checkpoint_name(step) for step in (200, 100, 50)]


def test_the_newest_that_verifies_is_chosen_and_the_skipped_are_named(tmp_path):
    for step in (50, 100, 150):
        _publish(tmp_path, step)
    _flip(tmp_path / "step-00000150/weights.bin", 3)
    choice = choose_checkpoint(tmp_path)
    assert choice.path == tmp_path / "step-00000100"
    assert choice.manifest.step == 100
    assert len(choice.skipped) == 1
    assert choice.skipped[0].startswith("step-00000150: step-00000150/weights.bin has SHA-256")


def test_no_checkpoints_is_a_fresh_start(tmp_path):
    assert choose_checkpoint(tmp_path).path is None
    assert choose_checkpoint(tmp_path / "none").path is None


def test_checkpoints_of_which_none_verifies_are_an_error_and_never_a_fresh_start(tmp_path):
    _flip(_publish(tmp_path, 100) / "weights.bin", 3)
    with pytest.raises(CheckpointError, match=r"none of the 1 checkpoints .* verifies: step-00000100"):
        choose_checkpoint(tmp_path)


def test_old_checkpoints_go_once_a_newer_one_verifies(tmp_path):
    for step in (50, 100, 150):
        _publish(tmp_path, step)
    assert [path.name for path in keep_newest(tmp_path, 2)] == ["step-00000050"]
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-00000150", "step-00000100"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000100", "step-00000150"]


def test_nothing_goes_while_the_newest_is_damaged(tmp_path):
    for step in (50, 100):
        _publish(tmp_path, step)
    _flip(tmp_path / "step-00000100/weights.bin", 3)
    assert keep_newest(tmp_path, 1) == []
    assert len(list_checkpoints(tmp_path)) == 2


def test_a_step_trained_again_replaces_its_checkpoint(tmp_path):
    _publish(tmp_path, 100)
    path = _publish(tmp_path, 100, {"weights.bin": b"new"})
    assert verify_checkpoint(path) == []
    assert (path / "weights.bin").read_bytes() == b"new"


def test_what_a_writer_left_unfinished_is_removed(tmp_path):
    _publish(tmp_path, 100)
    (start_checkpoint(tmp_path) / "part").write_bytes(b"x")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000100"]
