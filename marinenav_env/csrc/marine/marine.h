// The published task as an environment.
#pragma once

#include "marine/env.h"
#include "marine/faults/thrusters.h"
#include "marine/faults/variation.h"
#include "marine/task.h"
#include "marine/vessels/wamv16.h"
#include "marine/water/stream.h"
#include "marine/water/vortices.h"
#include "marine/water/waves.h"
#include "marine/water/wind.h"

namespace marinenav {

/// Vessels with thrusters on any water; all but the vortices is off by default.
template <class Vessel, class Sensor, class Task>
using DisturbedEnv = MarineEnv<Vessel, Sensor, Task, Vortices, Wind, Stream, Waves, Thrusters,
                               Variation>;

/// WAM-V 16, noisy perception of the nearest objects.
struct Marine : DisturbedEnv<Wamv16, NearestObjects, NavigationTask> {
  static constexpr const char* kName = "marine";
};

}  // namespace marinenav
