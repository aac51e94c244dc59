"""How tasks ended, in what srun prints of them. Pure."""

import re
from dataclasses import dataclass

# srun's line of a task's end; those that it ended itself come after the one that failed.
_TASK_END = re.compile(r"error: ([^:\s]+): tasks? ((\d+)[\d,-]*): (?!Terminated)(.+)")
_EXIT_CODE = re.compile(r"Exited with exit code (\d+)")


@dataclass(frozen=True)
class TaskEnd:
    """An end of tasks that srun tells of and did not bring about itself."""

    host: str
    tasks: str
    """As srun writes them: `3`, `0-1`."""
    rank: int
    """The first of them."""
    how: str

    @property
    def is_kill(self) -> bool:
        return self.how.startswith("Killed")

    @property
    def code(self) -> int | None:
        """Its exit code; None where a signal ended it."""
        found = _EXIT_CODE.match(self.how)
        return int(found[1]) if found is not None else None


def find_task_ends(launcher_log: str) -> list[TaskEnd]:
    """Those in srun's own words, in its order."""
    found = _TASK_END.finditer(launcher_log)
    return [TaskEnd(match[1], match[2], int(match[3]), match[4]) for match in found]


def name_task(end: TaskEnd) -> str:
    """Which ranks, on which host, and how they ended."""
    who = f"{'rank' if end.tasks.isdecimal() else 'ranks'} {end.tasks} on {end.host}"
    if end.code is not None:
        return f"{who} ended with code {end.code}"
    return f"{who} ended by SIGKILL" if end.is_kill else f"{who} ended: {end.how}"
