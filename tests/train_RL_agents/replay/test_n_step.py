"""Windows of several steps are cut where their episodes are."""

import pytest
import torch
from torch import Tensor

from tests.train_RL_agents.replay.small_replays import GAMMA, small_replay, store_row
from train_RL_agents.replay.buffer import DeviceReplay


def store_history(replay: DeviceReplay, history: str) -> None:
    """Store one robot's decisions: ``.`` continues, ``T`` terminated, ``L`` limit, ``-`` inactive.

    Row k has the tag k and the reward 2^k.
    """
    for k, what in enumerate(history):
        acted, terminated, truncated = what != "-", what == "T", what == "L"
        flags = (torch.tensor([[flag]]) for flag in (acted, terminated, truncated))
        store_row(replay, float(k), torch.tensor([[2.0**k]]), *flags)


# (history, first row, return, tag of the next observation, discount) for n = 3, gamma = 0.5, where
# the reward of row k is 2^k: each further decision adds 2^first to the return.
WINDOWS = {
    "whole": ("......", 1, 2 * 3, 3.5, 0.125),
    "termination in the first decision": ("..T...", 2, 4 * 1, 2.5, 0.0),
    "termination in the second": ("..T...", 1, 2 * 2, 2.5, 0.0),
    "termination in the last": ("..T...", 0, 1 * 3, 2.5, 0.0),
    "termination after the window": ("....T.", 1, 2 * 3, 3.5, 0.125),
    "truncation in the first decision": ("..L...", 2, 4 * 1, 2.5, 0.5),
    "truncation in the second": ("..L...", 1, 2 * 2, 2.5, 0.25),
    "truncation in the last": ("..L...", 0, 1 * 3, 2.5, 0.125),
    "ring's head, one decision": ("......", 5, 32 * 1, 5.5, 0.5),
    "ring's head, two decisions": ("......", 4, 16 * 2, 5.5, 0.25),
    "ring's head, whole": ("......", 3, 8 * 3, 5.5, 0.125),
    "termination in the newest row": (".....T", 4, 16 * 2, 5.5, 0.0),
    "slot inactive in the next row": ("..-...", 1, 2 * 1, 1.5, 0.5),
    "slot inactive, then another episode": (".T-...", 0, 1 * 2, 1.5, 0.0),
    "next episode right after a termination": (".TT...", 1, 2 * 1, 1.5, 0.0),
    "next episode right after a truncation": (".LT...", 0, 1 * 2, 1.5, 0.25),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_window_is_cut_where_the_episode_is(case: str, device: str) -> None:
    history, first, expected_return, next_tag, discount = WINDOWS[case]
    for start in (0, 3):  # in a fresh ring, and across its seam
        replay = small_replay(7, n_step=3, device=device)
        for _ in range(start):
            store_row(replay, 99.0)
        store_history(replay, history)
        index = torch.tensor([(start + first) % 7], device=device)
        batch = replay.gather(index, replay.tree.weights[index])
        assert batch.reward.tolist() == [expected_return]
        assert batch.discount.tolist() == [discount]
        for field in batch.next_obs:
            assert (field == next_tag).all()
        for field in (*batch.obs, batch.action):
            assert (field == first).all()


def reference_window(
    rows: list[dict[str, Tensor]], first: int, slot: int, n_step: int
) -> tuple[float, int, float]:
    """Return n-step return, last row and discount from all rows ever stored, as a plain loop."""
    total = 0.0
    for k in range(n_step):
        row = rows[first + k]
        total += GAMMA**k * float(row["reward"].flatten()[slot])
        if row["terminated"].flatten()[slot]:
            return total, first + k, 0.0
        over = row["truncated"].flatten()[slot] or first + k + 1 == len(rows)
        if over or k + 1 == n_step or not rows[first + k + 1]["acted"].flatten()[slot]:
            return total, first + k, GAMMA ** (k + 1)
    raise AssertionError("the loop returns in its last round")


@pytest.mark.parametrize("n_step", [1, 2, 5])
@pytest.mark.parametrize("stored", [8, 20, 53])
def test_random_episodes_match_a_plain_loop(n_step: int, stored: int, device: str) -> None:
    worlds, robots, ring = 3, 4, 20
    generator = torch.Generator().manual_seed(stored + n_step)
    replay = small_replay(ring, worlds, robots, device=device, n_step=n_step)
    live = torch.ones(worlds, robots, dtype=torch.bool)
    rows = []
    for t in range(stored):
        chance = torch.rand(worlds, robots, generator=generator)
        terminated = live & (chance < 0.15)
        cut = torch.rand(worlds, 1, generator=generator) < 0.1
        truncated = live & ~terminated & cut
        reward = torch.randn(worlds, robots, generator=generator)
        row = {"reward": reward, "acted": live}
        rows.append(row | {"terminated": terminated, "truncated": truncated})
        store_row(replay, float(t), reward, live, terminated, truncated)
        live = live & ~terminated
        over = cut | ~live.any(1, keepdim=True)
        live = live | over  # worlds that are over begin anew in the next row

    oldest = max(0, stored - ring)
    index, expected = [], []
    for t in range(oldest, stored):
        for slot in range(worlds * robots):
            if rows[t]["acted"].flatten()[slot]:
                index.append(t % ring * worlds * robots + slot)
                expected.append((*reference_window(rows, t, slot, n_step), t, slot))
    index = torch.tensor(index, device=device)
    assert len(replay) == len(index)
    batch = replay.gather(index, replay.tree.weights[index])
    returns, last, discounts, first, slots = torch.tensor(expected, device=device).unbind(1)
    torch.testing.assert_close(batch.reward, returns)
    torch.testing.assert_close(batch.discount, discounts)
    torch.testing.assert_close(batch.obs.ego[:, 0], first + slots / 100)
    torch.testing.assert_close(batch.next_obs.objects[:, 1, 2], last + slots / 100 + 0.5)
