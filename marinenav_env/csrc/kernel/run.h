// The sequence of phases of each operation, for any environment and launcher.
// `launcher(worlds, robots, phases...)` runs the phases in order.
#pragma once

#include "kernel/phases.h"

namespace marinenav {

/// One decision of every world.
template <class Env, class V, class Launcher, class T = Scalar<V>>
void run_step(const Launcher& launcher, const typename Env::template State<T>& s,
              const typename Env::template Params<T>& p, const ActionView<T>& action,
              const ObservationView<Env, T>& previous, const ObservationView<Env, T>& observation,
              int frames, const StepView<T>& out) {
  launcher(s.worlds, s.robots, typename Env::template IntegratePhase<V>{s, p, action},
           SensePhase<Env, V>{s, p, observation, previous, frames, 1, nullptr},
           JudgePhase<Env, V>{s, p, out}, EndPhase<Env, V>{s, p, out});
}

/// Observation of the (masked) worlds as they stand, every frame the same.
template <class Env, class V, class Launcher, class T = Scalar<V>>
void run_observe(const Launcher& launcher, const typename Env::template State<T>& s,
                 const typename Env::template Params<T>& p, const bool* only,
                 const ObservationView<Env, T>& observation, int frames) {
  launcher(s.worlds, s.robots, SensePhase<Env, V>{s, p, observation, {}, frames, 0, only});
}

/// Places the (masked) worlds and observes them.
template <class Env, class V, class Launcher, class T = Scalar<V>>
void run_reset(const Launcher& launcher, const typename Env::template State<T>& s,
               const typename Env::template Params<T>& p, const bool* only,
               const ObservationView<Env, T>& observation, int frames, bool* alive) {
  launcher(s.worlds, s.robots, BeginPhase<Env, T>{s, only}, PlacePhase<Env, T>{s, p, only, alive},
           SensePhase<Env, V>{s, p, observation, {}, frames, 0, only});
}

}  // namespace marinenav
