// The task of the ICRA 2024 paper (Lin et al., arXiv 2402.11799): to the goal without touching
// anything. Episodes are counted as in the navigation task.
#pragma once

#include "marine/task.h"

namespace marinenav {

#define MN_REACH_GOAL_PARAMS(X, XS)                                                             \
  X(timestep) X(collision) X(goal) X(goal_distance) X(fringe)
MN_PARAMS(ReachGoalParams, MN_REACH_GOAL_PARAMS)
#undef MN_REACH_GOAL_PARAMS

// A robot's fields besides the vessel's.
#define MN_REACH_GOAL_FIELDS(X)                                                                 \
  /* goal, m */                                                                                 \
  X(kGoalX, "goal_x") X(kGoalY, "goal_y")                                                       \
  /* of the last decision: m gained toward the goal, shares of the largest rates */             \
  X(kProgress, "progress") X(kStepEnergy, "step_energy")                                        \
  /* of the last observation: 0 or 1 */                                                         \
  X(kContact, "contact")                                                                        \
  /* sums over the episode */                                                                   \
  X(kReturn, "return") X(kEnergy, "energy") X(kSteps, "steps")

struct ReachGoalTask : NavigationTask {
  template <class VesselField>
  struct Robot : VesselField {
    enum : int {
      kBefore = VesselField::kVesselFields - 1,
      MN_REACH_GOAL_FIELDS(MN_ENUMERATOR) kCount
    };
  };
  static constexpr const char* kFieldNames = MN_REACH_GOAL_FIELDS(MN_NAME);

  template <class T>
  struct Groups {
    ReachGoalParams<T> reward;
    ScenarioParams<T> scenario;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("reward", reward), visit("scenario", scenario);
    }
  };

  /// As `NavigationTask::note`, without COLREGs.
  template <class F, class V, class Sighting, class Keep, class T = Scalar<V>>
  MN_HD static void note(const Sighting& sighting, const Keep& keep) {
    keep(F::kContact, select(sighting.contact, splat<V>(T(1)), splat<V>(T(0))));
  }

  /// Progress, the price of time, and the end.
  template <class V, class S, class P>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V> alive) {
    const End<V> end = end_of<V>(s, p, r, w, alive);
    const V progress = load<V>(s.robot_at(S::Robot::kProgress, r, w));
    return {progress + p.reward.timestep + end.reward, end.contact, end.reached};
  }
};
#undef MN_REACH_GOAL_FIELDS

}  // namespace marinenav
