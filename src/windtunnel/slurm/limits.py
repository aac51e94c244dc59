"""What a cluster lets one user submit: array size, partitions, and with accounting the associations and QOS.

Parsers are pure; `read_limits` runs scontrol and sacctmgr. A site without accounting has no such limits.
"""

import getpass
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from windtunnel.errors import CommandError
from windtunnel.process import run_command
from windtunnel.slurm.scontrol import Partition, read_config, read_partitions
from windtunnel.units import parse_memory_mib, parse_time_min

_TIMEOUT_S = 60.0
_MAX_ARRAY_SIZE = 1001  # Slurm's default
_QOS_FIELDS = ("name", "flags", "maxwall", "maxsubmitjobsperuser", "maxsubmitjobsperaccount", "grpsubmitjobs")
_ASSOC_FIELDS = ("account", "partition", "qos", "defaultqos", "maxsubmitjobs", "maxwall")
_USER_FIELDS = ("user", "defaultaccount")


@dataclass(frozen=True)
class Qos:
    """A quality of service; None stands for no limit."""

    name: str
    max_time_min: int | None = None
    max_submit: int | None = None
    """Jobs of one user in the queue, running ones included; an array counts with all its tasks."""
    max_tres: Mapping[str, int] = field(default_factory=dict)
    """Most that one job may have, by Slurm's names: `node`, `cpu`, `mem` (MiB), `gres/gpu`."""


@dataclass(frozen=True)
class Association:
    """What the user may do under an account; limits of the accounts above are in it."""

    account: str
    partition: str
    """Empty for all of them."""
    qos: tuple[str, ...]
    default_qos: str
    max_submit: int | None = None
    max_time_min: int | None = None
    max_tres: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class QueueUse:
    """A job of this user in the queue; a task of an array is one."""

    account: str
    qos: str
    partition: str


@dataclass(frozen=True)
class Bound:
    """Most jobs in the queue at a time, of those with these names; an empty one fits all."""

    limit: int
    told: str
    """For people: `MaxSubmitJobs of account 'desk'`."""
    account: str = ""
    qos: str = ""
    partition: str = ""

    def counts(self, use: QueueUse) -> bool:
        """Whether the job uses it up."""
        return all(
            wanted in ("", found)
            for wanted, found in (
                (self.account, use.account),
                (self.qos, use.qos),
                (self.partition, use.partition),
            )
        )


@dataclass(frozen=True)
class Limits:
    """All limits, read once a sweep. Without accounting there are no associations and no QOS."""

    max_array_tasks: int = _MAX_ARRAY_SIZE
    """Tasks of one array, whose indices begin at 0."""
    max_job_count: int | None = None
    """Jobs that the controller holds, of all users together."""
    partitions: tuple[Partition, ...] = ()
    enforced: frozenset[str] = frozenset()
    """Of associations, limits, qos and safe: what accounting is held to."""
    user: str = ""
    default_account: str = ""
    associations: tuple[Association, ...] = ()
    qos: tuple[Qos, ...] = ()

    def find_association(self, account: str, partition: str) -> Association | None:
        """The user's association with the account (the default one without a name), rather that of the partition."""
        name = account or self.default_account
        fits = [item for item in self.associations if item.account == name and item.partition in ("", partition)]
        return max(fits, key=lambda item: item.partition, default=None)

    def find_partition(self, name: str) -> Partition | None:
        """The partition of that name."""
        return next((partition for partition in self.partitions if partition.name == name), None)

    def find_qos(self, qos: str, account: str, partition: str) -> tuple[Qos, ...]:
        """Every QOS whose limits hold: the one asked for or the account's default, and the partition's own."""
        names = (self.resolve(account, qos, partition).qos, self._partition_qos(partition))
        return tuple(item for item in self.qos if item.name in names)

    def resolve(self, account: str, qos: str, partition: str) -> QueueUse:
        """The names that a job gets which leaves some of them to Slurm."""
        association = self.find_association(account, partition)
        default = association.default_qos if association is not None else ""
        return QueueUse(account or self.default_account, qos or default or "normal", partition)

    def find_bounds(self, use: QueueUse) -> tuple[Bound, ...]:
        """What bounds the number of such jobs in the queue."""
        bounds = []
        if self.max_job_count is not None:
            bounds.append(Bound(self.max_job_count, "MaxJobCount of the cluster"))
        if "limits" not in self.enforced and "safe" not in self.enforced:
            return tuple(bounds)
        association = self.find_association(use.account, use.partition)
        if association is not None and association.max_submit is not None:
            told = f"MaxSubmitJobs of account {use.account!r}"
            bounds.append(Bound(association.max_submit, told, use.account, partition=association.partition))
        for item in self.qos:
            if item.max_submit is not None and item.name == use.qos:
                bounds.append(Bound(item.max_submit, f"submit limit of QOS {item.name!r}", qos=item.name))
            elif item.max_submit is not None and item.name == self._partition_qos(use.partition):
                told = f"submit limit of partition {use.partition!r}"
                bounds.append(Bound(item.max_submit, told, partition=use.partition))
        return tuple(bounds)

    def find_max_time_min(self, use: QueueUse) -> int | None:
        """Longest time limit that such a job may ask for; None for any."""
        place, association = self.find_partition(use.partition), self.find_association(use.account, use.partition)
        limits = [place.max_time_min if place is not None else None]
        limits += [association.max_time_min if association is not None else None]
        limits += [item.max_time_min for item in self.find_qos(use.qos, use.account, use.partition)]
        return min((limit for limit in limits if limit is not None), default=None)

    def _partition_qos(self, name: str) -> str:
        place = self.find_partition(name)
        return place.qos if place is not None else ""


