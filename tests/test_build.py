"""The build: what setup.py decides about CUDA, what it built, and that the CUDA code compiles."""

import importlib
import importlib.util
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from setuptools import Distribution
from torch.utils import cpp_extension

from marinenav_env.build_record import find_library
from marinenav_env.kernel import ops
from tests.conftest import ROOT, load_file

CSRC = ROOT / "marinenav_env" / "csrc"


setup = load_file(ROOT / "setup.py")  # builds only when it is run


def make_toolkit(root: Path, release: str, headers: str = "include") -> Path:
    """Lays out a folder that looks like a CUDA toolkit."""
    (root / "bin").mkdir(parents=True)
    nvcc = root / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, {release}, V0'\n")
    nvcc.chmod(0o755)
    if headers:
        (root / headers).mkdir(parents=True)
        (root / headers / "cuda_runtime.h").touch()
    return root


@pytest.fixture
def only_toolkit(tmp_path, monkeypatch):
    """Makes the environment's variables of a toolkit of a release, and hides the machine's own."""

    def make(release: str | None) -> dict[str, str]:
        if release is None:
            monkeypatch.setattr(setup, "find_toolkit", lambda _: None)
            return {}
        return {"CUDA_HOME": str(make_toolkit(tmp_path / "toolkit", f"release {release}"))}

    return make


