"""What the locks promise: one holder, freed by the last descriptor, first come first served."""

import fcntl
import os
import shutil
import signal
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from adapters.locks.flock import LockDirectory, lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.locks.lease import FlockWorkspaceLeases
from codespace_es.ports.locks import Held
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import InstanceId, WorkspaceKey
from codespace_es.vocabulary.limits import WAITERS_MAX

# Threads that other tests left idle don't matter: the children below take no lock that one of them could hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

INSTANCE = InstanceId("inst-1")
KEY = WorkspaceKey("wsp-1")
OTHER_KEY = WorkspaceKey("wsp-2")


async def never() -> CodespaceError | None:
    return None


async def unheard(_seconds: float) -> None:
    return None


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "locks")


@pytest.fixture
def leases(directory: str) -> FlockWorkspaceLeases:
    return FlockWorkspaceLeases(directory)


def acquire(leases: FlockWorkspaceLeases, key: WorkspaceKey = KEY) -> Awaitable[Held]:
    return leases.acquire(key, refuse=never, on_wait=unheard)


def in_child(act: Callable[[], bool]) -> bool:
    """Return what `act` says in a forked child, which ends right after."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if act() else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, 1}
    return code == 0


def test_the_lock_of_a_living_instance_cant_be_taken_by_anybody(directory: str) -> None:
    held = FlockInstanceLocks(directory).take_own(INSTANCE)
    assert FlockInstanceLocks(directory).try_take(INSTANCE) is None
    assert in_child(lambda: FlockInstanceLocks(directory).try_take(INSTANCE) is None)
    held.release()


def test_a_released_lock_can_be_taken_and_leaves_no_file(directory: str) -> None:
    locks = FlockInstanceLocks(directory)
    held = locks.take_own(INSTANCE)
    assert os.listdir(directory) == ["inst-1.lock"]
    held.release()
    held.release()
    assert os.listdir(directory) == []
    again = locks.try_take(INSTANCE)
    assert again is not None
    with pytest.raises(ValueError, match="released"):
        held.fileno()
    again.release()
    assert os.listdir(directory) == []


def test_a_lock_whose_file_was_removed_meanwhile_is_no_lock(directory: str) -> None:
    """Whoever opened the file before it went, and locks it after, holds nothing that others see."""
    locks = LockDirectory(directory)
    first = locks.try_lock("one")
    assert first is not None
    opened = os.open(os.path.join(directory, "one.lock"), os.O_RDWR)
    first.remove()
    fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    second = locks.try_lock("one")
    assert second is not None
    assert second.is_in_place()
    assert locks.try_lock("one") is None
    second.release()
    os.close(opened)


def test_of_many_that_take_and_remove_at_once_one_has_it(directory: str) -> None:
    """Twelve processes take, mark, unmark and remove; two marks at a time would be two holders."""
    mark = os.path.join(directory, "mark")

    def take_often() -> bool:
        locks = FlockInstanceLocks(directory)
        taken = 0
        while taken < 150:
            held = locks.try_take(INSTANCE)
            if held is None:
                continue
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # raises if somebody else is here
            os.unlink(mark)
            held.release()
            taken += 1
        return True

    children = []
    for _ in range(12):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if take_often() else 1
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 12
    assert os.listdir(directory) == []


def test_a_killed_holder_is_proved_dead_by_its_lock(directory: str) -> None:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        FlockInstanceLocks(directory).take_own(INSTANCE)
        os.write(tell, b"!")
        signal.pause()
    os.read(told, 1)
    locks = FlockInstanceLocks(directory)
    assert locks.try_take(INSTANCE) is None
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    held = locks.try_take(INSTANCE)
    assert held is not None
    held.release()


def test_a_duplicate_elsewhere_holds_on_after_a_release(directory: str) -> None:
    locks = FlockInstanceLocks(directory)
    held = locks.take_own(INSTANCE)
    duplicate = os.dup(held.fileno())
    held.release()
    assert os.listdir(directory) == ["inst-1.lock"]
    assert locks.try_take(INSTANCE) is None
    os.close(duplicate)
    again = locks.try_take(INSTANCE)
    assert again is not None
    again.release()


def test_a_program_that_is_run_inherits_no_lock(directory: str) -> None:
    held = FlockInstanceLocks(directory).take_own(INSTANCE)
    assert not os.get_inheritable(held.fileno())
    held.release()


def test_the_own_lock_of_an_id_that_lives_is_a_fault(directory: str) -> None:
    held = FlockInstanceLocks(directory).take_own(INSTANCE)
    with pytest.raises(CodespaceError) as caught:
        FlockInstanceLocks(directory).take_own(INSTANCE)
    assert caught.value.code == ErrorCode.INTERNAL
    held.release()


def test_tidying_removes_the_files_of_the_dead_and_nothing_else(directory: str) -> None:
    """Of a server that was killed, of one whose spawner still has a duplicate, of one that lives; and other files."""
    locks = FlockInstanceLocks(directory)
    locks.tidy()  # there is no directory yet
    identity = locks.directory_id()
    living, outlived = locks.take_own(InstanceId("inst-lives")), locks.take_own(InstanceId("inst-outlived"))
    duplicate = os.dup(outlived.fileno())
    outlived.release()
    assert in_child(lambda: locks.take_own(InstanceId("inst-killed")).is_in_place())
    lease = LockDirectory(directory).try_lock("wsp-1")
    assert lease is not None
    lease.release()
    assert "inst-killed.lock" in files_in(directory)
    locks.tidy()
    assert files_in(directory) == ["directory-id", "inst-lives.lock", "inst-outlived.lock", "wsp-1.lock"]
    assert living.is_in_place()
    os.close(duplicate)
    locks.tidy()
    assert files_in(directory) == ["directory-id", "inst-lives.lock", "wsp-1.lock"]
    assert locks.directory_id() == identity


def test_whoever_starts_while_others_tidy_has_its_lock(directory: str) -> None:
    is_over = threading.Event()

    def tidy() -> None:
        while not is_over.is_set():
            FlockInstanceLocks(directory).tidy()

    tidying = [threading.Thread(target=tidy) for _ in range(2)]
    for thread in tidying:
        thread.start()
    try:
        taken = [FlockInstanceLocks(directory).take_own(InstanceId(f"inst-{number}")) for number in range(200)]
        assert all(own.is_in_place() for own in taken)
    finally:
        is_over.set()
        for thread in tidying:
            thread.join()
    for own in taken:
        own.release()
    assert files_in(directory) == []


def files_in(directory: str) -> list[str]:
    return sorted(os.listdir(directory))


def test_files_and_directory_are_private_from_the_start(directory: str) -> None:
    os.umask(os.umask(0))
    held = FlockInstanceLocks(directory).take_own(INSTANCE)
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    assert stat.S_IMODE(os.fstat(held.fileno()).st_mode) == 0o600
    held.release()
    os.chmod(directory, 0o777)
    FlockInstanceLocks(directory).take_own(INSTANCE).release()
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_somebody_else_is_refused(directory: str) -> None:
    os.makedirs(directory)
    os.chown(directory, 1234, 1234)
    with pytest.raises(CodespaceError) as caught:
        FlockInstanceLocks(directory).take_own(INSTANCE)
    assert caught.value.code == ErrorCode.FILE_OPERATION_FAILED


def test_a_link_is_refused_as_directory_and_as_lock(directory: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    Path(directory).parent.mkdir()
    Path(directory).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CodespaceError):
        FlockInstanceLocks(directory).take_own(INSTANCE)
    Path(directory).unlink()
    Path(directory).mkdir()
    Path(directory, "inst-1.lock").symlink_to(tmp_path / "made-through-a-link")
    with pytest.raises(CodespaceError):
        FlockInstanceLocks(directory).take_own(INSTANCE)
    assert not (tmp_path / "made-through-a-link").exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0b", "x" * 300])
def test_a_name_that_isnt_one_of_ours_is_refused(directory: str, name: str) -> None:
    with pytest.raises(ValueError, match="name a lock"):
        LockDirectory(directory).try_lock(name)


def test_the_directory_of_a_user_depends_on_nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = lock_directory_of_user()
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR", "USER"):
        monkeypatch.setenv(name, "/somewhere/else")
    assert lock_directory_of_user() == usual
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR", "USER"):
        monkeypatch.delenv(name)
    assert lock_directory_of_user() == usual


@pytest.mark.anyio
async def test_a_free_lease_is_taken_at_once_and_other_workspaces_stay_free(leases: FlockWorkspaceLeases) -> None:
    with anyio.fail_after(5):
        held = await acquire(leases)
        other = await acquire(leases, OTHER_KEY)
    held.release()
    other.release()


@pytest.mark.anyio
async def test_a_server_whose_lock_was_deleted_takes_no_lease_any_more(directory: str) -> None:
    """Somebody else's server, which finds no lock of it, may act as if it were dead."""
    own = FlockInstanceLocks(directory).take_own(INSTANCE)
    leases = FlockWorkspaceLeases(directory, is_seen=own.is_in_place)
    (await acquire(leases)).release()
    shutil.rmtree(directory)
    for _ in range(2):
        with pytest.raises(CodespaceError, match="was deleted") as caught:
            await acquire(leases)
        assert caught.value.code == ErrorCode.FILE_OPERATION_FAILED
    (await acquire(FlockWorkspaceLeases(directory))).release()
    own.release()
    assert os.listdir(directory) == ["wsp-1.lock"]


