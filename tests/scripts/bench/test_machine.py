"""What the benchmark says of its machine: rates, laps and memory."""

import os
import time
from types import SimpleNamespace

import pytest
import torch

from scripts.bench import machine
from scripts.bench.machine import Laps, Memory, release_memory, timed
from train_RL_agents.device.memory import keep_freed_memory

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


DRIVER = """#!/usr/bin/env bash
[[ $* == *--id=GPU-0a1b* ]] || exit 6
for word; do
  case $word in
    *=clocks_throttle_reasons.active) [[ -n $OLD ]] && echo 0x4 && exit ;;
    *=clocks_event_reasons.active) [[ -z $OLD ]] && echo 0x4 && exit ;;
    *=clocks.sm) echo 1980 && exit ;;
  esac
done
echo "Field is not a valid field to query."
exit 2
"""


@pytest.mark.parametrize("old", ["", "yes"])
def test_a_field_that_a_driver_does_not_know_costs_no_other(old, tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(DRIVER)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("OLD", old)
    properties = SimpleNamespace(uuid="0a1b")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    known = {"clocks.sm": "1980", "clocks_event_reasons.active": "0x4"}
    unknown = dict.fromkeys(machine.GPU_STATE)
    assert machine.gpu_state(torch.device("cuda")) == unknown | known


def test_memory_sees_growth():
    assert keep_freed_memory()  # as in a worker where a training ran before
    torch.ones(2**26)
    release_memory(CPU)
    before = Memory.now(CPU)
    kept = torch.ones(2**25)
    assert Memory.now(CPU).growth_since(before) >= 0.5 * kept.nbytes
    assert before.growth_since(Memory.now(CPU)) < 0
