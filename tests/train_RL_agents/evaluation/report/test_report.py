"""The report page of an evaluation."""

import base64
import dataclasses
import html.parser
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import plotly.offline
import pytest
import torch

from marinenav_env.config import EnvConfig
from marinenav_env.envs.scenarios import Stage
from marinenav_env.tracks import Tracks
from train_RL_agents import evaluate
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.baselines.registry import Baseline
from train_RL_agents.evaluation.episodes import Evaluation
from train_RL_agents.evaluation.recording import FIELDS, Recording
from train_RL_agents.evaluation.report import charts, playback, tables
from train_RL_agents.evaluation.report.evaluated import Evaluated
from train_RL_agents.evaluation.report.page import PAGE, page
from train_RL_agents.evaluation.scenarios.evaluation import ScenarioEvaluation
from train_RL_agents.evaluation.scenarios.files import find_scenarios

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
STAGES = (
    Stage(robots=3, vortices=2, buoys=2, min_distance_m=30.0),
    Stage(robots=5, vortices=0, buoys=0, min_distance_m=40.0),
)
goal_straight = Baseline("goal-straight").act
SETTINGS = {"seed": 1, "config": EnvConfig(), "discrete": False}
VOID = {"meta", "input"}


def of_stages(name="straight <1>"):
    recording = Recording()
    rows = Evaluation(STAGES, (6, 6), **SETTINGS).run(goal_straight, recording)
    return Evaluated(name, TrainConfig(), rows, recording)


def of_scenarios():
    recording = Recording()
    scenarios = find_scenarios("clock")
    results = ScenarioEvaluation(scenarios, 2, **SETTINGS).run(goal_straight, recording)
    return Evaluated("straight", TrainConfig(), results, recording)


@pytest.fixture(scope="module")
def stages():
    return of_stages()


@pytest.fixture(scope="module")
def clock():
    return of_scenarios()


