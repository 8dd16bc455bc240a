// Thrusters that lag behind what they are told, and thrusters that are lost.
#pragma once

#include "kernel/params.h"
#include "kernel/philox.h"
#include "kernel/worlds.h"
#include "marine/purposes.h"
#include "marine/water/component.h"

namespace marinenav {

#define MN_THRUSTER_PARAMS(X, XS) X(lag) X(loss_probability) XS(loss_time, 2)
MN_PARAMS(ListedThrusterParams, MN_THRUSTER_PARAMS)
#undef MN_THRUSTER_PARAMS

template <class T>
struct ThrusterParams : ListedThrusterParams<T> {
  T followed;  // share of the difference that a thrust makes up for in a substep

  template <class Params>
  void derive(const Params& exact) {
    const double lag = exact.thrusters.lag;
    followed = static_cast<T>(lag > 0 ? 1.0 - std::exp(-exact.vessel.dt / lag) : 1.0);
  }
};

/// Of a vessel with two thrusters.
struct Thrusters : Component {
  template <class T>
  struct Groups {
    ThrusterParams<T> thrusters;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("thrusters", thrusters);
    }
    template <class Params>
    void derive(const Params& exact) {
      thrusters.derive(exact);
    }
  };

  struct Field {
    enum : int { kLeft, kRight, kLoss, kLost };
  };
  static TensorSpecs specs() {
    // N given now; s at which a thruster is lost, and which one: -1 left, 1 right, 0 none
    return {{"thruster", Number::kReal, {4, "robots", "stride"}, "left right loss lost"}};
  }

  template <class T>
  struct View {
    T* thruster;
    explicit View(const Tables& t) : thruster(t.at<T>("thruster")) {}
  };
  template <class S>
  MN_HD static auto at(const S& s, int field, int r, int w) {
    return s.thruster + (int64_t{field} * s.robots + r) * s.stride + w;
  }

  template <class Params>
  MN_HD static bool drives(const Params& p) {
    return p.thrusters.lag > 0 || p.thrusters.loss_probability > 0;
  }
  template <class Params>
  MN_HD static bool disturbs(const Params& p) {
    return drives(p);
  }

  template <class S, class Params, class V, class T = Scalar<V>>
  MN_HD static void drive(const S& s, const Params& p, int r, int w, T elapsed, V (&thrust)[2]) {
    if (p.thrusters.lag > T(0)) {
      const auto alive = is_set(load_int<V>(s.status_at(r, w)), kAlive);
      for (int side = 0; side < 2; ++side) {
        T* given = at(s, Field::kLeft + side, r, w);
        const V before = load<V>(given);
        thrust[side] = before + (thrust[side] - before) * p.thrusters.followed;
        store(given, select(alive, thrust[side], before));
      }
    }
    const V step = to_real(load_int<V>(s.world_at(S::World::kStep, w)), V{});
    const auto late = step * p.vessel.decision_time + elapsed > load<V>(at(s, Field::kLoss, r, w));
    const V lost = load<V>(at(s, Field::kLost, r, w)), zero = splat<V>(T(0));
    thrust[0] = select(both(late, lost < zero), zero, thrust[0]);
    thrust[1] = select(both(late, lost > zero), zero, thrust[1]);
  }

  /// Draws which robots lose a thruster, which one and when.
  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T*) {
    const auto& thrusters = place.p.thrusters;
    for (int r = 0; r < place.s.robots; ++r) {
      const Philox4<uint32_t> bits = place.random.draw(Purpose::kThrusterLoss, r, 0);
      const T side = (bits.w1 >> 31) != 0 ? T(1) : T(-1);
      *at(place.s, Field::kLoss, r, place.w) =
          between(thrusters.loss_time[0], thrusters.loss_time[1], bits.w2);
      *at(place.s, Field::kLost, r, place.w) =
          uniform<T>(bits.w0) < thrusters.loss_probability ? side : T(0);
    }
  }

  /// A thruster gives at first what it is told.
  template <class Placement>
  MN_HD static void set_out(const Placement& place) {
    using Robot = typename Placement::Robot;
    using T = typename Placement::Real;
    for (int r = 0; r < place.s.robots; ++r) {
      const bool there = r < place.robots;
      *at(place.s, Field::kLeft, r, place.w) =
          there ? *place.s.robot_at(Robot::kLeftThrust, r, place.w) : T(0);
      *at(place.s, Field::kRight, r, place.w) =
          there ? *place.s.robot_at(Robot::kRightThrust, r, place.w) : T(0);
    }
  }
};

}  // namespace marinenav
