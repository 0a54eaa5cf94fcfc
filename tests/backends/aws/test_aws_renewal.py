"""One thread renews credentials for all before they expire, and no caller waits needlessly."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from aws_secrecy import SECRET, TOKEN, assert_shows_no_secret
from hypothesis import given
from hypothesis import strategies as st
from rig.clock import Clock

from holdall.backends.aws.renewal import RenewedCredentials
from holdall.backends.aws.signer import Credentials
from holdall.errors import CredentialsError

HOUR = 3600.0
MINUTE = 60.0


class Issuer:
    """Returns numbered credentials; a test can make it fail or wait."""

    def __init__(self, clock: Clock, life: float | None = HOUR) -> None:
        self.clock = clock
        self.life = life
        self.issued = 0
        self.error: Exception | None = None
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Semaphore(0)
        self.at_once = 0
        self.most_at_once = 0

    def __call__(self) -> Credentials:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.entered.release()
        try:
            assert self.open.wait(30)
            if self.error is not None:
                raise self.error
            self.issued += 1
            expires = None if self.life is None else self.clock() + self.life
            return Credentials(f"AK{self.issued}", SECRET, TOKEN, expires)
        finally:
            self.at_once -= 1


def wait_for_renewal(source: RenewedCredentials) -> None:
    """Wait until a renewal in the background has ended."""
    for thread in threading.enumerate():
        if thread.name == "holdall-credentials":
            thread.join()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(clock: Clock) -> Issuer:
    return Issuer(clock)


@pytest.fixture
def source(issuer: Issuer, clock: Clock) -> RenewedCredentials:
    return RenewedCredentials(issuer, clock=clock)


def test_credentials_are_not_loaded_before_they_are_needed(
    source: RenewedCredentials, issuer: Issuer
) -> None:
    assert not source.peek()
    assert issuer.issued == 0
    assert source.current().access_key == "AK1"
    assert source.peek()


def test_fresh_credentials_are_reused(source: RenewedCredentials, issuer: Issuer, clock: Clock) -> None:
    first = source.current()
    clock.forward(HOUR - 15 * MINUTE - 1)
    assert source.current() is first
    assert issuer.issued == 1


def test_credentials_without_an_expiry_are_kept(clock: Clock) -> None:
    issuer = Issuer(clock, life=None)
    source = RenewedCredentials(issuer, clock=clock)
    first = source.current()
    clock.forward(1e9)
    assert source.peek()
    assert source.current() is first


def test_a_quarter_of_an_hour_before_the_expiry_one_thread_renews_while_callers_continue(
    source: RenewedCredentials, issuer: Issuer, clock: Clock
) -> None:
    first = source.current()
    clock.forward(HOUR - 15 * MINUTE)
    issuer.open.clear()
    for _ in range(20):
        assert source.peek()
        assert source.current() is first
    assert issuer.entered.acquire(timeout=30)
    assert issuer.entered.acquire(timeout=30)
    issuer.open.set()
    wait_for_renewal(source)
    assert source.current().access_key == "AK2"
    assert issuer.issued == 2


def test_ten_minutes_before_the_expiry_all_callers_wait_for_one_renewal(
    source: RenewedCredentials, issuer: Issuer, clock: Clock
) -> None:
    source.current()
    clock.forward(HOUR - 10 * MINUTE)
    assert not source.peek()
    issuer.open.clear()
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(source.current) for _ in range(8)]
        assert issuer.entered.acquire(timeout=30)
        assert issuer.entered.acquire(timeout=30)
        issuer.open.set()
        assert {each.result().access_key for each in waiting} == {"AK2"}
    assert issuer.issued == 2
    assert issuer.most_at_once == 1


def test_a_caller_shortly_before_the_expiry_waits_for_the_renewal_in_the_background(
    source: RenewedCredentials, issuer: Issuer, clock: Clock
) -> None:
    source.current()
    clock.forward(HOUR - 12 * MINUTE)
    issuer.open.clear()
    source.current()
    clock.forward(11 * MINUTE)
    with ThreadPoolExecutor(1) as threads:
        late = threads.submit(source.current)
        issuer.open.set()
        assert late.result().access_key == "AK2"
    assert issuer.issued == 2


@pytest.mark.parametrize("left", [14 * MINUTE, 9 * MINUTE, 1.0])
def test_after_a_failed_renewal_the_old_credentials_are_used_until_they_expire(
    source: RenewedCredentials, issuer: Issuer, clock: Clock, left: float
) -> None:
    first = source.current()
    clock.forward(HOUR - left)
    issuer.error = CredentialsError("the endpoint is away")
    assert source.current() is first
    wait_for_renewal(source)
    assert source.peek(), "a dead endpoint must not delay every request"
    assert source.current() is first
    clock.forward(left)
    assert not source.peek()
    with pytest.raises(CredentialsError, match="the endpoint is away"):
        source.current()
    issuer.error = None
    assert source.current().access_key == "AK2"


def test_a_failed_renewal_is_tried_again_after_a_pause(
    source: RenewedCredentials, issuer: Issuer, clock: Clock
) -> None:
    source.current()
    clock.forward(HOUR - 14 * MINUTE)
    issuer.error = CredentialsError("the endpoint is away")
    source.current()
    wait_for_renewal(source)
    issuer.error = None
    source.current()
    wait_for_renewal(source)
    assert issuer.issued == 1
    clock.forward(MINUTE)
    source.current()
    wait_for_renewal(source)
    assert source.current().access_key == "AK2"


def test_a_failed_renewal_is_logged_without_secrets(
    source: RenewedCredentials, issuer: Issuer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    source.current()
    clock.forward(HOUR - 9 * MINUTE)
    with caplog.at_level(logging.DEBUG):
        issuer.error = CredentialsError("the endpoint is away")
        source.current()
        clock.forward(MINUTE)
        issuer.error = RuntimeError(f"a library quoted {SECRET} and {TOKEN}")
        source.current()
    assert "the endpoint is away" in caplog.text
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text
    assert TOKEN not in caplog.text


def test_the_first_failure_reaches_all_waiting_callers(source: RenewedCredentials, issuer: Issuer) -> None:
    issuer.error = CredentialsError("nothing there")
    issuer.open.clear()
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(source.current) for _ in range(4)]
        assert issuer.entered.acquire(timeout=30)
        issuer.open.set()
        assert {str(each.exception()) for each in waiting} == {"nothing there"}


def test_another_caller_continues_after_an_interrupted_renewal(clock: Clock) -> None:
    issuer = Issuer(clock)
    interrupted = threading.Event()

    def load() -> Credentials:
        if interrupted.is_set():
            return issuer()
        issuer.entered.release()
        assert issuer.open.wait(30)
        interrupted.set()
        raise KeyboardInterrupt

    source = RenewedCredentials(load, clock=clock)
    issuer.open.clear()
    caught: list[BaseException] = []

    def first() -> None:
        try:
            source.current()
        except KeyboardInterrupt as error:
            caught.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert issuer.entered.acquire(timeout=30)
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(source.current)
        issuer.open.set()
        assert second.result().access_key == "AK1"
    thread.join()
    assert len(caught) == 1


def test_rejected_credentials_are_not_replaced_from_a_cache(clock: Clock) -> None:
    issuer = Issuer(clock)
    forgotten: list[int] = []
    source = RenewedCredentials(issuer, forget=lambda: forgotten.append(issuer.issued), clock=clock)
    first = source.current()
    source.renew(first)
    assert not source.peek()
    assert source.current().access_key == "AK2"
    assert forgotten == [1]


def test_a_late_rejection_does_not_drop_the_new_credentials(
    source: RenewedCredentials, issuer: Issuer
) -> None:
    first = source.current()
    source.renew(first)
    second = source.current()
    source.renew(first)
    assert source.current() is second
    assert issuer.issued == 2


def test_rejected_credentials_are_not_used_again_when_a_renewal_fails(
    source: RenewedCredentials, issuer: Issuer, clock: Clock
) -> None:
    first = source.current()
    clock.forward(HOUR - 14 * MINUTE)
    issuer.open.clear()
    source.current()
    assert issuer.entered.acquire(timeout=30)
    assert issuer.entered.acquire(timeout=30)
    source.renew(first)
    issuer.error = CredentialsError("the endpoint is away")
    issuer.open.set()
    wait_for_renewal(source)
    with pytest.raises(CredentialsError, match="away"):
        source.current()


def test_credentials_that_arrive_expired_are_an_error_without_secrets(clock: Clock) -> None:
    source = RenewedCredentials(Issuer(clock, life=-5 * MINUTE), clock=clock)
    with pytest.raises(CredentialsError, match="expired 300 seconds ago") as refusal:
        source.current()
    assert_shows_no_secret(refusal.value)


@given(st.floats(min_value=1, max_value=2 * HOUR))
def test_even_short_lived_credentials_are_used_before_they_are_renewed(life: float) -> None:
    clock = Clock()
    issuer = Issuer(clock, life)
    source = RenewedCredentials(issuer, clock=clock)
    first = source.current()
    for _ in range(5):
        assert source.current() is first
    assert issuer.issued == 1
    clock.forward(life * 0.999)
    assert source.current().access_key == "AK2"


@given(st.lists(st.floats(min_value=0, max_value=30 * MINUTE), max_size=30), st.booleans())
def test_no_caller_receives_expired_credentials(steps: list[float], short: bool) -> None:
    clock = Clock()
    source = RenewedCredentials(Issuer(clock, 16 * MINUTE if short else HOUR), clock=clock)
    for step in steps:
        clock.forward(step)
        found = source.current()
        assert found.expires is not None
        assert found.expires > clock()
        wait_for_renewal(source)


def test_if_no_thread_can_be_started_a_later_caller_renews(
    source: RenewedCredentials, issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.current()
    clock.forward(HOUR - 14 * MINUTE)

    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        assert source.current() is first
    clock.forward(5 * MINUTE)
    assert source.current().access_key == "AK2"


FORKED = """
    import os, signal, sys, threading
    from holdall.backends.aws.renewal import RenewedCredentials
    from holdall.backends.aws.signer import Credentials

    now, parent, never, entered = [0.0], os.getpid(), threading.Event(), threading.Event()
    forgotten = []

    def load():
        if now[0] and os.getpid() == parent:
            entered.set()
            never.wait()
        return Credentials(f"AK-{'parent' if os.getpid() == parent else 'child'}", "s", None, now[0] + 3600)

    source = RenewedCredentials(load, forget=lambda: forgotten.append(1), clock=lambda: now[0])
    source.current()
    now[0] = 3600.0 - BEFORE_THE_END
    source.current()
    if STUCK:
        assert entered.wait(30)
        source._lock.acquire()  # as if another thread held it during the fork
    if os.fork() == 0:
        signal.alarm(20)
        now[0] = 3600.0
        found = source.current().access_key
        os._exit(0 if (found, len(forgotten)) == ("AK-child", STUCK) else 1)
    sys.stdout.write(str(os.wait()[1]))
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize(("stuck", "before_the_end"), [(1, 700.0), (0, 1800.0)])
def test_a_forked_child_renews_for_itself_even_if_forked_during_a_renewal(
    stuck: int, before_the_end: float
) -> None:
    script = (
        textwrap.dedent(FORKED).replace("STUCK", str(stuck)).replace("BEFORE_THE_END", str(before_the_end))
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.stdout, run.stderr) == ("0", "")


def test_many_threads_load_once_per_expiry(clock: Clock) -> None:
    issuer = Issuer(clock)
    source = RenewedCredentials(issuer, clock=clock)

    def ask(rounds: Callable[[], Credentials]) -> set[str]:
        with ThreadPoolExecutor(6) as threads:
            return {each.result().access_key for each in [threads.submit(rounds) for _ in range(24)]}

    for expected in range(1, 6):
        assert ask(source.current) == {f"AK{expected}"}
        clock.forward(HOUR)
    assert issuer.issued == 5
    assert issuer.most_at_once == 1
