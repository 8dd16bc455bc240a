// The operator that asks an environment how its water flows, for figures and flow fields.
#pragma once

#include <c10/core/DeviceGuard.h>

#include "kernel/arguments.h"
#include "kernel/env_list.h"
#include "marine/vec2.h"

namespace marinenav {

/// Water velocity at points [W, N, 2]: one index a point and world.
template <class Env, class T>
struct WaterPhase {
  using Value = T;
  static constexpr bool kPerRobot = true;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  int points;
  const T* position;
  T* velocity;

  MN_HD void operator()(int n, int w) const {
    const int64_t at = (int64_t{w} * points + n) * 2;
    const Vec2<T> flow = Env::template flow<T>(s, p, w, position[at], position[at + 1]);
    velocity[at] = flow.x;
    velocity[at + 1] = flow.y;
  }
};

template <class Env, class = void>
constexpr bool kHasWater = false;
template <class Env>
constexpr bool kHasWater<Env, std::void_t<typename Env::Vessel>> = true;

template <class Backend, class Envs>
void water(c10::string_view env, TensorList state, TensorList tables, const Tensor& position,
           const Tensor& velocity, const Tensor& params) {
  with_env(Envs{}, env, [&](auto tag) {
    using Env = typename decltype(tag)::Type;
    if constexpr (kHasWater<Env>) {
      TORCH_CHECK(position.dim() == 3, "marinenav: `position` has shape ", position.sizes(),
                  ", expected [worlds, points, 2]");
      Arguments arguments(first_of(state, "state"), position.size(0));
      arguments.add("state", Specs<Env>::get().state, state);
      arguments.add("tables", Specs<Env>::get().tables, tables);
      arguments.check({"position", Number::kReal, {"worlds", "points", 2}}, position);
      arguments.check({"velocity", Number::kReal, {"worlds", "points", 2}}, velocity);
      const c10::DeviceGuard guard(position.device());
      dispatch(arguments.real(), [&](auto real) {
        using T = decltype(real);
        const int points = arguments.tables().size("points");
        Backend::launcher()(static_cast<int>(position.size(0)), points,
                            WaterPhase<Env, T>{typename Env::template State<T>(arguments.tables()),
                                               checked_params<Env, T>(params), points,
                                               static_cast<const T*>(position.data_ptr()),
                                               static_cast<T*>(velocity.data_ptr())});
      });
    } else {
      TORCH_CHECK(false, "marinenav: `", env, "` has no water");
    }
  });
}

}  // namespace marinenav
