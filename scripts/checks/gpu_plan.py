"""What scripts/gpu_check.sh checks: the commands, in groups, and what they need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

ALWAYS = {"operators"}
"""A check of some runs these as well."""
FIRST = {"build", *ALWAYS}
"""Nothing else can be checked where one of these fails."""

# What the build, scripts/bench.py, train.py and CUDA_TESTS import; pytest comes last.
NEEDED = (
    "torch",
    "torchrl",
    "tensordict",
    "numpy",
    "gymnasium",
    "omegaconf",
    "yaml",
    "rich",
    "tqdm",
    "tensorboard",
    "matplotlib",
    "PIL",
    "imageio",
    "scipy",
    "packaging",
    "setuptools",
    "pytest",
)
DEFAULT_ARCHITECTURES = "8.0;9.0+PTX"
"""What a build takes (`setup.py`); nvcc compiles for them and the device's own side by side."""

# The files with tests that `pytest -k cuda` selects, in two parts that run side by side; the other
# files need more packages.
CUDA_TESTS = {
    "tests_simulator": ("tests/test_build.py", "tests/marinenav_env"),
    "tests_training": (
        "tests/train_RL_agents/training/test_learner.py",
        "tests/train_RL_agents/replay",
        "tests/train_RL_agents/run/test_resume.py",
        "tests/train_RL_agents/training/test_trainer.py",
    ),
}


class Check(NamedTuple):
    """A command that has to succeed.

    Attributes:
        name: of the check.
        least_s: time that is kept for it [s], about what it needs; it gets what others leave, too.
        command: words in braces are filled in.
    """

    name: str
    least_s: int
    command: str


OURS = "marinenav"
"""Stands in the names of our kernels, as the compiler mangles them, and in no other's."""
ONLY_OURS = f" --kernel-name kns={OURS}"
SANITIZERS = {
    "memcheck": ONLY_OURS,
    "initcheck": "",
    "racecheck": ONLY_OURS,
    "synccheck": ONLY_OURS,
}
"""Tools of compute-sanitizer and their options; initcheck has to see what torch's kernels write."""
LACKING = {
    "sanitizer": "compute-sanitizer is not installed",
    "two_gpus": "it needs two GPUs",
}
"""Words of commands that may have nothing to stand for, and what to say then."""
# torch's caching would hide accesses outside a tensor; its probing of the driver is no error.
SANITIZER = (
    "env PYTORCH_NO_CUDA_MEMORY_CACHING=1 {sanitizer} --report-api-errors no --error-exitcode 99"
    " --tool %s {python} scripts/checks/sanitizer_run.py"
)
BESIDE = "env OMP_NUM_THREADS=1"
"""Before what runs beside many others: torch would take all cores for each."""
TRAIN = (
    f"{BESIDE} {{python}} train_RL_agents/train.py --agent %s --device cuda --output {{scratch}}/%s"
    " worlds=512 total_steps=100000 updates.samples_per_insert=0.25 updates.batch_size=1024"
    " log.interval_steps=20000 evaluation.final_episodes=10"
)
REPLAY = " replay.capacity=200000"
OWN = {
    "PPO": " algorithm.turns=7 algorithm.settling_rounds=1",
    "DPI": f"{REPLAY} traffic.share=0.5 traffic.steer=orca",
}
"""Settings, in the place of a replay's, with which a short training does all of a long one."""
BENCH = "{python} scripts/bench.py --device cuda --modes"
STEP = (
    "--worlds 4096 16384 65536 --resets natural --kernels step --repeats 3 --seconds 0.1"
    " --max-mem-delta 1048576"
)
TRAINING = "--kernels AC-IQN Rainbow --repeats 2 --seconds 0.5"
TURNS = (
    "--task cartpole --worlds 8192 65536 --resets natural --turns 1 16 64 --kernels --repeats 3"
    " --seconds 0.1"
)


def agents() -> list[str]:
    """Return the names of the algorithms: those whose file is named after the agent it sets.

    The registry would need the operators, which may not be built yet.
    """
    return [
        name
        for path in sorted(CONFIGS.glob("*.yaml"))
        for name in re.findall(r"^agent: *([\w-]+)", path.read_text(), re.MULTILINE)
        if name.lower().replace("-", "_") == path.stem
    ]


def groups(names: Sequence[str]) -> list[list[Check]]:
    """Return the checks, in groups that run side by side; those that measure are alone.

    What tells most comes first: the time may end before the last.
    """
    built = f"'TORCH_CUDA_ARCH_LIST={{architecture}};{DEFAULT_ARCHITECTURES}'"
    build = f"env FORCE_CUDA=1 NO_CUDA= {built} NVCC_APPEND_FLAGS=--threads=0 {{python}} setup.py"
    loads = "'from marinenav_env.envs.checks import check_device; check_device(\"cuda\")'"
    pytest = f"{BESIDE} {{python}} -m pytest -q -p no:cacheprovider"
    architectures = "env MARINENAV_CHECKED_ARCHITECTURES=default"
    lives = f"{BESIDE} {{python}} scripts/checks/run_check.py"
    two = "{two_gpus} -m torch.distributed.run --standalone --nproc-per-node=2"
    replay = "{python} scripts/bench/replay.py --device cuda --json {folder}/gpu_replay.json"
    training = f"{BENCH} train {TRAINING} --json {{folder}}/gpu_training.json"
    return [
        [Check("build", 120, f"{build} --quiet build_ext --inplace")],
        [Check("operators", 10, f"{{python}} -c {loads}")],
        [
            *(
                Check(name, 115, f"{pytest} -k cuda {' '.join(paths)}")
                for name, paths in CUDA_TESTS.items()
            ),
            Check("architectures", 90, f"{architectures} {pytest} tests/test_cuda_objects.py"),
        ],
        [Check("bench", 30, f"{BENCH} step inference {STEP} --json {{folder}}/gpu_bench.json")],
        [Check("bench_training", 35, training)],
        [Check("bench_turns", 18, f"{BENCH} step {TURNS} --json {{folder}}/gpu_turns.json")],
        [Check("bench_replay", 12, replay)],
        [
            *(
                Check(f"train_{agent}", 75, TRAIN % (agent, agent) + OWN.get(agent, REPLAY))
                for agent in names
            ),
            Check("life", 85, f"{lives} life --device cuda"),
            Check("learns", 75, f"{lives} learns --device cuda"),
            Check("two_ranks", 75, TRAIN.replace("{python}", two) % ("DQN", "two_ranks") + REPLAY),
        ],
        [Check(tool, 45, SANITIZER % (tool + only)) for tool, only in SANITIZERS.items()],
    ]
