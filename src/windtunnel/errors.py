"""Every error that Windtunnel raises on purpose.

    WindtunnelError
    ├── UserError
    │   ├── SettingsError
    │   ├── LayoutError
    │   ├── InputFileError
    │   ├── StudyError
    │   │   └── UnplannedError
    │   ├── ClusterError
    │   └── BusyError
    ├── CommandError
    ├── FullQueueError
    ├── ArtifactError
    ├── CheckpointError
    ├── RendezvousError
    ├── DivergedError
    ├── LostRowsError
    ├── StorageError
    ├── FencedError
    └── IncompleteError
        └── StoppedError

A `UserError` is something the user can mend: the command prints its message alone and exits 2.
Any other `WindtunnelError` is printed alone too and exits 1.
"""


class WindtunnelError(Exception):
    """Root of the tree; `exit_code` is what the `windtunnel` command exits with."""

    exit_code = 1


class UserError(WindtunnelError, ValueError):
    """The user's mistake: the message names the value, what was expected, and the fix."""

    exit_code = 2


class SettingsError(UserError):
    """A setting that is unknown, of the wrong kind, or out of range."""


class LayoutError(UserError):
    """A parallel layout that cannot run with this model, batch or allocation."""


class InputFileError(UserError):
    """A file of the user's that is missing, unreadable, empty, or not what its source says."""


class StudyError(UserError):
    """A study that is unknown, has no trials, or contradicts another."""


class UnplannedError(StudyError):
    """A study that its live driver has not planned yet."""


class ClusterError(UserError):
    """A partition, node or tool that the cluster does not have."""


class BusyError(UserError):
    """Another live process drives the same study or trial."""


class CommandError(WindtunnelError):
    """A command that failed: its message shows the command, its code and its indented stderr."""


class FullQueueError(WindtunnelError):
    """Slurm takes no more jobs of this user now; it will once others have ended."""


class ArtifactError(WindtunnelError):
    """An artifact that is damaged, of another schema, or of another version."""


class CheckpointError(WindtunnelError):
    """A checkpoint that does not verify, or none left that does."""


class RendezvousError(WindtunnelError):
    """Ranks of one trial that did not find each other in time."""


class DivergedError(WindtunnelError):
    """A loss or gradient that is no longer finite."""


class LostRowsError(WindtunnelError):
    """Rows in differ from rows kept plus rows quarantined."""


class StorageError(WindtunnelError):
    """A file system that takes no more: full, over a quota, or read-only."""


class FencedError(WindtunnelError):
    """A writer whose trial another attempt has taken over: it must publish nothing more."""


class IncompleteError(WindtunnelError):
    """A study that ended with trials still without a final verdict."""


class StoppedError(IncompleteError):
    """A study that was told to stop: whatever would have come after it must not."""
