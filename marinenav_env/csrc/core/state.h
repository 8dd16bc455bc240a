// Views of the simulator's tensors. Rows are [field, robot, world] with the world index fastest, so
// neighbouring threads (CUDA) and lanes (CPU) touch neighbouring memory; rows are padded to
// kRowAlignment worlds, and a padded world has no robot.
#pragma once

#include "lane.h"

namespace marinenav {

/// Fields of a robot, the first thirteen in the order of the published trajectory.
enum RobotField : int {
  kX, kY, kHeading,                  // m, m, rad in [0, 2 pi): north, east, clockwise
  kVxWater, kVyWater, kYawWater,     // velocity through the water, world frame, m/s, m/s, rad/s
  kVx, kVy, kYaw,                    // velocity over ground, world frame
  kLeftAngle, kRightAngle,           // thruster azimuth, rad
  kLeftThrust, kRightThrust,         // N
  kGoalX, kGoalY,                    // m
  kProgress, kStepEnergy,            // of the last decision: m gained toward the goal, N s
  kPhi, kContact,                    // of the last observation: rad (0: COLREGs do not apply), 0 or 1
  kReturn, kEnergy, kSteps,          // sums over the episode
  kRobotFields
};

// Bits of a robot's status.
constexpr int32_t kAlive = 1;    // takes decisions and is seen by others
constexpr int32_t kCollided = 2;
constexpr int32_t kReached = 4;

/// Integer fields of a world.
enum WorldField : int {
  kNextStage,   // stage of the next reset
  kStage,       // stage of the running episode
  kRobots, kVortices, kBuoys,  // placed in this episode
  kEpisode,     // resets so far
  kStep,        // decisions taken in this episode
  kEnd,         // kRunning, kTerminated or kTruncated
  kRobotStepsTaken,  // robot-steps since the statistics were cleared
  kWorldFields
};

// How a world's episode stands.
constexpr int32_t kRunning = 0;
constexpr int32_t kTerminated = 1;
constexpr int32_t kTruncated = 2;

/// Outcome of a world's last finished episode.
enum OutcomeField : int {
  kSuccess, kCollision, kTimeout, kMeanTime, kMeanEnergy, kMeanReturn, kLength, kOutcomeFields
};

/// Sums over finished episodes, per stage and world.
enum StatField : int {
  kEpisodes, kSuccesses, kCollisions, kTimeouts, kReturnSum, kLengthSum, kSuccessTimeSum,
  kSuccessEnergySum, kRobotSum, kReachedSum, kCollidedSum, kStatFields
};

/// Columns of the stage table.
enum StageField : int { kStageRobots, kStageVortices, kStageBuoys, kStageMinDistance, kStageFields };

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

// Names of the fields above, in order: what Python goes by.
constexpr const char* kRobotFieldNames =
    "x y heading vx_water vy_water yaw_water vx vy yaw left_angle right_angle left_thrust "
    "right_thrust goal_x goal_y progress step_energy phi contact return energy steps";
constexpr const char* kWorldFieldNames =
    "next_stage stage robots vortices buoys episode step end robot_steps";
constexpr const char* kOutcomeFieldNames =
    "success collision timeout mean_time_s mean_energy mean_return length";
constexpr const char* kStatFieldNames =
    "episodes successes collisions timeouts return_sum length_sum success_time_sum "
    "success_energy_sum robots robots_reached robots_collided";
constexpr const char* kStageFieldNames = "robots vortices buoys min_distance_m";

constexpr int count_names(const char* names) {
  int count = 1;
  for (; *names != '\0'; ++names) count += *names == ' ' ? 1 : 0;
  return count;
}
static_assert(count_names(kRobotFieldNames) == kRobotFields);
static_assert(count_names(kWorldFieldNames) == kWorldFields);
static_assert(count_names(kOutcomeFieldNames) == kOutcomeFields);
static_assert(count_names(kStatFieldNames) == kStatFields);
static_assert(count_names(kStageFieldNames) == kStageFields);

/// Observation rows [W, R, ...], frames newest first.
template <class T>
struct ObservationView {
  T* ego;      // [W, R, frames, kEgoFeatures]
  T* objects;  // [W, R, frames, kObjects, kObjectFeatures]
  T* mask;     // [W, R, frames, kObjects]
};

}  // namespace marinenav
