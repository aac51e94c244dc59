import json
import os

import pytest

from saved_state import publish_files
from windtunnel.checkpoints.blocks import BlockFile
from windtunnel.checkpoints.fence import Fence
from windtunnel.checkpoints.manifest import (
    MANIFEST,
    CheckpointManifest,
    checkpoint_name,
    list_checkpoints,
    read_manifest,
    write_manifest,
)
from windtunnel.checkpoints.publish import publish_checkpoint, remove_leftovers, set_aside, start_checkpoint
from windtunnel.checkpoints.retention import Kept, Retention, choose_kept, let_go
from windtunnel.checkpoints.verify import choose_checkpoint, verify_checkpoint
from windtunnel.errors import CheckpointError, FencedError
from windtunnel.ledger.lease import bury_holder, read_live_holder, take_lease

FILES = {"weights.bin": b"w" * 1000, "index": b"i" * 100}


def _publish(folder, step, files=FILES, **more):
    return publish_files(folder, step, files, **more)


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
    assert (manifest.bytes, manifest.step, manifest.world_size) == (1100, 100, 1)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("position", [0, 57, -1])
def test_a_flipped_bit_anywhere_in_a_file_is_found(tmp_path, name, position):
    path = _publish(tmp_path, 100)
    _flip(path / name, position)
    assert [name in reason and "SHA-256" in reason for reason in verify_checkpoint(path)] == [True]


