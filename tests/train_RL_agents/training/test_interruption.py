"""Signals: the first is remembered and told at once, the second does what it always did."""

import os
import signal

import pytest

from train_RL_agents.device.distributed import ProcessLostError
from train_RL_agents.training.interruption import SIGNALS, Interruption


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_told_at_once(capfd, number):
    before = signal.getsignal(number)
    with Interruption() as interruption:
        assert capfd.readouterr().err == ""
        os.kill(os.getpid(), number)
        assert interruption.received == number
        assert capfd.readouterr().err == "\nstopping after this iteration, saving ...\n"
        assert signal.getsignal(number) == before


def test_a_signal_is_remembered_without_stderr(monkeypatch):
    def closed(*_):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "write", closed)
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
    assert interruption.received == signal.SIGTERM


def test_a_signal_ends_no_process_that_is_about_to_say_what_it_lost():
    """The launcher sends one as soon as it sees that another process has died."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    interruption = Interruption()
    try:
        with pytest.raises(ProcessLostError), interruption:
            raise ProcessLostError("lost")
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.received == signal.SIGTERM
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    with pytest.raises(ValueError, match="other"), Interruption():
        raise ValueError("other")
    assert {number: signal.getsignal(number) for number in SIGNALS} == before
