// The environments that the operators know. A new one is a header and a line here.
#pragma once

#include "classic/cartpole.h"
#include "kernel/env_list.h"
#include "marine/env.h"
#include "marine/reach_goal.h"
#include "marine/sensors/two_lists.h"
#include "marine/task.h"
#include "marine/vessels/kinematic.h"
#include "marine/vessels/wamv16.h"
#include "marine/water/vortices.h"

namespace marinenav {

/// The published task: WAM-V 16, noisy perception of the nearest objects, vortices.
struct Marine : MarineEnv<Wamv16, NearestObjects, NavigationTask, Vortices> {
  static constexpr const char* kName = "marine";
};

/// The task of the ICRA 2024 paper: vessels of kinematics alone, two lists without noise, vortices.
struct Icra2024 : MarineEnv<KinematicVessel, TwoLists, ReachGoalTask, Vortices> {
  static constexpr const char* kName = "icra2024";
};

using Envs = EnvList<Marine, Icra2024, CartPole>;

}  // namespace marinenav
