"""The losses of all agents as pure functions, in the symbols of the papers they come from.

B is the batch, N the quantile fractions of the learned distribution, M those of its target, Z the
atoms of a categorical distribution, A the actions. Critics' losses keep the batch dimension, so
that a caller can weight each sample; the dtype is that of the arguments (float32 for training).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional


def td_target(reward: Tensor, discount: Tensor, value: Tensor) -> Tensor:
    """Return r + discount * value, for `value` `[B]` or `[B, N]` and the others `[B]`.

    The discount is gamma^m of an m-step return, and 0 where the robot's episode terminated.
    """
    if value.dim() == 2:
        reward, discount = reward.unsqueeze(-1), discount.unsqueeze(-1)  # [B, 1]
    return torch.addcmul(reward, discount, value)  # as value


def quantile_huber(theta: Tensor, target: Tensor, tau: Tensor, kappa: float = 1.0) -> Tensor:
    """Quantile Huber loss between two sets of quantiles (Dabney et al. 2018, IQN, eq. 3).

    sum_i mean_j |tau_i - 1{delta_ij < 0}| L_kappa(delta_ij) / kappa, delta_ij = target_j - theta_i.

    Args:
        theta: learned quantiles `[B, N]` at fractions `tau`.
        target: target quantiles `[B, M]`, without gradient.
        tau: `[B, N]`, or `[N]` shared by all samples.
        kappa: where the Huber loss turns from square to linear, in units of the return.

    Returns:
        `[B]`.
    """
    shape = (theta.shape[0], theta.shape[1], target.shape[1])
    theta, target = theta.unsqueeze(2).expand(shape), target.unsqueeze(1).expand(shape)  # [B, N, M]
    huber = functional.huber_loss(theta, target, reduction="none", delta=kappa)  # [B, N, M]
    below = (target < theta).to(theta.dtype)  # [B, N, M], 1{delta < 0}
    weight = (tau.unsqueeze(-1) - below).abs_()  # [B, N, M]
    return (weight * huber).sum(1).mean(1) / kappa  # [B]


def categorical_projection(
    probabilities: Tensor, reward: Tensor, discount: Tensor, support: Tensor
) -> Tensor:
    """Project the distribution of r + discount * z back onto the support.

    Algorithm 1 of Bellemare et al. 2017, "A Distributional Perspective on Reinforcement Learning".

    Args:
        probabilities: p(z_j) of the next state's action `[B, Z]`.
        reward: `[B]`.
        discount: `[B]`.
        support: the atoms z_j `[Z]`, evenly spaced and ascending.

    Returns:
        m `[B, Z]`, a distribution over the same support.
    """
    low, last = support[0], support.shape[0] - 1
    step = (support[-1] - low) / last  # []
    z = reward.unsqueeze(-1) + discount.unsqueeze(-1) * support  # [B, Z]
    b = ((z - low) / step).clamp(0, last)  # [B, Z], position in units of atoms
    atoms = torch.arange(last + 1, device=b.device, dtype=b.dtype)
    # Each p goes to the two nearest atoms; as a product, since atomic sums on a GPU have no order.
    share = functional.relu_(1 - (b.unsqueeze(-1) - atoms).abs_())  # [B, Z, Z]
    return (probabilities.unsqueeze(-2) @ share).squeeze(-2)  # [B, Z]


def categorical_cross_entropy(log_p: Tensor, m: Tensor) -> Tensor:
    """Return -sum_j m_j log p(z_j) `[B]` of two distributions `[B, Z]` (C51's loss)."""
    return -(m * log_p).sum(-1)


def q_learning(q: Tensor, target: Tensor, kappa: float = 1.0) -> Tensor:
    """Huber loss `[B]` of the error target - q, both `[B]` (Mnih et al. 2015, DQN)."""
    return functional.huber_loss(q, target, reduction="none", delta=kappa)


def squared_td(q: Tensor, target: Tensor) -> Tensor:
    """Return (target - q)^2 `[B]`, the critic's loss of DDPG and SAC."""
    return functional.mse_loss(q, target, reduction="none")


def policy_gradient(q: Tensor) -> Tensor:
    """Return the loss `[]` of a deterministic actor: minus the mean value of its actions.

    Lillicrap et al. 2016, "Continuous control with deep reinforcement learning" (DDPG).

    Args:
        q: values `[B]`, or their quantiles `[B, N]`, of the actor's actions.
    """
    return -q.mean()


def squashed_log_prob(z: Tensor, mu: Tensor, log_std: Tensor) -> Tensor:
    """Log-density of a = (2/pi) atan(z) for z ~ N(mu, exp(log_std)^2), summed over the action.

    The change of variables gives log p(a) = log N(z) - log |da/dz| with da/dz = (2/pi) / (1 + z^2).

    Args:
        z: `[..., A]`.
        mu: `[..., A]`.
        log_std: `[..., A]`.

    Returns:
        `[...]`.
    """
    normal = -0.5 * ((z - mu) * torch.exp(-log_std)).square() - log_std  # [..., A]
    log_slope = -torch.log1p(z.square())  # [..., A], without its constant log(2/pi)
    constant = 0.5 * math.log(2.0 * math.pi) + math.log(2.0 / math.pi)
    return (normal - log_slope - constant).sum(-1)  # [...]


def soft_value(q_1: Tensor, q_2: Tensor, log_prob: Tensor, alpha: Tensor) -> Tensor:
    """Return min(q_1, q_2) - alpha log pi `[B]` (Haarnoja et al. 2018, SAC, eq. 3)."""
    return torch.minimum(q_1, q_2) - alpha * log_prob


def soft_policy(q_1: Tensor, q_2: Tensor, log_prob: Tensor, alpha: Tensor) -> Tensor:
    """Return the loss `[]` of SAC's actor: mean of alpha log pi - min(q_1, q_2) (eq. 7)."""
    return -soft_value(q_1, q_2, log_prob, alpha).mean()


def temperature(log_alpha: Tensor, log_prob: Tensor, target_entropy: float) -> Tensor:
    """Return the loss `[]` of SAC's temperature: -log alpha (mean log pi + target entropy).

    Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications", eq. 18, with log alpha in
    place of alpha in front, as its authors' code has it.

    Args:
        log_alpha: `[]`.
        log_prob: `[B]`, without gradient.
        target_entropy: in nats; minus the number of action dimensions by default.
    """
    return -log_alpha * (log_prob.mean() + target_entropy)


def clipped_policy(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """Return minus the clipped surrogate of PPO (Schulman et al. 2017, eq. 7).

    -min(r A, clip(r, 1 - epsilon, 1 + epsilon) A) with r = exp(log_ratio).

    Args:
        log_ratio: of an action's probability now to that when it was drawn, `[B]`.
        advantage: A, `[B]`.
        clip: epsilon.

    Returns:
        `[B]`.
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
