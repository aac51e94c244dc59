import pytest

from windtunnel.errors import LayoutError, SettingsError, StudyError
from windtunnel.planner.run import split_space
from windtunnel.planner.space import find_refusal, list_combinations, make_shape, plan_trial, shape_trial
from windtunnel.records.plan import Identity
from windtunnel.settings.shapes import ShapeRule

IDENTITY = Identity("d" * 64, "s" * 64, "2.13.0")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parallelism.data": 3}, r"a batch of 64 does not divide over 3 .*batch_size=63 or parallelism.data=2"),
        ({"parallelism.data": 4, "parallelism.shard": 3}, r"3 ranks that divide a model .* of 4 .*shard=2"),
        ({"parallelism.data": 2, "parallelism.shard": 4}, r"4 ranks that divide a model .* of 2 .*shard=2"),
        ({"parallelism.tensor": 2}, r"'tcn' has no tensor-parallel form, expected parallelism.tensor=1, got 2"),
        (
            {"parallelism.data": 32, "training.accumulate": 3},
            r"2 samples .*64 over 32.* training.accumulate=2",
        ),
        ({"parallelism.pipeline": 4}, r"no pipeline-parallel form, expected parallelism.pipeline=1, got 4"),
        ({"parallelism.data": 4, "parallelism.nodes": 3}, r"4 ranks do not spread equally over 3 nodes: .*nodes=2"),
        ({"parallelism.data": 2, "parallelism.nodes": 2}, r"cluster.kind=local is one machine: .*nodes=1"),
        ({"training.threads_per_rank": 2}, r"more than cluster.cpus_per_rank=1: set cluster.cpus_per_rank=2"),
    ],
)
def test_an_illegal_layout_is_refused_with_the_reason_and_the_fix(make_trial, changes, reason):
    with pytest.raises(LayoutError, match=reason):
        plan_trial(make_trial(changes), choices={}, identity=IDENTITY, import_root="")


def test_a_legal_layout_is_not_refused(make_trial):
    assert find_refusal(make_trial({"parallelism.data": 2})) == ""


def test_a_shape_is_the_layouts_ranks_over_its_nodes(make_trial):
    cluster = {"cluster.kind": "slurm", "cluster.partition": "main", "cluster.gpus_per_rank": 1}
    limits = {"cluster.memory": "3G", "cluster.time": "1:30:00"}
    settings = make_trial({"parallelism.data": 4, "parallelism.nodes": 2, **cluster, **limits})
    shape = plan_trial(settings, choices={}, identity=IDENTITY, import_root="").shape
    assert (shape.nodes, shape.ranks_per_node, shape.gpus_per_node, shape.mem_mib) == (2, 2, 2, 6144)
    assert (shape.ranks, shape.time_min, shape.partition) == (4, 90, "main")


def test_a_name_tells_model_layout_precision_and_what_else_is_varied(make_trial):
    choices = {"model": "tcn", "parallelism": "ddp", "training.precision": "bf16", "training.learning_rate": "0.01"}
    settings = make_trial({"parallelism.name": "ddp", "parallelism.data": 2, "training.precision": "bf16"})
    planned = plan_trial(settings, choices=choices, identity=IDENTITY, import_root="")
    assert planned.name == "tcn ddp2 bf16 learning_rate=0.01"


def test_every_candidate_meets_every_value_and_repeat(make_plan_settings):
    values = {"training.precision": ("fp32", "bf16"), "seed": (0, 1, 2)}
    found = list_combinations(make_plan_settings(values=values, repeats=2))
    assert len(found) == 4 * 2 * 3 * 2
    assert {settings.seed for _, settings in found} == {0, 1, 2}
    assert {choices.get("repeat") for choices, _ in found} == {None, "1"}


def test_in_a_swept_space_the_illegal_are_pruned_and_the_rest_kept(make_plan_settings):
    kept, pruned = split_space(make_plan_settings(values={"parallelism.data": (1, 3)}, count=2))
    assert [settings.parallelism.data for _, settings in kept] == [1, 1]
    assert [item.choices["parallelism.data"] for item in pruned] == ["3", "3"]
    assert all("does not divide" in item.reason for item in pruned)


def test_a_space_of_only_illegal_layouts_is_an_error_with_each_reason_once(make_plan_settings):
    with pytest.raises(StudyError) as caught:
        split_space(make_plan_settings({"parallelism.tensor": 3}))
    assert str(caught.value).count("tensor-parallel") == 2  # once a model
    assert "(tcn single3 fp32 and 1 more)" in str(caught.value)


def test_every_wrong_value_of_a_space_is_told_in_one_message(make_plan_settings):
    values = {"training.precision": ("fp32", "fp9"), "training.batch_size": (64, -1)}
    with pytest.raises(SettingsError) as caught:
        list_combinations(make_plan_settings(values=values))
    assert "'training.precision' = 'fp9'" in str(caught.value)
    assert "'training.batch_size' = -1" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 3  # one of them, the other, and both


def test_rules_shape_some_trials_a_later_one_over_an_earlier_one(make_plan_settings):
    rules = (
        ShapeRule(when={"model": "transformer"}, time="2:00:00", memory="8G"),
        ShapeRule(when={"model": "transformer", "parallelism": "ddp"}, time="3:00:00", constraint="a100"),
    )
    settings = make_plan_settings().model_copy(update={"shapes": rules})
    shapes = [make_shape(trial) for _, trial in list_combinations(settings)]
    assert [(shape.time_min, shape.constraint) for shape in shapes] == [(60, ""), (60, ""), (120, ""), (180, "a100")]
    assert [shape.mem_mib for shape in shapes] == [2048, 4096, 8192, 16384]


def test_a_trial_whose_choice_is_fixed_is_shaped_as_one_that_chose_it(make_trial):
    rules = (ShapeRule(when={"model": "tcn", "training.precision": "fp32"}, memory="8G"),)
    assert shape_trial(make_trial(), choices={}, rules=rules).cluster.memory == 8192
    bf16 = make_trial({"training.precision": "bf16"})
    assert shape_trial(bf16, choices={}, rules=rules) == bf16


def test_what_a_rule_changes_is_part_of_the_id_unless_it_only_pays_for_or_bounds_the_trial(make_trial):
    def id_of(**changes):
        shaped = shape_trial(make_trial(), choices={}, rules=(ShapeRule(**changes),))
        return plan_trial(shaped, choices={}, identity=IDENTITY, import_root="").id

    plain = id_of(time="3:00:00")
    assert {id_of(account="x"), id_of(qos="y"), id_of(sbatch={"nice": 5, "comment": "z"})} == {plain}
    others = {id_of(memory="8G"), id_of(constraint="a100"), id_of(partition="big"), id_of(sbatch={"exclusive": True})}
    assert len(others | {plain}) == 5


def test_a_shape_carries_the_flags_that_are_on(make_trial):
    cluster = {"cluster.sbatch": {"nice": "5", "exclusive": True, "hold": False}, "cluster.gpu_type": "a100"}
    shape = make_shape(make_trial({**cluster, "cluster.gpus_per_rank": 1}))
    assert (shape.flags, shape.gpu_type) == ((("exclusive", ""), ("nice", "5")), "a100")


def test_more_combinations_than_can_be_planned_are_refused_before_they_are_listed(make_plan_settings):
    with pytest.raises(SettingsError, match=r"has 8,000,000,000 trials, .*space.repeats \(1,000,000,000\)"):
        list_combinations(make_plan_settings(values={"seed": (0, 1)}, repeats=10**9))
