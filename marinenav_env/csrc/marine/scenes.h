// Scenes: vessels, buoys and vortices where they are wanted, instead of a random map.
#pragma once

#include "kernel/fields.h"
#include "kernel/functions.h"
#include "kernel/tables.h"

namespace marinenav {

// How many there are; how far every start may be moved north and east (m), every heading turned (rad).
#define MN_SCENE(X) \
  X(kVessels, "vessels") X(kBuoys, "buoys") X(kVortices, "vortices") X(kMove, "move") X(kTurn, "turn")
// m, m, m, m, rad in [0, 2 pi), m/s through the water.
#define MN_SCENE_VESSEL(X)                                                                      \
  X(kX, "x") X(kY, "y") X(kGoalX, "goal_x") X(kGoalY, "goal_y") X(kHeading, "heading")          \
  X(kSpeed, "speed")

struct Scenes {
  struct Scene {
    enum : int { MN_SCENE(MN_ENUMERATOR) kCount };
  };
  struct Vessel {
    enum : int { MN_SCENE_VESSEL(MN_ENUMERATOR) kCount };
  };
  static constexpr int kObject = 3;  // as a buoy's and a vortex's fields

  static TensorSpecs tables() {
    return {{"scene", Number::kReal, {"scenes", Scene::kCount}, MN_SCENE(MN_NAME)},
            {"scene_vessel", Number::kReal, {"scenes", "robots", Vessel::kCount},
             MN_SCENE_VESSEL(MN_NAME)},
            {"scene_buoy", Number::kReal, {"scenes", "buoys", kObject}, "x y radius"},
            {"scene_vortex", Number::kReal, {"scenes", "vortices", kObject}, "x y circulation"}};
  }

  template <class T>
  struct View {
    int scenes, scene_robots, scene_buoys, scene_vortices;
    const T *scene, *scene_vessel, *scene_buoy, *scene_vortex;

    explicit View(const Tables& t)
        : scenes(t.size("scenes")), scene_robots(t.size("robots")), scene_buoys(t.size("buoys")),
          scene_vortices(t.size("vortices")), scene(t.at<T>("scene")),
          scene_vessel(t.at<T>("scene_vessel")), scene_buoy(t.at<T>("scene_buoy")),
          scene_vortex(t.at<T>("scene_vortex")) {}
    MN_HD const T* scene_at(int k) const { return scene + int64_t{k} * Scene::kCount; }
    MN_HD const T* scene_vessel_at(int k, int r) const {
      return scene_vessel + (int64_t{k} * scene_robots + r) * Vessel::kCount;
    }
    MN_HD const T* scene_buoy_at(int k, int b) const {
      return scene_buoy + (int64_t{k} * scene_buoys + b) * kObject;
    }
    MN_HD const T* scene_vortex_at(int k, int c) const {
      return scene_vortex + (int64_t{k} * scene_vortices + c) * kObject;
    }
  };
};
#undef MN_SCENE
#undef MN_SCENE_VESSEL

}  // namespace marinenav
