"""What the cluster's settings, and a study's rules over them, take, refuse, and leave as it was written."""

from typing import Any

import pytest

from windtunnel.errors import SettingsError
from windtunnel.settings.base import parse_settings
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.shapes import ShapeRule
from windtunnel.settings.study import SpaceSettings

GROUPS = {"model": ("tcn", "transformer"), "parallelism": ("single", "ddp")}


def parse(**changes: Any) -> ClusterSettings:
    return parse_settings(ClusterSettings, {"kind": "slurm", "partition": "p", **changes}, where="cluster")


def test_names_that_look_like_numbers_stay_text() -> None:
    assert (parse(account="007").account, parse(account=1234).account, parse(qos=5).qos) == ("007", "1234", "5")


@pytest.mark.parametrize("name", ["gpu:a100+", "long.q", "a-b_c", "q@site", "größe", "50%"])
def test_a_partitions_odd_characters_are_taken(name: str) -> None:
    assert parse(partition=name).partition == name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": "a,b"}, "'partition' = 'a,b': write one partition"),
        ({"partition": "-p"}, "write one partition"),
        ({"partition": "../up"}, "write one partition"),
        ({"account": 1e5}, "'account' = 100000.0: YAML reads it as a number with a fraction: write it in quotes"),
        ({"account": "a\nb"}, r"holds the character '\\n': write it in one printable line"),
        ({"constraint": "a\x1bb"}, "holds the character"),
        ({"setup": ["echo a\nrm b"]}, "write it in one printable line"),
        ({"sbatch": {"time": "5"}}, "sbatch.time: this comes from cluster.time"),
        ({"sbatch": {"array": "0-3"}}, "sbatch.array: this comes from the sweep itself"),
        (
            {"sbatch": {"uid": "nobody"}},
            "sbatch.uid: .*whoever starts the sweep: start it as that user",
        ),
        ({"sbatch": {"gid": 65534}}, "sbatch.gid: .*whoever starts the sweep"),
        ({"sbatch": {"input": "x"}}, "sbatch.input: this comes from the sweep itself"),
        ({"sbatch": {"p": "main"}}, "sbatch.p: this is no long name of a flag"),
        ({"sbatch": {"comment": ""}}, "sbatch.comment: '' is no value: give one, true .* or false"),
        ({"sbatch": {"comment": "a\nb"}}, "sbatch.comment: .*one printable line"),
        ({"sbatch": {"comment": "", "mem": "4G"}}, "sbatch.comment: .*; sbatch.mem: this comes from cluster.memory"),
    ],
)
def test_what_would_bend_a_batch_script_is_refused_with_the_fix(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse(**changes)


def test_any_other_flag_is_taken_with_a_value_bare_or_not_at_all() -> None:
    flags = {"mail_user": "a b@c", "--exclusive": True, "nice": 100, "hold": False, "reservation": None}
    wanted = {"mail-user": "a b@c", "exclusive": True, "nice": "100", "hold": False, "reservation": False}
    assert parse(sbatch=flags).sbatch == wanted
    assert parse(sbatch=parse(sbatch=flags).model_dump(mode="json")["sbatch"]).sbatch == wanted


def test_a_hook_is_a_text_of_lines_or_a_list_of_them() -> None:
    assert parse(setup="source x\nexport A='b c'").setup == ("source x", "export A='b c'")
    assert parse(setup=["source x"]).setup == ("source x",)


def test_a_rule_holds_for_the_trials_of_its_choices_alone() -> None:
    rule = ShapeRule(when={"model": ["tcn", "transformer"], "training.precision": "bf16", "seed": 1})
    choices = {"model": "tcn", "training.precision": "bf16", "seed": "1"}
    assert rule.fits(choices)
    assert not rule.fits({**choices, "seed": "2"})
    assert not rule.fits({"model": "tcn"})
    assert ShapeRule(time="5").fits({})  # type: ignore[arg-type]


def test_a_rule_changes_what_it_names_and_adds_its_flags() -> None:
    rule = ShapeRule(time="1-00:00:00", memory="4G", sbatch={"hold": False, "nice": 5})  # type: ignore[arg-type, dict-item]
    cluster = {"time": 60, "memory": 2048, "qos": "night", "sbatch": {"hold": True, "comment": "x"}}
    assert rule.apply(cluster) == {
        "time": 1440,
        "memory": 4096,
        "qos": "night",
        "sbatch": {"hold": False, "comment": "x", "nice": "5"},
    }


@pytest.mark.parametrize(
    ("rules", "messages"),
    [
        ([{"when": {"model": "tcnn"}, "time": 5}], ["[0].when.model='tcnn' is none of its choices, which are: tcn"]),
        (
            [{"when": {"modell": "tcn"}, "time": 5}],
            ["[0].when.modell is not varied by this study, which varies: m"],
        ),
        ([{"when": {"model": "tcn"}}], ["[0] changes nothing: give it a setting of the cluster"]),
        ([{"memory": "4G"}], ["[0].memory is varied by space.values already"]),
        (
            [{"when": {"model": ["x", "y"]}, "time": 5}, {"when": {"z": 1}, "time": 5}],
            ["model='x'", "model='y'", "[1].when.z"],
        ),
        ([{"time": "1h"}], ["'shapes.0.time' = '1h': time '1h' is not in Slurm's syntax"]),
        ([{"wall": "1"}], ["unknown setting 'shapes.0.wall'"]),
    ],
)
def test_all_that_is_wrong_with_rules_is_told_at_once(rules: list[dict[str, Any]], messages: list[str]) -> None:
    plain = {"groups": GROUPS, "values": {"cluster.memory": ("2G", "8G")}, "shapes": rules}
    with pytest.raises(SettingsError) as caught:
        parse_settings(SpaceSettings, plain, where="space")
    assert all(message in str(caught.value) for message in messages), str(caught.value)


def test_rules_over_known_choices_are_taken() -> None:
    rules = [{"when": {"model": "transformer", "parallelism": "ddp"}, "time": "2:00:00", "constraint": "a100"}]
    space = parse_settings(SpaceSettings, {"groups": GROUPS, "shapes": rules}, where="space")
    assert (space.shapes[0].time, space.shapes[0].constraint) == (120, "a100")
