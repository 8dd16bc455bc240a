"""Which operators are loaded: those that were built from what lies beside them."""

import json
import shutil

import pytest

from marinenav_env import build_record
from marinenav_env.build_record import BUILD_RECORD, digest_of, find_library, runs_on


@pytest.fixture
def built(tmp_path):
    """A package folder with a library, its sources and its record."""
    (tmp_path / "csrc" / "kernel").mkdir(parents=True)
    (tmp_path / "csrc" / "ops.cpp").write_text("int x;")
    (tmp_path / "csrc" / "kernel" / "lane.h").write_text("int y;")
    (tmp_path / "_ops.so").touch()
    record = {"torch": "2.13.0", "sources": digest_of(tmp_path / "csrc")}
    (tmp_path / BUILD_RECORD).write_text(json.dumps(record))
    return tmp_path


def test_a_library_is_found_that_was_built_from_what_lies_beside_it(built):
    assert find_library("2.13.0", built) == built / "_ops.so"
    (built / "csrc" / "lane.h~").write_text("left by an editor")
    (built / "csrc" / ".#lane.h").symlink_to("an editor's lock")
    assert find_library("2.13.0", built) == built / "_ops.so"
    shutil.rmtree(built / "csrc")  # as an installed package
    assert find_library("2.13.0", built) == built / "_ops.so"


@pytest.mark.parametrize(
    "change",
    [
        lambda csrc: (csrc / "ops.cpp").write_text("int z;"),
        lambda csrc: (csrc / "kernel" / "more.cuh").touch(),
        lambda csrc: (csrc / "ops.cpp").unlink(),
        lambda csrc: (csrc / "ops.cpp").rename(csrc / "other.cpp"),
    ],
)
def test_a_library_of_other_sources_is_refused(change, built):
    change(built / "csrc")
    with pytest.raises(
        ImportError,
        match=r"no record says .* the sources in .*csrc as they are: remove it and run",
    ):
        find_library("2.13.0", built)


@pytest.mark.parametrize("record", [None, "{", "[]", "{}"])
def test_a_library_of_unknown_sources_is_refused(record, built):
    """As one that a failed build of before left, or one whose record a kill cut off."""
    (built / BUILD_RECORD).unlink()
    if record is not None:
        (built / BUILD_RECORD).write_text(record)
    with pytest.raises(
        ImportError,
        match=r"no record says .* the sources in .*csrc as they are: remove it and run",
    ):
        find_library("2.13.0", built)
    shutil.rmtree(built / "csrc")
    assert find_library("2.13.0", built) == built / "_ops.so"


def test_a_library_for_another_torch_is_refused(built):
    message = r"for torch 2\.13\.0, and this is torch 2\.11\.0: "
    with pytest.raises(ImportError, match=f"{message}remove it and run `make setup`"):
        find_library("2.11.0", built)
    shutil.rmtree(built / "csrc")  # of a wheel nothing can be built anew
    with pytest.raises(
        ImportError, match=rf"{message}install torch 2\.13\.0, or a wheel for torch"
    ):
        find_library("2.11.0", built)


def test_a_library_for_another_processor_is_refused(built, tmp_path, monkeypatch):
    """It would end with "Illegal instruction", and not before the first step."""
    cpuinfo = tmp_path / "cpuinfo"
    monkeypatch.setattr(build_record, "CPUINFO", cpuinfo)
    cpuinfo.write_text(
        "model name\t: new\nflags\t\t: fpu avx512f avx512_fp16 sse avx2 fma avx\nflags\t: avx\n"
    )
    assert build_record.extensions_for("native") == ["avx", "avx2", "avx512f", "fma"]
    record = json.loads((built / BUILD_RECORD).read_text())
    record["extensions"] = build_record.extensions_for("native")
    (built / BUILD_RECORD).write_text(json.dumps(record))
    assert find_library("2.13.0", built) == built / "_ops.so"
    cpuinfo.write_text("flags\t: fpu avx avx2 fma f16c bmi1 bmi2 movbe abm\n")
    message = r"for processors with avx512f, which this one lacks: remove it and run `make setup`"
    with pytest.raises(ImportError, match=message):
        find_library("2.13.0", built)
    record["extensions"] = build_record.extensions_for("x86-64-v3")
    (built / BUILD_RECORD).write_text(json.dumps(record))
    assert find_library("2.13.0", built) == built / "_ops.so"
    cpuinfo.write_text("flags\t: fpu avx\n")
    shutil.rmtree(built / "csrc")
    message = "with abm, avx2, bmi1, bmi2, f16c, fma, movbe, .*: install a wheel .*ARCH=x86-64$"
    with pytest.raises(ImportError, match=message):
        find_library("2.13.0", built)
    cpuinfo.unlink()  # a system that does not say
    assert find_library("2.13.0", built) == built / "_ops.so"
    assert build_record.extensions_for("native") == build_record.extensions_for("znver4") == []


def test_a_library_that_is_not_built_is_named(tmp_path):
    with pytest.raises(ImportError, match=r"not built .*: run `make setup`"):
        find_library("2.13.0", tmp_path)


@pytest.mark.parametrize(
    ("architectures", "capability", "runs"),
    [
        ("8.0;9.0+PTX", (8, 0), True),
        ("8.0;9.0+PTX", (8, 9), True),
        ("8.0;9.0+PTX", (7, 5), False),
        ("8.0;9.0+PTX", (12, 0), True),
        ("8.0 9.0", (10, 0), False),
        ("8.6", (8, 0), False),
        ("9.0a", (9, 0), True),
        ("9.0a", (9, 1), False),
        ("9.0a+PTX", (9, 1), False),
        ("10.0f", (10, 3), True),
        ("10.0f", (12, 0), False),
        ("Hopper", (7, 0), True),
    ],
)
def test_code_runs_on_its_architecture_and_what_it_foresees(architectures, capability, runs):
    assert runs_on(architectures, capability) == runs
