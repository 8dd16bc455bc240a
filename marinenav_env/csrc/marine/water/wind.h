// Wind: a mean of the episode, gusts, and its force on a hull. docs/physics.md has the equations.
#pragma once

#include "kernel/params.h"
#include "kernel/philox.h"
#include "marine/purposes.h"
#include "marine/water/component.h"

namespace marinenav {

#define MN_WIND_PARAMS(X, XS)                                                                   \
  XS(speed, 2) XS(direction, 2) X(gust_std) X(gust_time) X(model) X(surge) X(sway) X(yaw)       \
  X(air_density) X(c_x) X(c_y) X(c_n) X(front_area) X(side_area)
MN_PARAMS(ListedWindParams, MN_WIND_PARAMS)
#undef MN_WIND_PARAMS

template <class T>
struct WindParams : ListedWindParams<T> {
  T per_surge, per_sway, per_yaw;  // force by squared speed, N s^2/m^2; moment, N s^2/m
  T gust_kept, gust_drawn;         // of a gust in the next decision: share, and m/s drawn anew

  template <class Params>
  void derive(const Params& exact) {
    const auto& e = exact.wind;
    const bool fossen = e.model > 0.5;
    const double pressure = 0.5 * e.air_density;
    per_surge = static_cast<T>(fossen ? pressure * e.c_x * e.front_area : e.surge);
    per_sway = static_cast<T>(fossen ? pressure * e.c_y * e.side_area : e.sway);
    per_yaw = static_cast<T>(
        2.0 * (fossen ? pressure * e.c_n * e.side_area * exact.vessel.length : e.yaw));
    // An Ornstein-Uhlenbeck process over one decision.
    const double kept = std::exp(-exact.vessel.dt * exact.vessel.substeps / e.gust_time);
    gust_kept = static_cast<T>(kept);
    gust_drawn = static_cast<T>(e.gust_std * std::sqrt(1.0 - kept * kept));
  }
};

struct Wind : Component {
  template <class T>
  struct Groups {
    WindParams<T> wind;
    template <class Visit>
    void each_group(const Visit& visit) {
      visit("wind", wind);
    }
    template <class Params>
    void derive(const Params& exact) {
      wind.derive(exact);
    }
  };

  struct Field {
    enum : int { kSpeed, kCos, kSin, kGust };
  };
  static TensorSpecs specs() {
    // m/s, direction toward which it blows, deviation of the speed now in m/s
    return {{"wind", Number::kReal, {4, "stride"}, "speed cos sin gust"}};
  }

  template <class T>
  struct View {
    T* wind;
    explicit View(const Tables& t) : wind(t.at<T>("wind")) {}
  };
  template <class S>
  MN_HD static auto at(const S& s, int field, int w) {
    return s.wind + int64_t{field} * s.stride + w;
  }

  template <class Params>
  MN_HD static bool disturbs(const Params& p) {
    return p.wind.speed[1] > 0 || p.wind.gust_std > 0;
  }

  /// The force follows the wind relative to the hull, in the hull's frame.
  template <class S, class Params, class V, class T = Scalar<V>>
  MN_HD static void push(const S& s, const Params& p, int w, T, const Hull<V>& hull,
                         Force<V>& force) {
    const V speed = load<V>(at(s, Field::kSpeed, w)) + load<V>(at(s, Field::kGust, w));
    const V x = speed * load<V>(at(s, Field::kCos, w)), y = speed * load<V>(at(s, Field::kSin, w));
    const V ahead = hull.heading.cos * x + hull.heading.sin * y - hull.u;
    const V abeam = hull.heading.cos * y - hull.heading.sin * x - hull.v;
    V by_ahead = absolute(ahead), by_abeam = absolute(abeam);
    if (p.wind.model > T(0.5)) by_ahead = by_abeam = square_root(ahead * ahead + abeam * abeam);
    force.surge = force.surge + ahead * by_ahead * p.wind.per_surge;
    force.sway = force.sway + abeam * by_abeam * p.wind.per_sway;
    force.yaw = force.yaw - ahead * abeam * p.wind.per_yaw;
  }

  /// Speed, direction and first gust of an episode.
  template <class Placement, class T>
  MN_HD static void place(const Placement& place, const T*) {
    const auto& wind = place.p.wind;
    const Philox4<uint32_t> bits = place.random.draw(Purpose::kWind, 0, 0);
    const SinCos<T> toward = sincos_of(between(wind.direction[0], wind.direction[1], bits.w1));
    *at(place.s, Field::kSpeed, place.w) = between(wind.speed[0], wind.speed[1], bits.w0);
    *at(place.s, Field::kCos, place.w) = toward.cos;
    *at(place.s, Field::kSin, place.w) = toward.sin;
    *at(place.s, Field::kGust, place.w) = normal_pair<T>(bits.w2, bits.w3).first * wind.gust_std;
  }

  /// The gust of the next decision.
  template <class V, class S, class Params>
  MN_HD static void advance(const S& s, const Params& p, int w, Mask<V> running) {
    if (!(p.wind.gust_std > 0)) return;
    const auto bits = s.template random<V>(w, 0).draw(Purpose::kGust, 0, 0);
    const V drawn = normal_pair<V>(bits.w0, bits.w1).first * p.wind.gust_drawn;
    const V before = load<V>(at(s, Field::kGust, w));
    store(at(s, Field::kGust, w), select(running, before * p.wind.gust_kept + drawn, before));
  }
};

}  // namespace marinenav
