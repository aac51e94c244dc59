"""The doctor's judgement of configurations as real clusters' controllers printed them."""

import pytest

from windtunnel.cli.doctor.cluster import judge_config, judge_silence, judge_slurm_version, judge_switches
from windtunnel.cli.doctor.findings import Level
from windtunnel.slurm.scontrol import parse_config

# Of `scontrol show config`, the lines that the doctor reads, and some around them.
SLURM_22_05_TESTBED = """\
Configuration data as of 2026-11-30T16:17:31
AccountingStorageEnforce = none
AccountingStorageType   = accounting_storage/slurmdbd
AuthInfo                = socket=/tmp/tb/run/munge.socket,cred_expire=5
EnforcePartLimits       = NO
JobRequeue              = 1
KillWait                = 5 sec
MaxArraySize            = 1001
MaxJobCount             = 10000
MinJobAge               = 120 sec
PreemptMode             = REQUEUE
PreemptType             = preempt/partition_prio
PrivateData             = none
ProctrackType           = proctrack/linuxproc
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 22.05.8
SlurmctldHost[0]        = login(10.77.0.1)
SlurmctldParameters     = (null)
TopologyPlugin          = topology/tree
"""
# Before job arrays had a size, and without accounting.
SLURM_2_6 = """\
AccountingStorageType   = accounting_storage/none
JobAcctGatherType       = jobacct_gather/none
JobRequeue              = 1
KillWait                = 30 sec
MaxJobCount             = 10000
MinJobAge               = 300 sec
PreemptMode             = OFF
PreemptType             = preempt/none
PrivateData             = none
ProctrackType           = proctrack/pgid
SelectType              = select/linear
"""
SLURM_25_05 = """\
AccountingStorageType   = accounting_storage/slurmdbd
CompleteWait            = 0 sec
JobAcctGatherType       = jobacct_gather/linux
JobRequeue              = 0
KillWait                = 30 sec
MaxArraySize            = 11000
MaxBatchRequeue         = 5
MaxJobCount             = 65000
MinJobAge               = 300 sec
PreemptMode             = OFF
PreemptType             = (null)
ProctrackType           = proctrack/cgroup
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
TaskPlugin              = task/cgroup,task/affinity
"""


def levels(text: str) -> dict[str, Level]:
    return {finding.subject: finding.level for finding in judge_config(parse_config(text))}


def find(text: str, subject: str):
    return next(finding for finding in judge_config(parse_config(text)) if finding.subject == subject)


def changed(**values: str) -> str:
    """The newest configuration with other values; the last of two lines of one key counts."""
    return SLURM_25_05 + "".join(f"{key:<23} = {value}\n" for key, value in values.items())


def test_a_current_cluster_with_cgroups_and_accounting_has_nothing_to_set():
    assert set(levels(SLURM_25_05).values()) == {Level.OK}


def test_a_testbed_lacks_cgroups_and_early_refusals_alone():
    warned = {subject for subject, level in levels(SLURM_22_05_TESTBED).items() if level != Level.OK}
    assert warned == {"processes", "limits"}


def test_an_old_cluster_without_accounting_is_told_what_to_set():
    found = levels(SLURM_2_6)
    assert {subject for subject, level in found.items() if level == Level.WARN} == {
        "accounting",
        "arrays",
        "resources",
        "processes",
    }
    assert "sweep.poll_s below MinJobAge" in find(SLURM_2_6, "accounting").remedy


@pytest.mark.parametrize(
    ("mode", "level", "words"),
    [
        ("OFF", Level.OK, ""),
        ("REQUEUE", Level.OK, ""),
        ("CANCEL", Level.WARN, "sweep.retries.preempted"),
        ("GANG,SUSPEND", Level.WARN, "cluster.qos"),
    ],
)
def test_preemption_warns_where_it_costs_time_or_truth(mode, level, words):
    finding = find(changed(PreemptMode=mode, PreemptType="preempt/qos"), "preemption")
    assert finding.level == level
    assert words in finding.remedy


def test_arrays_that_are_off_fail():
    finding = find(changed(MaxArraySize="0"), "arrays")
    assert finding.level == Level.FAIL
    assert "MaxArraySize=0" in finding.found


def test_small_arrays_warn_with_the_setting_for_short_trials():
    assert "sweep.trials_per_job" in find(changed(MaxArraySize="21"), "arrays").remedy


def test_a_short_memory_of_ended_jobs_asks_for_more_frequent_looks():
    finding = find(changed(MinJobAge="30 sec"), "ended jobs")
    assert finding.level == Level.WARN
    assert finding.remedy == "Set sweep.poll_s=10."


def test_no_time_between_sigterm_and_sigkill_warns():
    assert find(changed(KillWait="0 sec"), "end of jobs").level == Level.WARN


def test_memory_that_is_not_shared_out_warns():
    assert find(changed(SelectTypeParameters="CR_CORE"), "resources").level == Level.WARN


def test_a_requeued_job_waits_for_its_credential_to_expire():
    assert "waits 120 s or more" in find(SLURM_25_05, "requeue").found
    assert "waits 5 s or more" in find(SLURM_22_05_TESTBED, "requeue").found


def test_the_rate_limit_of_rpcs_is_told_with_our_own_load():
    finding = find(changed(SlurmctldParameters="enable_configless,rl_enable,rl_bucket_size=50"), "rate limit")
    assert finding.found.startswith("rl_enable,rl_bucket_size=50; a study asks squeue once")


def test_hidden_nodes_warn():
    assert find(changed(PrivateData="jobs,nodes"), "privacy").level == Level.WARN
    assert "privacy" not in levels(changed(PrivateData="jobs,users"))


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("25.05.5", Level.OK),
        ("22.05.8", Level.OK),
        ("21.08.0", Level.WARN),
        ("19.05.3-2", Level.FAIL),
        ("", Level.WARN),
    ],
)
def test_versions_are_judged_by_what_is_tested_and_needed(version, level):
    assert judge_slurm_version(version).level == level


def test_commands_without_a_cluster_are_no_failure():
    words = (
        "scontrol: error: fetch_config: DNS SRV lookup failed\nscontrol: fatal: Could not establish a configuration"
    )
    assert judge_silence(words).level == Level.OK
    silent = judge_silence("scontrol: error\nslurm_load_ctl_conf error: Unable to contact slurm controller")
    assert silent.level == Level.FAIL
    assert silent.found == "slurm_load_ctl_conf error: Unable to contact slurm controller"


def test_a_network_of_unknown_shape_warns():
    assert judge_switches(0, "topology/flat").level == Level.WARN
    assert judge_switches(3, "topology/tree").found == "topology/tree: 3 switches or blocks"
