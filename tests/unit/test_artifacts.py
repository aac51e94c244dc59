"""Artifacts: atomic, stamped, and refused when they are something else."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from windtunnel.artifacts import hash_json, read_artifact, write_artifact, write_atomic
from windtunnel.errors import ArtifactError, InputFileError
from windtunnel.records.plan import Identity, Plan, Pruned


@dataclass(frozen=True)
class Other:
    SCHEMA: ClassVar[str] = "windtunnel.other/1"

    value: int


PLAN = Plan("mine", Identity("d", "s", "2.13.0"), (), (Pruned("a", {"model": "tcn"}, "too wide"),))


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = write_artifact(tmp_path / f"plan.{suffix}", PLAN)
    assert read_artifact(path, Plan) == PLAN


def test_another_schema_is_refused_by_name(tmp_path):
    path = write_artifact(tmp_path / "plan.json", PLAN)
    with pytest.raises(ArtifactError, match=r"windtunnel.plan/1.*windtunnel.other/1"):
        read_artifact(path, Other)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("windtunnel.plan/2", r"written by windtunnel 9\.1\).*pip install windtunnel==9\.1"),
        ("windtunnel.plan/0", r"rm \S*plan\.json, and the command that you typed makes it again"),
        ("windtunnel.other/1", r"another kind of file"),
        (None, r"another kind of file"),
    ],
)
def test_another_schema_is_refused_with_what_mends_it(tmp_path, schema, words):
    path = write_artifact(tmp_path / "plan.json", PLAN)
    document = {**json.loads(path.read_text()), "schema": schema, "provenance": {"windtunnel": "9.1"}}
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match=words):
        read_artifact(path, Plan)


def test_a_missing_artifact_names_the_path(tmp_path):
    with pytest.raises(InputFileError, match=r"plan\.json does not exist"):
        read_artifact(tmp_path / "plan.json", Plan)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"schema": "windtunnel.plan/1"}'])
def test_damage_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ArtifactError):
        read_artifact(tmp_path / "plan.json", Plan)


def test_an_unknown_field_or_kind_is_refused(tmp_path):
    path = write_artifact(tmp_path / "plan.json", PLAN)
    document = json.loads(path.read_text())
    document["content"]["trials"] = 3
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="trials"):
        read_artifact(path, Plan)


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = write_atomic(tmp_path / "a", b"old")
    with pytest.raises(TypeError):
        write_atomic(path, 3)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_the_hash_does_not_depend_on_the_order_of_keys():
    assert hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1})
    assert hash_json({"a": 1}) != hash_json({"a": 1.5})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged (Expecting value: line 1 column 1 (char 0))"),
        ("[" * 100_000, "is damaged (maximum recursion depth exceeded"),
        ("[]", "is damaged (it holds a list, expected a mapping)"),
        ('{"schema": "windtunnel.plan/1"}', "has no content"),
        ('{"schema": "windtunnel.plan/1", "content": {"study": 3}}', "is no windtunnel.plan/1 (study: Input should"),
    ],
)
def test_damage_is_told_in_one_line_with_the_way_out(tmp_path, text, message):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ArtifactError) as caught:
        read_artifact(path, Plan)
    assert str(caught.value).startswith(f"{path} {message}")
    assert str(caught.value).endswith(f": rm {path}, and the command that you typed makes it again")
    assert "\n" not in str(caught.value)
