// Placement: a random map by rejection sampling of starts, goals, water and buoys (published rules),
// or a given scene.
#pragma once

#include "marine/purposes.h"
#include "marine/scenes.h"
#include "marine/vec2.h"

namespace marinenav {

/// Places one world; what finds no room is left out.
template <class Env, class T, class Search>
struct Placement {
  using Real = T;
  using Robot = typename Env::Robot;
  using World = typename Env::World;
  using Stage = typename Env::Stage;
  const typename Env::template State<T>& s;
  const typename Env::template Params<T>& p;
  const RandomStream<T>& random;
  Search search;
  int w;
  int robots = 0;  // placed so far
  int scene = -1;  // the one placed; -1 is a random map

  struct Way {
    T start_x, start_y, goal_x, goal_y;
  };
  struct Disc {
    T x, y, radius;
  };

  /// As many of a kind as the stage wants, but no more than there are slots to write to.
  MN_HD int within(T wanted, int slots) const {
    return static_cast<int>(smaller(larger(wanted, T(0)), static_cast<T>(slots)));
  }

  MN_HD bool in_map(T x, T y, T margin) const {
    return !(x < margin || x > p.scenario.width - margin || y < margin ||
             y > p.scenario.height - margin);
  }

  /// Whether a point lies at least `clearance` from every start and goal.
  MN_HD bool clear_of_robots(T x, T y, T clearance) const {
    for (int j = 0; j < robots; ++j) {
      if (distance(x, y, *s.robot_at(Robot::kX, j, w), *s.robot_at(Robot::kY, j, w)) < clearance ||
          distance(x, y, *s.robot_at(Robot::kGoalX, j, w), *s.robot_at(Robot::kGoalY, j, w)) <
              clearance)
        return false;
    }
    return true;
  }

  MN_HD bool fits_robot(const Way& way, T min_distance) const {
    if (distance(way.start_x, way.start_y, way.goal_x, way.goal_y) < min_distance) return false;
    const T clear = p.scenario.clear_radius;
    for (int j = 0; j < robots; ++j) {
      if (distance(way.start_x, way.start_y, *s.robot_at(Robot::kX, j, w),
                   *s.robot_at(Robot::kY, j, w)) <= clear ||
          distance(way.goal_x, way.goal_y, *s.robot_at(Robot::kGoalX, j, w),
                   *s.robot_at(Robot::kGoalY, j, w)) <= clear)
        return false;
    }
    return true;
  }

  /// Puts what `draw(i)` gives and `fits(drawn)` accepts, try by try, until so many are placed or no
  /// try is left; returns how many.
  template <class Draw, class Fits, class Put>
  MN_HD int fill(int wanted, const Draw& draw, const Fits& fits, const Put& put) const {
    const int tries = static_cast<int>(p.scenario.placement_tries);
    int placed = 0;
    for (int i = 0; placed < wanted; ++i) {
      i = search.first(i, tries, [&](int k) { return fits(draw(k), placed); });
      if (i >= tries) break;
      put(draw(i), placed++);
    }
    return placed;
  }

  /// Draws one of the stage's scenes, if it has any.
  MN_HD void choose_scene(const T* stage) {
    const int scenes = within(stage[Stage::kScenes], s.scenes);
    if (scenes < 1) return;
    const int first = within(stage[Stage::kFirstScene], s.scenes - scenes);
    const T drawn = uniform<T>(random.draw(Purpose::kScene, 0, 0).w0) * static_cast<T>(scenes);
    scene = first + within(drawn, scenes - 1);
  }

  /// How many of a kind the scene holds, but no more than there are slots to write to.
  MN_HD int in_scene(int kind, int slots) const { return within(s.scene_at(scene)[kind], slots); }

  /// A number by which a vessel's start is moved or its heading turned, in [-reach, reach).
  MN_HD T offset(int reach, uint32_t bits) const {
    const T most = s.scene_at(scene)[reach];
    return between(-most, most, bits);
  }

  MN_HD void place_vessels() {
    using Given = Scenes::Vessel;
    robots = in_scene(Scenes::Scene::kVessels, s.robots);
    for (int r = 0; r < robots; ++r) {
      const T* given = s.scene_vessel_at(scene, r);
      const Philox4<uint32_t> bits = random.draw(Purpose::kScene, r, 1);
      for (int f = 0; f < Robot::kCount; ++f) *s.robot_at(f, r, w) = T(0);
      *s.robot_at(Robot::kX, r, w) = given[Given::kX] + offset(Scenes::Scene::kMove, bits.w0);
      *s.robot_at(Robot::kY, r, w) = given[Given::kY] + offset(Scenes::Scene::kMove, bits.w1);
      *s.robot_at(Robot::kGoalX, r, w) = given[Given::kGoalX];
      *s.robot_at(Robot::kGoalY, r, w) = given[Given::kGoalY];
    }
    *s.world_at(World::kRobots, w) = robots;
  }

