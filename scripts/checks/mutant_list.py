"""Mutants: a wrong program each, made by one replacement in one file, and the tests that see it.

What is replaced stands once in its file. In the core it is an expression, since all of its mutants
are compiled at once and one is chosen when a test runs (`mutants.py`).
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mutant.

    Attributes:
        file: what is changed.
        before: text that stands in it once.
        after: what takes its place.
        tests: files of tests, of which one has to fail.
    """

    file: str
    before: str
    after: str
    tests: tuple[str, ...]


CORE = "marinenav_env/csrc/"
MODEL = "marinenav_env/test_reference_model.py"
NOISE = "marinenav_env/envs/test_noise.py"
ENDS = "marinenav_env/envs/test_ends.py"
PLACE = "marinenav_env/envs/test_placement.py"
WIND, WAVES = "marinenav_env/envs/test_wind.py", "marinenav_env/envs/test_waves.py"
FAULTS = "marinenav_env/envs/test_sensor_faults.py"
RAYS = "marinenav_env/envs/test_ray_faults.py"
RANGING = "marinenav_env/envs/test_ranging.py"
THRUSTERS = "marinenav_env/envs/test_thrusters.py"
WINDOWS = "train_RL_agents/replay/test_n_step.py"
REPLAY_OPS = "marinenav_env/kernel/test_replay_ops.py"