def test_a_cut_and_a_missing_file_are_found(tmp_path):
    path = _publish(tmp_path, 100)
    (path / "weights.bin").write_bytes(b"w" * 999)
    (path / "index").unlink()
    assert verify_checkpoint(path) == [
        "step-00000100/index is missing",
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
    start_checkpoint(tmp_path, step=250)
    assert [path.name for path in list_checkpoints(tmp_path)] == [checkpoint_name(step) for step in (200, 100, 50)]


def test_the_newest_that_verifies_is_chosen_and_the_skipped_are_named(tmp_path):
    for step in (50, 100, 150):
        _publish(tmp_path, step)
    _flip(tmp_path / "step-00000150/weights.bin", 3)
    choice = choose_checkpoint(tmp_path)
    assert choice.path == tmp_path / "step-00000100"
    assert choice.manifest.step == 100
    assert len(choice.skipped) == 1
    assert choice.skipped[0].startswith("step-00000150: step-00000150/weights.bin: bytes 0 to 999 have")


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
    assert [path.name for path in let_go(tmp_path, Retention(2))] == ["step-00000050"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000100", "step-00000150"]


def test_nothing_goes_while_the_newest_is_damaged(tmp_path):
    for step in (50, 100):
        _publish(tmp_path, step)
    _flip(tmp_path / "step-00000100/weights.bin", 3)
    assert let_go(tmp_path, Retention(1)) == []
    assert len(list_checkpoints(tmp_path)) == 2


def test_the_newest_the_regular_and_the_best_are_kept():
    found = [Kept(step, loss) for step, loss in ((10, 0.5), (20, 0.2), (30, 0.9), (40, 0.2), (50, None), (60, 0.4))]
    assert choose_kept(found, Retention(2)) == {50, 60}
    assert choose_kept(found, Retention(1, every_steps=30)) == {30, 60}
    assert choose_kept(found, Retention(1, best=1)) == {40, 60}  # of two as good, the newer
    assert choose_kept(found, Retention(1, best=9)) == {10, 20, 30, 40, 60}


def test_what_was_set_aside_goes_once_a_checkpoint_as_new_verifies(tmp_path):
    _publish(tmp_path, 50)
    aside = set_aside(_publish(tmp_path, 100))
    _publish(tmp_path, 75)
    let_go(tmp_path, Retention(2))
    assert aside.exists()
    _publish(tmp_path, 100)
    let_go(tmp_path, Retention(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000075", "step-00000100"]


def test_what_a_writer_left_unfinished_is_removed(tmp_path):
    _publish(tmp_path, 100)
    (start_checkpoint(tmp_path, step=150) / "part").write_bytes(b"x")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000100"]


def test_a_file_that_the_manifest_does_not_know_is_found(tmp_path):
    path = _publish(tmp_path, 100)
    (path / "more.bin").write_bytes(b"x")
    assert verify_checkpoint(path) == ["step-00000100/more.bin is not in its manifest"]


def test_swapped_files_are_found(tmp_path):
    path = _publish(tmp_path, 100, {"a.bin": b"a" * 1000, "b.bin": b"b" * 1000})
    (path / "a.bin").rename(path / "c")
    (path / "b.bin").rename(path / "a.bin")
    (path / "c").rename(path / "b.bin")
    assert [reason.split(":")[0] for reason in verify_checkpoint(path)] == [
        "step-00000100/a.bin",
        "step-00000100/b.bin",
    ]


def test_a_published_checkpoint_is_never_written_over(tmp_path):
    path = _publish(tmp_path, 100)
    with pytest.raises(FencedError, match="is there already"):
        _publish(tmp_path, 100, {"weights.bin": b"new"})
    assert verify_checkpoint(path) == []


def test_a_writer_whose_lease_was_succeeded_publishes_nothing(tmp_path):
    lease = take_lease(tmp_path / "lease", "trial")
    fence = Fence(tmp_path / "lease", lease.generation)
    fence.check()
    assert bury_holder(tmp_path / "lease", read_live_holder(tmp_path / "lease"))
    temporary = start_checkpoint(tmp_path / "checkpoints", step=100, generation=fence.generation)
    with pytest.raises(FencedError, match="generation 1 of this trial was succeeded"):
        publish_checkpoint(temporary, CheckpointManifest("trial", 100, 1, "", ""), [], fence=fence)
    assert list_checkpoints(tmp_path / "checkpoints") == []


def test_a_writer_held_up_between_its_question_and_the_renaming_publishes_nothing(tmp_path):
    checkpoints = tmp_path / "checkpoints"

    class HeldUp(Fence):
        def check(self):
            remove_leftovers(checkpoints)  # what a successor does first, just after the answer was still yes

    temporary = start_checkpoint(checkpoints, step=100)
    with pytest.raises(FencedError, match="was taken away by the attempt that has the trial now"):
        publish_checkpoint(temporary, CheckpointManifest("trial", 100, 1, "", ""), [], fence=HeldUp())
    assert list(checkpoints.iterdir()) == []


def test_a_released_lease_is_no_leave_to_publish(tmp_path):
    lease = take_lease(tmp_path, "trial")
    lease.release()
    with pytest.raises(FencedError):
        Fence(tmp_path, lease.generation).check()


@pytest.mark.parametrize("name", ["../x.bin", "/etc/passwd", "a/b", "..", "", "a\0b", "\ud800", "rank.bin", "x\n"])
def test_a_manifest_that_names_no_file_of_its_own_folder_is_refused(tmp_path, name):
    temporary = start_checkpoint(tmp_path, step=1)
    files = (BlockFile("rank.bin", 0, ()), BlockFile(name, 0, ()))
    manifest = CheckpointManifest("t", 1, 1, "s", "s", files=files)
    try:
        write_manifest(temporary, manifest)
    except UnicodeEncodeError:
        return  # no such name can be written down
    with pytest.raises(CheckpointError, match="which is not one file of its own folder"):
        read_manifest(temporary.rename(tmp_path / checkpoint_name(1)))


def test_a_pipe_in_a_files_place_is_damage_and_nobody_waits_for_it(tmp_path):
    path = _publish(tmp_path, 1)
    file = next(path.glob("*.bin"))
    file.unlink()
    os.mkfifo(file)
    assert "is no file" in " ".join(verify_checkpoint(path))


def test_a_manifest_with_a_number_of_too_many_digits_is_damage(tmp_path):
    path = _publish(tmp_path, 1)
    (path / MANIFEST).write_text('{"schema": "windtunnel.checkpoint/2", "step": ' + "9" * 5000 + "}")
    assert "no whole MANIFEST.json" in verify_checkpoint(path)[0]


def test_what_was_set_aside_under_any_name_or_as_any_thing_stops_no_retention(tmp_path):
    for step in (1, 2, 3):
        _publish(tmp_path, step)
    (tmp_path / ".bad-old").mkdir()
    (tmp_path / ".bad-step-00000001-file").write_text("")
    (tmp_path / ".bad-step-00000001-link").symlink_to(tmp_path / "nowhere")
    let_go(tmp_path, Retention(1))
    assert sorted(each.name for each in tmp_path.iterdir()) == [".bad-old", "step-00000003"]
