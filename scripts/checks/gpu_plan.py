"""What scripts/gpu_check.sh checks: the commands, in groups, and what they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALWAYS = {"build", "operators"}
"""Nothing else can be checked without these."""

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
# The files with tests that `pytest -k cuda` selects; the others need more packages.
CUDA_TESTS = (
    "tests/test_build.py",
    "tests/marinenav_env",
    "tests/train_RL_agents/training/test_learner.py",
    "tests/train_RL_agents/replay",
    "tests/train_RL_agents/run/test_resume.py",
    "tests/train_RL_agents/training/test_trainer.py",
)


class Check(NamedTuple):
    """A command that has to succeed within its time; words in braces are filled in."""

    name: str
    limit_s: int
    command: str


SANITIZERS = ("memcheck", "initcheck", "racecheck", "synccheck")
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
TRAIN = (
    "{python} train_RL_agents/train.py --agent %s --device cuda --output {scratch}/%s worlds=512"
    " total_steps=100000 updates.samples_per_insert=0.25 updates.batch_size=1024"
    " log.interval_steps=20000 evaluation.final_episodes=10"
)
OWN = {"PPO": " algorithm.turns=7 algorithm.settling_rounds=1"}
"""Settings with which a short training does all that a long one does."""
BENCH = "{python} scripts/bench.py --device cuda --modes"
STEP = (
    "--worlds 1 256 4096 16384 65536 --resets natural none --repeats 3 --seconds 0.1"
    " --max-mem-delta 1048576"
)


def groups(agents: Sequence[str]) -> list[list[Check]]:
    """Return the checks, in groups that run side by side; those that measure are alone."""
    build = "env FORCE_CUDA=1 NO_CUDA= TORCH_CUDA_ARCH_LIST={architecture} {python} setup.py"
    loads = "'from marinenav_env.envs.checks import check_device; check_device(\"cuda\")'"
    pytest = "{python} -m pytest -q -p no:cacheprovider"
    architectures = "env MARINENAV_CHECKED_ARCHITECTURES=default"
    lives = "{python} scripts/checks/run_check.py"
    two = "{two_gpus} -m torch.distributed.run --standalone --nproc-per-node=2"
    replay = "{python} scripts/bench/replay.py --device cuda --json {folder}/gpu_replay.json"
    training = f"{BENCH} train --repeats 2 --seconds 0.5 --json {{folder}}/gpu_training.json"
    turns = "--task cartpole --worlds 8192 65536 --resets natural --turns 1 16 64"
    turns += " --repeats 3 --seconds 0.1"
    return [
        [Check("build", 160, f"{build} --quiet build_ext --inplace")],
        [Check("operators", 25, f"{{python}} -c {loads}")],
        [
            Check("tests", 120, f"{pytest} -k cuda {' '.join(CUDA_TESTS)}"),
            Check("architectures", 120, f"{architectures} {pytest} tests/test_cuda_objects.py"),
            *(Check(tool, 120, SANITIZER % tool) for tool in SANITIZERS),
        ],
        [
            *(
                Check(f"train_{agent}", 80, TRAIN % (agent, agent) + OWN.get(agent, ""))
                for agent in agents
            ),
            Check("life", 80, f"{lives} life --device cuda"),
            Check("learns", 80, f"{lives} learns --device cuda"),
            Check("two_ranks", 80, TRAIN.replace("{python}", two) % ("DQN", "two_ranks")),
        ],
        [Check("bench", 55, f"{BENCH} step inference {STEP} --json {{folder}}/gpu_bench.json")],
        [Check("bench_turns", 25, f"{BENCH} step {turns} --json {{folder}}/gpu_turns.json")],
        [Check("bench_training", 45, training)],
        [Check("bench_replay", 20, replay)],
    ]
