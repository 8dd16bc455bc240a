// Vortices: the current of Rankine vortices, and their placement (published rules).
#pragma once

#include "kernel/functions.h"
#include "kernel/params.h"
#include "kernel/tables.h"
#include "marine/purposes.h"
#include "marine/scenes.h"
#include "marine/water/component.h"

namespace marinenav {

#define MN_VORTEX_PARAMS(X, XS) \
  X(core_radius) X(edge_speed_min) X(edge_speed_max) X(same_sense_speed) X(opposite_ratio)
MN_PARAMS(VortexParams, MN_VORTEX_PARAMS)
#undef MN_VORTEX_PARAMS

struct Vortices : Component {
  template <class T>
  struct Groups {
    VortexParams<T> current;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("current", current);
    }
    void derive(const Groups<double>&) {}
  };

  static TensorSpecs specs() {
    // m, m, m^2/s (0: empty slot). > 0 is published as "clockwise"; on a chart with north up that
    // water turns counter-clockwise (docs/physics.md).
    return {{"vortex", Number::kReal, {3, "vortices", "stride"}, "x y circulation"}};
  }

  template <class T>
  struct View {
    int vortices, vortex_stride;
    T* vortex;

    explicit View(const Tables& t)
        : vortices(t.size("vortices")), vortex_stride(t.size("stride")),
          vortex(t.at<T>("vortex")) {}
    MN_HD T* vortex_at(int field, int c, int w) const {
      return vortex + (static_cast<int64_t>(field) * vortices + c) * vortex_stride + w;
    }
  };

  template <class V, class Params, class T = Scalar<V>>
  MN_HD static void flow(const View<T>& s, const Params& p, int w, V x, V y, Vec2<V>& sum) {
    const T core2 = p.current.core_radius * p.current.core_radius;
    for (int c = 0; c < s.vortices; ++c) {
      const V dx = load<V>(s.vortex_at(0, c, w)) - x;
      const V dy = load<V>(s.vortex_at(1, c, w)) - y;
      const V gamma = load<V>(s.vortex_at(2, c, w)) * (T(0.5) / kPi<T>);
      // Speed Gamma/(2 pi d) outside and Gamma d/(2 pi r^2) inside, times the unit vector / d.
      const V per_metre = gamma / larger(dx * dx + dy * dy, splat<V>(core2));
      sum.x = sum.x - dy * per_metre;
      sum.y = sum.y + dx * per_metre;
    }
  }

  /// Whether a vortex may lie here: in the map, apart from starts, goals and other vortices.
  template <class Placement, class T>
  MN_HD static bool fits(const Placement& place, T x, T y, T circulation, int placed) {
    const auto& s = place.s;
    const auto& p = place.p;
    const int w = place.w;
    const T r = p.current.core_radius;
    if (!place.in_map(x, y, r) || !place.clear_of_robots(x, y, r + p.scenario.clear_radius))
      return false;
    const T two_pi = T(2) * kPi<T>;
    for (int i = 0; i < placed; ++i) {
      const T other = *s.vortex_at(2, i, w);
      const T d = distance(x, y, *s.vortex_at(0, i, w), *s.vortex_at(1, i, w));
      const T strong = larger(absolute(other), absolute(circulation));
      const T weak = smaller(absolute(other), absolute(circulation));
      if ((other > T(0)) == (circulation > T(0))) {
        // Currents run against each other between the two.
        if (d < (strong + weak) / (two_pi * p.current.same_sense_speed)) return false;
      } else {
        // Currents join; strong / (d - 2r) <= ratio * weak / r, with the 2 pi cancelled.
        if (d <= T(2) * r || strong * r > p.current.opposite_ratio * weak * (d - T(2) * r))
          return false;
      }
    }
    return true;
  }

  /// Places those of the scene, or as many as the stage wants and find room, by rejection sampling.
  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T* stage) {
    const auto& s = place.s;
    const auto& p = place.p;
    const int w = place.w;
    const int wanted = place.within(stage[Placement::Stage::kVortices], s.vortices);
    for (int c = 0; c < s.vortices; ++c) *s.vortex_at(2, c, w) = T(0);
    if (place.scene >= 0) {
      const int given = place.in_scene(Scenes::Scene::kVortices, s.vortices);
      for (int c = 0; c < given; ++c)
        for (int f = 0; f < Scenes::kObject; ++f)
          *s.vortex_at(f, c, w) = s.scene_vortex_at(place.scene, c)[f];
      *s.world_at(Placement::World::kVortices, w) = given;
      return;
    }
    struct Drawn {
      T x, y, circulation;
    };
    const int placed = place.fill(
        wanted,
        [&](int i) {
          const Philox4<uint32_t> bits = place.random.draw(Purpose::kVortex, 0, i);
          const T speed = between(p.current.edge_speed_min, p.current.edge_speed_max, bits.w2);
          const T strength = T(2) * kPi<T> * p.current.core_radius * speed;
          return Drawn{between(T(0), p.scenario.width, bits.w0),
                       between(T(0), p.scenario.height, bits.w1),
                       (bits.w3 >> 31) != 0 ? strength : -strength};
        },
        [&](const Drawn& drawn, int before) {
          return fits(place, drawn.x, drawn.y, drawn.circulation, before);
        },
        [&](const Drawn& drawn, int c) {
          *s.vortex_at(0, c, w) = drawn.x;
          *s.vortex_at(1, c, w) = drawn.y;
          *s.vortex_at(2, c, w) = drawn.circulation;
        });
    *s.world_at(Placement::World::kVortices, w) = placed;
  }

  /// Whether a disc touches a placed core.
  template <class Placement, class T>
  MN_HD static bool touches(const Placement& place, T x, T y, T radius) {
    const auto& s = place.s;
    const int placed = *s.world_at(Placement::World::kVortices, place.w);
    for (int c = 0; c < placed; ++c) {
      if (distance(x, y, *s.vortex_at(0, c, place.w), *s.vortex_at(1, c, place.w)) <=
          place.p.current.core_radius + radius)
        return true;
    }
    return false;
  }
};

}  // namespace marinenav
