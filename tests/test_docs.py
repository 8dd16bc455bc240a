"""What `docs/` and the front pages say of the code: parameters, files and links."""

import re
import shlex
from pathlib import Path

import pytest

from marinenav_env.config import EnvConfig
from scripts import settings_page
from train_RL_agents import load_policy, train
from train_RL_agents.commands.vessel_notes import notes_on_vessel
from train_RL_agents.config.build import build_agent
from train_RL_agents.config.files import load_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
FRONT = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
BESIDE = [ROOT / "docs" / "benchmarks" / "README.md", ROOT / "pretrained" / "README.md"]
WRITTEN = [
    page for page in (*FRONT, ROOT / "CHANGELOG.md", *BESIDE, *PAGES) if page.name != "settings.md"
]
NOT_PROSE = re.compile(r"^ *```.*?^ *```|^ *\|.*?$", re.MULTILINE | re.DOTALL)
NOT_BROKEN = re.compile(r"`[^`\n]+`")
ROW = re.compile(r"^\| `([a-z]+\.[a-z_]+)` \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([\w-]+))?\)")
TRAINING = re.compile(r"train_RL_agents/train\.py((?:[^\n\\]|\\\n)*)")
NOT_COMPARED = ("cvar", "ego_magnitude", "object_magnitude", "start")
"""Settings of acting, those that the observation's description gives, and a run not shipped."""
SOURCE = re.compile(r"`((?:marinenav_env|train_RL_agents|scripts|tests|docs|configs)/[\w./-]+)`")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["AC-IQN", "Rainbow"])
def test_numbers_of_parameters_are_those_of_the_agents(name):
    agent = build_agent(load_config(agent=name)[0], "cpu")
    shown = re.search(rf"{name}: ([\d,]+)", (ROOT / "docs" / "scaling.md").read_text())[1]
    assert int(shown.replace(",", "")) == sum(part.numel() for part in agent.parameters())


def test_the_table_of_parameters_is_that_of_the_code():
    config = EnvConfig()
    table = ROW.findall((ROOT / "docs" / "physics.md").read_text())
    rows = {name: (shown, unit) for name, shown, unit in table}
    groups = vars(config)
    assert sorted(rows) == sorted(f"{g}.{name}" for g in groups for name in vars(groups[g]))
    for name, (shown, unit) in rows.items():
        group, field = name.split(".")
        value = getattr(groups[group], field)
        stated = type(groups[group]).__dataclass_fields__[field].metadata["unit"]
        assert unit.replace("²", "^2").replace("³", "^3") == stated, name
        if isinstance(value, bool | str):
            assert shown == str(value), name
        elif isinstance(value, tuple):
            assert [float(x) for x in shown.strip("()").split(",")] == pytest.approx(value), name
        else:
            assert float(shown) == pytest.approx(value, rel=1e-6), name


def test_the_settings_of_the_first_training_are_taken(tmp_path):
    page = (ROOT / "docs" / "first_training.md").read_text()
    text, own_boat = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "my_water.yaml"
    path.write_text(own_boat)
    config, _, _ = load_config(path=str(path), agent="SAC")
    assert config.env.vessel.mass == 260.0
    assert not notes_on_vessel(config.env.vessel)
    path.write_text(text)
    config, _, _ = load_config(path=str(path), agent="SAC")
    assert (config.env.scenario.width, config.total_steps) == (80.0, 600_000)
    for given in re.findall(r"`(env\.\S+): (\S[^`]*)`", page):
        load_config(path=str(path), agent="SAC", overrides=["=".join(given)])


def test_the_page_of_settings_is_that_of_the_code():
    assert settings_page.PAGE.read_text() == settings_page.page(), "run scripts/settings_page.py"


def test_every_setting_says_what_it_is():
    rows = [line.split(" | ") for line in settings_page.page().splitlines() if line[:3] == "| `"]
    assert len(rows) > 70
    assert [row[0] for row in rows if not row[4].strip()] == []


def test_every_direct_dependency_is_justified():
    pinned = (ROOT / "requirements.txt").read_text().partition("# what the above")[0]
    names = re.findall(r"^([\w-]+)==", pinned, re.MULTILINE)
    page = (ROOT / "docs" / "decisions.md").read_text().partition("### Dependencies")[2]
    listed = ", ".join(re.findall(r"^\| ([a-z0-9, -]+) \|", page, re.MULTILINE)).split(", ")
    assert sorted(listed) == sorted(["package", *names])


def test_the_index_lists_every_page():
    listed = LINK.findall((ROOT / "docs" / "index.md").read_text())
    assert {page.name for page in PAGES} - {name for name, _ in listed} == {"index.md"}


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_begins_on_a_line_of_its_own(page):
    fences = [line.strip() for line in page.read_text().splitlines() if "```" in line]
    assert len(fences) % 2 == 0
    assert [line for line in fences if not re.fullmatch(r"```\w*", line)] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_broken_at_a_hundred_columns(page):
    """So that a change shows what it changed. Tables and code are as long as they are."""
    prose = NOT_PROSE.sub("", page.read_text()).splitlines()
    assert len(prose) > 10
    assert [line for line in prose if len(NOT_BROKEN.sub("`", line)) > 100] == []


def trainings() -> list[tuple[str, str]]:
    """Shipped policies, and the training command that their page shows next."""
    pages = ("trainings.md", "icra2024.md", "physics.md")
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    shown = re.split(r"^(?:\*\*[\w-]+\*\* \()?`pretrained/(\w+)`", text, flags=re.MULTILINE)[1:]
    pairs = zip(shown[::2], shown[1::2], strict=True)
    commands = ((name, TRAINING.search(page)) for name, page in pairs)
    return [(name, found[1].replace("\\\n", " ")) for name, found in commands if found]


def test_commands_are_those_of_the_shipped_policies():
    """What decides how a policy learns; the worlds it is evaluated in may be others."""
    named = trainings()
    of_icra2024 = {f"icra2024_{name}" for name in ("dqn", "iqn", "ac_iqn")}
    assert {"ac_iqn", "dqn", "iqn", "sectors_dqn", *of_icra2024} <= {name for name, _ in named}
    for name, command in named:
        parsed = train.parse(shlex.split(command, comments=True))
        says, _, _ = load_config(
            task=parsed.task, agent=parsed.agent, preset=parsed.preset, overrides=parsed.overrides
        )
        policy = load_policy(str(ROOT / "pretrained" / name))[1]
        for part in ("agent", "curriculum", "exploration", "stack_k", "updates"):
            assert getattr(says, part) == getattr(policy, part), (name, part)
        learnt = {
            key: value for key, value in vars(says.algorithm).items() if key not in NOT_COMPARED
        }
        assert learnt == {key: vars(policy.algorithm)[key] for key in learnt}, name
        assert says.env.reward == policy.env.reward, name


@pytest.mark.parametrize(
    "page", [*FRONT, *BESIDE, *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_and_files_exist(page):
    text = page.read_text()
    for target, anchor in LINK.findall(text):
        if target.startswith("http"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"
    for name in SOURCE.findall(text):
        new = f"`{name}` | new:" in text
        assert new or (ROOT / name).exists(), name
