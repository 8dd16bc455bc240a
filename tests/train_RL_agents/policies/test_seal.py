"""Damaged exports are refused, whatever bit is flipped, and whoever reads them."""

import hashlib
import random

import onnx
import pytest

from tests.train_RL_agents.policy_samples import export_policy, save_policy
from train_RL_agents import evaluate
from train_RL_agents.policies.load import load_policy, read_policy
from train_RL_agents.policies.seal import DIGITS, MARK, UNSEALED, checksum, sealed
from train_RL_agents.run.checkpoint import CheckpointError

FLIPS = 60


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    path = save_policy(tmp_path_factory.mktemp("policy") / "policy.pt", "DQN")
    for kind in ("torchscript", "onnx"):
        export_policy(path, kind)
    return path


@pytest.mark.parametrize("suffix", [".torchscript.pt", ".onnx"])
def test_the_checksum_is_what_the_documented_rule_gives(policy, suffix):
    content = policy.with_suffix(suffix).read_bytes()
    head, mark, digest = content.rpartition(b"marinenav-sha256:")
    whole = head + mark + b"0" * 64 + digest[64:]
    assert hashlib.sha256(whole).hexdigest().encode() == digest[:64]
    assert checksum(content) == digest[:64].decode()
    content = bytearray(content)
    content[len(content) // 2] ^= 1
    with pytest.raises(ValueError, match="its checksum is"):
        checksum(bytes(content))


def test_onnx_metadata_name_the_checksum(policy):
    file = policy.with_suffix(".onnx")
    said = {entry.key: entry.value for entry in onnx.load(str(file)).metadata_props}
    assert said["checksum"] == MARK.decode() + checksum(file.read_bytes())


def test_no_flipped_bit_goes_unnoticed(policy, tmp_path):
    content, draw = policy.with_suffix(".torchscript.pt").read_bytes(), random.Random(0)
    assert read_policy(policy.with_suffix(".torchscript.pt")).origin["sha256"] == checksum(content)
    # Those in the mark itself leave a file without a checksum, whose parts are whole.
    places = draw.sample(range(len(content) - DIGITS - len(MARK)), FLIPS)
    for place in [*places, len(content) - 1]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << draw.randrange(8)
        (tmp_path / "flipped.pt").write_bytes(flipped)
        with pytest.raises(CheckpointError, match="damaged"):
            load_policy(tmp_path / "flipped.pt")
    assert evaluate.main(["--checkpoint", str(tmp_path / "flipped.pt"), "--episodes", "1"]) == 1


def test_a_flipped_bit_of_a_file_without_a_checksum_is_noticed(policy, tmp_path):
    content = policy.with_suffix(".torchscript.pt").read_bytes().replace(MARK, b"-" * len(MARK))
    (tmp_path / "earlier.pt").write_bytes(content)
    assert read_policy(tmp_path / "earlier.pt").origin["sha256"] is None
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    (tmp_path / "earlier.pt").write_bytes(flipped)
    with pytest.raises(CheckpointError, match="bad checksum"):
        load_policy(tmp_path / "earlier.pt")


def test_the_last_mark_is_the_one_that_counts():
    """A file may hold the mark in its own text too."""
    text = MARK + b"x" * 70
    content = sealed(text + UNSEALED.encode() + b"tail")
    assert content.startswith(text)
    assert checksum(content) == content[-68:-4].decode()
    with pytest.raises(ValueError, match="its checksum is"):
        checksum(content.replace(b"x", b"y", 1))
