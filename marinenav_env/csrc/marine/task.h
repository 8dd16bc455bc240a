// The navigation task as published: to the goal without touching anything, as COLREGs ask.
#pragma once

#include "kernel/params.h"
#include "kernel/phases.h"
#include "marine/placement.h"

namespace marinenav {

#define MN_COLREGS_PARAMS(X, XS)                                                                \
  X(min_speed) X(margin) X(crossing_x_min) X(crossing_x_max) X(crossing_y_min)                  \
  X(crossing_y_corner) X(head_on_x_max) X(head_on_y_half)
#define MN_REWARD_PARAMS(X, XS) X(timestep) X(colregs) X(collision) X(goal) X(goal_distance) X(fringe)
#define MN_SCENARIO_PARAMS(X, XS)                                                               \
  X(width) X(height) X(start_margin) X(clear_radius) X(buoy_margin) X(buoy_radius_min)          \
  X(buoy_radius_max) X(placement_tries)
MN_PARAMS(ColregsParams, MN_COLREGS_PARAMS)
MN_PARAMS(RewardParams, MN_REWARD_PARAMS)
MN_PARAMS(ScenarioParams, MN_SCENARIO_PARAMS)
#undef MN_COLREGS_PARAMS
#undef MN_REWARD_PARAMS
#undef MN_SCENARIO_PARAMS

// A robot's fields besides the vessel's.
#define MN_TASK_FIELDS(X)                                                                       \
  /* goal, m */                                                                                 \
  X(kGoalX, "goal_x") X(kGoalY, "goal_y")                                                       \
  /* of the last decision: m gained toward the goal, N s */                                     \
  X(kProgress, "progress") X(kStepEnergy, "step_energy")                                        \
  /* of the last observation: rad (0: COLREGs do not apply), 0 or 1 */                          \
  X(kPhi, "phi") X(kContact, "contact")                                                         \
  /* sums over the episode */                                                                   \
  X(kReturn, "return") X(kEnergy, "energy") X(kSteps, "steps")
// Robots, vortices and buoys: how many this episode has placed.
#define MN_TASK_WORLD(X)                                                                        \
  X(kNextStage, "next_stage") X(kStage, "stage")                                                \
  X(kRobots, "robots") X(kVortices, "vortices") X(kBuoys, "buoys")                              \
  X(kEpisode, "episode") X(kStep, "step") X(kEnd, "end") X(kRobotSteps, "robot_steps")
// Time in s, energy in N s, means over the world's robots.
#define MN_TASK_OUTCOME(X)                                                                      \
  X(kSuccess, "success") X(kCollision, "collision") X(kTimeout, "timeout")                      \
  X(kMeanTime, "mean_time_s") X(kMeanEnergy, "mean_energy") X(kMeanReturn, "mean_return")       \
  X(kLength, "length")
#define MN_TASK_STATS(X)                                                                        \
  X(kEpisodes, "episodes") X(kSuccesses, "successes") X(kCollisions, "collisions")              \
  X(kTimeouts, "timeouts") X(kReturnSum, "return_sum") X(kLengthSum, "length_sum")              \
  X(kSuccessTimeSum, "success_time_sum") X(kSuccessEnergySum, "success_energy_sum")             \
  X(kRobotSum, "robots") X(kReachedSum, "robots_reached") X(kCollidedSum, "robots_collided")
#define MN_TASK_STAGE(X)                                                                        \
  X(kRobots, "robots") X(kVortices, "vortices") X(kBuoys, "buoys")                              \
  X(kMinDistance, "min_distance_m")                                                             \
  /* or one of so many scenes from the first on, instead of a random map */                     \
  X(kFirstScene, "first_scene") X(kScenes, "scenes")

struct NavigationTask {
  template <class VesselField>
  struct Robot : VesselField {
    enum : int { kBefore = VesselField::kVesselFields - 1, MN_TASK_FIELDS(MN_ENUMERATOR) kCount };
  };
  struct World {
    enum : int { MN_TASK_WORLD(MN_ENUMERATOR) kCount };
  };
  struct Outcome {
    enum : int { MN_TASK_OUTCOME(MN_ENUMERATOR) kCount };
  };
  struct Stat {
    enum : int { MN_TASK_STATS(MN_ENUMERATOR) kCount };
  };
  struct Stage {
    enum : int { MN_TASK_STAGE(MN_ENUMERATOR) kCount };
  };
  static constexpr const char* kFieldNames = MN_TASK_FIELDS(MN_NAME);
  static constexpr const char* kWorldNames = MN_TASK_WORLD(MN_NAME);
  static constexpr const char* kOutcomeNames = MN_TASK_OUTCOME(MN_NAME);
  static constexpr const char* kStatNames = MN_TASK_STATS(MN_NAME);
  static constexpr const char* kStageNames = MN_TASK_STAGE(MN_NAME);

