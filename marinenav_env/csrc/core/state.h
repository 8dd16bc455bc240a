// Views of the simulator's tensors. Rows are [field, robot, world] with the world index fastest, so
// neighbouring threads (CUDA) and lanes (CPU) touch neighbouring memory; rows are padded to
// kRowAlignment worlds, and a padded world has no robot.
#pragma once

#include "lane.h"

namespace marinenav {

// A field stands in one list: X(enumerator, name). Its number, and what Python knows it by, follow.
#define MN_ENUMERATOR(enumerator, name) enumerator,
#define MN_NAME(enumerator, name) name " "

/// Fields of a robot, the first thirteen in the order of the published trajectory.
#define MN_ROBOT_FIELDS(X)                                                                      \
  /* m, m, rad in [0, 2 pi): north, east, clockwise */                                          \
  X(kX, "x") X(kY, "y") X(kHeading, "heading")                                                  \
  /* velocity through the water, world frame, m/s, m/s, rad/s */                                \
  X(kVxWater, "vx_water") X(kVyWater, "vy_water") X(kYawWater, "yaw_water")                     \
  /* velocity over ground, world frame */                                                       \
  X(kVx, "vx") X(kVy, "vy") X(kYaw, "yaw")                                                      \
  /* thruster azimuth, rad; thrust, N; goal, m */                                               \
  X(kLeftAngle, "left_angle") X(kRightAngle, "right_angle")                                     \
  X(kLeftThrust, "left_thrust") X(kRightThrust, "right_thrust")                                 \
  X(kGoalX, "goal_x") X(kGoalY, "goal_y")                                                       \
  /* of the last decision: m gained toward the goal, N s */                                     \
  X(kProgress, "progress") X(kStepEnergy, "step_energy")                                        \
  /* of the last observation: rad (0: COLREGs do not apply), 0 or 1 */                          \
  X(kPhi, "phi") X(kContact, "contact")                                                         \
  /* sums over the episode */                                                                   \
  X(kReturn, "return") X(kEnergy, "energy") X(kSteps, "steps")
enum RobotField : int { MN_ROBOT_FIELDS(MN_ENUMERATOR) kRobotFields };

// Bits of a robot's status.
constexpr int32_t kAlive = 1;    // takes decisions and is seen by others
constexpr int32_t kCollided = 2;
constexpr int32_t kReached = 4;

/// Integer fields of a world: stage of the next reset and of the running episode, what this episode
/// placed, resets so far, decisions taken in this episode, kRunning, kTerminated or kTruncated, and
/// robot-steps since the statistics were cleared.
#define MN_WORLD_FIELDS(X)                                                                      \
  X(kNextStage, "next_stage") X(kStage, "stage")                                                \
  X(kRobots, "robots") X(kVortices, "vortices") X(kBuoys, "buoys")                              \
  X(kEpisode, "episode") X(kStep, "step") X(kEnd, "end") X(kRobotStepsTaken, "robot_steps")
enum WorldField : int { MN_WORLD_FIELDS(MN_ENUMERATOR) kWorldFields };

// How a world's episode stands.
constexpr int32_t kRunning = 0;
constexpr int32_t kTerminated = 1;
constexpr int32_t kTruncated = 2;

/// Outcome of a world's last finished episode; time in s, energy in N s, means over its robots.
#define MN_OUTCOME_FIELDS(X)                                                                    \
  X(kSuccess, "success") X(kCollision, "collision") X(kTimeout, "timeout")                      \
  X(kMeanTime, "mean_time_s") X(kMeanEnergy, "mean_energy") X(kMeanReturn, "mean_return")       \
  X(kLength, "length")
enum OutcomeField : int { MN_OUTCOME_FIELDS(MN_ENUMERATOR) kOutcomeFields };

/// Sums over finished episodes, per stage and world.
#define MN_STAT_FIELDS(X)                                                                       \
  X(kEpisodes, "episodes") X(kSuccesses, "successes") X(kCollisions, "collisions")              \
  X(kTimeouts, "timeouts") X(kReturnSum, "return_sum") X(kLengthSum, "length_sum")              \
  X(kSuccessTimeSum, "success_time_sum") X(kSuccessEnergySum, "success_energy_sum")             \
  X(kRobotSum, "robots") X(kReachedSum, "robots_reached") X(kCollidedSum, "robots_collided")
enum StatField : int { MN_STAT_FIELDS(MN_ENUMERATOR) kStatFields };

/// Columns of the stage table.
#define MN_STAGE_FIELDS(X)                                                                      \
  X(kStageRobots, "robots") X(kStageVortices, "vortices") X(kStageBuoys, "buoys")               \
  X(kStageMinDistance, "min_distance_m")
enum StageField : int { MN_STAGE_FIELDS(MN_ENUMERATOR) kStageFields };

// What Python knows the fields by, in order.
constexpr const char* kRobotFieldNames = MN_ROBOT_FIELDS(MN_NAME);
constexpr const char* kWorldFieldNames = MN_WORLD_FIELDS(MN_NAME);
constexpr const char* kOutcomeFieldNames = MN_OUTCOME_FIELDS(MN_NAME);
constexpr const char* kStatFieldNames = MN_STAT_FIELDS(MN_NAME);
constexpr const char* kStageFieldNames = MN_STAGE_FIELDS(MN_NAME);
#undef MN_NAME
#undef MN_ENUMERATOR

template <class T>
struct State {
  int worlds, stride;             // W, and W rounded up to kRowAlignment
  int robots, buoys, vortices, stages;  // slots
  T* robot;          // [kRobotFields, R, stride]
  int32_t* status;   // [R, stride]
  int32_t* bad;      // [R, stride] actions not usable since the statistics were cleared
  T* buoy;           // [3, B, stride]: x m, y m, radius m (0: empty slot)
  // [3, C, stride]: x m, y m, circulation m^2/s (0: empty slot). > 0 is published as "clockwise"; on
  // a chart with north up that water turns counter-clockwise (docs/physics.md).
  T* vortex;
  int32_t* world;    // [kWorldFields, stride]
  T* outcome;        // [kOutcomeFields, stride]
  T* stats;          // [stages, kStatFields, stride], or null
  const T* stage;    // [stages, kStageFields]
  const T* radius_noise;  // [kNoiseTable + 1] quantiles of the von Mises distribution over pi
  uint32_t key0, key1;    // seed
  uint32_t first_world;   // global index of world 0

