"""Install a wheel into a fresh environment and use it there from another folder.

    python scripts/checks/install_check.py [--wheel FILE]

pip builds the wheel of the last commit, from this repository's git address, without isolation.
The environment borrows the other packages from the one that runs this check, so that torch is not
fetched again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AC_IQN_CVAR = 0.5
TRAINING = (
    *("--agent", "AC-IQN", "--device", "cpu", "--output", "run"),
    *("worlds=6", "total_steps=120", "threads=1", "replay.capacity=1000"),
    *("updates.batch_size=16", "updates.warmup_transitions=40", "log.interval_steps=40"),
    *("evaluation.final_episodes=1", "env.episode.max_steps=20"),
)
FACES = """
import marinenav_env, train_RL_agents
from marinenav_env import MarineNavEnv, make
from train_RL_agents import load_policy
assert isinstance(make("marine", worlds=2), MarineNavEnv)
assert load_policy("pretrained/ac_iqn")[0].name == "AC-IQN"
assert marinenav_env.__version__ == train_RL_agents.__version__
print(marinenav_env.__version__, marinenav_env.__file__, train_RL_agents.__file__, sep="\\n")
"""


class CheckError(RuntimeError):
    """What was installed does not do what it should; the message says where."""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command in a folder, out of reach of this source tree; return what it printed.

    Raises:
        CheckError: it failed.
    """
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the last commit in a folder, as pip does with git+ADDRESS; return it."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder / "wheels")
    run([*pip, "wheel", *options, f"git+file://{ROOT}"], folder)
    (wheel,) = (folder / "wheels").iterdir()
    return wheel


def check_wheel(wheel: Path) -> None:
    """Check that a wheel has the settings, the policies and a library for other machines.

    Raises:
        CheckError: something is missing, or the library is for this machine alone.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        built = json.loads(archive.read("marinenav_env/_build_info.json"))
    expected = {
        f"train_RL_agents/{path.relative_to(ROOT)}"
        for pattern in ("configs/*.yaml", "pretrained/*/*.pt", "pretrained/*/*.yaml")
        for path in ROOT.glob(pattern)
    }
    missing = {"marinenav_env/_ops.so", *expected} - names
    missing |= {"LICENSE", "NOTICE"} - {Path(name).name for name in names if ".dist-info/" in name}
    if missing:
        raise CheckError(f"{wheel.name} lacks {', '.join(sorted(missing))}")
    if "MARINENAV_ARCH" not in os.environ and "-march=native" in built["cxx_flags"]:
        raise CheckError(f"{wheel.name} is built for this machine alone: {built['cxx_flags']}")


def make_environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with the wheel; return its folder of programs."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    programs = folder / "bin"
    pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
    run([*pip, "install", "--no-deps", "--no-index", wheel], folder)
    # Behind the environment's own folder on the path, so that the wheel's packages come first. A
    # path, and not `site.addsitedir`: the .pth files there would lead to this source tree.
    own = run(
        [programs / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        folder,
    )
    borrowed = "\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    Path(own.strip(), "borrowed.pth").write_text(borrowed + "\n")
    return programs


def check_use(programs: Path, folder: Path) -> None:
    """Use the installation in a folder: the public faces and the three commands.

    Raises:
        CheckError: one of them fails, or trains with other settings than the agent's.
    """
    _, *places = run([programs / "python", "-c", FACES], folder).splitlines()
    for place in places:
        if not Path(place).is_relative_to(programs.parent):
            raise CheckError(f"{place} was imported, which is not what was installed")
    run([programs / "marinenav-train", *TRAINING], folder)
    config = json.loads((folder / "run" / "run.json").read_text())["config"]
    if config["algorithm"]["cvar"] != AC_IQN_CVAR:
        raise CheckError(
            f"AC-IQN was trained with cvar {config['algorithm']['cvar']}: {AC_IQN_CVAR} is in "
            "configs/ac_iqn.yaml"
        )
    shipped = ("--checkpoint", "pretrained/ac_iqn")
    run([programs / "marinenav-evaluate", *shipped, "--episodes", "1", "--device", "cpu"], folder)
    run([programs / "marinenav-export", *shipped, "--format", "torchscript"], folder)
    if not (folder / "policy.torchscript.pt").is_file():
        raise CheckError("marinenav-export wrote no policy.torchscript.pt in the present folder")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, install and use; return 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="take this wheel, build none")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir()
        try:
            wheel = options.wheel.resolve() if options.wheel else build_wheel(folder)
            check_wheel(wheel)
            check_use(make_environment(folder / "environment", wheel), elsewhere)
        except (CheckError, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(f"{wheel.name}: installs, trains AC-IQN with cvar {AC_IQN_CVAR}, evaluates and exports")
    return 0


if __name__ == "__main__":
    sys.exit(main())
