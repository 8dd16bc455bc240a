"""The comparison with published policies: its arithmetic, and that the documents show it."""

import json
from math import comb
from pathlib import Path

import pytest
import yaml

from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from scripts import compare_published
from train_RL_agents.policies.comparison import ComparisonError, compare, comparison_table, p_higher

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted(
    path.parent
    for path in (ROOT / "pretrained").glob("*/config.yaml")
    if yaml.safe_load(path.read_text()).get("task", "marine") == "marine"
)


def row(success, episodes, **more):
    return {"success": success, "episodes": episodes, **more}


def on_stages(success, episodes, **more):
    return [
        row(success, episodes, robots=stage.robots, buoys=stage.buoys, **more)
        for stage in PUBLISHED_STAGES
    ]


def test_p_is_the_share_of_tables_as_extreme():
    # 5 of 5 against 1 of 5: of the C(10, 5) ways to place 5 of the 10 in the first row, those with
    # all 5 or more among the 6 successes.
    assert p_higher(row(1.0, 5), row(0.2, 5)) == pytest.approx(comb(6, 5) / comb(10, 5))


def test_p_is_corrected_for_the_number_of_stages():
    single = p_higher(row(0.80, 100), row(0.66, 100))
    stages = compare(on_stages(0.80, 100), [row(0.66, 100)] * 6, PUBLISHED_STAGES)
    assert [line.p for line in stages] == pytest.approx([6 * single] * 6)
    assert single < 0.05 < 6 * single
    assert not any(line.higher for line in stages)


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, [], "holds no evaluation"),
        ("{}", [], "holds no evaluation"),
        ('{"policies": []}', [], "it holds policies, and stages of one policy are compared"),
        ('{"scenarios": []}', [], "it holds scenarios, and stages of one policy are compared"),
        (
            '{"stages": [], "traffic": "orca", "shield": {"settings": {}}, "settings": []}',
            [],
            "it was played with traffic, shield, and the published ones without",
        ),
        ('{"stages": []}', [], "give --against"),
        ('{"stages": []}', ["--against", "PPO"], "no published figures of 'PPO'"),
        ('{"stages": []}', ["--against", "SAC"], "the published policy has [(3, 0, 0, 30.0)"),
        (
            '{"stages": []}',
            ["--task", "icra2024", "--against", "SAC"],
            "choose --against from adaptive IQN, IQN, DQN, APF, RVO",
        ),
        (
            '{"stages": []}',
            ["--task", "icra2024", "--against", "IQN"],
            "the published policy has [(3, 4, 4, 40.0)",
        ),
    ],
)
def test_what_cannot_be_compared_is_told(tmp_path, refused, content, arguments, message):
    if content is not None:
        (tmp_path / "evaluation.json").write_text(content)
    refused(compare_published.main, [str(tmp_path), *arguments], message)


