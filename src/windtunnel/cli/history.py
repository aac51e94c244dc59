"""`windtunnel logs` and `windtunnel explain`: one trial's past, as its ranks printed it and its records tell it."""

import os
import sys
import time
from pathlib import Path

from windtunnel.cli.folders import find_trial, name_searched, read_rosters
from windtunnel.errors import StudyError
from windtunnel.launch.explain import Case, explain_pruned, explain_trial
from windtunnel.launch.nodebook import read_partition_hosts
from windtunnel.launch.overview import find_trial_job, read_driver, read_study_sights, stand_trial
from windtunnel.launch.place import SweepPlace, read_place
from windtunnel.launch.readlog import find_log, follow_log, read_log
from windtunnel.launch.roster import Row
from windtunnel.ledger.facts import read_facts
from windtunnel.ledger.layout import trial_folder
from windtunnel.ledger.nodes import Exclusion, decide_exclusion, read_failures
from windtunnel.ledger.traces import read_goodput
from windtunnel.settings.sweep import ExclusionSettings, RetrySettings


def run_logs(
    word: str,
    *,
    study: str | None,
    results: Path | None,
    attempt: int | None,
    rank: int,
    lines: int | None,
    follow: bool,
) -> None:
    """Print a rank's log; with `follow` what is added too, until the attempt ends."""
    folder, row = find_trial(word, read_rosters(study, results), where=name_searched(study, results))
    trial = trial_folder(Path(read_place(folder).store), row.id)
    path = find_log(trial, attempt=attempt, rank=rank)
    try:
        for piece in follow_log(path, trial, lines=lines) if follow else read_log(path, lines=lines):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except BrokenPipeError:  # `| head` has seen enough; the interpreter flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_explain(word: str, *, study: str | None, results: Path | None) -> None:
    """Print a trial's history and state; of a combination that was pruned, why."""
    rosters = read_rosters(study, results)
    try:
        folder, row = find_trial(word, rosters, where=name_searched(study, results))
    except StudyError:
        lines = [line for roster in rosters.values() for line in explain_pruned(roster.pruned, word)]
        if not lines:
            raise
        print("\n".join(lines), flush=True)
        return
    print("\n".join(explain_trial(read_case(folder, row))), flush=True)


def read_case(folder: Path, row: Row) -> Case:
    """All that is known of a trial of the study in `folder`."""
    place = read_place(folder)
    trial = trial_folder(Path(place.store), row.id)
    facts = read_facts(trial, steps=row.steps)
    sights = read_study_sights([facts], folder, place)
    return Case(
        row=row,
        facts=facts,
        standing=stand_trial(facts, sights, place),
        sight=sights.of(find_trial_job(facts, sights)),
        retries=RetrySettings.model_validate(place.get("sweep", "retries", {})),
        strict=bool(place.get("sweep", "strict", False)),
        driver=read_driver(folder),
        command=place.command,
        exclusion=_read_exclusion(place, needed=row.nodes),
        goodput=read_goodput(trial, facts, now=time.time()),
    )


def _read_exclusion(place: SweepPlace, *, needed: int) -> Exclusion:
    failures = read_failures(Path(place.store))
    if not failures or place.get("cluster", "kind", "local") != "slurm":
        return Exclusion()
    hosts = read_partition_hosts(str(place.get("cluster", "partition", "")))
    settings = ExclusionSettings.model_validate(place.get("sweep", "exclusion", {}))
    return decide_exclusion(failures, hosts, settings, now=time.time(), needed=needed)
