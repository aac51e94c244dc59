"""Submissions within limits: stand-ins for Slurm's commands keep the scripts that they were given."""

import os
from pathlib import Path

import pytest
from submitit.core.utils import DelayedSubmission

from fake_trials import make_trial
from windtunnel.errors import CommandError
from windtunnel.launch.context import SweepContext
from windtunnel.launch.onslurm import SlurmBackend
from windtunnel.ledger.log import read_events
from windtunnel.ledger.story import find_begun
from windtunnel.records.plan import Identity, PlannedTrial
from windtunnel.settings.cluster import ClusterSettings
from windtunnel.settings.sweep import SweepSettings
from windtunnel.slurm.limits import Association, Limits

SLURM = ClusterSettings(kind="slurm", partition="main")
# Gives ids from 1 on and keeps the script; refuses arrays of more tasks than the file `most` says.
SBATCH = """\
for script; do :; done
tasks=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%.*/\\1/p' "$script"); tasks=$(( ${tasks:-0} + 1 ))
if [ "$tasks" -gt "$(cat most)" ]; then
  echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2
  echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)' >&2
  exit 1
fi
echo x >> calls; cp "$script" "$(wc -l < calls).sh"; env > "$(wc -l < calls).env"
echo "Submitted batch job $(wc -l < calls)"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with Slurm's commands, first on PATH, which is also the working directory."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "most").write_text("1000000")
    (tmp_path / "queue").write_text("")
    for name, script in {"srun": "", "squeue": "cat queue", "sbatch": SBATCH}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_an_array_is_cut_where_slurm_cuts_it(slurm: Path) -> None:
    backend = make_backend(slurm, limits=Limits(max_array_tasks=3))
    ids = backend.submit(make_trials(slurm, 7)).job_ids
    assert list(ids.values()) == ["1_0", "1_1", "1_2", "2_0", "2_1", "2_2", "3"]


def test_what_the_users_limit_leaves_no_room_for_waits_and_follows(slurm: Path) -> None:
    said: list[str] = []
    backend = make_backend(slurm, limits=limit_jobs(4), said=said)
    trials = make_trials(slurm, 6)
    (slurm / "queue").write_text("desk|normal|main\n")
    first = backend.submit(trials)
    assert list(first.job_ids) == [trial.id for trial in trials[:3]]
    assert (first.refusals, first.unanswered) == ({}, {})
    assert kinds(slurm, trials[3]) == []
    assert said == [
        "3 trials wait for room in the queue (MaxSubmitJobs of account 'desk' is 4): they follow as jobs end"
    ]
    (slurm / "queue").write_text("desk|normal|main\n" * 2)
    assert backend.pick(trials[3:], active=3) == trials[3:5]
    assert len(backend.submit(trials[3:]).job_ids) == 2


def test_a_full_queue_that_nobody_knew_of_is_no_refusal(slurm: Path) -> None:
    (slurm / "most").write_text("2")
    backend = make_backend(slurm)
    trials = make_trials(slurm, 9)
    submitted = backend.submit(trials)
    assert list(submitted.job_ids.values()) == ["1_0", "1_1"]
    assert (submitted.refusals, submitted.unanswered) == ({}, {})
    assert kinds(slurm, trials[-1]) == ["submitting", "postponed"]
    assert kinds(slurm, trials[0])[-2:] == ["submitting", "submitted"]


def test_a_queue_that_takes_no_single_job_is_asked_again_later(slurm: Path) -> None:
    (slurm / "most").write_text("0")
    backend = make_backend(slurm, poll_s=60.0)
    submitted = backend.submit(make_trials(slurm, 3))
    assert submitted == type(submitted)({})
    assert not backend.pick(make_trials(slurm, 3), active=0)


def test_trials_of_a_pack_share_a_job_and_its_command(slurm: Path) -> None:
    backend = make_backend(slurm, trials_per_job=2)
    trials = make_trials(slurm, 5)
    ids = backend.submit(trials).job_ids
    assert list(ids.values()) == ["1_0", "1_0", "1_1", "1_1", "2"]
    call = DelayedSubmission.load(slurm / "jobs" / "1_1_submitted.pkl")
    assert call.args[0][-2:] == tuple(str(slurm / "trials" / trial.id) for trial in trials[2:4])
    assert "--time=11" in (slurm / "1.sh").read_text()  # twice 5 minutes, and one between
    assert "--time=5" in (slurm / "2.sh").read_text()


def test_a_packs_lost_answer_is_found_with_the_whole_packs_command(slurm: Path) -> None:
    backend = make_backend(slurm, trials_per_job=2)
    trials = make_trials(slurm, 2)
    backend.submit(trials)
    pickle = slurm / "jobs" / "1_submitted.pkl"
    pickle.unlink()
    (slurm / "queue").write_text("1|PENDING||Resources|x\n")
    submission = find_begun(read_events(slurm / "trials" / trials[1].id))
    assert submission is not None
    assert backend.recover(trials[1], submission) == "1"
    assert len(DelayedSubmission.load(pickle).args[0]) == 4 + 2  # the supervisor's words, and two folders


def test_another_studys_pack_gets_its_command_where_its_job_waits_for_it(slurm: Path) -> None:
    trials = make_trials(slurm, 2)
    make_backend(slurm, trials_per_job=2).submit(trials)
    (slurm / "jobs" / "1_submitted.pkl").unlink()
    (slurm / "queue").write_text("1|PENDING||Resources|x\n")
    submission = find_begun(read_events(slurm / "trials" / trials[1].id))
    assert submission is not None
    other = make_backend(slurm, jobs="other/jobs")
    assert other.recover(trials[1], submission) == "1"
    call = DelayedSubmission.load(slurm / "jobs" / "1_submitted.pkl")
    assert call.args[0][-2:] == tuple(str(slurm / "trials" / trial.id) for trial in trials)
    assert list((slurm / "other" / "jobs").iterdir()) == []


def test_a_ledger_tells_what_its_driver_saw_and_a_lone_trial_names_no_pack(slurm: Path) -> None:
    (trial,) = trials = make_trials(slurm, 1)
    make_backend(slurm).submit(trials, seen={trial.id: 3})
    details = read_events(slurm / "trials" / trial.id)[0].details
    assert (details["seen"], details["jobs_dir"], "pack" in details) == (3, str(slurm / "jobs"), False)


def test_trials_that_there_is_no_room_for_are_not_picked_and_it_is_said_why(slurm: Path) -> None:
    said: list[str] = []
    backend = make_backend(slurm, limits=limit_jobs(4), said=said, poll_s=60.0)
    trials = make_trials(slurm, 6)
    assert backend.pick(trials, active=0) == trials[:4]
    assert len(backend.submit(trials[:4]).job_ids) == 4
    assert not backend.pick(trials[4:], active=4)
    assert said == [
        "2 trials wait for room in the queue (MaxSubmitJobs of account 'desk' is 4): they follow as jobs end"
    ]


def test_what_slurm_refuses_to_cancel_is_an_error_and_a_job_that_is_gone_is_none(slurm: Path) -> None:
    backend = make_backend(slurm)
    gone = "scancel: error: Kill job error on job id 7: Invalid job id specified"
    (slurm / "scancel").write_text(f"#!/bin/sh\necho '{gone}' >&2; exit 1\n")
    (slurm / "scancel").chmod(0o755)
    backend.cancel(["7"])
    (slurm / "scancel").write_text("#!/bin/sh\necho 'scancel: error: Access/permission denied' >&2; exit 1\n")
    with pytest.raises(CommandError, match="Access/permission denied"):
        backend.cancel(["7"])


def test_nodes_to_leave_out_stand_in_the_script(slurm: Path) -> None:
    make_backend(slurm).submit(make_trials(slurm, 1), exclude=("n1", "n3"))
    assert "#SBATCH --exclude=n1,n3\n" in (slurm / "1.sh").read_text()


def test_what_the_driver_runs_in_does_not_reach_its_jobs(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = ("SLURM_JOB_ID", "SBATCH_PARTITION", "SALLOC_ACCOUNT", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
    for name in (*strange, "SLURM_CONF", "MY_OWN", "OMPI_MCA_btl"):
        monkeypatch.setenv(name, "7")
    make_backend(slurm).submit(make_trials(slurm, 1))
    seen = {line.partition("=")[0] for line in (slurm / "1.env").read_text().splitlines()}
    assert not seen & set(strange)
    assert {"SLURM_CONF", "MY_OWN", "OMPI_MCA_btl"} <= seen
    assert os.environ["SLURM_JOB_ID"] == "7"


def limit_jobs(most: int) -> Limits:
    association = Association("desk", "", ("normal",), "", max_submit=most)
    return Limits(enforced=frozenset({"limits"}), default_account="desk", associations=(association,))


def make_trials(store: Path, count: int) -> list[PlannedTrial]:
    trials = [make_trial(str(number), cluster=SLURM) for number in range(count)]
    for trial in trials:
        (store / "trials" / trial.id).mkdir(parents=True, exist_ok=True)
    return trials


def kinds(store: Path, trial: PlannedTrial) -> list[str]:
    return [event.kind for event in read_events(store / "trials" / trial.id)]


def make_backend(
    store: Path,
    *,
    limits: Limits | None = None,
    said: list[str] | None = None,
    poll_s: float = 1e-6,
    trials_per_job: int = 1,
    jobs: str = "jobs",
) -> SlurmBackend:
    (store / jobs).mkdir(parents=True)
    context = SweepContext(
        study="made_up",
        cluster=SLURM,
        sweep=SweepSettings(poll_s=poll_s, trials_per_job=trials_per_job),
        identity=Identity("d", "s", "2.13.0"),
        features=store / "MANIFEST.json",
        topology=None,
        store=store,
        import_root="",
        jobs_dir=store / jobs,
    )
    say = said.append if said is not None else print
    return SlurmBackend(context, say=say, limits=limits or Limits())
