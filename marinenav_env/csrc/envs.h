// The environments that the operators know. A new one is a header and a line here.
#pragma once

#include "classic/cartpole.h"
#include "kernel/env_list.h"
#include "marine/marine.h"

namespace marinenav {

using Envs = EnvList<Marine, CartPole>;

}  // namespace marinenav
