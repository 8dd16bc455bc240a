"""What an environment takes, what there is, and that too much is refused before it is taken."""

import math

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from marinenav_env.kernel.memory import world_bytes

CPU = torch.device("cpu")


def test_free_memory_is_plausible(device: str) -> None:
    assert 2**28 < memory.free_bytes(torch.device(device)) < 2**50


def test_free_memory_is_what_a_container_may_still_take(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    unlimited = memory.container_bytes(tmp_path)
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 300000\nslab 1\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.container_bytes(tmp_path) == unlimited == math.inf
    (tmp_path / "memory.max").write_text("1000000\n")
    assert memory.free_bytes(CPU) == 1_000_000 - 900_000 + 300_000


@pytest.mark.parametrize("stack_k", [1, 3])
def test_the_bytes_of_a_world_are_those_it_takes(stack_k, monkeypatch) -> None:
    env = MarineNavEnv(worlds=64, stack_k=stack_k)
    buffers = env.make_buffers()
    frames = sum(tensor.nbytes for tensor in (*buffers.frames, *buffers.result_list))
    state = sum(tensor.nbytes for tensor in env.state.changing)
    sizes = {**env.slots._asdict(), "stages": len(env.stages)}
    each = world_bytes(env.kernel_spec, sizes, stack_k, torch.float32)
    assert 64 * each == state + 2 * frames
    monkeypatch.setattr(memory, "free_bytes", lambda device: 64 * each)
    MarineNavEnv(worlds=64, stack_k=stack_k)
    with pytest.raises(ConfigError, match=r"worlds is 65: .* on cpu; give at most 64"):
        MarineNavEnv(worlds=65, stack_k=stack_k)
