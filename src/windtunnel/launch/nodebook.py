"""Which nodes failed under trials: written down for every study of the store, and left out of submissions.

What counts, and who is left out, is decided in `ledger.nodes`; here Slurm is asked for what that needs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from windtunnel.errors import ClusterError, CommandError
from windtunnel.ledger.facts import TrialFacts
from windtunnel.ledger.nodes import (
    NodeFailure,
    append_failure,
    decide_exclusion,
    find_begin,
    find_faults,
    find_suspects,
    read_failures,
)
from windtunnel.ledger.reconcile import JobSight, Phase, find_job_id
from windtunnel.records.cluster import Node
from windtunnel.records.trial import Verdict
from windtunnel.settings.sweep import ExclusionSettings
from windtunnel.slurm.scontrol import read_nodes, read_partition

_DOWN = ("DOWN", "FAIL", "NOT_RESPONDING", "*")


def read_partition_hosts(name: str) -> tuple[str, ...]:
    """The nodes of a partition; none when Slurm does not know it, or does not answer."""
    try:
        return read_partition(name).nodes
    except (ClusterError, CommandError):
        return ()


def read_states(hosts: Sequence[str]) -> tuple[Node, ...]:
    """The nodes of these names as Slurm sees them now; none when it does not answer."""
    try:
        return read_nodes(hosts)
    except (ClusterError, CommandError):
        return ()


@dataclass
class NodeBook:
    """Mutable: it remembers what it said, and the partitions it asked for."""

    store: Path
    settings: ExclusionSettings
    say: Callable[[str], None]
    partition_hosts: Callable[[str], tuple[str, ...]] = read_partition_hosts
    states: Callable[[Sequence[str]], tuple[Node, ...]] = read_states
    _partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def exclude(self, partition: str, *, needed: int) -> tuple[str, ...]:
        """Nodes of a partition to leave out of jobs of `needed` nodes now."""
        failures = read_failures(self.store)
        if not failures:
            return ()
        if partition not in self._partitions:
            self._partitions[partition] = self.partition_hosts(partition)
        hosts = self._partitions[partition]
        exclusion = decide_exclusion(failures, hosts, self.settings, now=time.time(), needed=needed)
        times = f"failed {self.settings.failures} times in {self.settings.within_hours:g} h"
        unfit = {failure.node for failure in failures if failure.hard}
        why = {node: "was found unfit" if node in unfit else times for node in (*exclusion.nodes, *exclusion.spared)}
        for node in exclusion.nodes:
            self._tell(f"node {node} {why[node]}: left out of submissions for {self.settings.hours:g} h")
        for node in exclusion.spared:
            share = f"sweep.exclusion.at_most={self.settings.at_most:g} of {len(hosts)} nodes"
            self._tell(f"node {node} {why[node]}, but is not left out: {share} allows no more; have it drained")
        return exclusion.nodes

    def note_end(self, trial_id: str, facts: TrialFacts, job: JobSight, verdict: Verdict) -> None:
        """Write down the node for which, or on which without a word, a trial's attempt ended."""
        suspects = find_suspects(facts, job, verdict)
        faults = find_faults(facts)
        named = len(suspects) == 1 or (bool(suspects) and set(suspects) <= set(faults))
        self._write(trial_id, facts, verdict, suspects if named else self._find_down(suspects), faults)

    def note_requeue(self, trial_id: str, facts: TrialFacts) -> None:
        """Write down the node from which Slurm took a job away, to start it elsewhere: if it is down, only."""
        # An attempt that was preempted too hard to say so leaves the same records.
        gone = JobSight(Phase.ENDED)
        self._write(
            trial_id, facts, Verdict.NODE_FAIL, self._find_down(find_suspects(facts, gone, Verdict.NODE_FAIL))
        )

    def _find_down(self, hosts: Sequence[str]) -> tuple[str, ...]:
        nodes = self.states(hosts) if hosts else ()
        return tuple(node.name for node in nodes if any(part in node.state for part in _DOWN))

    def _write(
        self,
        trial_id: str,
        facts: TrialFacts,
        verdict: Verdict,
        hosts: Sequence[str],
        faults: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        began_at = find_begin(facts)
        # A driver that begins anew sees again what an earlier one wrote down.
        known = {(each.node, each.trial_id, each.began_at) for each in read_failures(self.store)} if hosts else set()
        for host in hosts:
            if (host, trial_id, began_at) not in known:
                hard = faults.get(host, False)
                failure = NodeFailure(host, verdict, trial_id, find_job_id(facts), began_at, time.time(), hard)
                append_failure(self.store, failure)

    def _tell(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.say(line)