def test_a_table_has_a_line_for_each_stage(tmp_path, capsys):
    figures = {"success_ci95": [0.9, 1.0], "collision": 0.0, "timeout": 0.0, "mean_time_s": None}
    stages = on_stages(1.0, 1000, **figures)
    (tmp_path / "evaluation.json").write_text(json.dumps({"stages": stages}))
    (tmp_path / "run.json").write_text(
        '{"config": {"agent": "AC-IQN"}, "starts": [{"commit": null}]}'
    )
    assert compare_published.main([str(tmp_path)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " robots, " in line]
    assert len(lines) == 6
    assert lines[0].startswith("| 3 robots, 0 buoys | **1.000 (0.900 to 1.000)** | 0.946 | < 0.001")


def test_a_stage_that_differs_in_its_vortices_or_distance_is_refused():
    published = [row(0.66, 100)] * 6
    known = [{"vortices": s.vortices, "min_distance_m": s.min_distance_m} for s in PUBLISHED_STAGES]
    rows = [old | more for old, more in zip(on_stages(0.8, 100), known, strict=True)]
    assert len(compare(rows, published, PUBLISHED_STAGES)) == 6
    for other in ({"vortices": 4}, {"min_distance_m": 20.0}):
        with pytest.raises(ComparisonError, match="evaluate it on the published stages"):
            compare([*rows[:5], rows[5] | other], published, PUBLISHED_STAGES)


@pytest.mark.parametrize(
    ("against", "published"),
    [
        ([], ["0.950", "0.920", "0.740", "0.590", "0.390"]),
        (["--against", "adaptive IQN"], ["0.980", "0.960", "0.900", "0.760", "0.640"]),
    ],
)
def test_a_policy_is_compared_with_the_published_one_of_its_task(against, published, capsys):
    folder = ROOT / "pretrained" / "icra2024_iqn"
    row = json.loads((folder / "evaluation.json").read_text())["stages"][0]
    assert compare_published.main([str(folder), *against]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " robots, " in line]
    assert [line.split(" | ")[2] for line in lines] == published
    low, high = row["success_ci95"]
    success = f"{row['success']:.3f} ({low:.3f} to {high:.3f})"
    first = lines[0].replace("**", "")  # bold is what is above by more than chance
    assert first.startswith(f"| 3 robots, 4 buoys, 4 vortices | {success} |")
    assert lines[0].endswith(f" | {row['mean_time_s']:.1f} | - |")


def test_damaged_settings_beside_an_evaluation_are_named(tmp_path, refused):
    (tmp_path / "evaluation.json").write_text('{"stages": []}')
    (tmp_path / "config.yaml").write_text("[task, agent]")
    refused(compare_published.main, [str(tmp_path)], "config.yaml' is damaged", "repair it")


def test_a_task_without_published_figures_is_named(tmp_path, refused):
    (tmp_path / "evaluation.json").write_text('{"stages": []}')
    (tmp_path / "config.yaml").write_text("{task: marine_beams, agent: IQN}")
    message = "no published figures of the task 'marine_beams': choose --task from marine, icra2024"
    refused(compare_published.main, [str(tmp_path)], message)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_the_results_page_shows_the_shipped_policies(folder):
    # The published Rainbow did not learn, and the actors of DAgger and DPI are that of AC-IQN.
    of_ac_iqn = dict.fromkeys(
        ("distilled", "distilled_ensemble", "generalist", "lookahead", "randomised"), "AC-IQN"
    )
    agent = ({"rainbow": "DQN"} | of_ac_iqn).get(folder.name)
    table = comparison_table(folder, compare_published.FIGURES, against=agent)
    columns = zip(*(line.strip("| ").split(" | ") for line in table.splitlines()[2:]), strict=True)
    _, success, published, p, _, late, times, published_times = columns
    page = (ROOT / "docs" / "results.md").read_text()

    def row(name, success, times):
        cells = " | ".join(success).replace("*", "").replace("0.", ".").replace(" to ", "-")
        return f"{name} | {cells} | {' '.join(times)} |"

    assert row(f"| `{folder.name}`", success, times) in page
    assert row("", published, published_times) in page
    # What the page says of all policies.
    assert all(cell.startswith("**") for cell in success)
    assert {*p} - {"< 0.001"} == ({"0.003"} if folder.name == "sac" else set())
    seldom = {"iqn_rules": {"0.001"}}
    assert {*late} - {"0.000"} == seldom.get(folder.name, set())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"success": "x"}, r"stages[2].success is 'x' (str): give a number"),
        (
            {"success_ci95": [0.5]},
            r"stages[2].success_ci95 is 0.5: give 2 values, such as [0.5, 0.5]",
        ),
        ({"collision": None}, r"stages[2].collision is None"),
        ({"episodes": 0}, r"stages[2].episodes is 0: give 1 or more"),
    ],
)
def test_a_row_of_no_use_is_named(tmp_path, refused, change, message):
    table = json.loads((SHIPPED[0] / "evaluation.json").read_text())
    table["stages"][2] |= change
    (tmp_path / "evaluation.json").write_text(json.dumps(table))
    place = str(tmp_path / "evaluation.json")
    refused(compare_published.main, [str(tmp_path), "--against", "SAC"], message, place)
