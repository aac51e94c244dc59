"""Settings of a place to run: a Slurm partition, or this machine."""

from typing import Literal

from pydantic import Field

from windtunnel.settings.base import MemoryMib, Settings, TimeMin
from windtunnel.settings.container import ContainerSettings
from windtunnel.settings.sbatch import Flags, Lines, Partition, Text


class ClusterSettings(Settings):
    kind: Literal["local", "slurm"]
    """`slurm` submits jobs; `local` runs processes on this machine."""
    partition: Partition
    """Slurm partition; `local` on a machine without one. Cluster facts are kept by this name."""
    account: Text = ""
    """Slurm account; empty leaves it to Slurm."""
    qos: Text = ""
    """Slurm quality of service; empty leaves it to Slurm."""
    constraint: Text = ""
    """Slurm node features; empty asks for none."""
    modules: tuple[str, ...] = ()
    """Environment modules loaded in every job; a job without one of them fails."""
    setup: Lines = ()
    """Shell lines that every trial's job runs after the modules, before the trial. `$NAME` is the job's variable."""
    sbatch: Flags = {}
    """More flags of sbatch: `{reservation: night, exclusive: true}`; false takes one away again."""
    network_interface: str = ""
    """Interface of the training network, such as `eth0` or `ib0`; empty lets Gloo and NCCL choose."""
    time: TimeMin = 60
    """Time limit of a trial, in Slurm's syntax."""
    memory: MemoryMib = 2048
    """Memory a rank, in Slurm's syntax."""
    cpus_per_rank: int = Field(default=1, ge=1)
    """CPUs a rank."""
    gpus_per_rank: int = Field(default=0, ge=0)
    """GPUs a rank; 0 trains on the CPU."""
    gpu_type: Text = Field(default="", pattern=r"^[\w.-]*$")
    """Slurm's name of the kind of GPU, such as `a100`; empty takes any."""
    log_limit: MemoryMib = Field(default=64, ge=1)
    """Size that a rank's log is kept to, in Slurm's syntax: its beginning and its end remain."""
    prometheus_dir: str = ""
    """Folder of a node that node_exporter's textfile collector reads; empty for none."""
    dcgm_job_dir: str = ""
    """Folder of a node that dcgm-exporter reads the jobs of GPUs from (its hpc-job-mapping-dir); empty for none."""
    container: ContainerSettings = ContainerSettings()
    """The image that ranks run in."""
    probe_nodes: int = Field(default=1, ge=1)
    """Nodes that the cluster's measurements run on."""
    max_age_days: float = Field(default=30, gt=0, le=36500)
    """Age past which measured cluster facts give a warning."""
    cost_per_node_hour: float = Field(default=0.0, ge=0, le=1e9)
    """Price of a node for an hour, in `currency`; 0 reports node-hours alone."""
    currency: str = "USD"
    """Currency of the price."""
