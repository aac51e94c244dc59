"""What the doctor's job saw on two nodes, and between them. Pure: reports in, findings out."""

from collections.abc import Sequence

from windtunnel.cli.doctor.findings import Finding, fail, warn
from windtunnel.cli.doctor.job import JobFacts
from windtunnel.cli.doctor.node import RACES, NodeReport
from windtunnel.settings.cluster import ClusterSettings

AREA = "nodes"
_SKEW_S = 5.0
_LOOKUP_S = 0.5
_TURN_S = 5.0
_MTIME_S = 30.0
_SETTLE_S = 60.0  # sweep.settle_s
_STALE_S = 90.0  # of a lease
_IMPORT_S = 60.0


def judge_job(facts: JobFacts, cluster: ClusterSettings) -> list[Finding]:
    """All findings of the job."""
    if facts.waited_s is None:
        remedy = "Try again later with a longer --wait, or correct the site file's setup and modules."
        return [fail(AREA, "job", facts.problem, "nothing could be tried on a node.", remedy)]
    findings = [Finding(AREA, "job", f"{facts.nodes} nodes answered {facts.waited_s:.0f} s after submission")]
    findings += [_judge_clock(facts), *_judge_answers(facts)]
    if facts.reports:
        findings += judge_reports(facts.reports, cluster)
    problems = [f"{report.host}: {problem}" for report in facts.reports for problem in report.problems]
    for problem in [*problems, *([facts.problem] if facts.problem else [])]:
        findings.append(fail(AREA, "a step", problem, "what it tries is not known to work.", "See the message."))
    return findings


def judge_reports(reports: Sequence[NodeReport], cluster: ClusterSettings) -> list[Finding]:
    """What the nodes saw of names, files and each other, and their torch."""
    findings = [_judge_lookups(reports), _judge_interfaces(reports, cluster)]
    if len(reports) > 1:
        findings += [
            *_judge_turns(reports),
            _judge_race(reports),
            *_judge_lines(reports),
            *_judge_lock(reports),
            *_judge_connection(reports),
        ]
    else:
        effect = "nothing was tried between nodes."
        findings.append(warn(AREA, "two nodes", "one node answered", effect, "Try a partition with two free nodes."))
    return [*findings, *(finding for report in reports for finding in _judge_torch(report, cluster))]


def _judge_clock(facts: JobFacts) -> Finding:
    # Zero between the bounds is no skew that could be seen.
    sure = [max(low, -high, 0.0) for low, high in facts.clock_ahead_s]
    worst = max(sure, default=0.0)
    if worst > _SKEW_S:
        effect = "logs and ledgers of nodes cannot be put in order; munge refuses past 300 s."
        return warn(AREA, "clocks", f"a node's is {worst:.1f} s from this machine's", effect, "Ask the site for NTP.")
    return Finding(AREA, "clocks", f"within {max(worst, facts.answered_s or 0.0):.1f} s of this machine's")


def _judge_answers(facts: JobFacts) -> list[Finding]:
    if facts.answered_s is None:
        return []
    found = f"a file goes to a node and its answer comes back in {facts.answered_s:.1f} s"
    if facts.answered_s > _SETTLE_S / 2:
        effect = "a trial's end is seen late, and may be taken for LOST."
        return [warn(AREA, "login and nodes", found, effect, f"Set sweep.settle_s={4 * facts.answered_s:.0f}.")]
    return [Finding(AREA, "login and nodes", found)]


def _judge_lookups(reports: Sequence[NodeReport]) -> Finding:
    unknown = sorted({host for report in reports for host, seconds in report.lookups.items() if seconds is None})
    if unknown:
        effect = "ranks do not find the first of them, which is named by its host."
        remedy = "Ask the site for host names of the nodes on the nodes (DNS or /etc/hosts)."
        return fail(AREA, "host names", f"not known: {', '.join(unknown)}", effect, remedy)
    slowest = max((seconds for report in reports for seconds in report.lookups.values() if seconds), default=0.0)
    found = f"the slowest look-up took {1000 * slowest:.0f} ms"
    if slowest > _LOOKUP_S:
        effect = "each connection between ranks waits so long: a trial starts slowly."
        return warn(AREA, "host names", found, effect, "Ask the site for an /etc/hosts or a name cache on the nodes.")
    return Finding(AREA, "host names", found)


def _judge_interfaces(reports: Sequence[NodeReport], cluster: ClusterSettings) -> Finding:
    names = sorted({name for report in reports for name in report.interfaces})
    found = ", ".join(names) or "none but loopback"
    wanted = cluster.network_interface
    lacking = [report.host for report in reports if wanted and wanted not in report.interfaces]
    if lacking:
        remedy = f"Set network_interface in the site file to one of: {found}."
        return fail(AREA, "interfaces", found, f"{wanted} is not on {', '.join(lacking)}.", remedy)
    if not wanted and len(names) > 1:
        effect = "Gloo and NCCL choose one of them, not always the fast one."
        return warn(AREA, "interfaces", found, effect, "Set network_interface in the site file.")
    return Finding(AREA, "interfaces", found)


