"""The text of Slurm's configuration files for a testbed. Pure: a specification in, text out."""

from windtunnel.hostlist import collapse_hostlist
from windtunnel.testbed.places import munge_socket
from windtunnel.testbed.spec import SPINE, ClusterSpec, Host, cluster_name, leaf_names, login_host, node_hosts

_FAST_TIMINGS = """\
# Short, so that tests of requeue and of dead nodes take seconds
KillWait=5
SlurmdTimeout=15
SlurmctldTimeout=15
MessageTimeout=20
MinJobAge=120
SchedulerParameters=batch_sched_delay=1,sched_interval=5,bf_interval=5
"""
CRED_EXPIRE_S = 5  # a requeued job waits for its old credential to expire: 120 s by Slurm's default


def render_slurm_conf(spec: ClusterSpec) -> str:
    """slurm.conf: nodes that may claim more than this machine has, and two partitions, of which one preempts."""
    login = login_host(spec)
    folder = spec.folder
    text = f"""\
ClusterName={cluster_name(folder)}
SlurmctldHost={login.name}({login.address})
SlurmUser={spec.user}
SlurmdUser={spec.user}
{_render_auth(spec)}
SlurmctldPort={spec.ports.controller}
SlurmdPort={spec.ports.node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/tmp/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.slurm.log
SlurmdLogFile={folder}/log/slurmd-%n.slurm.log
MailProg=/bin/true

# No cgroups: the machine may be a container, and a node may claim more cores than the machine has
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={max(1, spec.memory_mib // spec.cpus // 4)}
JobAcctGatherType=jobacct_gather/linux
TopologyPlugin=topology/tree
MpiDefault=none
ReturnToService=2
InactiveLimit=0
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE

{_render_accounting(spec)}
{_FAST_TIMINGS if spec.fast_timings else ""}
{_render_gres_types(spec)}{_render_nodes(spec)}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""
    return text.replace("\n\n\n", "\n\n")


def render_topology_conf(spec: ClusterSpec) -> str:
    """topology.conf: the leaves, and the spine over them."""
    nodes = node_hosts(spec)
    lines = [
        f"SwitchName={leaf} Nodes={collapse_hostlist(host.name for host in nodes if host.switch == leaf)}"
        for leaf in leaf_names(spec)
    ]
    lines.append(f"SwitchName={SPINE} Switches={collapse_hostlist(leaf_names(spec))}")
    return "\n".join(lines) + "\n"


def render_gres_conf(spec: ClusterSpec) -> str:
    """gres.conf; a bare count would drain the nodes, so every GPU has a file."""
    if not spec.gpus:
        return "# no GPUs\n"
    names = collapse_hostlist(host.name for host in node_hosts(spec))
    files = collapse_hostlist(f"{spec.folder}/dev/nvidia{index}" for index in range(spec.gpus))
    return f"NodeName={names} Name=gpu File={files}\n"


def render_slurmdbd_conf(spec: ClusterSpec) -> str:
    """slurmdbd.conf; its database is reached by a socket that its environment names."""
    folder = spec.folder
    return f"""\
{_render_auth(spec, credentials=False)}
DbdHost={login_host(spec).name}
DbdAddr={login_host(spec).address}
DbdPort={spec.ports.database}
SlurmUser={spec.user}
PidFile={folder}/run/slurmdbd.pid
LogFile={folder}/log/slurmdbd.slurm.log
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={spec.user}
StorageLoc=slurm
"""


def _render_auth(spec: ClusterSpec, *, credentials: bool = True) -> str:
    expire = f"cred_expire={CRED_EXPIRE_S}" if credentials and spec.fast_timings else ""
    socket = f"socket={munge_socket(spec.folder)}" if spec.network else ""
    kind = "munge" if spec.network else "none"
    info = ",".join(filter(None, (socket, expire)))
    lines = [f"AuthType=auth/{kind}"]
    if credentials:
        lines.append(f"CredType=cred/{kind}")
    if info:
        lines.append(f"AuthInfo={info}")
    return "\n".join(lines)


def _render_accounting(spec: ClusterSpec) -> str:
    if not spec.accounting:
        return "AccountingStorageType=accounting_storage/none\n"
    # The name says password, but with munge it is the path of the socket.
    socket = f"AccountingStoragePass={munge_socket(spec.folder)}\n" if spec.network else ""
    return f"""\
{socket}AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={login_host(spec).address}
AccountingStoragePort={spec.ports.database}
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits
"""


def _render_gres_types(spec: ClusterSpec) -> str:
    return "GresTypes=gpu\n" if spec.gpus else ""


def _render_nodes(spec: ClusterSpec) -> str:
    return "\n".join(_render_node(spec, host, index) for index, host in enumerate(node_hosts(spec)))


def _render_node(spec: ClusterSpec, host: Host, index: int) -> str:
    hostname = host.name if spec.network else spec.machine
    port = node_port(spec, index)
    gres = f" Gres=gpu:{spec.gpus}" if spec.gpus else ""
    return (
        f"NodeName={host.name} NodeHostname={hostname} NodeAddr={host.address} Port={port} Sockets=1 "
        f"CoresPerSocket={spec.cpus} ThreadsPerCore=1 RealMemory={spec.memory_mib}{gres} State=UNKNOWN"
    )


def node_port(spec: ClusterSpec, index: int) -> int:
    """Port of node `index`'s slurmd; nodes with an address of their own share one number."""
    return spec.ports.node if spec.network else spec.ports.node + index
