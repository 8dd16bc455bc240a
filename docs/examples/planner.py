"""A planner for a vessel: from poses on a chart to thrusts, with an exported policy.

It needs torch and nothing of marinenav, and fits into a node of ROS 2 as it is. Frames and units
are those of REP 103: map x east, y north; vessel x forward, y to port; angles counter-clockwise in
rad. docs/deployment.md says what each number has to be.

    planner = Planner("policy.pt")
    left, right = planner.thrusts(vessel, goal=(12.0, 40.0), contacts=contacts, elapsed=0.5)
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

MARK = b"marinenav-sha256:"
ZIP = b"PK"  # what TorchScript files begin with, and ONNX files do not
WARM_UP_CALLS = 3  # TorchScript compiles in the first two, which takes longer than a decision may
THRUST_TOLERANCE = 1.0  # N: a thrust may have been rounded on its way


@dataclass(frozen=True)
class Vessel:
    """The own state: m, rad, m/s over ground, rad/s, N."""

    east: float
    north: float
    yaw: float
    surge: float
    sway: float
    yaw_rate: float
    left_thrust: float
    right_thrust: float


@dataclass(frozen=True)
class Contact:
    """Another vessel or a buoy: m, m/s over ground, and the radius of a circle around it, m."""

    east: float
    north: float
    east_velocity: float
    north_velocity: float
    radius: float


class Planner:
    """Acts for one vessel; the network is warm when it is made.

    A policy that observes several decisions remembers those on the way to a goal: call it once a
    decision. It begins anew at the goal, and with a goal that is farther from the last one than the
    distance at which one is reached.

    Args:
        path: of a file that `export.py --format torchscript` wrote.

    Raises:
        ValueError: the file is damaged, of another format, or of another task.
    """

    def __init__(self, path: str | Path) -> None:
        description = {"marinenav.json": ""}
        content = io.BytesIO(checked(Path(path)))
        self.model = torch.jit.load(content, map_location="cpu", _extra_files=description)
        self.about: dict[str, Any] = json.loads(description["marinenav.json"])
        config = self.about["config"]
        if config.get("task", "marine") != "marine":
            raise ValueError(
                f"{path} acts in the task {config['task']}: this planner observes as in marine"
            )
        self.frames: int = config["stack_k"]
        self.goal = (math.inf, math.inf)
        self.past: list[tuple[Tensor, Tensor, Tensor]] = []
        self.range = config["env"]["perception"]["range"]
        half_angle = min(0.5 * config["env"]["perception"]["angle"], math.pi)
        self.least_ahead = math.cos(half_angle)  # of what is in view, in shares of its distance
        self.goal_distance = config["env"]["reward"]["goal_distance"]
        self.limits = config["env"]["vessel"]
        self.decision_s = self.about["actions"]["decision_s"]
        self.rows = self.about["inputs"][1]["shape"][1] // self.frames
        moored = Vessel(*[0.0] * 8)
        for _ in range(WARM_UP_CALLS):
            self.rates(self.remembering(self.observe(moored, (20.0, 0.0), contacts=())))
        self.past = []

    def thrusts(
        self,
        vessel: Vessel,
        goal: tuple[float, float],
        contacts: Sequence[Contact],
        elapsed: float,
    ) -> tuple[float, float]:
        """Return the thrusts left and right [N] to hold `elapsed` seconds after this call.

        A rate holds for one decision; a vessel whose next decision is late keeps its thrusts then.
        At the goal the thrusts go to zero.

        Raises:
            ValueError: a number is not finite, `elapsed` or a radius is negative, or a present
                thrust is beyond the limits of the policy's vessel.
        """
        goal = (float(goal[0]), float(goal[1]))
        check_numbers(vessel, goal, contacts, elapsed)
        low, high = self.limits["min_thrust"], self.limits["max_thrust"]
        check_thrusts(vessel, low, high)
        if math.dist(goal, self.goal) > self.goal_distance:
            self.past = []
        self.goal = goal
        ahead, aside = to_body(vessel.yaw, goal[0] - vessel.east, goal[1] - vessel.north)
        now = vessel.left_thrust, vessel.right_thrust
        if math.hypot(ahead, aside) <= self.goal_distance:
            rates, self.past = tuple(-thrust / self.decision_s for thrust in now), []
        else:
            rates = self.rates(self.remembering(self.observe(vessel, goal, contacts)))
        largest, seconds = self.limits["max_thrust_rate"], min(elapsed, self.decision_s)
        left, right = (
            min(max(thrust + min(max(rate, -largest), largest) * seconds, low), high)
            for thrust, rate in zip(now, rates, strict=True)
        )
        return left, right

    def observe(
        self, vessel: Vessel, goal: tuple[float, float], contacts: Sequence[Contact]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return one decision's observation `[1, 7]`, `[1, K, 5]`, `[1, K]`: y to starboard."""
        yaw = vessel.yaw
        own = [
            *to_body(yaw, goal[0] - vessel.east, goal[1] - vessel.north),
            *(vessel.surge, -vessel.sway, -vessel.yaw_rate),
            *(vessel.left_thrust, vessel.right_thrust),
        ]
        seen = []
        for contact in contacts:
            x, y = to_body(yaw, contact.east - vessel.east, contact.north - vessel.north)
            velocity = to_body(yaw, contact.east_velocity, contact.north_velocity)
            surface = math.hypot(x, y) - contact.radius
            if surface <= self.range and x >= self.least_ahead * math.hypot(x, y):
                seen.append((surface, [x, y, *velocity, contact.radius]))
        nearest = [features for _, features in sorted(seen)[: self.rows]]
        objects = torch.zeros(1, self.rows, 5, dtype=torch.float64)
        mask = torch.zeros(1, self.rows, dtype=torch.float64)
        if nearest:
            objects[0, : len(nearest)] = torch.tensor(nearest, dtype=torch.float64)
            mask[0, : len(nearest)] = 1.0
        return torch.tensor([own], dtype=torch.float64), objects, mask

    def remembering(self, now: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return an observation with those before it, newest first; the first fills all places."""
        past = self.past or [now] * (self.frames - 1)
        self.past = [now, *past][: self.frames - 1]
        ego, objects, mask = zip(now, *past, strict=True)
        return torch.cat(ego, 1), torch.cat(objects, 1), torch.cat(mask, 1)

    @torch.no_grad()
    def rates(self, observation: tuple[Tensor, Tensor, Tensor]) -> tuple[float, float]:
        """Return the rates of the thrusts left and right [N/s] for an observation."""
        others = [
            torch.tensor([entry["acting"]], dtype=torch.float64)
            for entry in self.about["inputs"][3:]
        ]
        answer = self.model(observation, *others)
        parts = answer if isinstance(answer, tuple) else (answer,)
        outputs = dict(zip([entry["name"] for entry in self.about["outputs"]], parts, strict=True))
        actions = self.about["actions"]
        if "index" not in actions:  # a pair in (-1, 1), or the mean before the squashing
            pair = outputs["action"] if "action" in outputs else squash(outputs["mu"])
            left, right = (actions["largest_rate_n_per_s"] * pair[0]).tolist()
            return left, right
        values = self.values(outputs)[0]
        right_rates = actions["right_thrust_rates_n_per_s"]
        left_choice, right_choice = divmod(int(values.argmax()), len(right_rates))
        return actions["left_thrust_rates_n_per_s"][left_choice], right_rates[right_choice]

    def values(self, outputs: dict[str, Tensor]) -> Tensor:
        """Return the value `[1, 25]` of each action index."""
        if "quantiles" in outputs:
            return outputs["quantiles"].mean(1)
        if "probabilities" in outputs:
            support = torch.tensor(self.about["support"], dtype=torch.float64)
            return outputs["probabilities"] @ support
        return outputs["values"]


def checked(path: Path) -> bytes:
    """Return a TorchScript file's content, once its checksum has been found right.

    Raises:
        ValueError: the file is damaged, or of another format.
    """
    content = path.read_bytes()
    head, mark, digest = content.rpartition(MARK)
    zeroed = head + mark + b"0" * 64 + digest[64:]
    if not mark or hashlib.sha256(zeroed).hexdigest().encode() != digest[:64]:
        raise ValueError(f"{path} is damaged, or no export of marinenav: export it again")
    if not content.startswith(ZIP):
        raise ValueError(f"{path} is no TorchScript file: export with --format torchscript")
    return content


def check_numbers(
    vessel: Vessel, goal: tuple[float, float], contacts: Sequence[Contact], elapsed: float
) -> None:
    """Raise ValueError for input from which no thrust should follow, and name it."""
    given = {"vessel": astuple(vessel), "goal": goal, "elapsed": (elapsed,)}
    given |= {f"contacts[{i}]": astuple(contact) for i, contact in enumerate(contacts)}
    for name, numbers in given.items():
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"{name} is {numbers}: give finite numbers, or leave the contact out")
    if elapsed < 0.0 or any(contact.radius < 0.0 for contact in contacts):
        raise ValueError(f"elapsed is {elapsed} or a radius is negative: give 0 or more")


def check_thrusts(vessel: Vessel, low: float, high: float) -> None:
    """Raise ValueError for a present thrust that the policy's vessel cannot have, and name it."""
    for name in ("left_thrust", "right_thrust"):
        thrust = getattr(vessel, name)
        if not low - THRUST_TOLERANCE <= thrust <= high + THRUST_TOLERANCE:
            raise ValueError(
                f"{name} is {thrust}: give {low} to {high} N, the limits of the policy's vessel"
            )


def to_body(yaw: float, east: float, north: float) -> tuple[float, float]:
    """Return the components of a vector on the chart forward and to starboard."""
    return (
        math.cos(yaw) * east + math.sin(yaw) * north,
        math.sin(yaw) * east - math.cos(yaw) * north,
    )


def squash(z: Tensor) -> Tensor:
    """Map unbounded numbers to (-1, 1)."""
    return 2.0 / math.pi * torch.atan(z)
