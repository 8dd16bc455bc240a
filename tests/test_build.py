"""The build: what setup.py decides about CUDA, what it built, and that the CUDA code compiles."""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from setuptools import Distribution
from torch.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[1]
CSRC = ROOT / "marinenav_env" / "csrc"


def load_setup():
    """Imports setup.py, which builds only when it is run."""
    spec = importlib.util.spec_from_file_location("marinenav_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load_setup()
TOOLKIT_12 = setup.Toolkit(Path("toolkit"), (12, 8))
TOOLKIT_13 = setup.Toolkit(Path("toolkit"), (13, 0))


@pytest.mark.parametrize(
    ("torch_cuda", "toolkit", "environ", "build", "reason"),
    [
        ("13.0", TOOLKIT_13, {}, True, "toolkit 13.0 matches torch's CUDA 13.0"),
        ("12.6", TOOLKIT_12, {}, True, "toolkit 12.8 matches torch's CUDA 12.6"),
        ("13.0", TOOLKIT_13, {"FORCE_CUDA": "1"}, True, "matches"),
        ("13.0", TOOLKIT_13, {"NO_CUDA": "0", "FORCE_CUDA": ""}, True, "matches"),
        ("13.0", TOOLKIT_13, {"NO_CUDA": "1"}, False, "NO_CUDA=1"),
        ("13.0", TOOLKIT_12, {}, False, "toolkit 12.8 does not match torch's CUDA 13.0"),
        ("13.0", None, {}, False, "no toolkit (nvcc) found for torch's CUDA 13.0"),
        (None, TOOLKIT_13, {}, False, "torch 2.13.0 is built without CUDA"),
        (None, None, {}, False, "torch 2.13.0 is built without CUDA"),
    ],
)
def test_cuda_is_decided_by_toolkit_and_torch(torch_cuda, toolkit, environ, build, reason):
    decision = setup.decide_cuda("2.13.0", torch_cuda, toolkit, environ)
    assert decision.build is build
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("torch_cuda", "toolkit", "environ", "message"),
    [
        (None, TOOLKIT_13, {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but torch 2.13.0 is built without"),
        ("13.0", None, {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but no toolkit"),
        ("13.0", TOOLKIT_12, {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but toolkit 12.8 does not match"),
        ("13.0", TOOLKIT_13, {"FORCE_CUDA": "1", "NO_CUDA": "1"}, "contradict"),
        ("13.0", TOOLKIT_13, {"NO_CUDA": "yes"}, "NO_CUDA=yes is not understood"),
    ],
)
def test_what_cannot_be_built_is_an_error(torch_cuda, toolkit, environ, message):
    with pytest.raises(SystemExit, match=re.escape(message)):
        setup.decide_cuda("2.13.0", torch_cuda, toolkit, environ)


def make_toolkit(root: Path, release: str, headers: bool = True) -> Path:
    """Lays out a folder that looks like a CUDA toolkit."""
    (root / "bin").mkdir(parents=True)
    nvcc = root / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, {release}, V0'\n")
    nvcc.chmod(0o755)
    if headers:
        (root / "include").mkdir()
        (root / "include" / "cuda_runtime.h").touch()
    return root


def test_toolkit_is_found_where_the_environment_says(tmp_path):
    named = make_toolkit(tmp_path / "named", "release 12.8")
    on_path = make_toolkit(tmp_path / "on_path", "release 13.1")
    path = str(on_path / "bin")
    assert setup.find_toolkit({"PATH": path}) == setup.Toolkit(on_path, (13, 1))
    assert setup.find_toolkit({"PATH": path, "CUDA_HOME": str(named)}) == setup.Toolkit(
        named, (12, 8)
    )


def test_wrapper_script_is_not_taken_for_a_toolkit(tmp_path):
    wrapper = make_toolkit(tmp_path / "wrapper", "release 12.8", headers=False)
    real = make_toolkit(tmp_path / "real", "release 13.0")
    environ = {"CUDA_HOME": str(wrapper), "CUDA_PATH": str(real), "PATH": ""}
    assert setup.find_toolkit(environ) == setup.Toolkit(real, (13, 0))


def test_broken_toolkit_is_an_error(tmp_path):
    broken = make_toolkit(tmp_path, "no version")
    with pytest.raises(SystemExit, match="names no release"):
        setup.find_toolkit({"CUDA_HOME": str(broken)})


@pytest.mark.parametrize(
    ("torch_cuda", "no_cuda", "reason"),
    [("13.0", "1", "NO_CUDA=1"), (None, "", "is built without CUDA")],
)
def test_broken_toolkit_stops_no_build_without_cuda(
    torch_cuda, no_cuda, reason, tmp_path, monkeypatch
):
    monkeypatch.setenv("CUDA_HOME", str(make_toolkit(tmp_path, "no version")))
    monkeypatch.setenv("NO_CUDA", no_cuda)
    monkeypatch.delenv("FORCE_CUDA", raising=False)
    monkeypatch.setattr(torch.version, "cuda", torch_cuda)
    monkeypatch.setattr(setup, "setup", lambda **_: None)
    decided = []
    monkeypatch.setattr(setup, "make_build_command", lambda *arguments: decided.append(arguments))
    setup.main()
    ((decision, _),) = decided
    assert not decision.build
    assert reason in decision.reason


def test_every_file_of_the_extension_makes_it_stale():
    extension = setup.make_extension(setup.CudaDecision(False, ""))
    known = {*extension.sources, *extension.depends}
    assert {str(path.relative_to(ROOT)) for path in CSRC.rglob("*") if path.is_file()} <= known


def test_record_of_the_build_is_whole_or_absent(tmp_path, monkeypatch):
    """A kill while it is written leaves the one before."""
    path = tmp_path / "record.json"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("killed here"))
    with pytest.raises(pytest.fail.Exception):
        setup.write_record(path, {"cuda": False})
    assert path.read_text() == "old"


def test_cpu_architecture_can_be_chosen():
    assert "-march=native" in setup.cxx_flags({})
    assert "-march=x86-64-v3" in setup.cxx_flags({"MARINENAV_ARCH": "x86-64-v3"})


@pytest.mark.parametrize(("machine", "march"), [("x86_64", ["-march=x86-64-v3"]), ("aarch64", [])])
def test_a_wheel_is_for_other_machines_too(machine, march, monkeypatch):
    monkeypatch.setattr(setup.platform, "machine", lambda: machine)
    flags = setup.cxx_flags({}, portable=True)
    assert [flag for flag in flags if flag.startswith("-march")] == march
    assert "-march=native" in setup.cxx_flags({"MARINENAV_ARCH": "native"}, portable=True)


@pytest.mark.parametrize("inplace", [True, False])
def test_flags_and_record_are_those_of_the_library(inplace, tmp_path, monkeypatch):
    monkeypatch.delenv("MARINENAV_ARCH", raising=False)
    monkeypatch.setattr(cpp_extension.BuildExtension, "run", lambda _: None)
    decision = setup.CudaDecision(False, "")
    extension = setup.make_extension(decision)
    command = setup.make_build_command(decision, {"cuda": False})(
        Distribution({"ext_modules": [extension]})
    )
    command.inplace, command.extensions = inplace, [extension]
    monkeypatch.setattr(command, "get_ext_fullpath", lambda _: str(tmp_path / "_ops.so"))
    command.run()
    flags = setup.cxx_flags({}, portable=not inplace)
    assert extension.extra_compile_args["cxx"] == flags
    record = json.loads((tmp_path / setup.BUILD_INFO).read_text())
    assert record == {"cuda": False, "cxx_flags": flags}
    assert command.force


@pytest.fixture
def build_py(tmp_path, monkeypatch):
    """The command that puts the packages into a wheel, with two files left by an earlier build."""
    monkeypatch.chdir(ROOT)
    command = setup.BuildPackages(Distribution({"packages": []}))
    command.ensure_finalized()
    command.build_lib = str(tmp_path)
    for name in ("configs/gone.yaml", "pretrained/ac_iqn/policy.onnx"):
        (tmp_path / setup.DATA_PACKAGE / name).parent.mkdir(parents=True)
        (tmp_path / setup.DATA_PACKAGE / name).touch()
    return command


def test_a_wheel_has_the_settings_and_the_policies(build_py, tmp_path):
    build_py.run()
    package = tmp_path / setup.DATA_PACKAGE
    packed = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    tracked = {
        str(path.relative_to(ROOT))
        for folder in ("configs", "pretrained")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and not path.name.startswith("policy.")
    }
    assert "configs/ac_iqn.yaml" in packed
    assert packed == tracked


def test_an_editable_installation_uses_those_beside_the_package(build_py, tmp_path):
    build_py.editable_mode = True
    build_py.run()
    assert not list(tmp_path.rglob("ac_iqn.yaml"))


def test_a_build_without_them_is_an_error(build_py, tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"no file configs/\*\.yaml"):
        build_py.run()


def test_without_torch_two_lines_say_how(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match=r"pip install torch==[\d.]+ .*\n.*--no-build-isolation"):
        setup.main()
    pinned = re.search(r"^torch==.*$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[0]
    assert pinned in setup.INSTRUCTION


def test_commands_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(project["scripts"]) == [f"marinenav-{x}" for x in ("evaluate", "export", "train")]
    for place in project["scripts"].values():
        module, _, function = place.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_cuda_half_is_there_if_it_should_be():
    """Compares what this environment calls for with what was built and what torch can dispatch."""
    toolkit = setup.needed_toolkit(torch.version.cuda, os.environ)
    decision = setup.decide_cuda(torch.__version__, torch.version.cuda, toolkit, os.environ)
    built = json.loads((CSRC.parent / setup.BUILD_INFO).read_text())
    assert built["torch"] == torch.__version__, "the operators are built for another torch: rebuild"
    assert built["cuda"] == decision.build, f"should be: {decision}; was: {built['reason']}"

    torch.ops.load_library(CSRC.parent / "_ops.so")
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("marinenav::")]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    on_cpu = {name for name in names if has_kernel(name, "CPU")}
    assert on_cpu
    assert {name for name in names if has_kernel(name, "CUDA")} == (
        on_cpu if decision.build else set()
    )


def test_pins_lie_in_the_ranges_that_the_packages_allow():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = project["dependencies"] + project["optional-dependencies"]["dev"]
    for requirement in map(Requirement, ranges):
        assert requirement.specifier.contains(pins[requirement.name]), requirement


def test_package_data_is_there():
    """What no pattern matches is missing after an installation, without an error."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    for package, patterns in tool["setuptools"]["package-data"].items():
        for pattern in patterns:
            assert list((ROOT / package).glob(pattern)), (package, pattern)


def compile_check_reason() -> str:
    """Why the CUDA sources cannot or need not be compiled to objects here; empty if they must."""
    if torch.version.cuda is not None:
        return "torch has CUDA: the build itself compiles the CUDA sources"
    return "" if setup.find_toolkit(os.environ) else "no CUDA toolkit"


@pytest.mark.skipif(bool(compile_check_reason()), reason=compile_check_reason())
@pytest.mark.parametrize("source", sorted(CSRC.glob("*.cu")), ids=lambda path: path.name)
def test_cuda_source_compiles(source):
    """Compiles to an object for sm_80 and sm_90; the result is kept until a source changes."""
    toolkit = setup.find_toolkit(os.environ)
    command = [
        str(toolkit.nvcc),
        "-c",
        str(source),
        "-std=c++20",  # what torch's headers need
        "--threads=2",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-Xcompiler=-fPIC",
        "-DC10_USING_CUSTOM_GENERATED_MACROS",  # a CPU build of torch lacks the generated header
        *cpp_extension.COMMON_NVCC_FLAGS,
        *setup.NVCC_FLAGS,
        *(f"-I{path}" for path in (CSRC, *cpp_extension.include_paths())),
    ]
    digest = hashlib.sha256(repr((command, toolkit.version, torch.__version__)).encode())
    for path in sorted(path for path in CSRC.rglob("*") if path.is_file()):
        digest.update(path.read_bytes())

    folder = ROOT / "build" / "cuda_check"
    compiled = folder / f"{source.stem}-{digest.hexdigest()[:16]}.o"
    if compiled.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{source.stem}-*.o"):
        stale.unlink()
    partial = folder / f"{source.stem}.partial.o"
    result = subprocess.run([*command, "-o", str(partial)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    partial.rename(compiled)
