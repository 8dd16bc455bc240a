// Plans that hold an action: how clear of everything they stay, and what the vessel sees at the end.
#pragma once

#include "marine/plans/ahead.h"

namespace marinenav {

/// What P plans of N vessels have come to; written whole, and read again where they go on.
template <class T>
struct PlanView {
  T* motion;     // [Ahead::kRows, P, N]
  T* clearance;  // [P, N, kObjects], m between hull circles, the least until now
  T* remaining;  // [P, N], m to the goal, 0 from the arrival on; nothing counts after that
};

/// What the vessels will see then, nearest first.
template <class T>
struct SeenView {
  T *ego, *objects, *mask;  // [P, N, 7], [P, N, kObjects, 5], [P, N, kObjects]
  const bool* shown;        // [N, kObjects], the objects that they see
  T closer;                 // m, by which objects seem closer along the line of sight
};

/// One index a plan and vessel: an action held for some decisions.
template <class Env, class V>
struct PlanActionsPhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = true;
  typename Env::template Params<T> p;
  SightView<T> sight;
  ActionView<T> action;  // [P, N] or [P, N, 2]
  PlanView<T> plan;
  SeenView<T> seen;
  int plans, first, decisions;  // decisions taken before, and to take now

  MN_HD int64_t at(int r, int n) const { return int64_t{r} * sight.count + n; }

  MN_HD void load_rates(int r, int n, V (&rates)[2]) const {
    for (int i = 0; i < kLaneCount<V>; ++i) {
      T numbers[2];
      Wamv16::command(p.vessel, action, at(r, n + i < sight.count ? n + i : sight.count - 1), numbers);
      if constexpr (kLaneCount<V> == 1) {
        rates[0] = numbers[0], rates[1] = numbers[1];
      } else {
        rates[0][i] = numbers[0], rates[1][i] = numbers[1];
      }
    }
  }

  MN_HD V load(const T* values, int64_t plan_row, int n, int width, int k) const {
    return read_lanes<V>(n, sight.count, [&](int i) {
      return values[(plan_row * sight.count + i) * width + k];
    });
  }
  MN_HD void save(T* values, int64_t plan_row, int n, int width, int k, V value) const {
    write_lanes(n, sight.count, value, [&](int i, T x) {
      values[(plan_row * sight.count + i) * width + k] = x;
    });
  }

  MN_HD void operator()(int r, int n) const {
    const Surroundings<V> around(p, sight, n);
    const T largest = std::numeric_limits<T>::max();
    Ahead<V> vessel;
    V remaining, squared[kObjects], rates[2];
    load_rates(r, n, rates);
    if (first == 0) {
      vessel.begin(sight, n);
      remaining = distance_left(around, vessel, p.reward.goal_distance, splat<V>(largest));
    } else {
      vessel.read([&](int f) { return load(plan.motion, int64_t{f} * plans + r, n, 1, 0); });
      remaining = load(plan.remaining, r, n, 1, 0);
    }
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) squared[k] = splat<V>(largest);
    const int substeps = static_cast<int>(p.vessel.substeps);
    for (int d = 0; d < decisions; ++d) {
      const T begun = static_cast<T>(first + d) * p.vessel.decision_time;
      const auto arrived = remaining <= splat<V>(p.reward.goal_distance);
      vessel.begin_decision(p.vessel, rates);
      for (int i = 1; i <= substeps; ++i) {
        vessel.substep(p.vessel, i);
        // The first substep moves with the velocity that the vessel has, whatever it decides.
        if (i == 1) continue;
        const T time = begun + static_cast<T>(i) * p.vessel.dt;
        MN_UNROLL
        for (int k = 0; k < kObjects; ++k) {
          const V d2 = around.squared_distance(k, vessel.motion.x, vessel.motion.y, time);
          squared[k] = select(arrived, squared[k], smaller(squared[k], d2));
        }
      }
      remaining = distance_left(around, vessel, p.reward.goal_distance, remaining);
    }
    end(around, vessel, squared, remaining, r, n);
  }

  MN_HD void end(const Surroundings<V>& around, const Ahead<V>& vessel, const V (&squared)[kObjects],
                 V remaining, int r, int n) const {
    const V infinite = splat<V>(std::numeric_limits<T>::infinity());
    const V largest = splat<V>(std::numeric_limits<T>::max());
    for (int k = 0; k < kObjects; ++k) {
      const V before = first == 0 ? infinite : load(plan.clearance, r, n, kObjects, k);
      const V gap = square_root(squared[k]) - around.radius[k] - p.vessel.radius;
      const auto counts = both(around.present[k], squared[k] < largest);
      save(plan.clearance, r, n, kObjects, k, smaller(before, select(counts, gap, infinite)));
    }
    vessel.write([&](int f, V value) { save(plan.motion, int64_t{f} * plans + r, n, 1, 0, value); });
    save(plan.remaining, r, n, 1, 0, remaining);
    if (seen.ego != nullptr) observe(around, vessel, r, n);
  }

  MN_HD void observe(const Surroundings<V>& around, const Ahead<V>& vessel, int r, int n) const {
    const auto& m = vessel.motion;
    const SinCos<V> h = sincos_of(m.heading);
    const Vec2<V> goal = in_body(h, around.goal_x - m.x, around.goal_y - m.y);
    const Vec2<V> own = in_body(h, m.vx, m.vy);
    const V ego[7] = {goal.x, goal.y, own.x, own.y, m.yaw, vessel.left, vessel.right};
    for (int f = 0; f < 7; ++f) save(seen.ego, r, n, 7, f, ego[f]);

    const T time = static_cast<T>(first + decisions) * p.vessel.decision_time;
    const V zero = splat<V>(T(0)), one = splat<V>(T(1));
    ObjectList<V> list;
    list.clear();
    for (int k = 0; k < kObjects; ++k) {
      const Object<V>& o = around.object[k];
      const Vec2<V> to = in_body(h, o.px + o.vx * time - m.x, o.py + o.vy * time - m.y);
      const Vec2<V> v = in_body(h, o.vx, o.vy);
      const V far = square_root(to.x * to.x + to.y * to.y);
      const V near = larger(one - seen.closer / larger(far, splat<V>(T(1e-3))), zero);
      const V shown = read_lanes<V>(n, sight.count, [&](int i) {
        return seen.shown[int64_t{i} * kObjects + k] ? T(1) : T(0);
      });
      const V key = select(shown > zero, far - o.radius, splat<V>(kUnseen<T>));
      insert(list, key, Object<V>{to.x * near, to.y * near, v.x, v.y, o.radius});
    }
    for (int k = 0; k < kObjects; ++k) {
      const Object<V>& o = list.object[k];
      const V entry[kObjectFeatures] = {o.px, o.py, o.vx, o.vy, o.radius};
      for (int f = 0; f < kObjectFeatures; ++f)
        save(seen.objects, r, n, kObjects * kObjectFeatures, k * kObjectFeatures + f, entry[f]);
      save(seen.mask, r, n, kObjects, k, select(list.holds(k), one, zero));
    }
  }
};

}  // namespace marinenav
