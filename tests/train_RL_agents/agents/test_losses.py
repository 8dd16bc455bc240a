"""The losses against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from train_RL_agents.agents import losses

DOUBLE = torch.float64


def tensor(values):
    return torch.tensor(values, dtype=DOUBLE)


def test_td_target_adds_the_discounted_value():
    reward, discount = tensor([1.0, 2.0]), tensor([0.9, 0.0])
    value = tensor([[10.0, 20.0], [30.0, 40.0]])
    expected = tensor([[10.0, 19.0], [2.0, 2.0]])
    torch.testing.assert_close(losses.td_target(reward, discount, value), expected)
    torch.testing.assert_close(losses.td_target(reward, discount, value[:, 0]), expected[:, 0])


def test_quantile_huber_by_hand():
    # delta = target - theta = 0.5, -2 for theta 1 and 1, -1.5 for theta 0.5; kappa 1:
    # Huber 0.125, 1.5 and 0.5, 1.0; weights |0.25 - 0|, |0.25 - 1| and |0.5 - 0|, |0.5 - 1|.
    theta, target = tensor([[1.0, 0.5]]), tensor([[1.5, -1.0]])
    first = (0.25 * 0.125 + 0.75 * 1.5) / 2
    second = (0.5 * 0.5 + 0.5 * 1.0) / 2
    for tau in (tensor([[0.25, 0.5]]), tensor([0.25, 0.5])):
        loss = losses.quantile_huber(theta, target, tau)
        torch.testing.assert_close(loss, tensor([first + second]))


def test_quantile_huber_with_another_kappa():
    # delta -2, kappa 0.5: Huber 0.5 * (2 - 0.25) = 0.875, divided by kappa 1.75, weight 0.75.
    loss = losses.quantile_huber(tensor([[1.0]]), tensor([[-1.0]]), tensor([0.25]), kappa=0.5)
    torch.testing.assert_close(loss, tensor([0.75 * 1.75]))


def test_quantile_huber_is_least_at_the_quantiles():
    target = torch.arange(101, dtype=DOUBLE).unsqueeze(0)
    tau = tensor([0.1, 0.5, 0.9])
    theta = tensor([[50.0, 50.0, 50.0]]).requires_grad_()
    optimizer = torch.optim.Adam([theta], lr=1.0)
    for _ in range(300):
        optimizer.zero_grad()
        losses.quantile_huber(theta, target, tau).sum().backward()
        optimizer.step()
    torch.testing.assert_close(theta.detach(), tensor([[10.0, 50.0, 90.0]]), rtol=0.0, atol=1.0)


def test_categorical_projection_by_hand():
    support = tensor([0.0, 1.0, 2.0, 3.0])
    p = tensor([[0.1, 0.2, 0.3, 0.4]])
    # r 0.25, discount 0.5: atoms at 0.25, 0.75, 1.25, 1.75.
    m = losses.categorical_projection(p, tensor([0.25]), tensor([0.5]), support)
    expected = tensor(
        [[0.75 * 0.1 + 0.25 * 0.2, 0.25 * 0.1 + 0.75 * 0.2 + 0.75 * 0.3 + 0.25 * 0.4, 0.375, 0.0]]
    )
    torch.testing.assert_close(m, expected)


def test_categorical_projection_clips_and_keeps_whole_atoms():
    support = tensor([0.0, 1.0, 2.0, 3.0])
    p = tensor([[0.1, 0.2, 0.3, 0.4]]).expand(4, 4)
    reward, discount = tensor([9.0, -9.0, 2.0, 0.0]), tensor([1.0, 1.0, 0.0, 1.0])
    m = losses.categorical_projection(p, reward, discount, support)
    expected = tensor([[0, 0, 0, 1.0], [1.0, 0, 0, 0], [0, 0, 1.0, 0], [0.1, 0.2, 0.3, 0.4]])
    torch.testing.assert_close(m, expected)


def test_categorical_cross_entropy_by_hand():
    log_p, m = tensor([[0.25, 0.75]]).log(), tensor([[0.4, 0.6]])
    expected = tensor([-(0.4 * math.log(0.25) + 0.6 * math.log(0.75))])
    torch.testing.assert_close(losses.categorical_cross_entropy(log_p, m), expected)


def test_q_learning_by_hand():
    loss = losses.q_learning(tensor([1.0, 1.0]), tensor([1.5, 4.0]))
    torch.testing.assert_close(loss, tensor([0.125, 2.5]))


def test_squared_td_and_policy_gradient_by_hand():
    torch.testing.assert_close(losses.squared_td(tensor([1.0]), tensor([4.0])), tensor([9.0]))
    torch.testing.assert_close(losses.policy_gradient(tensor([[1.0, 3.0]])), tensor(-2.0))


def test_squashed_log_prob_integrates_to_one():
    mu, log_std = tensor([0.7]), tensor([-0.4])
    a = torch.linspace(-1, 1, 200_001, dtype=DOUBLE)[1:-1].unsqueeze(-1)
    z = torch.tan(0.5 * math.pi * a)
    density = losses.squashed_log_prob(z, mu, log_std).exp()
    assert density.mean().item() * 2 == pytest.approx(1.0, abs=1e-4)


def test_squashed_log_prob_by_hand():
    # At z = mu = 1, std 1: log N = -0.5 log(2 pi), da/dz = (2/pi)/2 = 1/pi; two coordinates add up.
    z = tensor([[1.0, 1.0]])
    expected = 2 * (-0.5 * math.log(2 * math.pi) + math.log(math.pi))
    value = losses.squashed_log_prob(z, z, torch.zeros(1, 2, dtype=DOUBLE))
    torch.testing.assert_close(value, tensor([expected]))


def test_soft_losses_by_hand():
    q_1, q_2, log_prob = tensor([1.0, 5.0]), tensor([2.0, 3.0]), tensor([-1.0, 0.5])
    alpha = tensor(0.2)
    expected = tensor([1.2, 2.9])
    torch.testing.assert_close(losses.soft_value(q_1, q_2, log_prob, alpha), expected)
    torch.testing.assert_close(losses.soft_policy(q_1, q_2, log_prob, alpha), tensor(-2.05))
    loss = losses.temperature(tensor(-1.5), log_prob, target_entropy=-2.0)
    torch.testing.assert_close(loss, tensor(1.5 * (-0.25 - 2.0)))


def test_the_clipped_objective_gains_nothing_beyond_the_clip():
    """By hand: ratios 1.5, 0.5 and 1.1 with advantages 2 and -2, and a clip of 0.2."""
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1, 1.1], dtype=torch.float64)
    advantage = torch.tensor([2.0, -2.0, 2.0, -2.0, 2.0, -2.0], dtype=torch.float64)
    log_ratio = ratio.log().requires_grad_()
    loss = losses.clipped_policy(log_ratio, advantage, 0.2)
    expected = [-2.4, 3.0, -1.0, 1.6, -2.2, 2.2]
    torch.testing.assert_close(loss, torch.tensor(expected, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(loss.sum(), log_ratio)
    assert (gradient == 0.0).tolist() == [True, False, False, True, False, False]
