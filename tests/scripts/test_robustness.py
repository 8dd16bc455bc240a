"""Success with one thing changed: the record, and its chart on the page."""

import json

import pytest

from marinenav_env.envs.make import TASKS
from marinenav_env.envs.ranging import BeamConfig, BeamsConfig
from marinenav_env.fields import ConfigError, build
from scripts import robustness
from tests.train_RL_agents.policy_samples import save_policy, table_of
from train_RL_agents.commands import evaluation as commands
from train_RL_agents.config.files import read_overrides
from train_RL_agents.config.schema import TrainConfig
from train_RL_agents.evaluation.report import robustness as section
from train_RL_agents.evaluation.report.page import Records, _of_records, read_records

SMALL = ["--stage", "1,0,0,20", "--episodes", "2"]
TWO = tuple(robustness.chosen(["uniform current", "thrust ("]))


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Return the file of a record with two quantities."""
    file = tmp_path_factory.mktemp("record") / "robustness.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(robustness, "QUANTITIES", TWO)
        command = ["--checkpoint", "baseline:goal-straight", *SMALL, "--json", str(file)]
        assert robustness.main(command) == 0
    return file


def test_what_is_changed_changes_what_happens(record):
    rows = json.loads(record.read_text())["rows"]
    assert [(row["quantity"], row["level"]) for row in rows] == [
        (None, None),
        *((quantity.name, level) for quantity in TWO for level in quantity.levels),
    ]
    times = [row["mean_time_s"] for row in rows]
    assert len(set(times)) == len(times)
    assert rows[-1]["settings"] == [
        "env.variation.left_thrust=[0.85,0.85]",
        "env.variation.right_thrust=[0.85,0.85]",
    ]


def test_settings_change_the_worlds_below_what_is_changed(tmp_path, record, monkeypatch):
    """Each row is what `evaluate.py` says of the same worlds."""
    monkeypatch.setattr(robustness, "QUANTITIES", (TWO[0]._replace(levels=(0.6,)),))
    file, policy = tmp_path / "x.json", ["--checkpoint", "baseline:goal-straight"]
    settings = ["env.wind.speed=[6,6]", "env.stream.speed=[0.1,0.1]"]
    command = [settings[0], *policy, *SMALL, settings[1], "--json", str(file)]
    assert robustness.main(command) == 0
    written = json.loads(file.read_text())
    assert written["settings"] == settings
    for row in written["rows"]:
        worlds = [*SMALL, "--seed", "3", *settings, *row.get("settings", [])]
        (found,) = table_of(tmp_path, *policy, *worlds)["stages"]
        assert row == {name: found.get(name, value) for name, value in row.items()}
    first, changed = (row["mean_time_s"] for row in written["rows"])
    assert changed != first, "a level replaces the setting"
    undisturbed = json.loads(record.read_text())
    assert undisturbed["settings"] == []
    assert undisturbed["rows"][0]["mean_time_s"] != first


def test_settings_decide_which_quantities_there_are(tmp_path, monkeypatch, refused):
    noise = robustness.chosen(["noise (times)"])
    monkeypatch.setattr(robustness, "QUANTITIES", tuple(noise))
    monkeypatch.setattr(robustness, "evaluate", lambda parsed, path, console, worlds: Table())
    command = ["--checkpoint", "baseline:orca", "--json", str(tmp_path / "x.json")]
    assert robustness.main(command) == 0
    quiet = ["position_std=0", "velocity_std=0", "radius_mean_ratio=1"]
    quiet = [f"env.perception.{setting}" for setting in quiet]
    refused(robustness.main, [*command, *quiet], "task 'marine' has none of noise (times)")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("env.wind.sped=3", "unknown setting 'env.wind.sped'"),
        ("env.perception.rays=40", "env.perception.rays is a setting of marine_sectors, and"),
        ("env.vessel={x_u: 0, x_uu: 0}", "baseline is 'orca': env.vessel has no top speed"),
    ],
)
def test_settings_of_no_use_are_refused(setting, message, tmp_path, refused):
    file = tmp_path / "x.json"
    command = [setting, "--checkpoint", "baseline:orca", "--json", str(file)]
    refused(robustness.main, command, message)
    assert not file.exists()


@pytest.mark.parametrize("quantity", robustness.QUANTITIES, ids=lambda quantity: quantity.name)
def test_every_level_is_a_setting_of_the_environment(quantity):
    fitting = [kind.config_type for kind in TASKS.values() if quantity.fits(kind.config_type())]
    assert fitting
    for level in quantity.levels:
        assert level != quantity.calm
        values = read_overrides([key.format(level) for key in quantity.keys])
        for kind in fitting:
            assert build(kind, values["env"]) != kind()


def test_all_at_once_leaves_the_rewards_as_they_are():
    settings = read_overrides(robustness.everything())["env"]
    assert set(settings) == {"stream", "wind", "waves", "perception", "variation", "thrusters"}


def test_tasks_have_the_quantities_that_they_know():
    names = {
        task: [q.name for q in robustness.QUANTITIES if q.fits(kind.config_type())]
        for task, kind in TASKS.items()
    }
    everything = [q.name for q in robustness.QUANTITIES]
    assert names["marine"] == [name for name in everything if name != "noise of a distance (m)"]
    for task in ("marine_sectors", "marine_beams"):
        assert names[task] == [name for name in everything if name != "noise (times)"]
    assert names["icra2024"] == names["cartpole"] == []
    (times,) = robustness.chosen(["noise (times)"])
    loud = BeamsConfig(perception=BeamConfig(range_std=0.1))
    assert times.fits(loud), "its noise can be scaled"


def test_a_policy_given_twice_is_refused(tmp_path, refused):
    command = ["--checkpoint", "baseline:orca", "baseline:orca", "--json", str(tmp_path / "x.json")]
    refused(robustness.main, command, "give each policy once", status=2)


def test_a_record_without_a_disturbed_level_is_refused(record, tmp_path):
    rows = json.loads(record.read_text())
    (tmp_path / "x.json").write_text(json.dumps({**rows, "rows": rows["rows"][:1]}))
    with pytest.raises(ConfigError, match="no disturbed level yet: let"):
        section.read_robustness(tmp_path / "x.json")


def test_gusts_begin_in_a_wind_and_not_with_what_is_undisturbed(tmp_path, monkeypatch):
    quantities = robustness.chosen(["wind (", "gusts"])
    monkeypatch.setattr(robustness, "evaluate", lambda parsed, path, console, worlds: Table())
    file = tmp_path / "x.json"
    command = ["--checkpoint", "baseline:orca", "--quantities", "wind (", "gusts"]
    assert robustness.main([*command, "--json", str(file)]) == 0
    record = json.loads(file.read_text())
    assert record["calm"] == {"wind (m/s)": 0.0, "gusts of a wind of 5 m/s (m/s)": None}
    for row in record["rows"]:
        row["success_ci95"] = [1.0, 1.0]
    levels = {
        name: [row["level"] for row in policies["baseline:orca"]]
        for name, policies in section.curves_of(record).items()
    }
    assert list(levels.values()) == [[0.0, *quantities[0].levels], list(quantities[1].levels)]
    assert section.robustness(record).data[1].x == (1.0, 2.0)


def test_all_policies_meet_the_worlds_of_the_first(tmp_path, monkeypatch):
    """One that was trained in a current comes with it, and leaves it where another one leads."""
    monkeypatch.setattr(robustness, "QUANTITIES", (TWO[1]._replace(levels=(0.7,)),))
    drifting = {"stream": {"speed": [0.6, 0.6]}}
    policy = str(save_policy(tmp_path / "policy.pt", "DDPG", env=drifting))
    currents = []

    def spied(*arguments):
        evaluated = commands.evaluate(*arguments)
        currents.append(evaluated.config.env.stream.speed)
        return evaluated

    monkeypatch.setattr(robustness, "evaluate", spied)
    command = [*SMALL, "--json", str(tmp_path / "x.json"), "--checkpoint"]
    for checkpoints, expected in (
        (["baseline:goal-straight", policy], [(0.0, 0.0)] * 4),
        ([policy, "baseline:goal-straight"], [(0.6, 0.6)] * 4),
    ):
        currents.clear()
        assert robustness.main([*command, *checkpoints]) == 0
        assert currents == expected


def test_a_policy_without_any_of_the_quantities_is_refused(tmp_path, refused):
    command = ["--checkpoint", "pretrained/icra2024_dqn", "--json", str(tmp_path / "x.json")]
    message = "its task 'icra2024' has none of lag of thrusters (s)"
    refused(robustness.main, [*command, "--quantities", "lag"], message)


def test_some_quantities_can_be_chosen(tmp_path, refused):
    names = [quantity.name for quantity in robustness.chosen(["lag", "gusts"])]
    assert names == ["gusts of a wind of 5 m/s (m/s)", "lag of thrusters (s)"]
    assert robustness.chosen([]) == list(robustness.QUANTITIES)
    command = ["--checkpoint", "baseline:orca", "--json", str(tmp_path / "x.json")]
    command += ["--quantities", "tide"]
    refused(robustness.main, command, "--quantities tide: none of uniform current (m/s),", status=2)


def test_the_chart_has_the_undisturbed_level_in_every_quantity(record):
    curves = section.curves_of(section.read_robustness(record))
    (points,) = curves["uniform current (m/s)"].values()
    assert [point["level"] for point in points] == [0.0, 0.3, 0.6]
    (points,) = curves["thrust (times)"].values()
    assert [point["level"] for point in points] == [0.7, 0.85, 1.0]
    figures = {}
    titles = dict(_of_records(Records(robustness=[section.read_robustness(record)]), figures))
    assert list(titles) == ["Robustness"]
    lines = figures["robustness-0"].data
    assert [line.name for line in lines] == ["baseline:goal-straight"] * 2
    assert list(lines[0].x) == [0.0, 0.3, 0.6]


def test_the_page_says_with_which_settings_the_worlds_were_undisturbed(record):
    def note(settings):
        measured = section.read_robustness(record) | {"settings": settings}
        return dict(_of_records(Records(robustness=[measured]), {}))["Robustness"]

    assert "the same episodes undisturbed.</p>" in note([])
    told = "the same episodes undisturbed, but for env.wind.speed=[5,5] env.vessel=a&lt;b.</p>"
    assert told in note(["env.wind.speed=[5,5]", "env.vessel=a<b"])


@pytest.mark.parametrize(
    "content", ["{}", '{"rows": [{"level": 1}], "calm": {}}', '{"rows": {"a": 1}}', "[]", "x"]
)
def test_other_files_are_refused(content, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"other\.json"):
        read_records(disturbed=[str(file)])


def test_a_missing_policy_is_named(tmp_path, refused):
    command = ["--checkpoint", "nowhere", *SMALL, "--json", str(tmp_path / "x.json")]
    refused(robustness.main, command, "nowhere")
    command = ["--checkpoint", "x", "--json", str(tmp_path / "no" / "x.json")]
    refused(robustness.parse, command, "its folder is missing", status=2)


def test_guarded_policies_are_named_and_meet_the_last_stage_of_their_task(tmp_path, monkeypatch):
    monkeypatch.setattr(robustness, "QUANTITIES", TWO[:1])
    seen = []
    monkeypatch.setattr(
        robustness, "evaluate", lambda parsed, path, console, worlds: seen.append(parsed) or Table()
    )
    file = tmp_path / "x.json"
    monkeypatch.setattr(robustness, "fitting", lambda words, path, config: TWO[:1])
    monkeypatch.setattr(robustness, "check_together", lambda arguments: None)
    for policy in ("baseline:orca", "pretrained/icra2024_dqn"):
        command = ["--checkpoint", policy, "--json", str(file), "--shield", "margin_m=0.5"]
        assert robustness.main(command) == 0
        rows = json.loads(file.read_text())["rows"]
        assert {row["policy"] for row in rows} == {f"{policy}, shield"}
    assert all(parsed.shield == ["margin_m=0.5"] for parsed in seen)
    assert [parsed.stage for parsed in seen] == [[6]] * 3 + [[5]] * 3


class Table:
    """A table of one row, as an evaluation gives it."""

    config = TrainConfig()

    def as_json(self):
        names = ("episodes", "success", "success_ci95", "collision", "timeout", "mean_time_s")
        return {"stages": [dict.fromkeys(names, 1.0)]}
