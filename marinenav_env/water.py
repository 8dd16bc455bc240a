"""What the water does: the parameters of its current.

Another disturbance, such as wind or waves, is a dataclass beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from marinenav_env.fields import PUBLISHED, Settings, setting


@dataclass(frozen=True)
class CurrentConfig(Settings):
    """Vortices."""

    core_radius: float = setting(0.5, unit="m", source=PUBLISHED, above=0.0)
    edge_speed_min: float = setting(3.0, unit="m/s", source=PUBLISHED, above=0.0)
    """At the edge of a vortex, from here to edge_speed_max."""
    edge_speed_max: float = setting(3.0, unit="m/s", source=PUBLISHED)
    same_sense_speed: float = setting(1.0, unit="m/s", source=PUBLISHED, above=0.0)
    """Greatest opposing speed between vortices of the same sense."""
    opposite_ratio: float = setting(0.8, unit="-", source=PUBLISHED, above=0.0)
    """Between vortices of opposite sense: greatest share of the weaker one's edge speed."""

    def check(self) -> None:
        """Refuse speeds without a range."""
        self.require(
            self.edge_speed_min <= self.edge_speed_max,
            "edge_speed_min",
            f"must not exceed edge_speed_max = {self.edge_speed_max}",
        )