  MN_HD void place_robots(const T* stage) {
    if (scene >= 0) return place_vessels();
    const int wanted = within(stage[Stage::kRobots], s.robots);
    const T low = p.scenario.start_margin;
    const T high_x = p.scenario.width - low, high_y = p.scenario.height - low;
    fill(
        wanted,
        [&](int i) {
          const Philox4<uint32_t> bits = random.draw(Purpose::kRobot, 0, i);
          return Way{between(low, high_x, bits.w0), between(low, high_y, bits.w1),
                     between(low, high_x, bits.w2), between(low, high_y, bits.w3)};
        },
        [&](const Way& way, int) { return fits_robot(way, stage[Stage::kMinDistance]); },
        [&](const Way& way, int r) {
          for (int f = 0; f < Robot::kCount; ++f) *s.robot_at(f, r, w) = T(0);
          *s.robot_at(Robot::kX, r, w) = way.start_x;
          *s.robot_at(Robot::kY, r, w) = way.start_y;
          *s.robot_at(Robot::kGoalX, r, w) = way.goal_x;
          *s.robot_at(Robot::kGoalY, r, w) = way.goal_y;
          robots = r + 1;
        });
    *s.world_at(World::kRobots, w) = robots;
  }

  MN_HD bool fits_buoy(T x, T y, T r, int placed) const {
    if (!in_map(x, y, r) || !clear_of_robots(x, y, r + p.scenario.clear_radius) ||
        Env::water_touches(*this, x, y, r))
      return false;
    for (int b = 0; b < placed; ++b) {
      if (distance(x, y, *s.buoy_at(0, b, w), *s.buoy_at(1, b, w)) <= *s.buoy_at(2, b, w) + r)
        return false;
    }
    return true;
  }

  MN_HD void place_buoys(const T* stage) {
    const int wanted = within(stage[Stage::kBuoys], s.buoys);
    for (int b = 0; b < s.buoys; ++b) *s.buoy_at(2, b, w) = T(0);
    if (scene >= 0) {
      const int given = in_scene(Scenes::Scene::kBuoys, s.buoys);
      for (int b = 0; b < given; ++b)
        for (int f = 0; f < Scenes::kObject; ++f)
          *s.buoy_at(f, b, w) = s.scene_buoy_at(scene, b)[f];
      *s.world_at(World::kBuoys, w) = given;
      return;
    }
    const T low = p.scenario.buoy_margin;
    const T high_x = p.scenario.width - low, high_y = p.scenario.height - low;
    const int placed = fill(
        wanted,
        [&](int i) {
          const Philox4<uint32_t> bits = random.draw(Purpose::kBuoy, 0, i);
          return Disc{between(low, high_x, bits.w0), between(low, high_y, bits.w1),
                      between(p.scenario.buoy_radius_min, p.scenario.buoy_radius_max, bits.w2)};
        },
        [&](const Disc& disc, int before) { return fits_buoy(disc.x, disc.y, disc.radius, before); },
        [&](const Disc& disc, int b) {
          *s.buoy_at(0, b, w) = disc.x;
          *s.buoy_at(1, b, w) = disc.y;
          *s.buoy_at(2, b, w) = disc.radius;
        });
    *s.world_at(World::kBuoys, w) = placed;
  }

  /// Headings are uniform and how fast it begins is the vessel's, or both are the scene's.
  MN_HD void release_robots() {
    const T whole = T(2) * kPi<T>;
    for (int j = 0; j < robots; ++j) {
      auto put = [&](int f, T value) { *s.robot_at(f, j, w) = value; };
      const Vec2<T> flow = Env::template flow<T>(s, p, w, *s.robot_at(Robot::kX, j, w),
                                                 *s.robot_at(Robot::kY, j, w));
      if (scene >= 0) {
        const T* given = s.scene_vessel_at(scene, j);
        const T turn = offset(Scenes::Scene::kTurn, random.draw(Purpose::kScene, j, 1).w2);
        T heading = given[Scenes::Vessel::kHeading] + turn;
        heading = heading < T(0) ? heading + whole : heading;
        heading = heading < whole ? heading : heading - whole;
        put(Robot::kHeading, heading);
        Env::Vessel::set_out(p.vessel, heading, given[Scenes::Vessel::kSpeed], flow, put);
      } else {
        const Philox4<uint32_t> bits = random.draw(Purpose::kHeading, j, 0);
        const T drawn = uniform<T>(bits.w0) * whole;
        const T heading = drawn < whole ? drawn : T(0);  // rounding up
        put(Robot::kHeading, heading);
        Env::Vessel::release(p.vessel, heading, bits.w1, flow, put);
      }
    }
  }
};

}  // namespace marinenav
