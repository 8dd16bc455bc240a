"""What an environment takes, what there is, and that too much is refused before it is taken."""

import math
from pathlib import Path

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.fields import ConfigError
from marinenav_env.kernel import memory
from marinenav_env.kernel.memory import world_bytes

CPU = torch.device("cpu")


def test_free_memory_is_plausible(device: str) -> None:
    assert 2**28 < memory.free_bytes(torch.device(device)) < 2**50


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups of this process: gives their folder what they are said to be."""
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")

    def say(own: str) -> Path:
        (tmp_path / "own").write_text(own)
        return tmp_path

    return say


def test_free_memory_is_what_a_container_may_still_take(groups) -> None:
    group = groups("0::/\n")
    unlimited = memory.left_bytes(group, 0)
    (group / "memory.current").write_text("900000\n")
    (group / "memory.stat").write_text("anon 500000\ninactive_file 300000\nslab 1\n")
    (group / "memory.max").write_text("max\n")
    assert memory.left_bytes(group, 0) == unlimited == math.inf
    assert memory.free_bytes(CPU) > 2**20
    (group / "memory.max").write_text("1000000\n")
    assert memory.free_bytes(CPU) == 1_000_000 - 900_000 + 300_000


@pytest.mark.parametrize(
    ("own", "job", "names"),
    [
        ("0::/slurm/job_7/step_0\n", "slurm/job_7", memory.VERSIONS[0]),
        (
            "3:cpu:/a\n2:hugetlb,memory:/slurm/job_7/step_0\n",
            "memory/slurm/job_7",
            memory.VERSIONS[1],
        ),
    ],
)
def test_a_job_is_limited_by_the_groups_around_its_own(own, job, names, groups) -> None:
    """As SLURM makes them; the step's own sets no limit, and above the job there is none."""
    folder = groups(own) / job
    (folder / "step_0").mkdir(parents=True)
    limit, used, cached = names
    for place, bound in ((folder, 1_000_000), (folder / "step_0", 2**63 - 4096)):
        (place / limit).write_text(f"{bound}\n")
        (place / used).write_text("900000\n")
        (place / "memory.stat").write_text(f"slab 1\n{cached} 300000\n")
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
