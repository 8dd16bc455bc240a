// A marine environment, composed of a vessel, a sensor, a task and parts.
//
//   Vessel  its fields, parameters, actions, and how a decision moves it    (vessels/)
//   Sensor  its tables, parameters, and the observation of what is around,
//           with its faults or without, if it has any                       (sensors/)
//   Task    goals, reward, ends and statistics                              (task.h)
//   Part    whatever moves or disturbs vessels: water, wind, faults        (water/component.h)
#pragma once

#include "kernel/run.h"
#include "marine/integrate.h"
#include "marine/placement.h"
#include "marine/sensors/nearest_objects.h"
#include "marine/water/component.h"

namespace marinenav {

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
