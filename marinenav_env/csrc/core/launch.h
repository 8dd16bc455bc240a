// The sequence of phases of each operation, for any launcher.
#pragma once

#include "judge.h"
#include "phases.h"

namespace marinenav {

/// One decision of every world. `launcher(state, phases...)` runs the phases in order.
template <class V, class Launcher, class T = Scalar<V>>
void run_step(const Launcher& launcher, const State<T>& s, const Params<T>& p,
              const ActionView<T>& action, const ObservationView<T>& previous,
              const ObservationView<T>& observation, int frames, const StepView<T>& out) {
  launcher(s.worlds, s.robots, IntegratePhase<V>{s, p, action},
           ObservePhase<V>{s, p, observation, previous, frames, 1, nullptr},
           JudgePhase<V>{s, p, out});
}

/// Observation of the (masked) worlds as they stand, every frame the same.
template <class V, class Launcher, class T = Scalar<V>>
void run_observe(const Launcher& launcher, const State<T>& s, const Params<T>& p, const bool* only,
                 const ObservationView<T>& observation, int frames) {
  launcher(s.worlds, s.robots, ObservePhase<V>{s, p, observation, {}, frames, 0, only});
}

/// Places the (masked) worlds and observes them.
template <class V, class Launcher, class T = Scalar<V>>
void run_reset(const Launcher& launcher, const State<T>& s, const Params<T>& p, const bool* only,
               const ObservationView<T>& observation, int frames, bool* alive) {
  launcher(s.worlds, s.robots, ResetPhase<T>{s, p, only, alive},
           ObservePhase<V>{s, p, observation, {}, frames, 0, only});
}

}  // namespace marinenav
