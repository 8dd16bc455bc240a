"""Trains an agent: ``python train_RL_agents/train.py --agent AC-IQN [key=value ...]``."""

from __future__ import annotations

import argparse
import re
import signal
import sys
import traceback
from collections.abc import Sequence

from marinenav_env.envs.make import TASKS
from marinenav_env.fields import ConfigError
from train_RL_agents.agents.registry import AGENTS
from train_RL_agents.commands.options import SHARE, add_world_options
from train_RL_agents.commands.parser import Parser
from train_RL_agents.commands.training import resume, start
from train_RL_agents.config.files import presets
from train_RL_agents.device.distributed import Processes
from train_RL_agents.device.memory import keep_freed_memory
from train_RL_agents.run.checkpoint import CheckpointError
from train_RL_agents.run.ending import EndedRunError, failure_of_machine, output_may_close
from train_RL_agents.training.counters import DivergedRunError, InterruptedRunError

OVERRIDE = re.compile(r"[A-Za-z_][\w.]*=.*", re.DOTALL)
RESUMED = ("threads=", "total_steps=", "checkpoint.with_replay=")
"""The overrides that a resumed run takes too: it may continue elsewhere, longer, or anew."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ``key=value`` may stand anywhere."""
    parser = Parser(
        description="Train an agent in the simulator.",
        epilog="Any setting: key=value with dotted keys, for example updates.batch_size=512. "
        "docs/settings.md lists them with units and defaults, docs/physics.md those of env.*",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="take settings from this YAML file, which may name a preset to begin with, or from a "
        "published training JSON",
    )
    parser.add_argument(
        "--preset", choices=presets(), help="take settings from this file of configs/"
    )
    parser.add_argument(
        "--task", choices=list(TASKS), help="train in this environment (default marine)"
    )
    parser.add_argument(
        "--agent",
        choices=list(AGENTS),
        help="train this algorithm (default: the preset's, else AC-IQN)",
    )
    parser.add_argument(
        "--seed", type=int, nargs="+", help="train with this seed; several train one after another"
    )
    add_world_options(
        parser,
        stages="train and evaluate in this stage instead of the task's",
        scenario=f"begin a share of the worlds ({SHARE:g}, or scenarios.share) with scenarios",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), help="train on this device")
    parser.add_argument(
        "--output", metavar="DIR", help="write the run to this folder (default runs/...)"
    )
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="resume the run in this folder; takes --device, --no-compile and threads=N, with "
        "which the results may no longer be equal to the bit to those of a run never stopped, and "
        "total_steps=N, which trains a finished run longer; checkpoint.with_replay=false leaves a "
        "saved replay out and saves none, until it is true again",
    )
    parser.add_argument("--no-compile", action="store_true", help="capture no CUDA graphs")
    overrides = [argument for argument in arguments if OVERRIDE.fullmatch(argument)]
    namespace = parser.parse_args([a for a in arguments if not OVERRIDE.fullmatch(a)])
    namespace.overrides = overrides
    names = ("config", "preset", "task", "agent", "seed", "output", "stage", "scenario")
    given = [f"--{name}" for name in names if getattr(namespace, name) is not None]
    given += [override for override in overrides if not override.startswith(RESUMED)]
    if namespace.resume and given:
        parser.error(
            f"--resume takes no {', '.join(given)}: the settings and the folder are the run's; "
            "give only --device, --no-compile, threads=N, total_steps=N and "
            "checkpoint.with_replay=false"
        )
    return namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parsed = parse(sys.argv[1:] if arguments is None else arguments)
    keep_freed_memory()
    processes, status = Processes(), 1
    with output_may_close():
        try:
            processes = Processes.join()
            (resume if parsed.resume else start)(parsed, processes)
            status = 0
        except InterruptedRunError as stop:
            print(stop, file=sys.stderr)
            status = 128 + (stop.received or signal.SIGTERM)
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            status = 128 + signal.SIGINT
        except (ConfigError, CheckpointError, DivergedRunError, EndedRunError) as error:
            print(f"error: {error}", file=sys.stderr)
        except Exception as error:
            reason = failure_of_machine(error)
            if reason is not None:
                print(f"error: {reason}", file=sys.stderr)
            elif processes.size > 1:  # `leave` ends it, before Python would tell
                traceback.print_exc()
            else:
                raise
        finally:
            processes.leave(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
