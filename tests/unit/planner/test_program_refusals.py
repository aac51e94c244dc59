import pytest

from windtunnel.cli.compose import compose_candidates
from windtunnel.errors import StudyError
from windtunnel.planner.run import make_plan, needs_data
from windtunnel.planner.space import find_refusal
from windtunnel.settings.study import PlanSettings

SCRIPT = "workload.argv=[python3,train.py,'--lr={lr}']"


@pytest.fixture
def plan_program(project_dir):
    def plan(*overrides, values=None, import_root=""):
        words = ("workload=command", "workload.name=prog", SCRIPT, "+workload.parameters.lr=0.1", *overrides)
        candidates = compose_candidates(
            "quickstart", ("model=tcn", "parallelism=single", *words), project=project_dir
        )
        settings = PlanSettings(study="s", candidates=candidates, values=values or {}, repeats=1)
        return settings, (lambda: make_plan(settings, topology=None, features=None, import_root=import_root))

    return plan


def test_a_program_is_planned_without_data_and_named_by_what_varies(plan_program, tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n")
    settings, make = plan_program(values={"workload.parameters.lr": (0.1, 0.2)}, import_root=str(tmp_path))
    assert not needs_data(settings)
    plan = make()
    assert [trial.name for trial in plan.trials] == ["prog single lr=0.1", "prog single lr=0.2"]
    assert len({trial.id for trial in plan.trials}) == 2
    assert all(trial.user_sha256 and trial.runs_command and trial.steps == 0 for trial in plan.trials)


def test_a_programs_id_follows_its_files_and_parameters_not_our_models(plan_program, tmp_path):
    (tmp_path / "train.py").write_text("import parts\n")
    (tmp_path / "parts.py").write_text("A = 1\n")

    def plan_id(*overrides):
        return plan_program(*overrides, import_root=str(tmp_path))[1]().trials[0].id

    base = plan_id()
    assert plan_id("model=transformer", "cluster.log_limit=1M", "task.window=16") == base
    assert len({base, plan_id("workload.parameters.lr=0.3"), plan_id("training.steps=7"), plan_id("seed=1")}) == 4
    (tmp_path / "parts.py").write_text("A = 2\n")
    assert plan_id() != base


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["workload.argv=['p','{rate}']"], "name {rate}, which is no parameter and no setting"),
        (["workload.argv=['p','{features}']"], "set workload.data=true"),
        (["cluster.container.image=x", "cluster.container.kind=pyxis"], "set cluster.container.kind=apptainer"),
        (["training.threads_per_rank=4"], "set cluster.cpus_per_rank=4"),
    ],
)
def test_a_program_that_cannot_be_started_is_refused_before_anything_is(plan_program, overrides, reason):
    settings, make = plan_program(*overrides)
    assert reason in find_refusal(settings.candidates[0].settings)
    with pytest.raises(StudyError):
        make()


def test_layouts_that_our_trainer_lacks_are_a_programs_own_business(plan_program):
    settings, _ = plan_program("parallelism.tensor=2", "parallelism.pipeline=2", "training.batch_size=7")
    assert find_refusal(settings.candidates[0].settings) == ""