def _judge_turns(reports: Sequence[NodeReport]) -> list[Finding]:
    findings = []
    turns = [report.file_turn_s for report in reports if report.file_turn_s is not None]
    if turns:
        found = f"seen on the other node after {1000 * max(turns):.0f} ms"
        finding = Finding(AREA, "renamed file", found)
        if max(turns) > _TURN_S:
            effect = "trials that wait for each other's records are slow."
            finding = warn(AREA, "renamed file", found, effect, f"Set sweep.settle_s={max(60, 4 * max(turns)):.0f}.")
        findings.append(finding)
    touches = [report.mtime_turn_s for report in reports if report.mtime_turn_s is not None]
    if touches:
        found = f"a touch is seen on the other node after {1000 * max(touches):.0f} ms"
        finding = Finding(AREA, "file times", found)
        if max(touches) > _MTIME_S:
            effect = f"a live holder of a lease may count as dead, which it does after {_STALE_S:.0f} s."
            finding = warn(AREA, "file times", found, effect, "Ask the site for a shorter actimeo on this mount.")
        findings.append(finding)
    return findings


def _judge_race(reports: Sequence[NodeReport]) -> Finding:
    won = sorted(number for report in reports for number in report.won)
    if won != list(range(RACES)):
        twice = len(won) - len(set(won))
        found = f"of {RACES} names {twice} were taken by both nodes, {RACES - len(set(won))} by none"
        effect = "two drivers, or two attempts of a trial, could both think that they are alone."
        return fail(AREA, "exclusive link", found, effect, "Set paths.store to another file system.")
    counts = " and ".join(str(len(report.won)) for report in reports)
    return Finding(AREA, "exclusive link", f"{RACES} races, won by one node each ({counts})")


def _judge_lines(reports: Sequence[NodeReport]) -> list[Finding]:
    seen = next((report for report in reports if report.lines_kept is not None), None)
    if seen is None or seen.lines_kept is None:
        return []
    found = f"{seen.lines_kept} of {seen.lines_written} lines that both nodes appended at once are there"
    if seen.lines_kept < seen.lines_written:
        effect = "a ledger may lose a line when a driver and a trial write in the same instant; NFS does that."
        remedy = "Nothing is judged wrongly by it; Lustre, GPFS or BeeGFS do not."
        return [warn(AREA, "appended lines", found, effect, remedy)]
    return [Finding(AREA, "appended lines", found)]


def _judge_lock(reports: Sequence[NodeReport]) -> list[Finding]:
    seen = [report.lock_seen for report in reports if report.lock_seen is not None]
    if not seen:
        return []
    if all(seen):
        return [Finding(AREA, "locks", "hold between nodes")]
    effect = "Windtunnel takes none, but an SQLite file that two nodes write (Optuna's storage) breaks."
    return [warn(AREA, "locks", "do not hold between nodes", effect, "Use Optuna's journal storage, or one driver.")]


def _judge_connection(reports: Sequence[NodeReport]) -> list[Finding]:
    seconds = [report.connect_s for report in reports if report.connect_s is not None]
    return [Finding(AREA, "connection", f"node to node in {1000 * max(seconds):.0f} ms")] if seconds else []


def _judge_torch(report: NodeReport, cluster: ClusterSettings) -> list[Finding]:
    facts = report.torch
    if "error" in facts:
        remedy = "Load what torch needs with modules or setup in the site file."
        return [fail(AREA, f"torch on {report.host}", facts["error"], "no trial can start there.", remedy)]
    cuda = f", CUDA {facts['cuda']}" if facts["cuda"] else ""
    found = f"{facts['torch']}{cuda}, {facts['devices']} devices; imported in {facts['torch_s']:.1f} s"
    subject = f"torch on {report.host}"
    findings = [Finding(AREA, subject, found)]
    if cluster.gpus_per_rank > facts["devices"]:
        effect = f"{cluster.gpus_per_rank} GPUs were asked for, and torch sees {facts['devices']}."
        remedy = "Load a torch built for the node's driver (docs/cluster.md), or set gpu_type or constraint."
        findings = [fail(AREA, subject, found, effect, remedy)]
    elif facts["torch_s"] > _IMPORT_S:
        effect = "every rank of every trial waits so long before its first step."
        findings = [warn(AREA, subject, found, effect, "Install on a faster file system, or use a container.")]
    kernels = f"kernels on {report.host}"
    if not facts["kernels_agree"]:
        effect = "features differ from plain PyTorch's."
        return [
            *findings,
            fail(AREA, kernels, "wrong results", effect, "Build the wheel on such a node's processor."),
        ]
    return [*findings, Finding(AREA, kernels, f"agree with plain PyTorch; all within {facts['all_s']:.1f} s")]
