"""Recognising an interrupt that came out as something else."""

import pytest

from lakekit.session.interrupts import interrupted, persistently


def raised(action):
    with pytest.raises(BaseException) as caught:  # noqa: PT011 (which one is the question)
        action()
    return caught.value


def test_an_interrupt_is_one():
    assert interrupted(KeyboardInterrupt())
    assert not interrupted(ValueError())
    assert not interrupted(None)


def test_an_error_of_tidying_up_does_not_hide_it():
    def tidy_up_fails():
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError

    def wrapped():
        try:
            tidy_up_fails()
        except ConnectionError as error:
            raise RuntimeError from error

    assert interrupted(raised(tidy_up_fails))
    assert interrupted(raised(wrapped))


def test_trying_again(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    failures = [ConnectionError(), ConnectionError()]

    def flaky(value):
        if failures:
            raise failures.pop()
        return value

    assert persistently(flaky, 3) == 3

    def dead():
        raise ConnectionError

    with pytest.raises(ConnectionError):
        persistently(dead)
