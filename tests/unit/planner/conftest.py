"""Trials as a plan finds them, changed by dotted settings; the configuration is composed once."""

import pytest

from windtunnel.artifacts import to_plain
from windtunnel.cli.compose import compose_candidates
from windtunnel.settings.base import parse_settings
from windtunnel.settings.study import CandidateSettings, PlanSettings, TrialSettings


@pytest.fixture(scope="session")
def candidates(project_dir):
    """The quickstart study's four."""
    return compose_candidates("quickstart", project=project_dir)


@pytest.fixture(scope="session")
def make_trial(candidates):
    def make(changes=None, candidate=candidates[0]):
        plain = to_plain(candidate.settings)
        for key, value in (changes or {}).items():
            group, _, name = key.partition(".")
            plain[group][name] = value
        return parse_settings(TrialSettings, plain, where="test")

    return make


@pytest.fixture(scope="session")
def make_plan_settings(candidates, make_trial):
    def make(changes=None, *, values=None, repeats=1, count=4):
        changed = tuple(
            CandidateSettings(choices=candidate.choices, settings=make_trial(changes, candidate))
            for candidate in candidates[:count]
        )
        return PlanSettings(study="quickstart", candidates=changed, values=values or {}, repeats=repeats)

    return make
