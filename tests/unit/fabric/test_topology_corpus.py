import csv
import json

import pytest

from fabric_samples import MATRIX, SHOW_TREE
from windtunnel.errors import InputFileError
from windtunnel.fabric.corpus import check_corpus, find_entry
from windtunnel.fabric.facts import list_differences


def write_corpus(folder, *rows):
    with (folder / "INDEX.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "expected", "fidelity"])
        for name, text, expected, fidelity in rows:
            (folder / name).write_text(text)
            writer.writerow([name, json.dumps(expected), fidelity])


@pytest.mark.shared
def test_every_file_of_the_corpus_is_understood_as_expected(shared_dir):
    folder = shared_dir / "cases" / "topology"
    if not folder.is_dir():
        pytest.skip("no ../shared/cases/topology")
    checked = check_corpus(folder)
    assert len(checked) >= 64
    assert [item for item in checked if item.differences] == []


def test_a_wrong_fact_is_named_with_what_was_expected(tmp_path):
    write_corpus(tmp_path, ("a.txt", MATRIX, {"n_gpus": 3, "n_nics": 2, "colour": "red"}, ""))
    (checked,) = check_corpus(tmp_path)
    assert checked.differences == ("n_gpus is 2, expected 3", "colour is absent, expected 'red'")


def test_the_version_that_a_file_cannot_say_is_taken_from_the_index(tmp_path):
    write_corpus(tmp_path, ("s.txt", SHOW_TREE, {"version": "22.05.8"}, "made here (Slurm 22.05.8)"))
    assert check_corpus(tmp_path)[0].differences == ()
    assert find_entry(tmp_path / "s.txt").version == "22.05.8"
    assert find_entry(tmp_path / "other.txt") is None


def test_lines_of_gres_strings_carry_their_own_expectations(tmp_path):
    text = 'gpu:a100:4\t{"gpu": 4, "note": "four"}\ngpu\t{"gpu": 2}\n'
    write_corpus(tmp_path, ("g.tsv", text, {"lines": 2}, ""))
    assert check_corpus(tmp_path)[0].differences == ("gpu: gpu is 1, expected 2",)


def test_a_file_that_is_missing_or_of_no_kind_is_wrong_and_the_others_go_on(tmp_path):
    write_corpus(tmp_path, ("a.txt", "?", {}, ""), ("b.txt", MATRIX, {"n_gpus": 2}, ""), ("c.txt", MATRIX, {}, ""))
    (tmp_path / "c.txt").unlink()
    assert [bool(item.differences) for item in check_corpus(tmp_path)] == [True, False, True]


@pytest.mark.parametrize("index", ["", "file,kind\n", "file,expected\na,{\n"])
def test_a_wrong_index_is_one_message(tmp_path, index):
    (tmp_path / "INDEX.csv").write_text(index)
    with pytest.raises(InputFileError, match=r"INDEX\.csv"):
        check_corpus(tmp_path)


def test_a_folder_without_an_index_is_one_message(tmp_path):
    with pytest.raises(InputFileError, match="does not exist"):
        check_corpus(tmp_path)


def test_only_what_is_expected_is_compared():
    assert list(list_differences({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3})) == []
    assert list(list_differences({"a": {"b": 1}}, {"a": {"b": True}})) == ["a.b is True, expected 1"]
    assert list(list_differences([1, 2], [1])) == ["value is [1], expected [1, 2]"]