@pytest.mark.anyio
async def test_waiters_get_the_lease_in_order_of_arrival(leases: FlockWorkspaceLeases) -> None:
    order: list[int] = []
    held = await acquire(leases)

    async def wait(number: int) -> None:
        lease = await acquire(leases)
        order.append(number)
        await anyio.lowlevel.checkpoint()
        lease.release()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(wait, number)
                await anyio.wait_all_tasks_blocked()
            assert order == []
            held.release()
    assert order == list(range(20))


@pytest.mark.anyio
async def test_the_65th_waiter_is_refused_and_the_others_are_served(leases: FlockWorkspaceLeases) -> None:
    held = await acquire(leases)
    served = 0

    async def wait() -> None:
        nonlocal served
        (await acquire(leases)).release()
        served += 1

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(WAITERS_MAX):
                tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(CodespaceError) as caught:
                await acquire(leases)
            assert caught.value.code == ErrorCode.RESOURCE_QUEUE_FULL
            held.release()
    assert served == WAITERS_MAX


@pytest.mark.anyio
async def test_a_cancelled_wait_leaves_the_queue_and_holds_nothing(leases: FlockWorkspaceLeases) -> None:
    held = await acquire(leases)
    order: list[str] = []

    async def wait(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            (await acquire(leases)).release()
            order.append(name)

    scopes = {name: anyio.CancelScope() for name in ("first", "second", "third")}
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for name, scope in scopes.items():
                tasks.start_soon(wait, name, scope)
                await anyio.wait_all_tasks_blocked()
            scopes["first"].cancel()
            scopes["second"].cancel()
            await anyio.wait_all_tasks_blocked()
            held.release()
        (await acquire(leases)).release()
    assert order == ["third"]


def refusal_at(call: int) -> Callable[[], Awaitable[CodespaceError | None]]:
    calls = 0

    async def refuse() -> CodespaceError | None:
        nonlocal calls
        calls += 1
        return CodespaceError(ErrorCode.WORKSPACE_BUSY, "A process lives here.") if calls == call else None

    return refuse


@pytest.mark.anyio
@pytest.mark.parametrize("call", [1, 2, 3])
async def test_a_refusal_ends_the_wait_before_or_during_it(leases: FlockWorkspaceLeases, call: int) -> None:
    held = await acquire(leases)
    with anyio.fail_after(5), pytest.raises(CodespaceError) as caught:
        await leases.acquire(KEY, refuse=refusal_at(call), on_wait=unheard)
    assert caught.value.code == ErrorCode.WORKSPACE_BUSY
    held.release()
    (await acquire(leases)).release()


@pytest.mark.anyio
async def test_who_waits_is_told_how_long_and_a_deaf_listener_holds_up_nobody(
    leases: FlockWorkspaceLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.locks.lease.PROGRESS_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr("adapters.locks.lease._LISTENER_SECONDS_MAX", 0.02)
    held = await acquire(leases)
    told: list[float] = []

    async def listen(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            held.release()
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        (await leases.acquire(KEY, refuse=never, on_wait=listen)).release()
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[0] > 0


@pytest.mark.anyio
async def test_a_lease_of_another_process_is_waited_for_and_falls_with_it(
    leases: FlockWorkspaceLeases, directory: str
) -> None:
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        LockDirectory(directory).try_lock(KEY)
        os.write(tell, b"!")
        signal.pause()
    os.read(told, 1)
    killed = False

    async def kill_when_waiting(_seconds: float = 0) -> CodespaceError | None:
        nonlocal killed
        if not killed and LockDirectory(directory).try_lock(KEY) is None:
            killed = True
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return None

    with anyio.fail_after(5):
        held = await leases.acquire(KEY, refuse=kill_when_waiting, on_wait=unheard)
    assert killed
    held.release()


@pytest.mark.anyio
async def test_a_lease_lives_on_in_a_duplicate_that_a_spawner_holds(leases: FlockWorkspaceLeases) -> None:
    held = await acquire(leases)
    duplicate = os.dup(held.fileno())
    held.release()
    calls = 0

    async def refuse() -> CodespaceError | None:
        nonlocal calls
        calls += 1
        if calls == 2:
            os.close(duplicate)
        return None

    with anyio.fail_after(5):
        (await leases.acquire(KEY, refuse=refuse, on_wait=unheard)).release()
    assert calls >= 2


@pytest.mark.anyio
async def test_a_release_in_another_thread_is_found_by_polling(leases: FlockWorkspaceLeases) -> None:
    held = await acquire(leases)

    async def release_elsewhere() -> CodespaceError | None:
        thread = threading.Thread(target=held.release)
        thread.start()
        thread.join()
        return None

    with anyio.fail_after(5):
        (await leases.acquire(KEY, refuse=release_elsewhere, on_wait=unheard)).release()


@pytest.mark.anyio
async def test_at_most_one_holds_a_lease_over_several_servers(directory: str) -> None:
    holders = 0
    turns = 0

    async def work(server: FlockWorkspaceLeases) -> None:
        nonlocal holders, turns
        for _ in range(10):
            lease = await acquire(server)
            holders += 1
            assert holders == 1
            await anyio.lowlevel.checkpoint()
            holders -= 1
            turns += 1
            lease.release()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for server in (FlockWorkspaceLeases(directory), FlockWorkspaceLeases(directory)):
                for _ in range(4):
                    tasks.start_soon(work, server)
    assert turns == 80
