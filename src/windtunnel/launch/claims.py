"""The trials that a driver claims before it submits them. One that cannot be written to is left; the others go on."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from windtunnel.launch.course import Course
from windtunnel.ledger.batch import WRITERS
from windtunnel.ledger.claim import Claimant, drop_claim, name_claimant, read_claimant, take_claim
from windtunnel.storage import describe_fault, find_storage_fault


@dataclass(frozen=True)
class Tried:
    """What came of one act on each of many courses, in their order."""

    done: list[Course] = field(default_factory=list)
    not_done: list[Course] = field(default_factory=list)
    left: list[tuple[Course, str]] = field(default_factory=list)
    """Those whose folder refused it, with the reason."""


def try_each(act: Callable[[Course], bool], courses: Sequence[Course]) -> Tried:
    """Act on each course's folder, on several at once.

    Raises the OSError of a file system that is full, read-only or failing, once all have been tried.
    """
    tried = Tried()
    with ThreadPoolExecutor(WRITERS) as pool:
        answers = list(pool.map(lambda course: _try_one(act, course), courses))
    for course, answer in zip(courses, answers, strict=True):
        if isinstance(answer, bool):
            (tried.done if answer else tried.not_done).append(course)
            continue
        if find_storage_fault(answer) is not None:
            raise answer
        where = describe_fault(answer, str(course.folder.path))
        tried.left.append(
            (course, f"its files cannot be written ({where}): mend that, then the same command goes on")
        )
    return tried


class Claims:
    """Remembers whose claims were met, and tells of those that last."""

    def __init__(self, *, say: Callable[[str], None]) -> None:
        self._say = say
        self._met: set[str] = set()
        self._told: set[Claimant] = set()

    @contextmanager
    def hold(self, courses: Sequence[Course]) -> Iterator[Tried]:
        """Claim the courses for the time of the block. Whatever comes, no claim outlasts it that can be removed."""
        taken: list[Course] = []

        def take(course: Course) -> bool:
            own = take_claim(course.folder.path, named=named)
            if own:
                taken.append(course)
            return own

        with _name_claimant(courses) as named:
            try:
                tried = try_each(take, courses)
                self._tell_lasting(tried.not_done)
                yield tried
            finally:
                for course in taken:
                    with suppress(OSError):
                        drop_claim(course.folder.path)

    def _tell_lasting(self, blocked: Sequence[Course]) -> None:
        # A claim is mostly gone at the next look; one that is met again is worth a line, once for each process.
        again = [course for course in blocked if course.trial.id in self._met]
        self._met = {course.trial.id for course in blocked}
        if not again:
            return
        holders = Counter(found for course in again if (found := read_claimant(course.folder.path)) is not None)
        for holder, count in holders.items():
            if holder not in self._told:
                self._told.add(holder)
                trials = f"{count} trials are" if count > 1 else "1 trial is"
                who = f"{holder.host} pid {holder.pid}"
                self._say(f"{trials} claimed by {who}, which submits or has left them: waiting until it is done")


def _name_claimant(courses: Sequence[Course]) -> AbstractContextManager[Path | None]:
    # Where the store keeps its trials, all of one file system; made by the first trial that is written.
    return name_claimant(courses[0].folder.path.parent) if courses else nullcontext()


def _try_one(act: Callable[[Course], bool], course: Course) -> bool | OSError:
    try:
        return act(course)
    except OSError as error:
        return error
