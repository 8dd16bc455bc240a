// The sequence of phases of each operation, for any environment and launcher.
// `launcher(worlds, robots, phases...)` runs the phases in order; `launcher.unroll(worlds, robots, turns,
// body)` calls body(turn, launcher of a part of the worlds) turn after turn.
#pragma once

#include "kernel/phases.h"

// Before a function that takes launchers of the host and of the device.
#ifdef __CUDACC__
#define MN_ANY_LAUNCHER _Pragma("nv_exec_check_disable")
#else
#define MN_ANY_LAUNCHER
#endif

namespace marinenav {

/// One decision of every world.
MN_ANY_LAUNCHER
template <class Env, class V, class Launcher, class T = Scalar<V>>
MN_HD void run_step(const Launcher& launcher, const typename Env::template State<T>& s,
                    const typename Env::template Params<T>& p, const ActionView<T>& action,
                    const ObservationView<Env, T>& previous,
                    const ObservationView<Env, T>& observation, int frames,
                    const StepView<T>& out) {
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
MN_ANY_LAUNCHER
template <class Env, class V, class Launcher, class T = Scalar<V>>
MN_HD void run_reset(const Launcher& launcher, const typename Env::template State<T>& s,
                     const typename Env::template Params<T>& p, const bool* only,
                     const ObservationView<Env, T>& observation, int frames, bool* alive) {
  launcher(s.worlds, s.robots, BeginPhase<Env, T>{s, only}, PlacePhase<Env, T>{s, p, only, alive},
           SensePhase<Env, V>{s, p, observation, {}, frames, 0, only});
}

/// Decision after decision of every world, finished worlds placed anew after each. What is given and
/// written has a row for every turn.
template <class Env, class V, class T = Scalar<V>>
struct Unrolled {
  using Value = V;
  static constexpr int kRowBytes = Env::kObservationSize * static_cast<int>(sizeof(T));
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  ActionView<T> action;
  ObservationView<Env, T> previous, observation;  // the former of turn 0
  int frames;
  StepView<T> out;

  MN_ANY_LAUNCHER
  template <class Launcher>
  MN_HD void operator()(int turn, const Launcher& launcher) const {
    const int64_t worlds = int64_t{turn} * s.worlds, rows = worlds * s.robots;
    const auto now = observation.after(rows, frames);
    const auto before =
        turn == 0 ? previous : observation.after(rows - int64_t{s.worlds} * s.robots, frames);
    const StepView<T> results = out.after(rows, worlds);
    run_step<Env, V>(launcher, s, p, action.after(rows, Env::kContinuous), before, now, frames,
                     results);
    run_reset<Env, V>(launcher, s, p, results.done, now, frames, results.alive);
  }
};

}  // namespace marinenav
