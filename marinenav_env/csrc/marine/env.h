// A marine environment, composed of a vessel, a sensor, a task and parts.
//
//   Vessel  its fields, parameters, actions, and how a decision moves it    (vessels/)
//   Sensor  its tables, parameters, and the observation of what is around,
//           with its faults or without, if it has any                       (sensors/)
//   Task    goals, reward, ends and statistics                              (task.h)
//   Part    whatever moves or disturbs vessels: water, wind, faults        (water/component.h)
#pragma once

#include "kernel/run.h"
#include "marine/placement.h"
#include "marine/sensors/nearest_objects.h"
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

template <class Vessel_, class Sensor, class Task, class... Part>
struct MarineEnv {
  using Vessel = Vessel_;
  using Robot = typename Task::template Robot<typename Vessel::Field>;
  using World = typename Task::World;
  using Outcome = typename Task::Outcome;
  using Stat = typename Task::Stat;
  using Stage = typename Task::Stage;
  static constexpr const char* kWorldNames = Task::kWorldNames;
  static constexpr const char* kOutcomeNames = Task::kOutcomeNames;
  static constexpr const char* kStatNames = Task::kStatNames;
  static constexpr const char* kStageNames = Task::kStageNames;
  static std::string robot_names() { return std::string(Vessel::kFieldNames) + Task::kFieldNames; }

  static constexpr int kContinuous = Vessel::kContinuous;
  static constexpr int kDiscrete = Vessel::kDiscrete;

  // ---- tables ----------------------------------------------------------------------------------

  static TensorSpecs state() {
    // m, m, m (0: empty slot)
    const TensorSpecs buoy = {{"buoy", Number::kReal, {3, "buoys", "stride"}, "x y radius"}};
    return joined({world_specs<MarineEnv>(), buoy, Sensor::state(), Part::specs()...});
  }
  static TensorSpecs tables() {
    return joined({stage_specs<MarineEnv>(), Scenes::tables(), Sensor::tables()});
  }

  template <class T>
  struct State : Worlds<MarineEnv, T>, Scenes::View<T>, Sensor::template View<T>,
                 Part::template View<T>... {
    int buoys;
    T* buoy;

    explicit State(const Tables& t)
        : Worlds<MarineEnv, T>(t), Scenes::View<T>(t), Sensor::template View<T>(t),
          Part::template View<T>(t)...,
          buoys(t.size("buoys")), buoy(t.at<T>("buoy")) {}
    MN_HD T* buoy_at(int field, int b, int w) const {
      return buoy + (static_cast<int64_t>(field) * buoys + b) * this->stride + w;
    }
  };

  template <class T>
  struct Params : Sensor::template Groups<T>, Task::template Groups<T>, Part::template Groups<T>... {
    typename Vessel::template Params<T> vessel;
    EpisodeParams<T> episode;

    template <class Visit>
    void each_group(const Visit& visit) {
      visit("vessel", vessel), visit("episode", episode);
      Sensor::template Groups<T>::each_group(visit);
      Task::template Groups<T>::each_group(visit);
      (Part::template Groups<T>::each_group(visit), ...);
    }
    void derive(const Params<double>& exact) {
      vessel.derive(exact.vessel);
      Sensor::template Groups<T>::derive(exact);
      (Part::template Groups<T>::derive(exact), ...);
    }
  };

  // ---- observation -----------------------------------------------------------------------------

  static constexpr int kEgo = 4 + Vessel::kEgo;  // goal, velocity, and what the vessel adds
  static constexpr int kEntries = 1 + Sensor::kEntries;
  MN_HD static constexpr int entry_size(int k) { return k == 0 ? kEgo : Sensor::entry_size(k - 1); }
  static constexpr int kObservationSize = kEgo + Sensor::kSize;
  static TensorSpecs observation() {
    const TensorSpecs ego = {{"ego", Number::kReal, {"worlds", "robots", "frames", kEgo},
                              std::string("goal_x goal_y u v ") + Vessel::kEgoNames}};
    return joined({ego, Sensor::observation()});
  }

  static constexpr bool kFaultySensor = Sensor::kFaulty;
  static constexpr bool kUnrolls = false;  // its kernels are large, and policies act in between
  template <class P>
  MN_HD static bool faulty(const P& p) {
    return p.perception.faulty();
  }

  /// Radius (m) of robot r's hull in this decision, a random share of the fringe included.
  template <class V, class P>
  MN_HD static V hull(const P& p, const RandomStream<V>& random, int r) {
    const V own = splat<V>(p.vessel.radius);
    if (!(p.reward.fringe > 0)) return own;
    return own + uniform<V>(random.draw(Purpose::kFringe, r, 0).w0) * p.reward.fringe;
  }

