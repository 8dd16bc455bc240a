// The environments that the operators know. A new one is a header and a line here.
#pragma once

#include "classic/cartpole.h"
#include "kernel/env_list.h"
#include "marine/env.h"
#include "marine/task.h"
#include "marine/vessels/wamv16.h"
#include "marine/water/vortices.h"

namespace marinenav {

/// The published task: WAM-V 16, noisy perception of the nearest objects, vortices.
struct Marine : MarineEnv<Wamv16, NearestObjects, NavigationTask, Vortices> {
  static constexpr const char* kName = "marine";
};

using Envs = EnvList<Marine, CartPole>;

}  // namespace marinenav