@pytest.mark.parametrize(
    ("torch_cuda", "release", "environ", "build", "reason"),
    [
        ("13.0", "13.0", {}, True, "toolkit 13.0 matches torch's CUDA 13.0"),
        ("12.6", "12.8", {}, True, "toolkit 12.8 matches torch's CUDA 12.6"),
        ("13.0", "13.0", {"FORCE_CUDA": "1"}, True, "matches"),
        ("13.0", "13.0", {"NO_CUDA": "0", "FORCE_CUDA": ""}, True, "matches"),
        ("13.0", "13.0", {"NO_CUDA": "1"}, False, "NO_CUDA=1"),
        ("13.0", "12.8", {}, False, "toolkit 12.8 does not match torch's CUDA 13.0"),
        ("13.0", None, {}, False, "no toolkit (nvcc) found for torch's CUDA 13.0"),
        (None, "13.0", {}, False, "torch 2.13.0 is built without CUDA"),
        # A broken toolkit stops no build that needs none.
        ("13.0", "broken", {"NO_CUDA": "1"}, False, "NO_CUDA=1"),
        (None, "broken", {}, False, "torch 2.13.0 is built without CUDA"),
    ],
)
def test_cuda_is_decided_by_toolkit_and_torch(
    torch_cuda, release, environ, build, reason, only_toolkit
):
    toolkit = only_toolkit(release)
    decision = setup.decide_cuda("2.13.0", torch_cuda, {**environ, **toolkit})
    assert (decision.toolkit is not None) is build
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("torch_cuda", "release", "environ", "message"),
    [
        (None, "13.0", {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but torch 2.13.0 is built without"),
        ("13.0", None, {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but no toolkit"),
        ("13.0", "12.8", {"FORCE_CUDA": "1"}, "FORCE_CUDA=1, but toolkit 12.8 does not match"),
        ("13.0", "13.0", {"FORCE_CUDA": "1", "NO_CUDA": "1"}, "contradict"),
        ("13.0", "13.0", {"NO_CUDA": "yes"}, "NO_CUDA=yes is not understood"),
    ],
)
def test_what_cannot_be_built_is_an_error(torch_cuda, release, environ, message, only_toolkit):
    toolkit = only_toolkit(release)
    with pytest.raises(SystemExit, match=re.escape(message)):
        setup.decide_cuda("2.13.0", torch_cuda, {**environ, **toolkit})


def test_toolkit_is_found_where_the_environment_says(tmp_path):
    named = make_toolkit(tmp_path / "named", "release 12.8")
    on_path = make_toolkit(tmp_path / "on_path", "release 13.1")
    path = str(on_path / "bin")
    assert setup.find_toolkit({"PATH": path})[::2] == (on_path, (13, 1))
    assert setup.find_toolkit({"PATH": path, "CUDA_HOME": str(named)})[::2] == (named, (12, 8))


@pytest.mark.parametrize("headers", ["include", "targets/x86_64-linux/include"])
def test_headers_are_found_where_toolkits_have_them(headers, tmp_path, monkeypatch):
    """Those of conda lie by target, and are no default of the C++ compiler."""
    root = make_toolkit(tmp_path / "toolkit", "release 13.0", headers)
    toolkit = setup.find_toolkit({"CUDA_HOME": str(root), "PATH": ""})
    assert toolkit.include == root / headers
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", str(root))
    assert str(toolkit.include) in setup.make_extension(toolkit).include_dirs


def test_wrapper_script_is_not_taken_for_a_toolkit(tmp_path):
    wrapper = make_toolkit(tmp_path / "wrapper", "release 12.8", headers="")
    real = make_toolkit(tmp_path / "real", "release 13.0")
    environ = {"CUDA_HOME": str(wrapper), "CUDA_PATH": str(real), "PATH": ""}
    assert setup.find_toolkit(environ) == setup.Toolkit(real, real / "include", (13, 0))


def test_broken_toolkit_is_an_error(tmp_path):
    broken = make_toolkit(tmp_path, "no version")
    with pytest.raises(SystemExit, match="names no release"):
        setup.find_toolkit({"CUDA_HOME": str(broken)})


def test_cpu_architecture_can_be_chosen():
    assert "-march=native" in setup.cxx_flags({})
    assert "-march=x86-64-v3" in setup.cxx_flags({"MARINENAV_ARCH": "x86-64-v3"})


@pytest.mark.parametrize(("machine", "march"), [("x86_64", ["-march=x86-64-v3"]), ("aarch64", [])])
def test_a_wheel_is_for_other_machines_too(machine, march, monkeypatch):
    monkeypatch.setattr(setup.platform, "machine", lambda: machine)
    flags = setup.cxx_flags({}, portable=True)
    assert [flag for flag in flags if flag.startswith("-march")] == march
    assert "-march=native" in setup.cxx_flags({"MARINENAV_ARCH": "native"}, portable=True)


# Two sources that register operators by the C functions of torch, whose C++ headers take long.
SOURCES = {
    "registry.h": """
extern "C" {
struct Library;
typedef void Kernel(unsigned long*, unsigned long, unsigned long);
int aoti_torch_library_init_def(const char*, const char*, unsigned, Library**);
int aoti_torch_library_init_impl(const char*, const char*, const char*, unsigned, Library**);
int aoti_torch_library_def(Library*, const char*);
int aoti_torch_library_impl(Library*, const char*, Kernel*);
}
inline void nothing(unsigned long*, unsigned long, unsigned long) {}
inline int register_for(const char* device) {
  Library* library;
  aoti_torch_library_init_impl("marinenav", device, "", 1, &library);
  return aoti_torch_library_impl(library, "step", nothing);
}
""",
    "ops.cpp": """
#include <sstream>
#include <string>
#include "registry.h"
int define() {
  Library* library;
  aoti_torch_library_init_def("marinenav", "", 1, &library);
  return aoti_torch_library_def(library, "step() -> ()");
}
const int defined = define(), on_cpu = register_for("CPU");
extern "C" int vectors() {
  std::ostringstream out;
#ifdef __AVX2__
  out << 3;
#else
  out << 2;
#endif
  return std::stoi(out.str());
}
""",
    "ops_cuda.cu": """
#include "registry.h"
const int on_cuda = register_for("CUDA");
""",
}
# What stands for nvcc takes a source for C++, and what the C++ compiler knows of the options.
NVCC = """#!/bin/sh
[ "$1" = --version ] && echo 'Cuda compilation tools, release 13.0, V13.0.0' && exit
for option; do
  shift
  case $option in -I*|-c|-o|*.cu|*.o) set -- "$@" "$option" ;; esac
done
exec g++ -fPIC -x c++ "$@"
"""
# For a torch that is built for the CPU too.
BUILD_FOR_CUDA = """
import os, runpy, sys, torch
torch.version.cuda = "13.0"
from torch.utils import cpp_extension
cpp_extension.CUDA_HOME = os.environ["CUDA_HOME"]
sys.argv = ["setup.py", "--quiet", "build_ext", "--inplace"]
runpy.run_path("setup.py", run_name="__main__")
"""
CALL = """
import ctypes, sys, torch
torch.ops.load_library(sys.argv[1])
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
found = [device for device in ("CPU", "CUDA") if has_kernel("marinenav::step", device)]
print(*found, ctypes.CDLL(sys.argv[1]).vectors())
"""


def cuda_of_stubs(root: Path) -> Path:
    """Lay out a toolkit whose compiler is g++ and whose libraries are empty."""
    make_toolkit(root, "")
    (root / "bin" / "nvcc").write_text(NVCC)
    (root / "lib64").mkdir()
    for name in ("cudart", "c10_cuda", "torch_cuda"):
        library = str(root / "lib64" / f"lib{name}.so")
        subprocess.run(["g++", "-shared", "-x", "c", os.devnull, "-o", library], check=True)
    return root


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names two architectures of x86-64")
def test_a_changed_variable_takes_effect_without_ninja(tmp_path):
    """On flags and on the half for CUDA; the record, too, is of what was built last.

    The C++ library is linked in, as by a compiler without a shared one: it must not mix with
    torch's, which once left the operators' streams without numbers, or crashed them.
    """
    shutil.copy(ROOT / "setup.py", tmp_path)
    for folder in setup.SHIPPED:
        (tmp_path / folder).symlink_to(ROOT / folder)
    package = tmp_path / "marinenav_env"
    (package / "csrc").mkdir(parents=True)
    for name, text in SOURCES.items():
        (package / "csrc" / name).write_text(text)
    shutil.copy(ROOT / "marinenav_env" / "build_record.py", package)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("g++", "gcc", "cc", "c++", "as", "ld"):
        if shutil.which(name):
            (programs / name).symlink_to(shutil.which(name))
    toolkit = cuda_of_stubs(tmp_path / "toolkit")
    environ = {**os.environ, "PATH": str(programs), "CUDA_HOME": str(toolkit)}
    environ["LD_LIBRARY_PATH"] = str(toolkit / "lib64")
    archive = subprocess.check_output(["g++", "-print-file-name=libstdc++.a"], text=True)
    if Path(archive.strip()).is_absolute():
        environ["LDFLAGS"] = "-static-libstdc++"
    assert shutil.which("ninja", path=environ["PATH"]) is None
    for variable, architecture, held in (
        ("NO_CUDA", "x86-64-v2", "CPU 2"),
        ("FORCE_CUDA", "x86-64-v3", "CPU CUDA 3"),
    ):
        own = {**environ, variable: "1", "MARINENAV_ARCH": architecture}
        build = [sys.executable, "-c", BUILD_FOR_CUDA]
        done = subprocess.run(build, cwd=tmp_path, env=own, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        call = [sys.executable, "-c", CALL, str(package / "_ops.so")]
        assert subprocess.check_output(call, text=True, env=own).strip() == held
        record = json.loads((package / setup.BUILD_INFO).read_text())
        assert record["cuda"] is ("CUDA" in held)
        assert f"-march={architecture}" in record["cxx_flags"]
        assert record["torch"] == torch.__version__
        assert find_library(torch.__version__, package) == package / "_ops.so"


@pytest.fixture
def build_ext(tmp_path, monkeypatch):
    """Makes the command that builds, for a toolkit, with a build that leaves the library alone."""
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", str(tmp_path))
    library = CSRC.parent / "_ops.so"
    monkeypatch.setattr(
        cpp_extension.BuildExtension, "run", lambda _: shutil.copy(library, tmp_path)
    )

    def make(toolkit):
        decision = setup.CudaDecision(toolkit, "")
        extension = setup.make_extension(toolkit)
        command = setup.make_build_command(decision, {"reason": ""})(
            Distribution({"ext_modules": [extension]})
        )
        command.extensions = [extension]
        monkeypatch.setattr(command, "get_ext_fullpath", lambda _: str(tmp_path / "_ops.so"))
        return command

    return make


@pytest.mark.parametrize("cuda", [True, False])
def test_the_record_is_of_what_the_library_holds(cuda, build_ext, tmp_path, monkeypatch):
    toolkit = setup.Toolkit(tmp_path, tmp_path / "include", (13, 0))
    shutil.copy(CSRC.parent / "_ops.so", tmp_path)
    held = setup.holds_cuda(tmp_path / "_ops.so")
    assert held == ops.has_cuda()
    command = build_ext(toolkit if cuda else None)
    if cuda == held:
        command.run()
        assert json.loads((tmp_path / setup.BUILD_INFO).read_text())["cuda"] == held
        return
    (tmp_path / setup.BUILD_INFO).write_text("of a build before")
    with pytest.raises(SystemExit, match="against the decision"):
        command.run()
    assert not (tmp_path / setup.BUILD_INFO).exists()


def test_a_failed_build_leaves_no_library(build_ext, tmp_path, monkeypatch):
    def fail(_):
        raise SystemExit("the compiler failed")

    monkeypatch.setattr(cpp_extension.BuildExtension, "run", fail)
    for name in ("_ops.so", setup.BUILD_INFO):
        (tmp_path / name).write_text("of a build before")
    with pytest.raises(SystemExit, match="compiler failed"):
        build_ext(None).run()
    assert not list(tmp_path.glob("_*"))


@pytest.mark.parametrize("inplace", [True, False])
def test_only_a_library_that_stays_is_for_this_machine(inplace, build_ext, tmp_path, monkeypatch):
    monkeypatch.delenv("MARINENAV_ARCH", raising=False)
    monkeypatch.setattr(setup, "holds_cuda", lambda _: False)
    command = build_ext(None)
    command.inplace = inplace
    command.run()
    flags = setup.cxx_flags({}, portable=not inplace)
    assert command.extensions[0].extra_compile_args["cxx"] == flags
    assert json.loads((tmp_path / setup.BUILD_INFO).read_text())["cxx_flags"] == flags


@pytest.mark.parametrize(("place", "editable"), [("build", False), ("build", True), ("own", False)])
def test_a_wheel_has_nothing_of_an_earlier_one(place, editable, tmp_path, monkeypatch):
    """Wheels are built in the folder itself, where a renamed module would stay under both names."""
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    collected = tmp_path / place / "lib"
    (collected / "package").mkdir(parents=True)
    (collected / "package" / "old.py").touch()
    monkeypatch.setattr(
        setup.build_py, "run", lambda self: Path(self.build_lib).mkdir(exist_ok=True)
    )
    command = setup.BuildPackages(Distribution())
    command.build_lib, command.editable_mode = str(collected), editable
    command.run()
    assert (collected / "package" / "old.py").exists() == (editable or place == "own")


def test_the_record_names_the_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("MARINENAV_COMMIT", "1234abcd")
    monkeypatch.setattr(setup, "ROOT", tmp_path)

    def git(*arguments):
        own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", "-C", str(tmp_path), *own, *arguments]
        return subprocess.check_output(command, text=True).strip()

    git("init", "--quiet")
    (tmp_path / "one.py").write_text("a = 1\n")
    git("add", "one.py")
    git("commit", "--quiet", "--message", "one")
    git("tag", "v1")
    assert setup.commit() == git("rev-parse", "HEAD")
    (tmp_path / "one.py").write_text("a = 2\n")
    assert setup.commit() == git("rev-parse", "HEAD") + "-dirty"
    monkeypatch.setattr(setup, "ROOT", tmp_path / "copy")  # without its history, in another's
    (tmp_path / "copy").mkdir()
    assert setup.commit() == "1234abcd"


def test_a_build_without_the_settings_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"files are missing in .*configs"):
        setup.main()


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
    decision = setup.decide_cuda(torch.__version__, torch.version.cuda, os.environ)
    built = json.loads((CSRC.parent / setup.BUILD_INFO).read_text())
    assert built["torch"] == torch.__version__, "the operators are built for another torch: rebuild"
    should = decision.toolkit is not None
    assert built["cuda"] == should, f"should be: {decision}; was: {built['reason']}"
    assert setup.holds_cuda(CSRC.parent / "_ops.so") == should


def test_pins_lie_in_the_ranges_that_the_packages_allow():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["dependencies"], *project["optional-dependencies"].values()
    for requirement in map(Requirement, itertools.chain(*groups)):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