class Reader(html.parser.HTMLParser):
    """Checks that every element is closed, and keeps text of cells, links and scripts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.names, self.links = [], [], set(), []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href")]
        self.names |= {value for name, value in attributes if name == "id"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def data_of(text):
    return json.loads(re.search(r'id="report-data">(.*?)</script>', text)[1])


def unpack(packed):
    whole = np.frombuffer(base64.b64decode(packed["data"]), "<i2")
    return (whole * packed["scale"]).reshape(packed["shape"])


def test_the_page_is_whole_and_needs_no_network(stages):
    text = page([stages, stages], {"seed": 1})
    reader = Reader(text)
    assert reader.links == []
    own = text.replace(plotly.offline.get_plotlyjs(), "")
    assert len(own) < len(text) - 1_000_000
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", own)
    assert {"map", "gaps", "separation", "times"} <= reader.names
    assert set(data_of(text)["charts"]) == {"separation", "times"}


def test_its_numbers_are_those_of_the_evaluation(stages):
    cells = Reader(page([stages], {})).cells
    for result in stages.rows:
        row = result.as_json()
        low, high = row["success_ci95"]
        shown = f"{row['success']:.3f} ({low:.3f} to {high:.3f})"
        place = cells.index(result.label)
        assert cells[place + 1 : place + 4] == [stages.name, "6", shown]
        safety = row["safety"]
        assert cells[place + 4] == tables.estimate(safety["collision_vessel"])
        assert cells[place + 5] == tables.estimate(safety["collision_buoy"])
        assert f"{row['timeout']:.3f}" == cells[place + 6]


def test_scenarios_have_rules_clock_and_trajectories(clock):
    text = page([clock], {})
    drawn = data_of(text)["charts"]
    assert set(drawn) == {"separation", "times", "clock", "grid-0"}
    polar = drawn["clock"]["data"][0]
    assert polar["theta"][:3] == pytest.approx([14.4, 28.8, 43.2])
    median = clock.rows[0].safety["least_gap_vessel"]["median_m"]["value"]
    assert polar["r"][0] == pytest.approx(max(median, 0.0) / 5.0)
    cells = Reader(text).cells
    score = clock.results.rules["classes"]["GW"]
    place = cells.index("GW")
    assert cells[place + 1] == str(score["encounters"])
    assert cells[place + 5] == tables.estimate(score["R15"], 2)


def passing(gap):
    """A recording of two vessels on opposite courses, this gap apart when abreast, in 21 rows."""
    rows, radius = 21, 2.5
    x = torch.arange(rows) - 10.0  # 2 m a decision between them
    robot = torch.zeros(rows, 1, 2, len(FIELDS))
    robot[:, 0, 0, :2] = torch.stack((x, torch.zeros(rows)), 1)
    robot[:, 0, 1, :2] = torch.stack((-x, torch.full((rows,), gap + 2.0 * radius)), 1)
    flags = torch.zeros(rows - 1, 1, 2, dtype=torch.bool)
    acted, none = ~flags, torch.zeros(1, 0, 3)
    acted[17:, 0, 1] = False  # the second arrives
    action = torch.zeros(*flags.shape, 2)
    tracks = Tracks(
        FIELDS, robot, acted, action, flags.float(), flags, flags, none, none, 0.5, radius
    )
    return SimpleNamespace(recording=SimpleNamespace(tracks=lambda world: tracks))


@pytest.mark.parametrize(
    ("gap", "near"),
    [
        (1.9, {10}),  # 6.9 m between centres, 7.2 m a decision before; 7 m is a near miss
        (0.5, {8, 9, 10, 11, 12}),  # 5.5 m, and 6.8 m two decisions before
        (2.1, set()),
        (-0.5, {8, 9, 10, 11, 12}),
    ],
)
def test_only_near_misses_of_a_trajectory_are_red(gap, near):
    lines = charts.paths_of(passing(gap), 0, 0)
    red = [line for line in lines if line.get("line", {}).get("color") == "#e5383b"]
    assert len(red) == (2 if near else 0)
    assert [set(np.flatnonzero(np.isfinite(line["x"]))) for line in red] == [near] * len(red)
    for line, east in zip(red, (0.0, gap + 5.0), strict=False):
        assert np.nanmax(np.abs(line["x"] - east)) < 1e-6  # each on its own path


def test_gaps_to_a_vessel_that_is_gone_are_not_red():
    passed = passing(0.5)
    tracks = passed.recording.tracks(0)
    tracks.acted[8:, 0, 1] = False
    red = [x for x in charts.paths_of(passed, 0, 0) if x.get("line", {}).get("color") == "#e5383b"]
    assert [set(np.flatnonzero(np.isfinite(line["x"]))) for line in red] == [{8}, {8}]


def test_differences_to_the_first_policy(stages):
    assert "McNemar" not in page([stages], {})
    worse = dataclasses.replace(stages, name="worse", results=[lost(row) for row in stages.results])
    cells = Reader(page([stages, worse], {})).cells
    place = cells.index("McNemar's p") + 4
    won = int(stages.rows[0].outcomes.success.sum())
    row = cells[place : place + 5]
    p_value = 2.0 * 0.5**won if won else 1.0
    assert row == [stages.rows[0].label, "worse", "0", str(won), f"{min(p_value, 1.0):.2g}"]


def test_repeats_of_the_same_encounters_are_no_independent_trials(clock):
    cells = Reader(page([clock, dataclasses.replace(clock, name="again")], {})).cells
    row = cells[cells.index("McNemar's p") + 4 :][:5]
    assert row == ["all scenarios", "again", "0", "0", "–"]  # noqa: RUF001


def lost(row):
    return dataclasses.replace(
        row, outcomes=row.outcomes._replace(success=torch.zeros_like(row.outcomes.success))
    )


def test_circle_swaps_show_success_over_the_number_of_vessels():
    scenarios = find_scenarios("swap-03") + find_scenarios("swap-02")
    results = ScenarioEvaluation(scenarios, 2, **SETTINGS).run(goal_straight)
    (line,) = charts.crowds([Evaluated("straight", TrainConfig(), results, None)]).data
    assert line.x == (3, 2)
    assert list(line.y) == [row.success for row in results.rows]
    high = results.rows[0].as_json()["success_ci95"][1]
    assert line.error_y.array[0] == pytest.approx(high - line.y[0])


def test_packed_episodes_are_the_recorded_ones(stages):
    episodes = data_of(page([stages], {}))["episodes"]
    assert len(episodes) == 12
    failed = [end not in ("success", "near miss") for end in (one["end"] for one in episodes)]
    assert failed == sorted(failed, reverse=True)
    assert any("flow" in one for one in episodes)
    for one in episodes:
        tracks = stages.recording.tracks(one["world"])
        place, robots = unpack(one["place"]), tracks.placed[0]
        for axis, name in enumerate(("x", "y")):
            recorded = tracks.field(name)[:, 0][:, robots].numpy()
            np.testing.assert_allclose(place[..., axis], recorded, atol=2e-3)
        np.testing.assert_allclose(unpack(one["times"]), 0.5 * np.arange(len(place)), atol=1e-2)
        seen = tracks.observation.objects[:, 0][:, robots][..., [0, 1, 4]].numpy()
        np.testing.assert_allclose(unpack(one["seen"]), seen, atol=2e-3)
        assert one["last"] == tracks.acted[:, 0].sum(0)[robots].tolist()


def test_a_long_episode_is_thinned_out(stages, monkeypatch):
    monkeypatch.setattr(playback, "ROWS", 10)
    tracks = stages.recording.tracks(0)
    packed = playback.pack_episode(tracks, EnvConfig())
    times, place = unpack(packed["times"]), unpack(packed["place"])
    assert len(times) <= 12
    assert times[-1] == pytest.approx(len(tracks.acted) * 0.5, abs=1e-2)
    x = tracks.field("x")[-1, 0][tracks.placed[0]]
    np.testing.assert_allclose(place[-1, :, 0], x, atol=2e-3)


def test_episodes_stay_within_the_budget(stages):
    whole = playback.episodes_of([stages, stages])
    part = playback.episodes_of([stages, stages], budget=len(json.dumps(whole)) // 2)
    assert 0 < len(json.dumps(part)) <= len(json.dumps(whole)) // 2
    assert {one["policy"] for one in part} == {0, 1}
    assert {one["row"] for one in part} == {one["row"] for one in whole}  # every row is shown


def test_six_policies_take_less_than_10_mb(clock):
    text = page([clock] * 6, {})
    assert len(text) < 10_000_000
    assert len(data_of(text)["episodes"]) > 100


def test_one_command_writes_the_page_of_several_policies(tmp_path, capsys):
    command = ["--checkpoint", "baseline:goal-straight", "baseline:orca", "--scenario", "imazu-01"]
    command += ["--episodes", "2", "--json", str(tmp_path / "table.json")]
    assert evaluate.main([*command, "--report", str(tmp_path / "new" / "report")]) == 0
    text = (tmp_path / "new" / "report" / PAGE).read_text()
    assert data_of(text)["policies"] == ["baseline:goal-straight", "baseline:orca"]
    told = json.loads((tmp_path / "table.json").read_text())["policies"]
    assert [one["checkpoint"] for one in told] == data_of(text)["policies"]
    assert "seed of the episodes" in Reader(text).cells
    assert "Shield" not in re.findall("<h2>(.*?)</h2>", text)


def test_the_page_says_what_a_shield_did(tmp_path):
    command = ["--checkpoint", "baseline:goal-straight", "--scenario", "imazu-01"]
    command += ["--episodes", "2", "--json", str(tmp_path / "table.json")]
    command += ["--shield", "margin_m=0.4"]
    assert evaluate.main([*command, "--report", str(tmp_path / "report")]) == 0
    cells = Reader((tmp_path / "report" / PAGE).read_text()).cells
    did = json.loads((tmp_path / "table.json").read_text())["shield"]
    place = cells.index("without a safe plan")
    name, settings, decisions, unsafe, changed, none_safe = cells[place + 1 : place + 7]
    assert name == "baseline:goal-straight, shielded"
    assert "margin_m 0.4" in settings
    assert int(decisions) == did["decisions"] > 0
    shares = [did[key] for key in ("unsafe", "changed", "no_safe_plan")]
    assert [unsafe, changed, none_safe] == [f"{share:.2%}" for share in shares]


def test_a_folder_that_cannot_be_written_is_told_before_any_work(tmp_path, refused, monkeypatch):
    monkeypatch.setattr(evaluate, "evaluate", None)
    (tmp_path / "file").write_text("")
    command = ["--checkpoint", "baseline:orca", "--report", str(tmp_path / "file")]
    refused(evaluate.main, command, "--report")


@pytest.mark.parametrize("given", [["--against", "baseline:orca"], ["--figure", "x.png"]])
def test_several_policies_are_refused_where_one_is_meant(given, refused):
    command = ["--checkpoint", "baseline:orca", "baseline:sb-mpc", *given]
    refused(evaluate.parse, command, "one --checkpoint", status=2)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("name", ["stages", "clock"])
def test_playback_in_a_browser(name, tmp_path, request):
    driver = (Path(__file__).parent / "driver.js").read_text()
    text = page([request.getfixturevalue(name)], {})
    text = text.replace("</body>", f"<script>{driver}</script></body>")
    (tmp_path / PAGE).write_text(text)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--virtual-time-budget=5000", (tmp_path / PAGE).as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    told = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", shown)[1]))
    start, playing, paused, scrubbed = told["steps"]
    assert start == [0, False, "Play"]
    assert playing[0] > 0
    assert playing[1:] == [True, "Pause"]
    assert paused[1:] == [False, "Play"]
    assert scrubbed[0] == 2
    assert told["drawn"]
    assert told["observed"] > 0
    assert told["astray"] < 0.5  # the noise is 0.05 m, and the last decision's vessel may be gone
    assert min(told["shapes"]) > 0.39
    assert max(told["shapes"]) < 0.76  # maps of meetings on a line too
    assert told["charts"] > 0