TABLE: dict[tuple[str, tuple[str, ...]], tuple[tuple[str, str], ...]] = {
    (CORE + "marine/vessels/wamv16.h", (MODEL,)): (
        ("abs_r * p.y_rv", "abs_r * p.y_vr"),
        ("abs_v * p.y_vr", "abs_v * p.y_rv"),
        ("abs_v * p.y_vv", "abs_v * p.n_vv"),
        ("abs_r * p.n_rr", "abs_r * p.y_rr"),
        ("p.n_v + abs_v * p.n_vv", "abs_v * p.n_vv"),
        (
            "p.right_thrust_rates[index % kThrustChoices]",
            "p.left_thrust_rates[index % kThrustChoices]",
        ),
        (
            "p.left_thrust_rates[index / kThrustChoices]",
            "p.left_thrust_rates[index % kThrustChoices]",
        ),
        ("added_sway * r", "added_sway * v_r"),
        ("r * u * p.mass", "r * u_r * p.mass"),
        ("r * v * p.mass", "r * v_r * p.mass"),
        ("u_r * r * p.x_dot_u", "u_r * r * p.y_dot_v"),
        ("absolute(u_r) * p.x_uu", "u_r * p.x_uu"),
        ("turn * p.inv_yr", "turn * p.inv_ry"),
        ("(left * l.cos - right * r.cos) * p.lever", "(left * l.cos + right * r.cos) * p.lever"),
        ("sway * (p.length * T(0.5))", "sway * (p.width * T(0.5))"),
        ("effort * (p.power_coefficient * p.decision_time)", "effort * p.decision_time"),
        ("m.vx_water + flow.x", "m.vx_water - flow.x"),
        ("smaller(larger(left, T(-1)), T(1))", "left"),
        ("this->n_dot_r * by.added_inertia", "this->n_dot_r * by.mass"),
        ("this->izz * by.mass", "this->izz * by.yaw"),
        ("this->y_rr * by.sway", "this->y_rr * by.yaw"),
        ("this->n_vr * by.yaw", "this->n_vr * by.sway"),
        ("this->x_uu * by.surge", "this->x_uu * by.sway"),
    ),
    (CORE + "marine/colregs.h", (MODEL,)): (
        ("b * p.vessel.radius", "b * b"),
        ("o.radius + p.colregs.margin", "o.radius + p.vessel.radius"),
        ("speed * p.colregs.crossing_x_min", "speed * p.colregs.crossing_y_min"),
        ("speed * p.colregs.head_on_y_half", "speed * p.colregs.head_on_x_max"),
        ("wy >= absolute(wx)", "wy >= wx"),
        ("absolute(wy) < zero - wx", "wy < zero - wx"),
        ("p.colregs.min_speed * p.colregs.min_speed", "p.colregs.min_speed * T(0)"),
        ("t2 >= zero", "zero >= zero"),
    ),
    (CORE + "marine/sensors/nearest_objects.h", (NOISE, MODEL, FAULTS)): (
        ("p.perception.velocity_std * factor", "p.perception.position_std * factor"),
        (
            "distance <= seen.radius + p.perception.range",
            "distance <= truth.radius + p.perception.range",
        ),
        ("distance <= seen.radius + faults.range", "distance <= truth.radius + faults.range"),
        ("both(detected, shown)", "detected"),
        ("distance - seen.radius", "distance"),
        ("truth.radius + self.hull", "seen.radius + self.hull"),
        ("true_dx * true_dx + true_dy * true_dy", "distance * distance"),
        ("o.vx + velocity.first * velocity_std", "o.vx + position.first * velocity_std"),
        ("(T(1) - p.perception.radius_mean_ratio)", "p.perception.radius_mean_ratio"),
        ("o.px >= distance * p.perception.cos_half_angle", "o.px >= p.perception.cos_half_angle"),
    ),
    (CORE + "marine/sensors/faults.h", (FAULTS, RAYS)): (
        ("load<V>(s.reach + w)", "load<V>(s.sensor + w)"),
        ("between(range[0], range[1], bits.w1)", "between(range[0], range[1], bits.w0)"),
        ("splat<V>(p.perception.miss)", "splat<V>(p.perception.dropout)"),
        ("splat<V>(p.perception.delay)", "splat<V>(p.perception.dropout)"),
        ("past(2, o.vx)", "past(3, o.vx)"),
    ),
    (CORE + "marine/sensors/rays.h", (RAYS, RANGING)): (
        ("this->range_std > T(0)", "this->range_std > T(9)"),
        ("true_dx * true_dx + true_dy * true_dy", "true_dx * true_dx"),
        ("faults.noise_factor * p.perception.range_std", "faults.noise_factor"),
        ("random.draw(Purpose::kMiss, r, first / kDrawn)", "random.draw(Purpose::kMiss, r, 0)"),
        ("uniform<V>(word[n])", "uniform<V>(word[0])"),
        ("faults.blind", "negate(faults.blind)"),
        ("larger(truth + noise[n] * std, zero)", "truth + noise[n] * std"),
        ("truth <= faults.range", "truth <= splat<V>(p.perception.range)"),
        ("near.second", "near.first"),
    ),
    (CORE + "marine/sensors/sectors.h", (RAYS, RANGING)): (
        ("splat<V>(s.ray_sin(i))", "splat<V>(s.ray_cos(i))"),
        ("select(closer, found, measured[k])", "measured[k]"),
        ("select(closer, circle.vx, vx[k])", "circle.vx"),
    ),
    (CORE + "marine/env.h", (ENDS,)): (
        (
            "uniform<V>(random.draw(Purpose::kFringe, r, 0).w0) * p.reward.fringe",
            "uniform<V>(random.draw(Purpose::kFringe, r, 0).w0) * p.vessel.radius",
        ),
    ),
    (CORE + "marine/task.h", (MODEL, ENDS)): (
        ("field(F::kPhi) * p.reward.colregs", "field(F::kPhi) * p.reward.timestep"),
        ("splat<V>(p.reward.collision)", "splat<V>(p.reward.goal)"),
        ("truncated && !collision", "truncated"),
        ("success ? time / n : T(0)", "time / n"),
        ("success ? energy / n : T(0)", "energy / n"),
        ("is_set(status, kReached) && !is_set(status, kFailed)", "is_set(status, kReached)"),
        ("field(F::kEnergy) + select(alive, field(F::kStepEnergy), zero)", "field(F::kStepEnergy)"),
    ),
    (CORE + "kernel/windows_op.h", (WINDOWS, REPLAY_OPS)): (
        ("*position - 1 - at / slots", "*position - at / slots"),
        ("taken <= newer", "true"),
        ("!flag(next, Flag::kActed)", "false"),
        ("flag(next, Flag::kTerminated) || flag(next, Flag::kTruncated)", "false"),
        ("reward[next] * discounts[taken]", "reward[next]"),
        ("flag(at, Flag::kTerminated)", "false"),
        ("next -= rows * slots", "next -= slots"),
    ),
    (CORE + "ops_cpu.cpp", ("marinenav_env/kernel/test_noise_ops.py",)): (
        ("noise.abs().sqrt_().copysign_(noise)", "noise.abs().sqrt_()"),
        ("bias_spread.mul(root).add_(bias)", "bias_spread.mul(root)"),
        ("root.mul_(own).add_(center)", "root.mul_(own)"),
    ),
    (CORE + "kernel/sum_tree_op.h", ("train_RL_agents/replay/test_sum_tree.py", REPLAY_OPS)): (
        ("running[middle] > wanted", "running[middle] >= wanted"),
        ("found <= wanted", "found < wanted"),
        ("wanted -= running[index] - found", "wanted -= running[index]"),
        ("levels - 2", "levels - 1"),
    ),
    (CORE + "kernel/phases.h", (ENDS, "marinenav_env/envs/test_determinism.py")): (
        ("*s.world_at(World::kEpisode, w) += 1", "*s.world_at(World::kEpisode, w) += 0"),
        (
            "step >= Int<V>{} + static_cast<int32_t>(p.episode.max_steps)",
            "step > Int<V>{} + static_cast<int32_t>(p.episode.max_steps)",
        ),
        ("p.episode.stop_on_collision > T(0)", "p.episode.stop_on_collision > T(1)"),
        ("p.episode.stop_on_end > T(0)", "p.episode.stop_on_end > T(1)"),
        ("both(acted, negate(is_set(status, kAlive)))", "negate(is_set(status, kAlive))"),
    ),
    (CORE + "kernel/unravel.h", ("marinenav_env/envs/test_determinism.py",)): (
        ("i / 4 * 4 + i % 4 / 2", "i / 4 * 4"),
        ("to + i * N + k", "to + i * N"),
    ),
    (CORE + "marine/water/vortices.h", (PLACE, MODEL)): (
        ("larger(dx * dx + dy * dy, splat<V>(core2))", "dx * dx + dy * dy"),
        ("p.current.opposite_ratio * weak * (d - T(2) * r)", "weak * (d - T(2) * r)"),
        ("(strong + weak) / (two_pi * p.current.same_sense_speed)", "(strong + weak) / two_pi"),
        ("(bits.w3 >> 31) != 0", "(bits.w3 >> 31) != 2"),
        ("r + p.scenario.clear_radius", "p.scenario.clear_radius"),
    ),
    (CORE + "marine/placement.h", (PLACE,)): (
        (
            "distance(way.start_x, way.start_y, way.goal_x, way.goal_y) < min_distance",
            "distance(way.start_x, way.start_y, way.goal_x, way.goal_y) < T(0)",
        ),
        ("r + p.scenario.clear_radius", "p.scenario.clear_radius"),
        ("*s.buoy_at(2, b, w) + r", "*s.buoy_at(2, b, w)"),
    ),
    (CORE + "marine/water/wind.h", (MODEL, WIND)): (
        (
            "normal_pair<T>(bits.w2, bits.w3).first * wind.gust_std",
            "normal_pair<T>(bits.w2, bits.w3).first",
        ),
        ("ahead * abeam * p.wind.per_yaw", "ahead * absolute(abeam) * p.wind.per_yaw"),
        (
            "hull.heading.cos * y - hull.heading.sin * x - hull.v",
            "hull.heading.cos * y - hull.heading.sin * x",
        ),
        ("before * p.wind.gust_kept + drawn", "before + drawn"),
        ("pressure * e.c_y * e.side_area", "pressure * e.c_y * e.front_area"),
        ("pressure * e.c_n * e.side_area * exact.vessel.length", "pressure * e.c_n * e.side_area"),
    ),
    (CORE + "marine/water/waves.h", (MODEL, WAVES)): (
        ("p.waves.frequency[i] * elapsed", "p.waves.frequency[i] * T(0)"),
        ("abeam * ahead * phase.cos", "abeam * phase.cos"),
        (
            "exact.vessel.length * exact.vessel.length / 12.0",
            "exact.vessel.length * exact.vessel.length / 6.0",
        ),
        ("before - p.waves.turn[i]", "before + p.waves.turn[i]"),
        ("std::exp(-0.5 * k * e.draught)", "std::exp(-k * e.draught)"),
    ),
    (CORE + "marine/water/stream.h", (MODEL, "marinenav_env/envs/test_stream.py")): (
        ("speed * toward.sin", "speed * toward.cos"),
    ),
    (CORE + "marine/faults/thrusters.h", (MODEL, THRUSTERS)): (
        ("step * p.vessel.decision_time + elapsed", "step * p.vessel.decision_time"),
        ("(thrust[side] - before) * p.thrusters.followed", "(thrust[side] - before)"),
        ("select(alive, thrust[side], before)", "thrust[side]"),
    ),
    (CORE + "marine/faults/variation.h", (MODEL, "marinenav_env/envs/test_variation.py")): (
        (
            "thrust[1] * load<V>(at(s, Field::kRightThrust, w))",
            "thrust[1] * load<V>(at(s, Field::kLeftThrust, w))",
        ),
        ("load<V>(at(s, Field::kThrustRate, w))", "load<V>(at(s, Field::kMass, w))"),
    ),
    (
        "train_RL_agents/config/files.py",
        (
            "train_RL_agents/config/test_wrong_settings.py",
            "train_RL_agents/config/test_config.py",
        ),
    ): (
        ("layers[:count], agent, task)", "layers[count - 1 : count], agent, task)"),
        ('values.pop("preset", None), f"{name}: "', 'values.pop("preset", None), ""'),
        ('if "preset" in layers[-1]', 'if "presets" in layers[-1]'),
        ("below not in (None, preset)", "below is None"),
        ("named = {name: values, **named}", "named = {**named, name: values}"),
    ),
    ("train_RL_agents/config/schedules.py", ("train_RL_agents/config/test_schedules.py",)): (
        ("/ (self.finish - self.begin)", "/ self.finish"),
        ("explore.ramp_share * total", "total"),
        ("updates.decay_from * total", "0"),
        ("Ramp(rate, ", "Ramp(1.0, "),
        ("bisect_right(self.starts, step) - 1", "bisect_right(self.starts, step - 1) - 1"),
        ("% self.count", "% max(self.count - 1, 1)"),
        (
            "Ramp(replay.beta_start, replay.beta_end, 0, total)",
            "Ramp(replay.beta_end, replay.beta_end, 0, total)",
        ),
    ),
    (
        "train_RL_agents/agents/losses.py",
        ("train_RL_agents/agents/test_losses.py", "train_RL_agents/agents/test_losses_torchrl.py"),
    ): (
        ("(target < theta)", "(target > theta)"),
        (".sum(1).mean(1) / kappa", ".sum(1).mean(1)"),
        ("torch.addcmul(reward, discount, value)", "reward + value"),
        ("-torch.log1p(z.square())", "-2 * torch.log1p(z.square())"),
        (
            "torch.minimum(q_1, q_2) - alpha * log_prob",
            "torch.maximum(q_1, q_2) - alpha * log_prob",
        ),
        ("(log_prob.mean() + target_entropy)", "(log_prob.mean() - target_entropy)"),
        (".clamp(0, last)", ".clamp(0, last - 1)"),
        ("-torch.minimum(ratio * advantage", "-torch.maximum(ratio * advantage"),
        (".square() - log_std", ".square() + log_std"),
        ("math.log(2.0 / math.pi)", "math.log(math.pi / 2.0)"),
    ),
    (
        "train_RL_agents/agents/ppo.py",
        (
            "train_RL_agents/agents/test_algorithms.py",
            "train_RL_agents/training/test_on_policy.py",
            "train_RL_agents/agents/test_agents.py",
            "train_RL_agents/agents/test_descent.py",
        ),
    ): (
        ("self.settled * gain.mean()", "gain.mean()"),
        ("- batch.log_probability  # [B]", "- batch.log_probability.detach() * 0.0  # [B]"),
        ("return value * self.config.value_scale", "return value"),
        ("0.5 * normal.square() + self.log_deviation", "normal.square() + self.log_deviation"),
        (".clamp_(min=math.log(self.config.least_deviation))", ".clamp_(min=-1e9)"),
        ('self.descent.restart("actor")', "pass"),
    ),
    (
        "train_RL_agents/training/rollout.py",
        ("train_RL_agents/training/test_on_policy.py",),
    ): (
        ("torch.where(self.truncated[row], now, value)", "value"),
        ("torch.where(terminated, 0.0, coming)", "coming"),
        ("gamma * trace * torch.where", "gamma * torch.where"),
        ("ended = terminated | self.truncated[row]", "ended = terminated"),
        ("acted = self.acted.to(self.advantage.dtype)", "acted = torch.ones_like(self.advantage)"),
        ("(share * self.last[-1]).long() + 1", "(share * self.last[-1]).long()"),
    ),
    (
        "train_RL_agents/training/lookahead.py",
        ("train_RL_agents/training/test_traffic.py",),
    ): (
        ("& self._own.unsqueeze(1)", ""),
        ("self._traffic.steer(action, part, worlds) if self._traffic else action", "action"),
        ("& self._own.repeat(self.copies, 1)", ""),
    ),
    (
        "train_RL_agents/evaluation/watches.py",
        ("train_RL_agents/evaluation/test_traffic.py",),
    ): (
        ("(reached | ~own).all(0)", "reached.all(0)"),
        ("(collided & own).any(0)", "collided.any(0)"),
        ("~(success | collision)", "~success"),
        ("means[0] *= ", "means[0] *= 2.0 * "),
    ),
    (
        "train_RL_agents/evaluation/episodes.py",
        ("train_RL_agents/evaluation/test_traffic.py",),
    ): (
        ("else env.alive & self._own", "else env.alive"),
        ("and not among_others", ""),
        ("watch.parts(self._own)", "watch.parts(None)"),
    ),
    (
        "train_RL_agents/training/lookahead.py",
        ("train_RL_agents/training/test_lookahead.py",),
    ): (
        ("future.copy_worlds_of(self._env, now, before)", "future.observe_into(before)"),
        ("if turn < self.held_turns", "if turn <= self.held_turns"),
        ("(tried < len(self.points))", "(tried >= 0)"),
        (".argsort(0)", ".argsort(1)"),
        ("shape = (self.copies, *self._own.shape)", "shape = (self.copies, len(self._own), 1)"),
        ("scatter_(0, tried, returns)", "copy_(returns)"),
        ("(apart < self._range)", "(apart < 1e9)"),
        ("torch.where(future.alive, to_come, 0.0)", "to_come"),
        ("self._worth_of_a_metre = 1.0 + time", "self._worth_of_a_metre = 1.0 - time"),
        ("shares.diagonal(dim1=1, dim2=2).fill_(1.0)", "pass"),
        ("by_point[:-1] - by_point[-1]", "by_point[:-1]"),
        ("position_std=0.0, velocity_std=0.0", "position_std=0.05, velocity_std=0.05"),
        ("config=as_looked_ahead(env.config)", "config=env.config"),
        ("radius_kappa=FOCUSED", "radius_kappa=config.perception.radius_kappa"),
        ("to_come = self._goal + ", "to_come = "),
        ("(distance - self._goal_distance)", "distance"),
    ),
    ("scripts/critic_ranks.py", ("scripts/test_critic_ranks.py",)): (
        ("config=config.collecting_env", "config=config.env"),
        ("env.set_stage(torch.arange(env.worlds) % len(stages))", "pass"),
        ("part[world, robot]", "part[world, 0]"),
        (".masked_fill(~alive, -1.0)", ""),
        ("stepper.advance()", "pass"),
        ("goal_share=1.0, others=0.0", "goal_share=0.0, others=0.0"),
        ("now, nudged, tried", "now, action, tried"),
        ("best - judged.own_again", "best"),
        ("best = judged.again.gather", "best = returns.gather"),
        ("chosen - judged.own", "chosen"),
        (".nan_to_num()", ""),
        ("kept = spread > least", "kept = spread >= least"),
        ("seed=options.seed,", "seed=0,"),
    ),
    ("train_RL_agents/agents/dpi.py", ("train_RL_agents/training/test_lookahead.py",)): (
        ("-(batch.weight * advantage).mean()", "(batch.weight * advantage).mean()"),
        ("- nearness * interpolated(advantages, own)", ""),
        ("advantages.clamp(-largest, largest)", "advantages.clamp(-1.0, 1.0)"),
    ),
    ("train_RL_agents/agents/lattice.py", ("train_RL_agents/training/test_lookahead.py",)): (
        ("1.0 - action.abs()", "1.0 - action"),
        (".sum(-1) - mean", ".sum(-1)"),
        ("movedim(1 + coordinate, -1)", "movedim(1, -1)"),
    ),
    (
        "train_RL_agents/training/policy_iteration.py",
        ("train_RL_agents/training/test_lookahead.py",),
    ): (
        ("[action, advantages]", "[advantages, action]"),
        ("looks = self._decision == 0", "looks = True"),
        ("self._step(self.policy.explore(self.stepper", "self._step(self._act(self.stepper"),
        ('{"decision": self._decision}', '{"decision": 0}'),
    ),
    ("train_RL_agents/agents/descent.py", ("train_RL_agents/agents/test_descent.py",)): (
        ("self._limit, norm)", "1e9, norm)"),
        ("follow, lead, share", "follow, lead, 1.0"),
        ('self._rates[group["name"]] * scale', 'self._rates[group["name"]] * 1.0'),
    ),
    ("train_RL_agents/agents/base.py", ("train_RL_agents/agents/test_descent.py",)): (
        ("self.average, config.acting_average", "self.average, config.polyak"),
    ),
    (
        "train_RL_agents/agents/quantiles.py",
        ("train_RL_agents/agents/test_algorithms.py", "train_RL_agents/agents/test_agents.py"),
    ): (
        ("(torch.arange(n) + 0.5) / n", "torch.arange(n) / n"),
        ("centre - objects[..., 4] - own_radius", "centre - objects[..., 4]"),
        ("torch.where(mask > 0.5, level, torch.ones_like(level))", "level"),
        (
            "(torch.arange(n, device=device) + torch.rand(n, device=device)) / n",
            "torch.rand(n, device=device)",
        ),
    ),
    (
        "train_RL_agents/agents/policy_wrapper.py",
        ("train_RL_agents/agents/test_policy_wrapper.py",),
    ): (
        ("torch.pow(epsilon, self.exponents)", "epsilon * self.exponents"),
        ("0.5 * self.action_noise", "self.action_noise"),
        ("< self.epsilon", "> self.epsilon"),
    ),
    (
        "train_RL_agents/replay/buffer.py",
        (
            "train_RL_agents/replay/test_n_step.py",
            "train_RL_agents/replay/test_sampling.py",
            "train_RL_agents/replay/test_buffer.py",
        ),
    ): (
        (
            "acted.flatten() * self._new_weight",
            "torch.ones_like(acted.flatten()) * self._new_weight",
        ),
        ("weight * occupied", "weight"),
        (".clamp_(max=self.rows)", ".clamp_(max=self.rows - 1)"),
        ("self.layout.choices - 1", "self.layout.choices"),
    ),
    ("train_RL_agents/replay/sum_tree.py", ("train_RL_agents/replay/test_sum_tree.py",)): (
        ("include_self=False", "include_self=True"),
        ("weight.min() / weight.clamp(min=1)", "weight.max() / weight.clamp(min=1)"),
        (" + EPSILON", ""),
    ),
    (
        "train_RL_agents/run/checkpoint.py",
        (
            "train_RL_agents/run/test_checkpoint.py",
            "train_RL_agents/policies/test_foreign_files.py",
        ),
    ): (
        ("self.steps()[-self.keep :]", "self.steps()[-1:]"),
        ("int(name[1]) > step", "int(name[1]) >= step"),
        ("saved is not None and saved > step", "saved is not None"),
        ("type(size) is not int or size < 0", "type(size) is not int"),
        ("        check_archive(path)\n", ""),
    ),
    ("train_RL_agents/training/counters.py", ("train_RL_agents/training/test_trainer.py",)): (
        ("* self.robot_rate / settings.batch_size", "* self.robot_rate"),
        ("self.stored < settings.warmup_transitions", "self.stored < 0"),
        ("missed / coming", "missed"),
        ("> self.logged_step // interval", ">= self.logged_step // interval"),
    ),
    ("train_RL_agents/training/counters.py", ("train_RL_agents/training/test_counters.py",)): (
        ("- 2.0 * error", "- 0.0 * error"),
        ("math.hypot(self.kept_error, standing.error)", "standing.error"),
    ),
    ("marinenav_env/build_record.py", ("marinenav_env/test_build_record.py",)): (
        ("{path.relative_to(sources).as_posix()} ", ""),
        ("or not path.is_file()", ""),
        ('if march == "native"', "if False"),
        ("if name not in own] if own else []", "if name not in own]"),
    ),
    ("train_RL_agents/policies/start.py", ("train_RL_agents/policies/test_start.py",)): (
        ("whole=start.whole", "whole=True"),
        ("value != own[key]", "False"),
    ),
    ("train_RL_agents/policies/pretrained.py", ("train_RL_agents/policies/test_start.py",)): (
        ("return agent.only_acting_network_learns or file.is_file()", "return True"),
        ("agent.descent.follow()", "pass"),
    ),
    ("train_RL_agents/agents/sac.py", ("train_RL_agents/policies/test_start.py",)): (
        ("not self.config.tune_alpha:", "False:"),
    ),
    ("train_RL_agents/policies/seal.py", ("train_RL_agents/policies/test_seal.py",)): (
        ("digest and digest != _expected(head, tail)", "False"),
        ("content.rpartition(MARK)", "content.partition(MARK)"),
    ),
    ("train_RL_agents/policies/interface.py", ("train_RL_agents/policies/test_export.py",)): (
        ('"acting": value.tolist()', '"acting": []'),
        ("value.cpu().expand(rows, -1)", "value.cpu().flip(0).expand(rows, -1)"),
    ),
    ("train_RL_agents/export.py", ("train_RL_agents/policies/test_export.py",)): (
        ("not deviation.largest <= form.tolerance", "False"),
    ),
    (
        "train_RL_agents/evaluation/geometry.py",
        (
            "train_RL_agents/evaluation/test_encounters.py",
            "train_RL_agents/evaluation/test_safety.py",
        ),
    ): (
        ("tcpa.clamp(min=0.0)", "tcpa"),
        (".neg_().clamp_(0.0, 1.0)", ".neg_().clamp_(0.0)"),
    ),
    (
        "train_RL_agents/evaluation/encounters.py",
        (
            "train_RL_agents/evaluation/test_encounters.py",
            "train_RL_agents/evaluation/test_safety.py",
        ),
    ): (
        ("receding[1:] & receding[:-1]", "receding[1:]"),
        ("right >= -left", "right >= left"),
    ),
    ("train_RL_agents/evaluation/meetings.py", ("train_RL_agents/evaluation/test_meetings.py",)): (
        ("(falls * row).amax(0, keepdim=True)", "falls.int().argmax(0, keepdim=True) + 1"),
        ("_last(ahead, both) < 0.0", "_last(ahead, both) > 0.0"),
        ("pairs.both[0] & closing", "pairs.both[0]"),
        ("& (_last(way, both) <= 0.0)", ""),
        ("(way[1:] <= 0.0) & both[1:]", "(way[1:] <= 0.0)"),
    ),
    ("train_RL_agents/evaluation/measures.py", ("train_RL_agents/evaluation/test_safety.py",)): (
        ("surge[1:] < -V1.sternway", "surge[1:] < 0.0"),
    ),
    ("marinenav_env/envs/torchrl_face.py", ("marinenav_env/envs/test_torchrl.py",)): (
        ("(ended, ended ^ truncated, truncated)", "(ended, ended, truncated)"),
        ("self._was_truncated.masked_fill_(mask.unsqueeze(-1), False)", "pass"),
        ("kept.copy_(shown)", "pass"),
        ("entry.copy_(kept)", "pass"),
        ("field.clone(memory_format=torch.contiguous_format)", "field.contiguous()"),
    ),
    ("train_RL_agents/evaluation/colregs.py", ("train_RL_agents/evaluation/test_colregs.py",)): (
        ("(beta > 0.0) & (alpha < 0.0)", "(beta > 0.0)"),
        ("((own - 1.0) / 2.0) ** 2", "((own + 1.0) / 2.0) ** 2"),
        ('rows["action"] <= rows["closest"]', 'rows["action"] >= rows["closest"]'),
        ("(r8 - V1.ahead_penalty * ahead)", "(r8 - V1.overtaking_penalty * ahead)"),
    ),
    ("train_RL_agents/evaluation/score.py", ("train_RL_agents/evaluation/test_safety.py",)): (
        ("(gap > 0.0) & (gap <= self", "(gap <= self"),
    ),
    ("train_RL_agents/evaluation/safety.py", ("train_RL_agents/evaluation/test_safety.py",)): (
        ("gap <= nearest.clamp(min=0.0)", "gap <= 0.0"),
        ('torch.where(acted, action, rows["closest"])', "action"),
    ),
    (
        "train_RL_agents/evaluation/intervals.py",
        (
            "train_RL_agents/evaluation/test_intervals.py",
            "train_RL_agents/evaluation/test_against.py",
        ),
    ): (
        ("resampled - self._ratios(total_2.unsqueeze(1), count_2)", "resampled"),
        ("_rarer(hits, trials) >= min(RARE, worlds)", "_rarer(hits, trials) >= 1"),
        ("_rarer(below, count.unsqueeze(1)) < min(RARE, worlds)", "share == 0.0"),
        ("seen >= min(RARE, int((exposure > 0).sum()))", "seen >= RARE"),
        ("(count / seen if seen else 1.0)", "1.0"),
        ("2.0 * apart * one * other", "0.0"),
        ("(gain != gain.mode().values).sum()) >= RARE", "(gain != gain.mode().values).sum()) >= 1"),
        ("values <= value if math.isfinite(value) else values < value", "values <= value"),
        ("torch.where(high.isnan(), high, low), high", "low, high"),
    ),
    (
        "train_RL_agents/evaluation/report/seeds.py",
        ("train_RL_agents/evaluation/report/test_records.py",),
    ): (("size=(RESAMPLES, seeds))", "size=(RESAMPLES, 1))"),),
    (
        "train_RL_agents/evaluation/report/tables.py",
        ("train_RL_agents/evaluation/report/test_report.py",),
    ): (("isinstance(first.results, ScenarioResults)", "False"),),
    ("train_RL_agents/run/lock.py", ("train_RL_agents/run/test_lock.py",)): (
        ("others if new else []", "[]"),
        ("folder.parent.mkdir(parents=True, exist_ok=True)", "pass"),
    ),
    ("train_RL_agents/run/source.py", ("train_RL_agents/run/test_source.py",)): (
        ('"-c", f"safe.directory={ROOT}", ', ""),
        ('or built.get("commit")', ""),
    ),
    (
        "train_RL_agents/training/interruption.py",
        ("train_RL_agents/training/test_interruption.py",),
    ): (
        ("if self.received is not None:", "if False:"),
        ("signal.signal(signal.SIGINT, before)", "self._restore()"),
    ),
    ("marinenav_env/kernel/memory.py", ("marinenav_env/kernel/test_memory.py",)): (
        ("for place in (own, *own.parents)", "for place in (own,)"),
        ("not old and controllers", "old or controllers"),
    ),
}
"""Replacements, by file and tests."""

MUTANTS = [
    Mutant(file, before, after, tests)
    for (file, tests), replacements in TABLE.items()
    for before, after in replacements
]
