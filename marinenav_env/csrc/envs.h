// The environments that the operators know. A new one is a header and a line here.
#pragma once

#include "classic/cartpole.h"
#include "classic/mountain_car.h"
#include "classic/pendulum.h"
#include "kernel/env_list.h"
#include "marine/marine.h"
#include "marine/reach_goal.h"
#include "marine/sensors/beams.h"
#include "marine/sensors/sectors.h"
#include "marine/sensors/two_lists.h"
#include "marine/vessels/kinematic.h"

namespace marinenav {

/// The task of the ICRA 2024 paper: vessels of kinematics alone, two lists without noise, vortices.
struct Icra2024 : MarineEnv<KinematicVessel, TwoLists, ReachGoalTask, Vortices> {
  static constexpr const char* kName = "icra2024";
};

/// The vessels of the first task with another sensor, and its reward without COLREGs.
template <class Sensor>
using RangingEnv = DisturbedEnv<Wamv16, Sensor, ReachGoalTask>;
struct MarineSectors : RangingEnv<Sectors> {
  static constexpr const char* kName = "marine_sectors";
};
struct MarineBeams : RangingEnv<Beams> {
  static constexpr const char* kName = "marine_beams";
};

using Envs = EnvList<Marine, Icra2024, CartPole, Pendulum, MountainCar, MountainCarContinuous,
                     MarineSectors, MarineBeams>;

}  // namespace marinenav
