"""What the benchmark says of its machine: rates, laps and memory."""

import time

import torch

from scripts.bench import machine
from scripts.bench.machine import Laps, Memory, timed

CPU = torch.device("cpu")


def test_rates_of_matrix_products(monkeypatch):
    monkeypatch.setitem(machine.MATRIX, "cpu", 128)  # bfloat16 without units takes a minute
    for has_units, formats in ((False, ["float32"]), (True, ["float32", "bfloat16"])):
        monkeypatch.setattr(machine, "multiplies_bfloat16", lambda device, has=has_units: has)
        rates = machine.matmul_flops_per_s(CPU)
        assert list(rates) == formats
        assert all(rate > 1e8 for rate in rates.values())


def test_laps():
    laps = Laps(CPU)
    laps.mark()
    time.sleep(0.02)
    laps.mark()
    laps.mark()
    first, second = laps.seconds()
    assert 0.02 <= first < 1
    assert second < first
    assert timed(CPU, lambda: time.sleep(0.01)) >= 0.01


def test_memory_sees_growth():
    before = Memory.now(CPU)
    kept = torch.ones(2**25)
    assert Memory.now(CPU).growth_since(before) >= 0.5 * kept.nbytes
    assert before.growth_since(Memory.now(CPU)) < 0
