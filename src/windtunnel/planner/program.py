"""Why a trial's program or its container cannot be started as its settings say. Pure."""

from windtunnel.artifacts import to_plain
from windtunnel.settings.study import TrialSettings
from windtunnel.settings.workload import BUILT_IN, find_unknown_key


def find_program_refusal(settings: TrialSettings) -> str:
    """The reason, with the fix; empty when it can be."""
    return _find_container_refusal(settings) or _find_template_refusal(settings)


def _find_container_refusal(settings: TrialSettings) -> str:
    container, workload, kind = settings.cluster.container, settings.workload, settings.cluster.kind
    if not container.image or container.kind != "pyxis":
        return ""
    if kind != "slurm":
        return (
            f"cluster.container.kind=pyxis is srun's, but cluster.kind={kind}: set cluster.container.kind=apptainer"
        )
    if workload.kind == "command" and workload.start != "ranks":
        return (
            f"cluster.container.kind=pyxis works through srun alone, but workload.start={workload.start}:"
            " set workload.start=ranks, or cluster.container.kind=apptainer"
        )
    return ""


def _find_template_refusal(settings: TrialSettings) -> str:
    if settings.workload.kind != "command":
        return ""
    key = find_unknown_key(settings.workload, to_plain(settings))
    if not key:
        return ""
    if key == "features":
        return "workload.argv names {features}, but workload.data=false: set workload.data=true"
    known = ", ".join(sorted({*settings.workload.parameters, *BUILT_IN}))
    return (
        f"workload.argv, mpiexec or environment name {{{key}}}, which is no parameter and no setting:"
        f" give workload.parameters.{key}, or use one of {known}, or a setting such as training.steps"
    )
