"""Tasks for the tests of the adapters."""

from marinenav_env.envs.scenarios import Stage

TWO = {"stages": (Stage(robots=2, vortices=0, buoys=1, min_distance_m=30.0),)}