  template <class T>
  struct Groups {
    ColregsParams<T> colregs;
    RewardParams<T> reward;
    ScenarioParams<T> scenario;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("colregs", colregs), visit("reward", reward), visit("scenario", scenario);
    }
  };

  /// What the end of a robot's way adds to its reward, and whether it has come.
  template <class V>
  struct End {
    V reward;
    Mask<V> contact, reached;
  };

  /// Looks whether a decision has ended a robot's way, contact before the goal, and counts energy.
  template <class V, class S, class P, class T = Scalar<V>>
  MN_HD static End<V> end_of(const S& s, const P& p, int r, int w, Mask<V> alive) {
    using F = typename S::Robot;
    const V zero = splat<V>(T(0));
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    const V dx = field(F::kGoalX) - field(F::kX), dy = field(F::kGoalY) - field(F::kY);
    const auto contact = field(F::kContact) > zero;
    const auto reached = square_root(dx * dx + dy * dy) <= splat<V>(p.reward.goal_distance);
    store(s.robot_at(F::kEnergy, r, w),
          field(F::kEnergy) + select(alive, field(F::kStepEnergy), zero));
    return {select(contact, splat<V>(p.reward.collision),
                   select(reached, splat<V>(p.reward.goal), zero)),
            contact, reached};
  }

  /// Keeps what a sighting says besides the observation; `keep(number, value)` writes a field.
  template <class F, class V, class Sighting, class Keep, class T = Scalar<V>>
  MN_HD static void note(const Sighting& sighting, const Keep& keep) {
    keep(F::kPhi, sighting.phi);
    keep(F::kContact, select(sighting.contact, splat<V>(T(1)), splat<V>(T(0))));
  }

  /// Progress, the price of time, COLREGs, and the end.
  template <class V, class S, class P>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V> alive) {
    using F = typename S::Robot;
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    const End<V> end = end_of<V>(s, p, r, w, alive);
    return {field(F::kProgress) + p.reward.timestep + field(F::kPhi) * p.reward.colregs + end.reward,
            end.contact, end.reached};
  }

  /// Outcome of the finished episode of world w, and its share of the statistics.
  template <class S, class P>
  MN_HD static void book(const S& s, const P& p, int w, bool truncated) {
    using T = typename S::Real;
    using F = typename S::Robot;
    const int placed = bounded(*s.world_at(World::kRobots, w), s.robots);
    const T n = static_cast<T>(placed > 0 ? placed : 1);
    T reached = T(0), hit = T(0), time = T(0), energy = T(0), episode_return = T(0);
    for (int r = 0; r < placed; ++r) {
      const int32_t status = *s.status_at(r, w);
      hit += is_set(status, kFailed) ? T(1) : T(0);
      reached += is_set(status, kReached) && !is_set(status, kFailed) ? T(1) : T(0);
      time += *s.robot_at(F::kSteps, r, w) * p.vessel.decision_time;
      energy += *s.robot_at(F::kEnergy, r, w);
      episode_return += *s.robot_at(F::kReturn, r, w);
    }
    const bool success = placed > 0 && reached == static_cast<T>(placed);
    const bool collision = hit > T(0);
    const bool timeout = truncated && !collision;
    const T length = static_cast<T>(*s.world_at(World::kStep, w));
    *s.outcome_at(Outcome::kSuccess, w) = success ? T(1) : T(0);
    *s.outcome_at(Outcome::kCollision, w) = collision ? T(1) : T(0);
    *s.outcome_at(Outcome::kTimeout, w) = timeout ? T(1) : T(0);
    *s.outcome_at(Outcome::kMeanTime, w) = time / n;
    *s.outcome_at(Outcome::kMeanEnergy, w) = energy / n;
    *s.outcome_at(Outcome::kMeanReturn, w) = episode_return / n;
    *s.outcome_at(Outcome::kLength, w) = length;
    if (s.stats == nullptr) return;
    const int stage = s.stage_in(World::kStage, w);
    auto add = [&](int field, T value) { *s.stat_at(stage, field, w) += value; };
    add(Stat::kEpisodes, T(1)), add(Stat::kSuccesses, success ? T(1) : T(0));
    add(Stat::kCollisions, collision ? T(1) : T(0)), add(Stat::kTimeouts, timeout ? T(1) : T(0));
    add(Stat::kReturnSum, episode_return / n), add(Stat::kLengthSum, length);
    add(Stat::kSuccessTimeSum, success ? time / n : T(0));
    add(Stat::kSuccessEnergySum, success ? energy / n : T(0));
    add(Stat::kRobotSum, static_cast<T>(placed)), add(Stat::kReachedSum, reached);
    add(Stat::kCollidedSum, hit);
  }
};
#undef MN_TASK_FIELDS
#undef MN_TASK_WORLD
#undef MN_TASK_OUTCOME
#undef MN_TASK_STATS
#undef MN_TASK_STAGE

}  // namespace marinenav
