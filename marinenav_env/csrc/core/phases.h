// The simulator's phases: functors over one index, (robot, first world). A launcher runs every index
// of a phase before the next phase starts (that boundary is the only barrier), in any order.
#pragma once

#include "perception.h"
#include "spawn.h"

namespace marinenav {

template <class V>
MN_HD RandomStream<V> random_stream(const State<Scalar<V>>& s, int w, int32_t steps_ahead) {
  const auto episode = load_int<V>(s.world_at(kEpisode, w));
  const auto step = load_int<V>(s.world_at(kStep, w)) + steps_ahead;
  return {lane_indices<V>(s.first_world + static_cast<uint32_t>(w)), (UInt<V>)episode,
          (UInt<V>)step, s.key0, s.key1};
}

/// Actions [W, R, 2] in [-1, 1], or [W, R] indices.
template <class T>
struct ActionView {
  const T* continuous;     // null for discrete actions
  const int64_t* discrete;

  /// Thrust rates (N/s) of robot `row` = w * R + r; false if the action cannot be used.
  MN_HD bool rates(const Params<T>& p, int64_t row, T& left, T& right) const {
    if (continuous != nullptr) {
      left = continuous[2 * row];
      right = continuous[2 * row + 1];
      const bool finite = left - left == T(0) && right - right == T(0);
      left = finite ? smaller(larger(left, T(-1)), T(1)) * p.vessel.max_thrust_rate : T(0);
      right = finite ? smaller(larger(right, T(-1)), T(1)) * p.vessel.max_thrust_rate : T(0);
      return finite;
    }
    const int64_t index = discrete[row];
    const bool known = index >= 0 && index < kDiscreteActions;
    left = known ? p.vessel.left_thrust_rates[index / kThrustChoices] : T(0);
    right = known ? p.vessel.right_thrust_rates[index % kThrustChoices] : T(0);
    return known;
  }
};

/// Takes one decision: the action, then the substeps.
template <class V>
struct IntegratePhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = true;
  State<T> s;
  Params<T> p;
  ActionView<T> action;

  MN_HD void load_rates(int r, int w, V& left, V& right, Int<V>& bad) const {
    if constexpr (kLaneCount<V> == 1) {
      bad = action.rates(p, int64_t{w} * s.robots + r, left, right) ? 0 : 1;
    } else {
      for (int i = 0; i < kLaneCount<V>; ++i) {
        const int world = w + i < s.worlds ? w + i : s.worlds - 1;  // padding reads the last row
        T l, rt;
        bad[i] = action.rates(p, int64_t{world} * s.robots + r, l, rt) ? 0 : 1;
        left[i] = l;
        right[i] = rt;
      }
    }
  }

  MN_HD V goal_distance(const Motion<V>& m, V goal_x, V goal_y) const {
    const V dx = goal_x - m.x, dy = goal_y - m.y;
    return square_root(dx * dx + dy * dy);
  }

  /// One robot's decision under way.
  struct Decision {
    Mask<V> alive;
    Motion<V> motion;
    V left, right;  // thrusts after the change
    Thrust<V> tau;
    V goal_x, goal_y, distance_before;
  };

  MN_HD Decision begin(int r, int w) const {
    Decision d;
    d.alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
    V left_rate, right_rate;
    Int<V> bad;
    load_rates(r, w, left_rate, right_rate, bad);
    const auto bad_before = load_int<V>(s.bad_at(r, w));
    store_int<V>(s.bad_at(r, w), select(d.alive, bad_before + bad, bad_before));
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    d.motion = {field(kX), field(kY), field(kHeading), field(kVxWater), field(kVyWater),
                field(kYawWater), field(kVx), field(kVy), field(kYaw)};
    d.goal_x = field(kGoalX), d.goal_y = field(kGoalY);
    d.distance_before = goal_distance(d.motion, d.goal_x, d.goal_y);
    // The first substep moves with the old velocity, then the thrusts change for all ten.
    const V low = splat<V>(p.vessel.min_thrust), high = splat<V>(p.vessel.max_thrust);
    d.left = smaller(larger(field(kLeftThrust) + left_rate * p.decision_time, low), high);
    d.right = smaller(larger(field(kRightThrust) + right_rate * p.decision_time, low), high);
    d.tau = thrust_of<V>(p, d.left, d.right, field(kLeftAngle), field(kRightAngle));
    return d;
  }