def parse_limits(config: Mapping[str, str], partitions: Sequence[Partition]) -> Limits:
    """The limits of `scontrol show config` and of its partitions alone."""
    size = _count(config.get("MaxArraySize", "")) or _MAX_ARRAY_SIZE
    options = dict(option.partition("=")[::2] for option in config.get("SchedulerParameters", "").split(","))
    tasks = _count(options.get("max_array_tasks", "")) or size
    words = config.get("AccountingStorageEnforce", "none").replace(" ", "").split(",")
    return Limits(
        # The highest index is one less than MaxArraySize, and ours begin at 0.
        max_array_tasks=min(size, tasks),
        max_job_count=_count(config.get("MaxJobCount", "")),
        partitions=tuple(partitions),
        enforced=frozenset(words) - {"none", ""},
    )


def parse_qos(text: str) -> tuple[Qos, ...]:
    """QOS of `sacctmgr -nP show qos` in our format."""
    return tuple(
        Qos(name, _minutes(wall), _least(per_user, per_account, group), parse_tres(tres))
        for name, _flags, wall, per_user, per_account, group, tres in _rows(text, len(_QOS_FIELDS) + 1)
    )


def parse_associations(text: str) -> tuple[Association, ...]:
    """The user's associations of `sacctmgr -nP show assoc` in our format."""
    return tuple(
        Association(
            account,
            partition,
            tuple(filter(None, qos.split(","))),
            default,
            _count(submit),
            _minutes(wall),
            parse_tres(tres),
        )
        for account, partition, qos, default, submit, wall, tres in _rows(text, len(_ASSOC_FIELDS) + 1)
    )


def parse_default_account(text: str) -> str:
    """The account of `sacctmgr -nP show user` in our format; empty for an unknown user."""
    return next((account for _, account in _rows(text, len(_USER_FIELDS))), "")


def parse_tres(text: str) -> dict[str, int]:
    """Counts of `cpu=8,node=2,mem=4G,gres/gpu=1`; memory in MiB."""
    pairs = (part.partition("=")[::2] for part in text.split(",") if "=" in part)
    return {name: parse_memory_mib(count) if name == "mem" else int(count) for name, count in pairs}


def read_limits() -> Limits:
    """The limits of this user. Raises CommandError when the controller does not answer; accounting may be silent."""
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(read_partitions)
        config = read_config()
        limits = parse_limits(config, asked.result())
        if not config.get("AccountingStorageType", "").endswith("slurmdbd") or not limits.enforced:
            return limits
        user = getpass.getuser()
        mine = ("where", f"user={user}")
        users = pool.submit(_ask, "user", _USER_FIELDS, *mine)
        assocs = pool.submit(_ask, "assoc", (*_ASSOC_FIELDS, "maxtresperjob"), *mine)
        rules = pool.submit(_ask, "qos", (*_QOS_FIELDS, "maxtresperjob"))
        try:
            account = parse_default_account(users.result())
            associations, qos = parse_associations(assocs.result()), parse_qos(rules.result())
        except CommandError:
            return limits
    return replace(limits, user=user, default_account=account, associations=associations, qos=qos)


def parse_queue_use(text: str) -> list[QueueUse]:
    """Jobs of `squeue --array --noheader` in our format."""
    return [QueueUse(*row) for row in _rows(text, 3)]


def read_queue_use() -> list[QueueUse]:
    """This user's jobs in the queue. Raises CommandError when the controller does not answer."""
    argv = ["squeue", "--me", "--array", "--noheader", "--format=%a|%q|%P"]
    return parse_queue_use(run_command(argv, timeout_s=_TIMEOUT_S).stdout)


def _ask(what: str, fields: Sequence[str], *selection: str) -> str:
    argv = ["sacctmgr", "--noheader", "--parsable2", "--readonly", "show", what, *selection]
    return run_command([*argv, f"format={','.join(fields)}"], timeout_s=_TIMEOUT_S).stdout


def _rows(text: str, width: int) -> list[list[str]]:
    rows = [line.strip().split("|") for line in text.splitlines()]
    return [row for row in rows if len(row) == width]


def _count(text: str) -> int | None:
    number = text.split()[0] if text.strip() else ""
    return int(number) if number.isdecimal() else None


def _minutes(text: str) -> int | None:
    return parse_time_min(text) if text.strip() else None


def _least(*texts: str) -> int | None:
    return min((count for text in texts if (count := _count(text)) is not None), default=None)