  MN_HD T* robot_at(int field, int r, int w) const {
    return robot + (static_cast<int64_t>(field) * robots + r) * stride + w;
  }
  MN_HD T* buoy_at(int field, int b, int w) const {
    return buoy + (static_cast<int64_t>(field) * buoys + b) * stride + w;
  }
  MN_HD T* vortex_at(int field, int c, int w) const {
    return vortex + (static_cast<int64_t>(field) * vortices + c) * stride + w;
  }
  MN_HD int32_t* status_at(int r, int w) const { return status + int64_t{r} * stride + w; }
  MN_HD int32_t* bad_at(int r, int w) const { return bad + int64_t{r} * stride + w; }
  MN_HD int32_t* world_at(int field, int w) const { return world + int64_t{field} * stride + w; }
  MN_HD T* outcome_at(int field, int w) const { return outcome + int64_t{field} * stride + w; }
  MN_HD T* stat_at(int stage_index, int field, int w) const {
    return stats + (static_cast<int64_t>(stage_index) * kStatFields + field) * stride + w;
  }
};

constexpr int kNoiseTable = 1024;
constexpr int kEgoFeatures = 7;
constexpr int kObjectFeatures = 5;
constexpr int kObjects = 5;  // nearest objects in an observation

/// Observation rows [W, R, ...], frames newest first.
template <class T>
struct ObservationView {
  T* ego;      // [W, R, frames, kEgoFeatures]
  T* objects;  // [W, R, frames, kObjects, kObjectFeatures]
  T* mask;     // [W, R, frames, kObjects]
};

}  // namespace marinenav
