// How a decision moves the vessels of a marine environment.
#pragma once

#include "kernel/views.h"
#include "kernel/worlds.h"
#include "marine/water/component.h"

namespace marinenav {

/// Takes one decision: the action, then the substeps.
template <class Env, class V>
struct MarineIntegratePhase {
  using Value = V;
  using T = Scalar<V>;
  using Vessel = typename Env::Vessel;
  using F = typename Env::Robot;
  static constexpr bool kPerRobot = true;
  typename Env::template State<T> s;
  typename Env::template Params<T> p;
  ActionView<T> action;

  MN_HD void load_command(int r, int w, V (&command)[Vessel::kContinuous], Int<V>& bad) const {
    if constexpr (kLaneCount<V> == 1) {
      bad = Vessel::command(p.vessel, action, int64_t{w} * s.robots + r, command) ? 0 : 1;
    } else {
      for (int i = 0; i < kLaneCount<V>; ++i) {
        const int world = w + i < s.worlds ? w + i : s.worlds - 1;  // padding reads the last row
        T numbers[Vessel::kContinuous];
        bad[i] = Vessel::command(p.vessel, action, int64_t{world} * s.robots + r, numbers) ? 0 : 1;
        for (int k = 0; k < Vessel::kContinuous; ++k) command[k][i] = numbers[k];
      }
    }
  }

  /// The vessel of the worlds from w on: everywhere as the parameters say, unless disturbed.
  template <bool kDisturbed, class = void>
  struct VariedVessel {
    const typename Vessel::template Params<T>& vessel;
    V rate = splat<V>(T(1));
    MN_HD VariedVessel(const typename Env::template State<T>&,
                       const typename Env::template Params<T>& p, int)
        : vessel(p.vessel) {}
  };
  template <class Void>
  struct VariedVessel<true, Void> {
    typename Vessel::template Params<V> vessel;
    V rate = splat<V>(T(1));
    MN_HD VariedVessel(const typename Env::template State<T>& s,
                       const typename Env::template Params<T>& p, int w) {
      const V one = splat<V>(T(1));
      HullFactors<V> by{one, one, one, one, one};
      Env::vary(s, p, w, by, rate);
      vessel.vary(p.vessel, by);
    }
  };

  /// One robot's decision under way.
  struct Decision {
    Mask<V> alive;
    typename Vessel::template Decision<V> vessel;
    V goal_x, goal_y, distance_before;
  };

  template <bool kDisturbed>
  MN_HD Decision begin(int r, int w, V rate) const {
    Decision d;
    d.alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
    V command[Vessel::kContinuous];
    Int<V> bad;
    load_command(r, w, command, bad);
    if constexpr (kDisturbed)
      for (V& number : command) number = number * rate;
    const auto bad_before = load_int<V>(s.bad_at(r, w));
    store_int<V>(s.bad_at(r, w), select(d.alive, bad_before + bad, bad_before));
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    d.vessel = Vessel::template begin<V>(p.vessel, command, field);
    d.goal_x = field(F::kGoalX), d.goal_y = field(F::kGoalY);
    d.distance_before = goal_distance(d);
    return d;
  }

  MN_HD V goal_distance(const Decision& d) const {
    return distance(d.goal_x, d.goal_y, d.vessel.motion.x, d.vessel.motion.y);
  }

  MN_HD void end(int r, int w, const Decision& d) const {
    auto put = [&](int f, V value) {
      store(s.robot_at(f, r, w), select(d.alive, value, load<V>(s.robot_at(f, r, w))));
    };
    Vessel::end(d.vessel, put);
    put(F::kProgress, d.distance_before - goal_distance(d));
    put(F::kStepEnergy, Vessel::energy(p.vessel, d.vessel));
  }

  /// Robots r..r+N-1 substep by substep: lanes overlap their chains of dependent operations.
  template <int N, bool kDisturbed>
  MN_HD void decide(int r, int w) const {
    bool some = false;
    MN_UNROLL
    for (int n = 0; n < N; ++n)
      some = some || any(is_set(load_int<V>(s.status_at(r + n, w)), kAlive));
    if (!some) return;
    const VariedVessel<kDisturbed> varied(s, p, w);
    Decision d[N];
    MN_UNROLL
    for (int n = 0; n < N; ++n) d[n] = begin<kDisturbed>(r + n, w, varied.rate);
    const int substeps = static_cast<int>(p.vessel.substeps);
    for (int i = 0; i < substeps; ++i) {
      MN_UNROLL
      for (int n = 0; n < N; ++n) {
        auto& vessel = d[n].vessel;
        const T elapsed = static_cast<T>(i + 1) * p.vessel.dt;
        const Vec2<V> flow = Env::template flow<V>(s, p, w, vessel.motion.x, vessel.motion.y);
        if (kDisturbed && Env::drives(p)) {
          Vessel::drive(p.vessel, vessel, [&](auto& thrust) {
            Env::drive(s, p, r + n, w, elapsed, thrust);
          });
        }
        Vessel::template substep<kDisturbed>(varied.vessel, flow, vessel, [&](const Hull<V>& hull, Force<V>& force) {
          if constexpr (kDisturbed) Env::push(s, p, w, elapsed, hull, force);
        });
      }
    }
    MN_UNROLL
    for (int n = 0; n < N; ++n) end(r + n, w, d[n]);
  }

  template <bool kDisturbed>
  MN_HD void decide_some(int r, int w) const {
    if constexpr (kLaneCount<V> == 1) {
      decide<1, kDisturbed>(r, w);
    } else if (r % 2 == 0) {  // the even robot takes its neighbour along
      r + 1 < s.robots ? decide<2, kDisturbed>(r, w) : decide<1, kDisturbed>(r, w);
    }
  }

  /// Out of line, so that code for disturbances and further vessels does not slow down others.
  MN_HD_APART void decide_disturbed(int r, int w) const { decide_some<true>(r, w); }

  MN_HD void operator()(int r, int w) const {
    Env::disturbs(p) || p.vessel.extended ? decide_disturbed(r, w) : decide_some<false>(r, w);
  }
};

}  // namespace marinenav
