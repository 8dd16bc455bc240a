"""`docs/adding_a_vessel.md` and `docs/adding_a_disturbance.md`, followed in a copy."""

import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

from marinenav_env.build_record import BUILD_RECORD, digest_of
from marinenav_env.config import EnvConfig
from tests.conftest import ROOT, run_python
from tests.core_programs import NOT_INLINED
from tests.guides import copy_folders, follow


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A copy of the simulator with what the guides add; its operators are those of the project."""
    folder = tmp_path_factory.mktemp("project")
    copy_folders(folder, "marinenav_env")
    assert len(follow(folder, "adding_a_vessel.md")) >= 3
    # They are not rebuilt: the skiff sails in them, and the punt is compiled apart.
    record = folder / "marinenav_env" / BUILD_RECORD
    sources = {"sources": digest_of(folder / "marinenav_env" / "csrc")}
    record.write_text(json.dumps({**json.loads(record.read_text()), **sources}))
    return folder


def test_the_skiff_sails(project):
    program = (
        "import torch\n"
        "from marinenav_env import make\n"
        "env = make(worlds=2, config={'vessel': 'skiff'}, dtype=torch.float64)\n"
        "out = env.make_buffers(); env.reset_into(out)\n"
        "ahead = torch.ones(2, env.robots, 2, dtype=torch.float64)\n"
        "for _ in range(80): env.step_into(ahead, out, out)\n"
        "alive = env.alive\n"
        "print(out.obs.ego[alive][:, 2].max().item(), env.config.vessel.top_speed)\n"
    )
    reached, top = map(float, run_python(project, "-c", program).split())
    assert top == pytest.approx(
        (math.sqrt(20**2 + 4 * 10 * 160) - 20) / 20
    )  # 160 N = 20 u + 10 u^2
    assert reached == pytest.approx(top, abs=0.01)


@pytest.fixture(scope="module")
def motions(project, tmp_path_factory) -> dict[str, list]:
    """What the compiled guides print: parameters by type, and motions in order."""
    assert len(follow(project, "adding_a_disturbance.md")) >= 3
    program = tmp_path_factory.mktemp("program") / "guides"
    include = Path(torch.__file__).parent / "include"
    sources = project / "marinenav_env" / "csrc"
    flags = ["-std=c++20", "-O0", NOT_INLINED, "-w", "-ffp-contract=off", "-pthread"]
    flags += [f"-I{sources}", f"-I{ROOT / 'tests' / 'csrc'}", f"-I{include}", "-fvisibility=hidden"]
    library = Path(torch.__file__).parent / "lib"
    command = [os.environ.get("CXX", "g++"), *flags, str(ROOT / "tests" / "csrc" / "guides.cpp")]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lc10"]
    done = subprocess.run([*command, "-o", str(program), *link], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    config = EnvConfig().named_numbers()
    given = {**dict(config), "tow.force": 190.0, "tow.direction": math.pi / 6, "vessel.substeps": 1}
    text = " ".join(f"{name} {value!r}" for name, value in given.items())
    done = subprocess.run([str(program)], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    named = {row.split()[0]: row.split()[1:] for row in rows if re.match("[a-z]", row)}
    return {**named, "motions": [[*map(float, row.split())] for row in rows[1::2]]}


def test_the_tow_pulls_by_its_components(motions):
    """From rest, 190 N toward 30 degrees on 380 and 400 kg for 0.05 s."""
    surge, sway, yaw = motions["motions"][0]
    assert surge == pytest.approx(190 * math.cos(math.pi / 6) / 380 * 0.05)
    assert sway == pytest.approx(190 * math.sin(math.pi / 6) / 400 * 0.05)
    assert yaw == 0.0


def test_the_punt_has_no_sway_where_the_wam_v_has(motions):
    wam_v, punt = motions["motions"][1:]
    assert abs(wam_v[1]) > 0.05
    assert abs(punt[1]) < 1e-12
    assert punt[0] > 0.5
    assert punt[2] > 0.1


def test_names_of_the_tow_agree_on_both_sides(project, motions):
    program = (
        "from marinenav_env.config import EnvConfig\n"
        "print(*(name for name, _ in EnvConfig().named_numbers()))"
    )
    assert sorted(run_python(project, "-c", program).split()) == sorted(motions["marine"])
    wrong = "from marinenav_env.water import TowConfig; TowConfig(force=-1.0)"
    with pytest.raises(AssertionError, match=r"force is -1\.0: give 0\.0 or more \[N\]"):
        run_python(project, "-c", wrong)