  MN_HD void end(int r, int w, const Decision& d) const {
    const Motion<V>& m = d.motion;
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    auto put = [&](int f, V value) {
      store(s.robot_at(f, r, w), select(d.alive, value, field(f)));
    };
    put(kX, m.x), put(kY, m.y), put(kHeading, m.heading);
    put(kVxWater, m.vx_water), put(kVyWater, m.vy_water), put(kYawWater, m.yaw_water);
    put(kVx, m.vx), put(kVy, m.vy), put(kYaw, m.yaw);
    put(kLeftThrust, d.left), put(kRightThrust, d.right);
    put(kProgress, d.distance_before - goal_distance(m, d.goal_x, d.goal_y));
    const V effort = absolute(d.left) + absolute(d.right);
    put(kStepEnergy, effort * (p.vessel.power_coefficient * p.decision_time));
  }

  /// Robots r..r+N-1 substep by substep: lanes overlap their chains of dependent operations.
  template <int N>
  MN_HD void decide(int r, int w) const {
    bool some = false;
    MN_UNROLL
    for (int n = 0; n < N; ++n)
      some = some || any(is_set(load_int<V>(s.status_at(r + n, w)), kAlive));
    if (!some) return;
    Decision d[N];
    MN_UNROLL
    for (int n = 0; n < N; ++n) d[n] = begin(r + n, w);
    const int substeps = static_cast<int>(p.vessel.substeps);
    for (int i = 0; i < substeps; ++i) {
      MN_UNROLL
      for (int n = 0; n < N; ++n) {
        advance_pose(s, p, w, d[n].motion);
        advance_velocity(p, d[n].tau, d[n].motion);
      }
    }
    MN_UNROLL
    for (int n = 0; n < N; ++n) end(r + n, w, d[n]);
  }

  MN_HD void operator()(int r, int w) const {
    if constexpr (kLaneCount<V> == 1) {
      decide<1>(r, w);
    } else if (r % 2 == 0) {  // the even robot takes its neighbour along
      r + 1 < s.robots ? decide<2>(r, w) : decide<1>(r, w);
    }
  }
};

/// Writes observations (frame 0), and what the judge needs: contact and phi.
template <class V>
struct ObservePhase {
  using Value = V;
  using T = Scalar<V>;
  static constexpr bool kPerRobot = true;
  State<T> s;
  Params<T> p;
  ObservationView<T> out;
  ObservationView<T> previous;  // frames to push down; null after a reset: repeat frame 0
  int frames;
  int32_t steps_ahead;   // 1 inside a step (the judge counts it later), 0 after a reset
  const bool* only;      // [W] worlds to observe, or null for all

  // Up to so many worlds of a group are observed one by one rather than all lanes at once.
  static constexpr int kFewLanes = 2;
  static constexpr int kValues = kEgoFeatures + kObjects * (kObjectFeatures + 1);

  /// Pushes older frames down; a single frame copies nothing.
  MN_HD void push_frames(T* to, const T* from, int64_t row, int size) const {
    for (int f = frames - 1; f > 0; --f) {
      const T* source = from == nullptr ? to + row * frames * size
                                        : from + (row * frames + f - 1) * size;
      for (int i = 0; i < size; ++i) to[(row * frames + f) * size + i] = source[i];
    }
  }

  MN_HD void write_row(int64_t row, const T* values, int stride, bool alive) const {
    T* ego = out.ego + row * frames * kEgoFeatures;
    T* objects = out.objects + row * frames * kObjects * kObjectFeatures;
    T* mask = out.mask + row * frames * kObjects;
    MN_UNROLL
    for (int i = 0; i < kEgoFeatures; ++i) ego[i] = values[i * stride];
    values += kEgoFeatures * stride;
    for (int i = 0; i < kObjects * kObjectFeatures; ++i) objects[i] = values[i * stride];
    values += kObjects * kObjectFeatures * stride;
    MN_UNROLL
    for (int i = 0; i < kObjects; ++i) mask[i] = values[i * stride];
    if (frames > 1) {
      push_frames(out.ego, alive ? previous.ego : nullptr, row, kEgoFeatures);
      push_frames(out.objects, alive ? previous.objects : nullptr, row,
                  kObjects * kObjectFeatures);
      push_frames(out.mask, alive ? previous.mask : nullptr, row, kObjects);
    }
  }

  /// Whether world w + i of a group of lanes is to be observed.
  MN_HD bool wanted(int w, int i) const {
    return w + i < s.worlds && (only == nullptr || only[w + i]);
  }

  MN_HD void operator()(int r, int w) const {
    if constexpr (kLaneCount<V> == 1) {
      if (wanted(w, 0)) observe_lanes(r, w);
    } else {
      int count = 0;
      for (int i = 0; i < kLaneCount<V>; ++i) count += wanted(w, i) ? 1 : 0;
      if (count > kFewLanes) {
        observe_lanes(r, w);
      } else if (count > 0) {
        const ObservePhase<T> single{s, p, out, previous, frames, steps_ahead, only};
        for (int i = 0; i < kLaneCount<V>; ++i)
          if (wanted(w, i)) single.observe_lanes(r, w + i);
      }
    }
  }