  template <bool kFaulty, class V, class S, class P, class Put>
  MN_HD static void observe(const S& s, const P& p, const RandomStream<V>& random, int r, int w,
                            Mask<V> alive, const Put& put) {
    auto field = [&](int f) { return load<V>(s.robot_at(f, r, w)); };
    auto keep = [&](int f, V value) { store(s.robot_at(f, r, w), select(alive, value, field(f))); };
    const SinCos<V> h = sincos_of(field(Robot::kHeading));
    const Observer<V> self{field(Robot::kX), field(Robot::kY), h.cos, h.sin,
                           hull<V>(p, random, r)};
    const V vx = field(Robot::kVx), vy = field(Robot::kVy);
    const V u = h.cos * vx + h.sin * vy, v = h.cos * vy - h.sin * vx;
    const V dx = field(Robot::kGoalX) - self.x, dy = field(Robot::kGoalY) - self.y;
    put(0, h.cos * dx + h.sin * dy), put(1, h.cos * dy - h.sin * dx);
    put(2, u), put(3, v);
    Vessel::observe(field, [&](int i, V value) { put(4 + i, value); });
    const auto sighting = Sensor::template observe<kFaulty, V>(
        s, p, random, self, u, v, r, w, [&](int i, V value) { put(kEgo + i, value); });
    Task::template note<Robot, V>(sighting, keep);
  }

  // ---- water, task and placement ---------------------------------------------------------------

  /// Water velocity (m/s, world frame) at a position.
  template <class V, class S, class P>
  MN_HD static Vec2<V> flow(const S& s, const P& p, int w, V x, V y) {
    Vec2<V> sum{splat<V>(Scalar<V>(0)), splat<V>(Scalar<V>(0))};
    (Part::flow(s, p, w, x, y, sum), ...);
    return sum;
  }

  /// Whether hulls feel anything but the flow and their own thrusters.
  template <class P>
  MN_HD static bool disturbs(const P& p) {
    return (Part::disturbs(p) || ...);
  }

  /// Adds to a force what pushes a hull `elapsed` seconds into the decision.
  template <class V, class S, class P>
  MN_HD static void push(const S& s, const P& p, int w, Scalar<V> elapsed, const Hull<V>& hull,
                         Force<V>& force) {
    ((Part::disturbs(p) ? Part::push(s, p, w, elapsed, hull, force) : void()), ...);
  }

  /// Whether thrusters give anything but what they are told.
  template <class P>
  MN_HD static bool drives(const P& p) {
    return (Part::drives(p) || ...);
  }

  /// Changes what the thrusters of robot r give `elapsed` seconds into the decision, N.
  template <class V, int N, class S, class P>
  MN_HD static void drive(const S& s, const P& p, int r, int w, Scalar<V> elapsed, V (&thrust)[N]) {
    ((Part::drives(p) ? Part::drive(s, p, r, w, elapsed, thrust) : void()), ...);
  }

  /// Changes the factors of hulls, and of the rates at which thrusts change.
  template <class V, class S, class P>
  MN_HD static void vary(const S& s, const P& p, int w, HullFactors<V>& by, V& rate) {
    ((Part::disturbs(p) ? Part::vary(s, p, w, by, rate) : void()), ...);
  }

  /// What a decision changes besides robots.
  template <class V, class S, class P>
  MN_HD static void advance(const S& s, const P& p, int w, Mask<V> running) {
    Sensor::template advance<V>(s, p, w, running);
    (Part::template advance<V>(s, p, w, running), ...);
  }

  /// Whether a disc touches something solid in the water.
  template <class Placement, class T>
  MN_HD static bool water_touches(const Placement& placement, T x, T y, T radius) {
    return (Part::touches(placement, x, y, radius) || ...);
  }

  template <class V>
  using IntegratePhase = MarineIntegratePhase<MarineEnv, V>;

  template <class V, class S, class P>
  MN_HD static Verdict<V> judge(const S& s, const P& p, int r, int w, Mask<V> alive) {
    return Task::template judge<V>(s, p, r, w, alive);
  }

  template <class S, class P>
  MN_HD static void book(const S& s, const P& p, int w, bool truncated) {
    Task::book(s, p, w, truncated);
  }

  /// Places world w as its stage says; returns the number of robots.
  template <class T, class Search>
  MN_HD static int place(const State<T>& s, const Params<T>& p, const RandomStream<T>& random,
                         int w, const T* stage, const Search& search) {
    Placement<MarineEnv, T, Search> placement{s, p, random, search, w};
    placement.choose_scene(stage);
    placement.place_robots(stage);
    search.meet();
    (Part::place(placement, stage), ...);
    placement.place_buoys(stage);
    search.meet();
    placement.release_robots();
    (Part::set_out(placement), ...);
    Sensor::place(placement);
    return placement.robots;
  }
};

}  // namespace marinenav
