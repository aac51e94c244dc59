"""Where the files of a testbed lie in its folder."""

from pathlib import Path

SUBFOLDERS = ("db", "dev", "etc", "etc/slurm", "hosts", "log", "ns", "run", "spool", "state", "tmp")
# Slurm's place for its configuration, compiled into the packages; jobs look there when SLURM_CONF is lost.
SITE_CONFIG = Path("/etc/slurm")


def state_file(folder: Path) -> Path:
    """The record of what exists."""
    return folder / "testbed.json"


def half_written(folder: Path) -> list[Path]:
    """What a killed process left of a record that it was writing."""
    return list(folder.glob(f".{state_file(folder).name}.*.tmp"))


def config_folder(folder: Path) -> Path:
    """Bound over Slurm's own place on every host."""
    return folder / "etc" / "slurm"


def slurm_conf(folder: Path) -> Path:
    """The value of SLURM_CONF."""
    return config_folder(folder) / "slurm.conf"


def namespace_file(folder: Path, host: str) -> Path:
    """Where a host's network namespace is kept: a file that it is bound to."""
    return folder / "ns" / host


def enter_script(folder: Path, host: str) -> Path:
    """What makes a process see the host's files and name."""
    return folder / "hosts" / host


def log_file(folder: Path, name: str) -> Path:
    """What a daemon prints."""
    return folder / "log" / f"{name}.log"


def munge_socket(folder: Path) -> Path:
    """munged's own socket, apart from a site's."""
    return folder / "run" / "munge.socket"


def database_socket(folder: Path) -> Path:
    """MariaDB's own socket; it listens on no port."""
    return folder / "run" / "mariadb.socket"
