// Views of the tensors that every environment has. Rows are [field, robot, world] with the world
// index fastest, so neighbouring threads (CUDA) and lanes (CPU) touch neighbouring memory; rows are
// padded to kRowAlignment worlds, and a padded world has no robot.
#pragma once

#include "kernel/lane.h"
#include "kernel/philox.h"
#include "kernel/tables.h"

namespace marinenav {

// Bits of a robot's status.
constexpr int32_t kAlive = 1;  // takes decisions and is seen by others
constexpr int32_t kFailed = 2;
constexpr int32_t kReached = 4;
constexpr int32_t kActed = 8;  // from the judge's verdict on a decision to the end of it

// How a world's episode stands.
constexpr int32_t kRunning = 0;
constexpr int32_t kTerminated = 1;
constexpr int32_t kTruncated = 2;

/// A robot is one that decides: a vessel, or the cart. Every environment's Robot fields have kReturn
/// and kSteps (sums over the episode), its World fields kNextStage, kStage (of the next reset and of
/// the running episode), kEpisode (begun so far), kStep (decisions in this one), kEnd and
/// kRobotSteps (since the statistics were cleared).
template <class Env>
TensorSpecs world_specs() {
  return {
      {"robot", Number::kReal, {Env::Robot::kCount, "robots", "stride"}, Env::robot_names()},
      {"status", Number::kInt, {"robots", "stride"}},
      // actions not usable since the statistics were cleared
      {"bad", Number::kInt, {"robots", "stride"}},
      {"world", Number::kInt, {Env::World::kCount, "stride"}, Env::kWorldNames},
      // of a world's last finished episode
      {"outcome", Number::kReal, {Env::Outcome::kCount, "stride"}, Env::kOutcomeNames},
      // sums over finished episodes
      {"stats", Number::kReal, {"stages", Env::Stat::kCount, "stride"}, Env::kStatNames, true},
  };
}
/// Scenario settings, read only.
template <class Env>
TensorSpecs stage_specs() {
  return {{"stage", Number::kReal, {"stages", Env::Stage::kCount}, Env::kStageNames}};
}

/// A count or an index out of a tensor, brought into 0..most: what a tensor holds may come from a file.
MN_HD int bounded(int32_t value, int most) { return value < 0 ? 0 : value < most ? value : most; }

template <class Env, class T>
struct Worlds {
  using Real = T;
  using Robot = typename Env::Robot;
  using World = typename Env::World;
  int worlds, stride, robots, stages;
  T* robot;
  int32_t *status, *bad, *world;
  T *outcome, *stats;
  const T* stage;
  uint32_t key0, key1, first_world;

  explicit Worlds(const Tables& t)
      : worlds(t.size("worlds")), stride(t.size("stride")), robots(t.size("robots")),
        stages(t.size("stages")), robot(t.at<T>("robot")), status(t.at<int32_t>("status")),
        bad(t.at<int32_t>("bad")), world(t.at<int32_t>("world")), outcome(t.at<T>("outcome")),
        stats(t.at<T>("stats")), stage(t.at<T>("stage")), key0(static_cast<uint32_t>(t.seed)),
        key1(static_cast<uint32_t>(t.seed >> 32)), first_world(t.first_world) {}

  MN_HD T* robot_at(int field, int r, int w) const {
    return robot + (static_cast<int64_t>(field) * robots + r) * stride + w;
  }
  MN_HD int32_t* status_at(int r, int w) const { return status + int64_t{r} * stride + w; }
  MN_HD int32_t* bad_at(int r, int w) const { return bad + int64_t{r} * stride + w; }
  MN_HD int32_t* world_at(int field, int w) const { return world + int64_t{field} * stride + w; }
  MN_HD T* outcome_at(int field, int w) const { return outcome + int64_t{field} * stride + w; }
  MN_HD T* stat_at(int stage_index, int field, int w) const {
    return stats + (static_cast<int64_t>(stage_index) * Env::Stat::kCount + field) * stride + w;
  }

  /// Which of the stages a world field names.
  MN_HD int stage_in(int field, int w) const { return bounded(*world_at(field, w), stages - 1); }

  /// Random numbers of the worlds of V from w on, `steps_ahead` decisions from now.
  template <class V>
  MN_HD RandomStream<V> random(int w, int32_t steps_ahead) const {
    const auto episode = load_int<V>(world_at(Env::World::kEpisode, w));
    const auto step = load_int<V>(world_at(Env::World::kStep, w)) + steps_ahead;
    return {lane_indices<V>(first_world + static_cast<uint32_t>(w)), (UInt<V>)episode,
            (UInt<V>)step, key0, key1};
  }
};

}  // namespace marinenav
