"""The queue of writing processes: one turn at a time, and none of them twice in a row while another waits."""

import threading
import time
from pathlib import Path

import pytest

from adapters.log.sqlite.turnstile import Turnstile, TurnTimeoutError


def soon() -> float:
    return time.monotonic() + 5


def is_place_free(turnstile: Turnstile) -> bool:
    """Tell whether nobody stands in line behind the one whose turn it is."""
    try:
        turnstile._next.take(time.monotonic())
    except TurnTimeoutError:
        return False
    turnstile._next.release()
    return True


def test_only_one_has_the_turn(tmp_path: Path) -> None:
    one, two = Turnstile(tmp_path / "log"), Turnstile(tmp_path / "log")
    one.take(soon())
    one.take(soon())
    with pytest.raises(TurnTimeoutError):
        two.take(time.monotonic())
    one.leave()
    two.take(soon())
    two.leave()
    one.close()
    two.close()


def test_who_waits_is_let_in_before_the_one_that_has_just_left(tmp_path: Path) -> None:
    one, two = Turnstile(tmp_path / "log"), Turnstile(tmp_path / "log")
    order: list[str] = []
    one.take(soon())

    def wait_for_turn() -> None:
        two.take(soon())
        order.append("two")
        two.leave()

    waiting = threading.Thread(target=wait_for_turn)
    waiting.start()
    third = Turnstile(tmp_path / "log")
    while is_place_free(third):
        pass
    third.close()
    one.leave()
    one.take(soon())
    order.append("one")
    waiting.join(5)
    assert order == ["two", "one"]
    one.close()
    two.close()


def test_a_writer_that_met_another_queues_for_a_while_and_then_no_more(tmp_path: Path) -> None:
    one = Turnstile(tmp_path / "log")
    assert not one.is_crowded
    takes = 0
    one.take(soon())
    one.leave()
    while one.is_crowded:
        one.take(soon())
        one.leave()
        takes += 1
    assert 10 < takes < 1000
    one.close()
