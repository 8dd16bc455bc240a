"""The bits of states and of short trainings are those that were recorded."""

import json

import pytest
import torch

from tests import goldens

RECORDED = json.loads(goldens.FILE.read_text())
MACHINE = RECORDED["machine"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("worlds", "steps"), goldens.WORLDS_AND_STEPS)
def test_states_are_those_recorded(worlds, steps, dtype):
    if dtype == torch.float64 and goldens.libm() != MACHINE["libm"]:
        pytest.skip("float64 uses the C library, which gives other last digits here")
    name = f"{str(dtype).removeprefix('torch.')}_{worlds}"
    assert goldens.rollout(worlds, steps, dtype) == RECORDED["simulator"][name]


def test_states_of_discrete_actions_are_those_recorded():
    found = goldens.rollout(16, 120, torch.float32, discrete=True)
    assert found == RECORDED["simulator"]["float32_16_discrete"]


@pytest.mark.parametrize(
    ("recorded", "message"),
    [
        ({"machine": {"processor": "another"}}, "is not that of the record"),
        ({"training": {"DQN": {"mean_magnitude": 1.2, "updates": 3}}}, "DQN trains to other"),
        ({"training": {"DQN": {"mean_magnitude": 1.0, "updates": 4}}}, "DQN trains to other"),
    ],
)
def test_no_changed_training_is_added_to_the_record(recorded, message, monkeypatch):
    found = {"mean_magnitude": 1.0, "updates": 3, "digests": ["new"]}
    monkeypatch.setattr(goldens, "training", lambda name: found)
    kept = {"machine": {"processor": goldens.processor()}} | recorded
    with pytest.raises(ValueError, match=message):
        goldens.added(kept)


def test_the_bits_of_another_machine_stand_beside_those_recorded(monkeypatch):
    found = {"mean_magnitude": 1.0, "updates": 3, "digests": ["new"]}
    monkeypatch.setattr(goldens, "training", lambda name: found)
    rows = {"DQN": {"mean_magnitude": 1.0001, "updates": 3, "digests": ["old"]}}
    kept = {"machine": {"processor": goldens.processor()}, "training": rows}
    assert goldens.added(kept)["training"]["DQN"]["digests"] == ["old", "new"]


@pytest.mark.parametrize("name", RECORDED["training"])
def test_trained_weights_are_those_recorded(name):
    """To the bit on the machines of the recordings, else as far as rounding lets two runs agree."""
    recorded, found = RECORDED["training"][name], goldens.training(name)
    assert found["updates"] == recorded["updates"]
    assert found["mean_magnitude"] == pytest.approx(recorded["mean_magnitude"], rel=1e-3)
    if goldens.processor() == MACHINE["processor"]:
        assert found["digests"][0] in recorded["digests"]