  MN_HD void observe_lanes(int r, int w) const {
    auto alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
    if constexpr (kLaneCount<V> > 1) {
      for (int i = 0; i < kLaneCount<V>; ++i) alive[i] = wanted(w, i) ? alive[i] : 0;
    }
    alignas(64) T values[kValues * kLaneCount<V>];
    if (any(alive)) {
      observe(r, w, alive, values);
    } else {
      for (int i = 0; i < kValues * kLaneCount<V>; ++i) values[i] = T(0);
    }
    for (int i = 0; i < kLaneCount<V>; ++i) {
      if (!wanted(w, i)) continue;
      write_row(int64_t{w + i} * s.robots + r, values + i, kLaneCount<V>,
                lane<V>(alive, i) != 0);
    }
  }

  MN_HD void observe(int r, int w, Mask<V> alive, T* values) const {
    const V zero = splat<V>(T(0));
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    const SinCos<V> h = sincos_of(field(kHeading));
    const Observer<V> self{field(kX), field(kY), h.cos, h.sin};
    const V vx = field(kVx), vy = field(kVy);
    const V u = h.cos * vx + h.sin * vy, v = h.cos * vy - h.sin * vx;
    const V dx = field(kGoalX) - self.x, dy = field(kGoalY) - self.y;

    NearestObjects<V> near;
    const auto contact = look_around(s, p, random_stream<V>(s, w, steps_ahead), self, r, w, near);
    const V phi = colregs_angle(p, near, u, v);
    store(s.robot_at(kPhi, r, w), select(alive, phi, field(kPhi)));
    store(s.robot_at(kContact, r, w),
          select(alive, select(contact, splat<V>(T(1)), zero), field(kContact)));

    auto put = [&](int i, V value) {
      store(values + i * kLaneCount<V>, select(alive, value, zero));
    };
    put(0, h.cos * dx + h.sin * dy), put(1, h.cos * dy - h.sin * dx);
    put(2, u), put(3, v), put(4, field(kYaw));
    put(5, field(kLeftThrust)), put(6, field(kRightThrust));
    MN_UNROLL
    for (int k = 0; k < kObjects; ++k) {
      const auto valid = near.key[k] < splat<V>(kUnseen<T>);
      const Object<V>& o = near.object[k];
      const int at = kEgoFeatures + k * kObjectFeatures;
      put(at, select(valid, o.px, zero)), put(at + 1, select(valid, o.py, zero));
      put(at + 2, select(valid, o.vx, zero)), put(at + 3, select(valid, o.vy, zero));
      put(at + 4, select(valid, o.radius, zero));
      put(kEgoFeatures + kObjects * kObjectFeatures + k, select(valid, splat<V>(T(1)), zero));
    }
  }
};

/// Places the masked worlds.
template <class T>
struct ResetPhase {
  using Value = T;
  static constexpr bool kPerRobot = false;
  State<T> s;
  Params<T> p;
  const bool* only;  // [W], or null for all
  bool* alive;        // [W, R] robots that act in the coming decision

  /// As many of a kind as the stage wants, but no more than there are slots to write to.
  MN_HD int within(T wanted, int slots) const {
    return static_cast<int>(smaller(larger(wanted, T(0)), static_cast<T>(slots)));
  }

  MN_HD void operator()(int, int w) const {
    if (only != nullptr && !only[w]) return;
    int stage = *s.world_at(kNextStage, w);
    stage = stage < 0 ? 0 : (stage < s.stages ? stage : s.stages - 1);
    const T* wanted = s.stage + stage * kStageFields;
    *s.world_at(kStage, w) = stage;
    *s.world_at(kEpisode, w) += 1;
    *s.world_at(kStep, w) = 0;
    *s.world_at(kEnd, w) = kRunning;
    const RandomStream<T> random = random_stream<T>(s, w, 0);
    Spawner<T> spawner{s, p, random, w};
    spawner.place_robots(within(wanted[kStageRobots], s.robots), wanted[kStageMinDistance]);
    spawner.place_vortices(within(wanted[kStageVortices], s.vortices));
    const int buoys = spawner.place_buoys(within(wanted[kStageBuoys], s.buoys));
    spawner.release_robots();
    *s.world_at(kRobots, w) = spawner.placed_robots;
    *s.world_at(kVortices, w) = spawner.placed_vortices;
    *s.world_at(kBuoys, w) = buoys;
    for (int r = 0; r < s.robots; ++r) {
      const bool placed = r < spawner.placed_robots;
      *s.status_at(r, w) = placed ? kAlive : 0;
      alive[int64_t{w} * s.robots + r] = placed;
    }
  }
};

}  // namespace marinenav
