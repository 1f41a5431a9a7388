"""A few workers that share the files of one job, and answers in the order of the questions.

Each worker is given a few files ahead, so that it never waits for the next. One that dies is replaced: the file it was
at is tried once more, and given up if it ends a second one, or if it was too much for the time of a file.
A job that is left early leaves the workers alone: what they still answer is dropped.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Final

from adapters.structural.worker_link import Question, WorkerGoneError, WorkerLink, WorkerUnavailableError
from adapters.wire import Message

_AHEAD_QUESTIONS: Final = 24
_AHEAD_BYTES: Final = 512 * 1024
_UNTOLD_QUESTIONS: Final = 400
_UNTOLD_BYTES: Final = 16 * 1024 * 1024
"""What may be out at once, those questions included whose answers wait for an earlier one's."""
_POLL_MS: Final = 100
_PATIENCE: Final = 4
"""Seconds of waiting for each second of processor time: a worker that is stopped, or starved, is given up then."""
_STILLBORN_MAX: Final = 3
"""Workers of one job that may end before their first word, until no more is tried."""


class TimeUpError(Exception):
    """The time of the whole job is over."""


class JobLeftError(Exception):
    """Nobody waits for the job any more."""


class Crew:
    """Up to `size` workers. One job at a time, from one thread at a time."""

    def __init__(
        self, *, size: int, file_seconds_max: float, seconds_max: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = size
        self._file_seconds_max = file_seconds_max
        self._seconds_max = seconds_max
        self._clock = clock
        self._links: list[WorkerLink] = []
        self._progressed_at: dict[WorkerLink, float] = {}
        self._job: Message = {}
        self._deadline = 0.0
        self._stillborn = 0
        self._is_left: Callable[[], bool] = lambda: False

    @property
    def pids(self) -> list[int]:
        """The processes of the living workers."""
        return [link.pid for link in self._links if link.is_alive]

    def begin(self, job: Message, *, is_left: Callable[[], bool] = lambda: False) -> None:
        """Set the job that all questions belong to from now on, and start its clock; `is_left` says: nobody waits."""
        self._job = job
        self._is_left = is_left
        self._stillborn = 0
        self._deadline = self._clock() + self._seconds_max
        for link in list(self._links):
            try:
                if not link.is_alive:
                    raise WorkerGoneError
                link.tell(job)
                link.is_proven = False
                self._progressed_at[link] = self._clock()
            except (WorkerGoneError, WorkerUnavailableError):
                self._drop(link)  # it was killed meanwhile: another one is started when it is needed

    def close(self) -> None:
        """End every worker."""
        while self._links:
            self._drop(self._links[0])

    def answers(self, questions: Iterable[tuple[Message, int]]) -> Generator[Message, None, None]:
        """Yield the answer to each question, a message and its size in bytes, in order, taken as there is room for it.

        An answer of kind `lost` says that the workers died of it, or took too long (`is_over_time`).

        Raises:
            TimeUpError: the time of the job is over; what has been yielded stands.
            JobLeftError: nobody waits for the job any more.
            WorkerUnavailableError: workers can't be started.
        """
        desk = _Desk(questions)
        try:
            while True:
                yield from desk.ready()
                self._hand_out(desk)
                if desk.is_done:
                    return
                self._exchange(desk)
        finally:
            for link in self._links:
                link.disown()

    def _hand_out(self, desk: "_Desk") -> None:
        """Give questions to workers that have room, the least busy first; start another where all are busy."""
        while desk.has_next():
            link = min(self._links, key=lambda each: len(each.asked), default=None)
            is_busy = link is None or len(link.asked) >= _AHEAD_QUESTIONS or link.asked_bytes >= _AHEAD_BYTES
            if is_busy and len(self._links) < self._size:
                link = self._start(desk)
                if link not in self._links:
                    continue  # it was killed as it began
            elif is_busy:
                return
            assert link is not None, "found or started"
            question = desk.take()
            if not link.asked:
                self._progressed_at[link] = self._clock()
            self._guarded(link, desk, partial(link.ask, question))

    def _exchange(self, desk: "_Desk") -> None:
        """Wait a moment for what workers say, and take it."""
        if self._is_left():
            raise JobLeftError
        if self._clock() >= self._deadline:
            raise TimeUpError
        poll = select.poll()
        by_descriptor = {link.fileno(): link for link in self._links}
        for descriptor, link in by_descriptor.items():
            poll.register(descriptor, select.POLLIN | (select.POLLOUT if link.has_unsent else 0))
        for descriptor, _ in poll.poll(_POLL_MS):
            link = by_descriptor[descriptor]
            self._guarded(link, desk, link.flush)
            if link in self._links:
                self._guarded(link, desk, partial(self._receive, link, desk))
        patience = self._file_seconds_max * _PATIENCE
        for link in list(self._links):
            if link.asked and self._clock() - self._progressed_at[link] > patience:
                link.kill()
                self._bury(link, desk, is_over_time=True)

    def _receive(self, link: WorkerLink, desk: "_Desk") -> None:
        for question, answer in link.receive():
            desk.put(question, answer)
        self._progressed_at[link] = self._clock()

    def _guarded(self, link: WorkerLink, desk: "_Desk", act: Callable[[], None]) -> None:
        try:
            act()
        except WorkerGoneError as gone:
            self._bury(link, desk, is_over_time=gone.is_over_time)
        except WorkerUnavailableError:  # killed as it began, or none can begin here
            self._stillborn += 1
            if self._stillborn > _STILLBORN_MAX:
                raise
            self._bury(link, desk, is_over_time=False)

    def _bury(self, link: WorkerLink, desk: "_Desk", *, is_over_time: bool) -> None:
        """Take back what a dead worker was asked; the first of it is what it died of, if of anything."""
        for place, question in enumerate(link.asked):
            if question is None:
                continue
            question.attempts += place == 0 and link.is_proven
            if question.attempts > 1 or (is_over_time and place == 0):
                desk.put(question, {"kind": "lost", "is_over_time": is_over_time})
            else:
                desk.put_back(question)
        self._drop(link)

    def _start(self, desk: "_Desk") -> WorkerLink:
        link = WorkerLink(file_seconds_max=self._file_seconds_max)
        self._links.append(link)
        self._progressed_at[link] = self._clock()
        self._guarded(link, desk, partial(link.tell, self._job))
        return link

    def _drop(self, link: WorkerLink) -> None:
        self._links.remove(link)
        self._progressed_at.pop(link, None)
        link.close()


class _Desk:
    """The questions of one call and their answers, put into the order in which they were taken."""

    def __init__(self, questions: Iterable[tuple[Message, int]]) -> None:
        self._source = iter(questions)
        self._next: Question | None = None
        self._again: deque[Question] = deque()
        self._answers: dict[int, Message] = {}
        self._sizes: deque[int] = deque()
        self._taken = 0
        self._told = 0
        self._is_exhausted = False

    @property
    def is_done(self) -> bool:
        """Every question has been answered, and every answer told."""
        return self._is_exhausted and self._next is None and self._told == self._taken

    def has_next(self) -> bool:
        """Return whether a question waits for a worker, and there is room for it."""
        if self._again:
            return True
        if len(self._sizes) >= _UNTOLD_QUESTIONS or sum(self._sizes) >= _UNTOLD_BYTES:
            return False
        if self._next is None and not self._is_exhausted:
            found = next(self._source, None)
            self._is_exhausted = found is None
            if found is not None:
                self._next = Question(self._taken, *found)
        return self._next is not None

    def take(self) -> Question:
        """Return the next question."""
        if self._again:
            return self._again.popleft()
        assert self._next is not None, "has_next said so"
        question, self._next = self._next, None
        self._taken += 1
        self._sizes.append(question.size_bytes)
        return question

    def put_back(self, question: Question) -> None:
        """Let `question` be asked once more, before any new one."""
        self._again.append(question)

    def put(self, question: Question, answer: Message) -> None:
        """Take an answer."""
        self._answers[question.number] = answer

    def ready(self) -> Iterator[Message]:
        """Yield the answers that all earlier ones have been told of."""
        while self._told in self._answers:
            answer = self._answers.pop(self._told)
            self._told += 1
            self._sizes.popleft()
            yield answer
