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

/// WAM-V 16, noisy perception of the nearest objects, vortices; the rest is off by default.
struct Marine : MarineEnv<Wamv16, NearestObjects, NavigationTask, Vortices, Wind, Stream, Waves,
                          Thrusters, Variation> {
  static constexpr const char* kName = "marine";
};

}  // namespace marinenav
