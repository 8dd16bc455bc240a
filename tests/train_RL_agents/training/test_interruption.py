"""Signals: the first is remembered and told at once, the second does what it always did."""

import os
import signal
from contextlib import suppress

import pytest

from train_RL_agents.device.distributed import ProcessLostError
from train_RL_agents.training.interruption import SIGNALS, Interruption


@pytest.mark.usefixtures("heard_hang_ups")
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_told_at_once(capfd, number):
    before, of_ctrl_c = signal.getsignal(number), signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        assert capfd.readouterr().err == ""
        os.kill(os.getpid(), number)
        assert interruption.received == number
        assert capfd.readouterr().err == "\nstopping after this iteration, saving ...\n"
        assert signal.getsignal(signal.SIGINT) == of_ctrl_c
    assert signal.getsignal(number) == before


@pytest.fixture
def heard_ctrl_c():
    """What began in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_hang_ups", "heard_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_scheduler_that_signals_twice_does_not_end_what_is_saving(capfd, number):
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), number)
        assert interruption.received == signal.SIGTERM
        assert capfd.readouterr().err.count("saving") == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_is_remembered_without_stderr(monkeypatch):
    def closed(*_):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "write", closed)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.received == signal.SIGTERM


def test_who_lost_the_others_is_not_ended_before_it_says_so():
    before = signal.getsignal(signal.SIGTERM)
    try:
        with suppress(ProcessLostError), Interruption():
            raise ProcessLostError("process 0 of 2 lost contact")
        os.kill(os.getpid(), signal.SIGTERM)  # the launcher's
    finally:
        signal.signal(signal.SIGTERM, before)
