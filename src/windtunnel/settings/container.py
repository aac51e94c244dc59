"""Settings of a container: the image that ranks run in."""

from typing import Literal, Self

from pydantic import Field, model_validator

from windtunnel.settings.base import Settings


class ContainerSettings(Settings):
    image: str = ""
    """Image that ranks run in: what `--container-image` or `apptainer exec` takes. Empty runs them on the host.
    It counts in a trial's identity by this name alone: name it by digest."""
    kind: Literal["pyxis", "apptainer"] = "apptainer"
    """`pyxis` is srun's plugin for enroot; `apptainer` needs no plugin, and runs on this machine too."""
    mounts: tuple[str, ...] = ()
    """More folders to mount, `source` or `source:target[:flags]`. The project, the trial and its inputs are
    mounted where they lie."""
    options: tuple[str, ...] = ()
    """More options of `apptainer exec` (`--nv`), or of srun for pyxis (`--container-writable`)."""
    python: str = Field(default="python3", min_length=1)
    """Python of the image, for our own trainer."""

    @model_validator(mode="after")
    def _mount_whole_paths(self) -> Self:
        for mount in self.mounts:
            if not mount.startswith("/") or "," in mount:
                raise ValueError(f"cluster.container.mounts: {mount!r} is no absolute path without a comma")
        return self
