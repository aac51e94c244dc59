import random

import pytest
from benchmarks.faults_corruption import DAMAGES, check_control, is_found, make_bed, mend, plant

from windtunnel.checkpoints.manifest import MANIFEST
from windtunnel.checkpoints.verify import verify_checkpoint


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    return make_bed(tmp_path_factory.mktemp("bed"), before_mib=0.01, newest_mib=0.05)


@pytest.mark.gloo
@pytest.mark.parametrize("kind", sorted(DAMAGES))
def test_damage_of_every_kind_is_named_and_the_checkpoint_passed_over(bed, kind):
    generator = random.Random(kind)
    found = []
    while len(found) < 3:
        if DAMAGES[kind](bed, generator):
            found.append(is_found(bed))
        mend(bed)
    assert found == [True] * 3
    check_control(bed)


@pytest.mark.gloo
def test_a_change_of_any_byte_of_a_manifest_is_found_also_where_it_changes_no_content(bed):
    path, whole = bed.newest / MANIFEST, bed.whole[MANIFEST]
    text = whole.decode()
    changed = [
        text.replace('"provenance"', '"provenances"'),
        text.replace('"settings_hash": ""', '"settings_hash": "a"'),
        text.replace('"generation": 0', '"fenerations": 0'),
        text.replace("\n", "\r\n"),
        text.replace('"content"', ' "content"'),
        text.rstrip("\n"),
        text + " ",
    ]
    for data in changed:
        path.write_bytes(data.encode())
        assert verify_checkpoint(bed.newest), data
    mend(bed)
    check_control(bed)


@pytest.mark.gloo
def test_kinds_are_planted_in_turn_and_each_is_counted(bed):
    found = plant(bed, 2 * len(DAMAGES), random.Random(1))
    assert {kind: len(each) for kind, each in found.items()} == dict.fromkeys(DAMAGES, 2)
    check_control(bed)
