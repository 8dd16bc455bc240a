"""TorchRLTrainer: collects with a policy, learns from it, tells and saves what happens."""

from __future__ import annotations

from collections.abc import Callable

import torch

from marinenav_env.envs.checks import UNSTABLE, UnusableError
from marinenav_env.files import write_json
from train_RL_agents.evaluation.results import Row, Standing, table_as_json
from train_RL_agents.metrics.accumulators import non_finite
from train_RL_agents.metrics.progress import Progress
from train_RL_agents.metrics.reductions import Mean
from train_RL_agents.metrics.writer import AnalysisReceiver, Record
from train_RL_agents.run.provenance import EVALUATION, facts_of_run
from train_RL_agents.training.counters import DivergedRunError, InterruptedRunError
from train_RL_agents.training.evaluations import RunEvaluation
from train_RL_agents.training.interruption import Interruption, SignalError, signals_raised
from train_RL_agents.training.run_state import RunState

ASK_EVERY = 8
"""Iterations between two questions to the other processes whether one of them was asked to stop:
seldom enough to cost nothing, and often enough for the 30 s that torchrun leaves them where an
iteration, with its updates, takes less than 3 s."""


class TorchRLTrainer(RunState):
    """Trains one agent, which one it does not know: the loop, and what it reports."""

    def train(
        self, conclude: Callable[[list[Row], AnalysisReceiver], None] | None = None
    ) -> list[Row]:
        """Train to the end, from the start or from where `resume` left it.

        Args:
            conclude: called in the first process with the table of the final evaluation, while the
                run's records are still open.

        Returns:
            The table of the final evaluation; empty in processes other than the first.

        Raises:
            InterruptedRunError: a signal came; the run is saved.
            DivergedRunError: a quantity is not finite, or the policy gave unusable actions.
            ProcessLostError: another process died.
        """
        with self.records():
            self.show_start()
            self.run_to_the_end()
            return self.finish(conclude)

    def run_to_the_end(self) -> None:
        """Collect and learn, and report when it is due; arguments and errors as `train`."""
        config, counters = self.config, self.counters
        if not self.started:
            self.start()
        if counters.step == 0:
            self.save()
        title = f"{config.agent}, seed {config.seed}"
        first = self.processes.first
        progress = Progress(config.total_steps, title, done=counters.step, shown=first)
        with Interruption() as interruption, progress:
            # What is due is done first: a run that stopped before its report begins with it.
            while True:
                if self.asked_to_stop(interruption):
                    self.leave(interruption)
                if self.report_due():
                    progress.tell(self.report())
                elif counters.step < config.total_steps:
                    with self.timed(collecting=True):
                        self.iterate()
                    progress.move_to(counters.step)
                else:
                    break

    def start(self) -> None:
        """Take over the policy to begin with, if any, and place the first scenarios.

        Raises:
            CheckpointError: there is no such policy.
            ConfigError: it has other networks, or too few.
        """
        self.learner.start(self.stages())
        self.started = True

    def iterate(self) -> None:
        """Take one decision in every world, and do the updates that are due."""
        self.follow_schedules()
        self.learner.collect()
        due = self.counters.advance(self.steps_per_iteration, self.config.updates)
        self.counters.updates += self.learner.learn(due)

    def follow_schedules(self) -> None:
        """Set what depends on the step: exploration, learning rates, beta, stages."""
        step, curriculum = self.counters.step, self.schedules.curriculum
        self.learner.set_rates(*self.schedules.rates(step))
        before = max(step - self.steps_per_iteration, 0)
        if curriculum.stage_at(step) != curriculum.stage_at(before):
            self.learner.set_stages(self.stages())

    def asked_to_stop(self, interruption: Interruption) -> bool:
        """Whether any process was; all of them ask at the same steps, and always before a report.

        Raises:
            ProcessLostError: another process has died.
        """
        if self.processes.size > 1:
            running = self.counters.step < self.config.total_steps and not self.report_due()
            if running and self.counters.iteration % ASK_EVERY:
                return False
        return self.processes.any(interruption.received is not None)

    def report_due(self) -> bool:
        """Whether it is time to log, to evaluate or to save."""
        if self.counters.step == self.counters.logged_step:
            return False
        return any(map(self.due, self._intervals()))

    def due(self, interval: int) -> bool:
        """Whether the end, or a multiple of ``interval`` steps, was passed since the last log."""
        return self.counters.passed(interval) or self.counters.step >= self.config.total_steps

    def report(self) -> Record:
        """Log, and evaluate and save if it is time for it; return the record of training.

        Raises:
            DivergedRunError: a quantity is not finite, or the policy gave unusable actions.
        """
        evaluates = self.due(self.config.evaluation.interval_steps)
        saves = self.due(self.config.checkpoint.interval_steps)
        with self.timed(collecting=True):
            self.wait_for_device()
        with self.timed(collecting=True):
            record = self.log()
        if evaluates:
            with self.timed():
                self.evaluate_together()
        if saves:
            with self.timed():
                self.save()
        self.processes.wait()  # no GPU waits for the evaluation, which only the first process does
        return record

    def wait_for_device(self) -> None:
        """Let the device finish, so that its time counts in the interval that it worked in."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def finish(
        self, conclude: Callable[[list[Row], AnalysisReceiver], None] | None = None
    ) -> list[Row]:
        """Do the final evaluation, which may make the last weights the best; all steps are saved.

        The run is complete once all is done; who is stopped before resumes with this evaluation.
        Argument and result as of `train`.

        Raises:
            InterruptedRunError: a signal came.
            DivergedRunError: a state is not finite, or the policy gave unusable actions.
        """
        if self.evaluation is None:
            return []
        try:
            with signals_raised():
                results = self.evaluation.final(self.receiver, self.counters)
                judged = self.evaluation.as_periodic(results)
                standing = judged[0].standing(judged)
                if self.counters.ends_best(standing):
                    self.counters.keep(standing)
                    self._save_best(results, standing)
                if conclude is not None:
                    conclude(results, self.receiver)
                facts = {"run": facts_of_run(self.config, self.counters.step)}
                write_json(self.output_dir / EVALUATION, facts | table_as_json(results))
        except UnusableError as error:
            raise self.diverged([str(error)]) from error
        except SignalError as stop:
            received = stop.args[0]
            saved = self.saved.checkpoints.path(self.counters.step)
            raise InterruptedRunError(
                f"stopped by {received.name} in the final evaluation; saved to {saved}", received
            ) from stop
        return results

    # ---- at a log -----------------------------------------------------------------------------

    def log(self) -> Record:
        """Copy the statistics to the host in one transfer; write, check and return them.

        Raises:
            DivergedRunError: a quantity is not finite, or the policy gave unusable actions.
            ProcessLostError: another process has died.
        """
        self.processes.wait()  # hosts notice a death that the GPUs would wait for
        counters, step = self.counters, self.counters.step
        statistics = self.learner.statistics
        updates = counters.updates - counters.logged_updates
        gathered = statistics.gather(self.processes, updates)
        seconds = counters.collecting_s - counters.logged_collecting_s
        samples = float(updates * self.config.updates.batch_size * self.processes.size)
        rates = self.schedules.rates(step)._asdict()
        numbers = {
            "updates": counters.updates,
            "samples_per_insert": Mean(samples, gathered.stored),
            "robot_steps_per_s": Mean(gathered.robot_steps, seconds),
            "world_steps_per_s": Mean(float(step - counters.logged_step), seconds),
            **{name: rates[name] for name in self.learner.rates},
            "elapsed_s": counters.elapsed_s,
        }
        with self.receiver.interval():
            self.receiver.receive("train", step=step, **gathered.train(), **numbers)
            for label, arrays in gathered.by_stage():
                self.receiver.receive(label, step=step, **arrays)
        record = self.receiver.latest["train"]
        self._check(record)
        statistics.clear()
        coming = max(1.0, min(self._intervals()) / self.steps_per_iteration)
        acted, stored = record["robot_steps"], record["stored_transitions"]
        counters.close_interval(acted, stored, self.processes.size, coming)
        return record

    def _check(self, record: Record) -> None:
        if record["non_finite_robots"]:  # what was learned of it is not finite either
            broken = f"the state of {record['non_finite_robots']:.0f} robots not finite"
            raise self.diverged([broken], remedy=UNSTABLE)
        problems = []
        names = non_finite(record)
        if names:
            problems.append(f"{', '.join(names)} not finite")
        if record["bad_actions"]:
            problems.append(self._unusable_actions())
        if problems:
            raise self.diverged(problems)

    def _unusable_actions(self) -> str:
        try:
            self.learner.env.check_actions()
        except UnusableError as error:
            return str(error)
        return "unusable actions in another process"

    def evaluate_together(self) -> None:
        """Evaluate in the first process; where it fails there, all raise, to stay together.

        Raises:
            DivergedRunError: as `evaluate`.
        """
        failure = ""
        if self.evaluation is not None:
            try:
                self.evaluate(self.evaluation)
            except DivergedRunError as error:
                failure = str(error)
        failure, *_ = self.processes.gather(failure)
        if failure:
            raise DivergedRunError(failure)

    def evaluate(self, evaluation: RunEvaluation) -> None:
        """Evaluate on the fixed episodes, and keep the weights if they are the best so far.

        Raises:
            DivergedRunError: a state is not finite, or the policy gave unusable actions.
        """
        try:
            results = evaluation.periodic(self.receiver, self.counters)
        except UnusableError as error:
            raise self.diverged([str(error)]) from error
        standing = results[0].standing(results)
        if self.counters.becomes_best(standing):
            self._save_best(results, standing)

    def _save_best(self, results: list[Row], standing: Standing) -> None:
        judged = {"evaluation": table_as_json(results), "standing": list(standing)}
        self.saved.checkpoints.save_best({**self._policy_state(), **judged})

    def leave(self, interruption: Interruption) -> None:
        """Save and end the run; whoever started it says how to resume.

        Raises:
            InterruptedRunError: always; weights that are not finite replace no checkpoint.
        """
        received = interruption.received
        name = received.name if received else "a signal to another process"
        if self.learner.weights_finite():
            outcome = f"saved to {self.save()}"
        else:
            outcome = str(self.diverged(["the networks' weights not finite"]))
        raise InterruptedRunError(
            f"stopped by {name} at step {self.counters.step}; {outcome}", received
        )

    def _intervals(self) -> tuple[int, int, int]:
        """Return the steps between logs, evaluations and checkpoints, which bring a log."""
        config = self.config
        evaluation, saving = config.evaluation.interval_steps, config.checkpoint.interval_steps
        return config.log.interval_steps, evaluation, saving
