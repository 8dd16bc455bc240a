"""The comparison of two checkouts: its ratios, its order, and what it refuses."""

import json
from pathlib import Path

import pytest

from scripts.bench import compare

# Stands in for the benchmark of a checkout: its rate grows from round to round, and a log tells
# the order.
BENCHMARK = """
import json, sys
from pathlib import Path
log = Path("../log")
log.write_text((log.read_text() if log.exists() else "") + Path.cwd().name)
turn = log.read_text().count(Path.cwd().name)
row = {"mode": "step", "agent": None, "worlds": 64, "resets": "natural"}
row |= {"robot_steps_per_s": RATE * turn, "fastest_repeat_robot_steps_per_s": RATE * 9, PLACE: 4}
record = {"machine": {}, "versions": {}, "commit": "c", "uncommitted_changes": False}
Path(sys.argv[-1]).write_text(json.dumps({**record, "rows": [row]}))
sys.exit("--fail" in sys.argv)
"""


@pytest.fixture
def checkouts(tmp_path) -> tuple[str, str]:
    """Two folders with a benchmark; the second is three times as fast."""
    for name, rate, place in (("a", "10.0", "cores"), ("b", "30.0", "vortices")):
        program = BENCHMARK.replace("RATE", rate).replace("PLACE", repr(place))
        (tmp_path / name / "scripts").mkdir(parents=True)
        (tmp_path / name / "scripts" / "bench.py").write_text(program)
    return str(tmp_path / "a"), str(tmp_path / "b")


def test_ratios_are_of_one_round_and_the_order_alternates(checkouts, tmp_path, capsys):
    path = tmp_path / "ratios.json"
    assert compare.main([*checkouts, "--rounds", "3", "--json", str(path), "--", "--quick"]) == 0
    record = json.loads(path.read_text())
    (row,) = record["rows"]
    assert (row["before_robot_steps_per_s"], row["after_robot_steps_per_s"]) == (20.0, 60.0)
    assert row["ratios"] == [3.0, 3.0, 3.0]
    assert row["ratio_of_fastest_repeats"] == 3.0
    assert (row["worlds"], row["vortices"]) == (64, 4)
    assert (record["rounds"], record["options"]) == (3, ["--quick"])
    assert (tmp_path / "log").read_text() == "abbaab"
    assert "3.000" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused(checkouts, tmp_path, refused):
    refused(compare.main, [*checkouts, "--rounds", "0"], "--rounds is 0", status=2)
    nowhere = ["--json", str(tmp_path / "nowhere" / "ratios.json")]
    refused(compare.main, [*checkouts, *nowhere], "its folder is missing", status=2)
    refused(compare.main, [checkouts[0], str(tmp_path)], "has no scripts/bench.py", status=2)
    once = [*checkouts, "--rounds", "1"]
    refused(compare.main, [*once, "--", "--fail"], "failed in", status=1)
    program = Path(checkouts[1]) / "scripts" / "bench.py"
    program.write_text(program.read_text().replace("64", "65"))
    refused(compare.main, once, "row 0 has worlds 64 in one checkout or round, 65 in", status=1)
    program.write_text(program.read_text().replace("[row]", "[]"))
    refused(compare.main, once, "1 rows in one checkout or round, 0 in another", status=1)


def test_settings_are_told_apart():
    """Records from before there were any hold none."""
    row = {"mode": "step", "worlds": 64, "robot_steps_per_s": 1.0}
    row |= {"fastest_repeat_robot_steps_per_s": 1.0}
    before, without, otter = (
        [{"rows": [{**row, **said}]}]
        for said in ({}, {"settings": []}, {"settings": ["env.vessel=otter"]})
    )
    assert compare.compared(before, without)[0]["settings"] == []
    assert compare.compared(otter, otter)[0]["settings"] == ["env.vessel=otter"]
    for other in (before, without):
        with pytest.raises(ValueError, match="row 0 has settings"):
            compare.compared(other, otter)
