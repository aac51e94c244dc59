"""Why a trial must not run with the code that is here now."""

import importlib.metadata

from windtunnel.identity import hash_program, hash_sources, hash_user_files
from windtunnel.records.trial import TrialConfig
from windtunnel.settings.workload import WorkloadSettings

_AGAIN = "plan the study again"


def find_refusal(config: TrialConfig) -> str:
    """What differs from the plan; empty when the trial may run. Raises SettingsError for a program that is gone."""
    if hash_sources() != config.identity.source_sha256:
        return f"the source of windtunnel differs from what the trial was planned with: {_AGAIN}"
    if config.trial.runs_command:
        return _find_program_refusal(config)
    torch_version = importlib.metadata.version("torch")
    if torch_version != config.identity.torch_version:
        return f"torch is {torch_version} here but {config.identity.torch_version} in the plan: {_AGAIN}"
    if config.trial.user_sha256:
        model = config.trial.settings["model"]
        target = model.get("_target_") or model["target"]
        if hash_user_files(target, config.import_root) != config.trial.user_sha256:
            return f"the files of {target} differ from what the trial was planned with: {_AGAIN}"
    return ""


def _find_program_refusal(config: TrialConfig) -> str:
    settings = config.trial.settings
    workload = WorkloadSettings.model_validate(settings["workload"])
    on_host = not settings["cluster"]["container"]["image"]
    if hash_program(workload, config.import_root, on_host=on_host) == config.trial.user_sha256:
        return ""
    return f"the files of program {workload.argv[0]} differ from what the trial was planned with: {_AGAIN}"
