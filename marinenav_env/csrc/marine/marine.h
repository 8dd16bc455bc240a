// The published task as an environment.
#pragma once

#include "marine/env.h"
#include "marine/task.h"
#include "marine/vessels/wamv16.h"
#include "marine/water/vortices.h"

namespace marinenav {

/// WAM-V 16, noisy perception of the nearest objects, vortices.
struct Marine : MarineEnv<Wamv16, NearestObjects, NavigationTask, Vortices> {
  static constexpr const char* kName = "marine";
};

}  // namespace marinenav
