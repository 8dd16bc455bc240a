"""What a simulator answered during an episode: the ``recorded`` section of an episode file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from marinenav_env.episodes.json_fields import FINITE, JsonSection, SameValues

EGO_FEATURES = 7
OBJECT_FEATURES = 5
STATES = (
    "normal",
    "collision",
    "reach goal",
    "too long episode",
    "deactivated after collision",
    "deactivated after reaching goal",
)
"""What ``infos`` may say of a robot after a decision."""


@dataclass(frozen=True, eq=False)
class ObservationLog(SameValues):
    """Observations of robots over time, with any leading dimensions ``[...]``.

    Attributes:
        ego: own state [..., 7] in body frame: goal x, y [m], u, v [m/s], r [rad/s], thrusts [N];
            NaN where the robot was gone.
        objects: objects nearest first [..., K, 5]: x, y [m], vx, vy [m/s], radius [m]; rows past
            ``count`` are zero.
        count: number of objects seen [...].
        present: whether the robot was still there [...].
    """

    ego: np.ndarray
    objects: np.ndarray
    count: np.ndarray
    present: np.ndarray

    @property
    def mask(self) -> np.ndarray:
        """Return 1.0 for an object and 0.0 for padding [..., K]."""
        slots = np.arange(self.objects.shape[-2])
        return (slots < self.count[..., None]).astype(float)


def parse_observations(
    section: JsonSection, key: str, rows: object, capacity: int
) -> ObservationLog:
    """Read a list of observations ``[self, objects]``, null for a robot already gone.

    Args:
        section: the JSON object, for messages.
        key: place of ``rows`` in it.
        rows: the list, parsed.
        capacity: most objects an observation may hold, K.

    Returns:
        The log with one leading dimension.

    Raises:
        ValueError: an observation has another structure, too many objects or a non-finite number.
    """
    if not isinstance(rows, list):
        section.fail(key, rows, "give a list of observations [self, objects]")
    log = _empty_log(len(rows), capacity)
    for index, row in enumerate(rows):
        place = f"{key}[{index}]"
        if row is None:
            continue
        if not isinstance(row, list) or len(row) != 2:
            section.fail(place, row, "give [self, objects], or null for a robot already gone")
        log.present[index] = True
        log.ego[index] = section.array_of(f"{place}[0]", row[0], (EGO_FEATURES,), FINITE)
        seen = section.array_of(f"{place}[1]", row[1], (None, OBJECT_FEATURES), FINITE)
        if len(seen) > capacity:
            section.fail(
                f"{place}[1] (length {len(seen)})",
                row[1],
                f"give at most the {capacity} objects of robots.perception.max_obj_num",
            )
        log.count[index] = len(seen)
        log.objects[index, : len(seen)] = seen
    return log


def observations_to_json(log: ObservationLog) -> list[object]:
    """Return the list that :func:`parse_observations` reads; one leading dimension is expected."""
    return list(_observation_rows(log))


def _observation_rows(log: ObservationLog) -> Iterator[list[object] | None]:
    for ego, objects, count, present in zip(
        log.ego, log.objects, log.count, log.present, strict=True
    ):
        yield [ego.tolist(), objects[:count].tolist()] if present else None


def _empty_log(length: int, capacity: int) -> ObservationLog:
    return ObservationLog(
        ego=np.full((length, EGO_FEATURES), np.nan),
        objects=np.zeros((length, capacity, OBJECT_FEATURES)),
        count=np.zeros(length, dtype=np.int64),
        present=np.zeros(length, dtype=bool),
    )


def _stack(logs: Sequence[ObservationLog]) -> ObservationLog:
    return ObservationLog(
        ego=np.stack([log.ego for log in logs]),
        objects=np.stack([log.objects for log in logs]),
        count=np.stack([log.count for log in logs]),
        present=np.stack([log.present for log in logs]),
    )


@dataclass(frozen=True, eq=False)
class Recording(SameValues):
    """Answers of the simulator to T decisions of R robots.

    For a robot already gone, reward is 0, done is true, and collision, reach_goal, apply_colregs,
    phi and energy repeat their last values.

    Attributes:
        continuous_action: whether actions are pairs in [-1, 1] rather than indices.
        rewards: reward of each decision [T, R].
        dones: whether the robot is finished after it [T, R].
        infos: one of :data:`STATES` [T, R].
        collision: collision flag after the decision [T, R].
        reach_goal: goal flag after the decision [T, R].
        apply_colregs: whether a COLREGs rule applies [T + 1, R]; the first row is the reset's.
        phi: turn the rule asks for [rad], NaN where none applies [T, R]; ``phi[t]`` belongs to
            ``apply_colregs[t + 1]``.
        deactivated: whether the robot was gone before this decision's end flags [T, R].
        energy: energy of the decision [N s] [T, R].
        obs: observations [T + 1, R]; the first row is the reset's.
    """

    continuous_action: bool
    rewards: np.ndarray
    dones: np.ndarray
    infos: np.ndarray
    collision: np.ndarray
    reach_goal: np.ndarray
    apply_colregs: np.ndarray
    phi: np.ndarray
    deactivated: np.ndarray
    energy: np.ndarray
    obs: ObservationLog


KEYS = tuple(item.name for item in fields(Recording))
"""Keys of the section in the order of the file."""


def parse_recording(section: JsonSection, decisions: int, robots: int, capacity: int) -> Recording:
    """Read the ``recorded`` section of an episode of T decisions and R robots.

    Args:
        section: the JSON object.
        decisions: T, the length of the longest action history.
        robots: R.
        capacity: most objects an observation may hold.

    Raises:
        ValueError: a key is missing or unknown, a list has a wrong length, or a value is of no use.
    """
    section.expect_keys(KEYS)
    each = (decisions, robots)
    with_reset = (decisions + 1, robots)
    recording = Recording(
        continuous_action=section.flag("continuous_action"),
        rewards=section.array("rewards", each, FINITE),
        dones=section.flags("dones", each),
        infos=section.choices("infos", each, STATES),
        collision=section.flags("collision", each),
        reach_goal=section.flags("reach_goal", each),
        apply_colregs=section.flags("apply_colregs", with_reset),
        phi=_parse_phi(section, each),
        deactivated=section.flags("deactivated", each),
        energy=section.array("energy", each, FINITE),
        obs=_parse_observation_table(section, with_reset, capacity),
    )
    for decision, robot in np.argwhere(recording.apply_colregs[1:] & np.isnan(recording.phi)):
        section.fail(
            f"phi[{decision}][{robot}]",
            None,
            f"give the turn in rad that the rule asks for, or false at apply_colregs"
            f"[{decision + 1}][{robot}]",
        )
    return recording


def recording_to_json(recording: Recording) -> dict[str, object]:
    """Return the ``recorded`` section, keys in the order of the file."""
    data: dict[str, object] = {}
    for key in KEYS:
        value = getattr(recording, key)
        data[key] = value.tolist() if isinstance(value, np.ndarray) else value
    data["phi"] = [
        [None if np.isnan(angle) else angle for angle in row] for row in recording.phi.tolist()
    ]
    data["obs"] = [
        observations_to_json(ObservationLog(*row))
        for row in zip(
            recording.obs.ego,
            recording.obs.objects,
            recording.obs.count,
            recording.obs.present,
            strict=True,
        )
    ]
    return data


def _parse_phi(section: JsonSection, shape: tuple[int, int]) -> np.ndarray:
    """Read the angles; null, where no rule applies, becomes NaN."""
    rows = section.data["phi"]
    if not isinstance(rows, list) or len(rows) != shape[0]:
        section.fail("phi", rows, f"give {shape[0]} rows")
    phi = np.full(shape, np.nan)
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != shape[1]:
            section.fail(f"phi[{index}]", row, f"give {shape[1]} entries, null where none applies")
        for robot, angle in enumerate(row):
            if angle is not None:
                phi[index, robot] = section.array_of(f"phi[{index}][{robot}]", angle, (), FINITE)
    return phi


def _parse_observation_table(
    section: JsonSection, shape: tuple[int, int], capacity: int
) -> ObservationLog:
    rows = section.data["obs"]
    if not isinstance(rows, list) or len(rows) != shape[0]:
        section.fail("obs", rows, f"give {shape[0]} rows, the reset's first")
    logs = []
    for index, row in enumerate(rows):
        log = parse_observations(section, f"obs[{index}]", row, capacity)
        if len(log.count) != shape[1]:
            section.fail(f"obs[{index}] (length {len(log.count)})", row, f"give {shape[1]} entries")
        logs.append(log)
    return _stack(logs)
