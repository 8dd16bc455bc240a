// Views of what goes into a step and comes out of it.
#pragma once

#include "kernel/lane.h"
#include "kernel/tables.h"

namespace marinenav {

/// Actions [W, R, Env::kContinuous] in [-1, 1], or [W, R] indices; the other one is null.
template <class T>
struct ActionView {
  const T* continuous;
  const int64_t* discrete;

  /// The view `rows` rows of `size` numbers further on.
  MN_HD ActionView after(int64_t rows, int size) const {
    return {continuous == nullptr ? nullptr : continuous + rows * size,
            discrete == nullptr ? nullptr : discrete + rows};
  }
};

/// Observation entries [W, R, frames, ...], frames newest first.
template <class Env, class T>
struct ObservationView {
  T* entry[Env::kEntries];

  /// The view `rows` rows, of `frames` frames each, further on.
  MN_HD ObservationView after(int64_t rows, int frames) const {
    ObservationView view;
    for (int k = 0; k < Env::kEntries; ++k)
      view.entry[k] = entry[k] + rows * frames * Env::entry_size(k);
    return view;
  }
};

/// Results of a step.
template <class T>
struct StepView {
  T* reward;                                        // [W, R], 0 where the robot did not act
  bool *acted, *terminated, *truncated, *alive;     // [W, R]
  bool *done, *world_terminated, *world_truncated;  // [W]

  static TensorSpecs specs() {
    return {{"reward", Number::kReal, {"worlds", "robots"}},
            {"acted", Number::kBool, {"worlds", "robots"}},
            {"terminated", Number::kBool, {"worlds", "robots"}},
            {"truncated", Number::kBool, {"worlds", "robots"}},
            {"alive", Number::kBool, {"worlds", "robots"}},
            {"done", Number::kBool, {"worlds"}},
            {"world_terminated", Number::kBool, {"worlds"}},
            {"world_truncated", Number::kBool, {"worlds"}}};
  }
  explicit StepView(const Tables& t)
      : reward(t.at<T>("reward")), acted(t.at<bool>("acted")), terminated(t.at<bool>("terminated")),
        truncated(t.at<bool>("truncated")), alive(t.at<bool>("alive")), done(t.at<bool>("done")),
        world_terminated(t.at<bool>("world_terminated")),
        world_truncated(t.at<bool>("world_truncated")) {}

  /// The view `rows` robots and `worlds` worlds further on.
  MN_HD StepView after(int64_t rows, int64_t worlds) const {
    StepView view = *this;
    view.reward += rows, view.acted += rows, view.terminated += rows;
    view.truncated += rows, view.alive += rows;
    view.done += worlds, view.world_terminated += worlds, view.world_truncated += worlds;
    return view;
  }
};

}  // namespace marinenav
